"""The inputs and the result of the render of a chart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding
from reconciler.lazy_dataclasses import asdict, dataclass, field, replace

HookPolicy = Literal["keep", "drop", "argocd"]
NamespacePolicy = Literal["missing", "none"]
NondeterminismPolicy = Literal["refuse", "fixed"]


@dataclass(frozen=True)
class ChartRequest:
    """All inputs of a chart render except the files of the chart and the program.

    Attributes:
        release_name: The value of `.Release.Name`.
        namespace: The value of `.Release.Namespace`.
        kube_version: The value of `.Capabilities.KubeVersion`, e.g. "1.34.0".
        values: The merged values that override the chart's own `values.yaml`, as canonical JSON text.
        api_versions: Texts that are added to `.Capabilities.APIVersions`.
        set_namespace: Whether namespaced resources without a namespace get `namespace` ("missing") or stay unchanged
            ("none").
        create_namespace: Whether a Namespace resource is added.
        include_crds: Whether the resources in the folders `crds` of the chart are included.
        skip_tests: Whether resources with a test hook are left out.
        hooks: Which other hooks are written.
        skip_schema_validation: Whether `values.schema.json` is ignored.
        on_nondeterminism: What happens if the output depends on a clock or on randomness: an error ("refuse"), or fixed
            values ("fixed").
        identity: The identity of the package. Only fixed values depend on it.
        allowed_secrets: Secrets with values that are allowed in the output, as "Kind/name".
        is_preview: Whether the output is only compared with another preview, and never written. Values of Secrets are
            then masked, and random values have placeholders.
    """

    release_name: str
    namespace: str
    kube_version: str
    values: str = "{}"
    api_versions: tuple[str, ...] = ()
    set_namespace: NamespacePolicy = "missing"
    create_namespace: bool = False
    include_crds: bool = True
    skip_tests: bool = True
    hooks: HookPolicy = "keep"
    skip_schema_validation: bool = False
    on_nondeterminism: NondeterminismPolicy = "refuse"
    identity: str = ""
    allowed_secrets: tuple[str, ...] = ()
    is_preview: bool = False

    @property
    def release(self) -> str:
        """The namespace and the name of the release."""
        return f"{self.namespace}/{self.release_name}"

    @property
    def key(self) -> dict[str, Any]:
        """All fields that the output depends on. Requests with equal keys have equal output for the same chart."""
        fields = {**asdict(self), "api_versions": sorted(self.api_versions)}
        if self.on_nondeterminism == "refuse":
            del fields["identity"]
        if not self.is_preview:
            # Omit the field, so that the key is the same as in earlier versions of the reconciler, which have no
            # previews.
            del fields["is_preview"]
        return fields

    def as_preview(self) -> ChartRequest:
        """Return the request for a preview. The rules for content in Git do not apply to a preview."""
        return replace(
            self, is_preview=True, on_nondeterminism="refuse", identity="", allowed_secrets=(), create_namespace=False
        )


@dataclass(frozen=True)
class RenderedSource:
    """The result of a render.

    Attributes:
        files: One file per resource, without a Kptfile. Do not use the files if `findings` contains an error.
        findings: Errors, warnings and information about the render.
        templates: Maps each path in `files` to the template file that wrote it. The path of the template file is
            relative to the chart folder.
    """

    files: FileTree = field(default_factory=FileTree)
    findings: tuple[Finding, ...] = ()
    templates: Mapping[str, str] = field(default_factory=dict)


class RenderFailedError(Exception):
    """A chart cannot be rendered.

    Attributes:
        findings: The errors.
        is_temporary: Whether a later render with the same input can succeed.
    """

    def __init__(self, findings: tuple[Finding, ...], *, is_temporary: bool = False) -> None:
        super().__init__(findings)
        self.findings = findings
        self.is_temporary = is_temporary
