"""Options for the build of a Kustomize overlay: the field `kustomize` of PackageVariants and of templates.

The field names are those of a kustomization.yaml, Argo CD and Flux. This module does not read the files of an overlay.
"""

import posixpath
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictBool, StrictInt

from reconciler.api.base import ApiModel, FieldIssue, find_either_issues, issue
from reconciler.api.field_types import Annotations, NonEmptyText, check_text
from reconciler.krm.field_text import quote_value
from reconciler.krm.names import validate_dns_label


def _check_path(path: str) -> str:
    if "://" in path or path.startswith("/") or posixpath.normpath(path).split("/")[0] == "..":
        rule = 'a relative path below the upstream package, such as "overlays/prod"'
        raise issue(f"{{path}} must be {rule}, but is {quote_value(path)}", "PathInvalid")
    return path


def _check_component(path: str) -> str:
    if "://" in path or path.startswith("/"):
        raise issue(
            f'{{path}} must be a relative path, such as "../components/tls", but is {quote_value(path)}', "PathInvalid"
        )
    return path


OverlayChartPolicy = Literal["refuse", "render"]
_FolderPath = Annotated[str, AfterValidator(_check_path)]
_PATH = "Folder below the upstream package that is built, such as overlays/prod. The default is the package itself."


class ImageChange(ApiModel):
    """A new name, tag or digest for an image."""

    name: NonEmptyText = Field(description="Name of the image without a tag.", examples=["example.com/web"])
    new_name: str = Field("", description="New name of the image.")
    new_tag: str = Field("", description="New tag of the image.")
    digest: str = Field("", description="New digest of the image. It replaces the tag.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue if no field changes the image."""
        if not any(data.get(name) for name in ("newName", "newTag", "digest")):
            yield FieldIssue("{path} must specify newName, newTag or digest")


class ReplicaCount(ApiModel):
    """A new number of replicas of a workload."""

    name: NonEmptyText = Field(description="Name of the workload.")
    count: Annotated[StrictInt, Field(ge=0)] = Field(description="Number of replicas.")

    def as_data(self) -> dict[str, Any]:
        """Return the fields in the notation of the API. The number 0 is kept."""
        return {"name": self.name, "count": self.count}


class PatchTarget(ApiModel):
    """The resources that a patch changes. Empty fields select all resources."""

    group: str = Field("", description="API group.")
    version: str = Field("", description="API version without the group.")
    kind: str = Field("", description="Kind, as a regular expression.")
    name: str = Field("", description="Name, as a regular expression.")
    namespace: str = Field("", description="Namespace, as a regular expression.")
    label_selector: str = Field("", description="Label selector, such as app=web.")
    annotation_selector: str = Field("", description="Selector of annotations.")


class PatchOptions(ApiModel):
    """Whether a patch can change the identity of a resource."""

    allow_name_change: StrictBool = Field(False, description="Whether the patch can change the name.")
    allow_kind_change: StrictBool = Field(False, description="Whether the patch can change the kind.")


class OverlayPatch(ApiModel):
    """A patch of the resources."""

    patch: NonEmptyText = Field(description="Strategic merge patch, or JSON patch (RFC 6902), as YAML text.")
    target: PatchTarget | None = None
    options: PatchOptions | None = None


class _KustomizeFields(ApiModel):
    """The options that PackageVariants and templates have in common."""

    images: tuple[ImageChange, ...] = Field((), description="Changes of images.")
    replicas: tuple[ReplicaCount, ...] = Field((), description="Changes of the numbers of replicas.")
    namespace: Annotated[str, check_text(validate_dns_label, "{path} is invalid")] = Field(
        "", description="Namespace of all resources that can have one."
    )
    name_prefix: str = Field("", description="Text before the name of each resource.")
    name_suffix: str = Field("", description="Text after the name of each resource.")
    common_annotations: Annotations = Field({}, description="Annotations of all resources.")
    components: tuple[Annotated[NonEmptyText, AfterValidator(_check_component)], ...] = Field(
        (), description="Folders with Kustomize components, relative to path."
    )
    patches: tuple[OverlayPatch, ...] = Field((), description="Patches, in the order in which they are applied.")
    helm_charts: OverlayChartPolicy = Field(
        "refuse",
        description=(
            "Behavior if a kustomization.yaml contains helmCharts. refuse: it is an error. render: the charts are "
            "downloaded through the Repositories with the same URLs, and rendered."
        ),
    )


class KustomizeOptions(_KustomizeFields):
    """How a Kustomize overlay is built.

    All fields except path are applied to the built resources, as in a kustomization.yaml that has the overlay as its
    resource.
    """

    path: _FolderPath = Field("", description=_PATH, examples=["overlays/prod"])


class KustomizeOptionsTemplate(_KustomizeFields):
    """How a Kustomize overlay is built for a target of the set."""

    path: _FolderPath = Field("", description=_PATH + " Use either path or pathExpr.", examples=["overlays/prod"])
    path_expr: str = Field(
        "", description="CEL expression that returns the folder.", examples=["'overlays/' + repository.name"]
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue if the path is both a literal and an expression."""
        yield from find_either_issues(data, "path", is_required=False)
