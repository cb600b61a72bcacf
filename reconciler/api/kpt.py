"""Kinds of kpt: the Kptfile, and the parts of a pipeline that PackageVariants also have."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StrictBool, WithJsonSchema

from reconciler.api.base import ApiModel
from reconciler.api.manifest import KrmObject, Metadata
from reconciler.krm.objects import ConditionStatus

UpdateStrategy = Literal["resource-merge", "copy-merge", "fast-forward", "force-delete-replace"]
"""The method with which an update of a package merges upstream changes and local changes."""
KPT_API_VERSION = "kpt.dev/v1"

_LABELS = "Labels that the resource must have."
_ANNOTATIONS = "Annotations that the resource must have."


def _decode_config_text(value: object) -> object:
    # Convert booleans and integers to strings, as kpt does. Do not convert floats, because a parsed float does not
    # contain its original text, e.g. "1.10".
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else "" if value is None else value


ConfigText = Annotated[
    str, BeforeValidator(_decode_config_text), WithJsonSchema({"type": ["string", "integer", "boolean", "null"]})
]


class KptfileSection(ApiModel):
    """A section of a Kptfile. Unknown fields are kept."""

    model_config = ConfigDict(extra="allow")
    is_open: ClassVar = True


class GitUpstream(KptfileSection):
    """The Git repository of the upstream package."""

    repo: str = Field("", description="URL or path of the repository.")
    directory: str = Field("", description="Folder of the package in the repository.")
    ref: str = Field("", description="Branch, tag or commit that contains the package.")


class GitLock(GitUpstream):
    """The Git repository and the merged commit of the upstream package."""

    commit: str = Field("", description="Commit that the last update merged.")


class KptfileUpstream(KptfileSection):
    """The upstream of the package, and its update strategy."""

    type: str = Field("", description="Type of the upstream. The only allowed value is git.")
    git: GitUpstream | None = None
    update_strategy: UpdateStrategy | None = Field(
        None, description="Strategy for merging upstream changes and local changes."
    )
    preserve_explicit_null: StrictBool = Field(
        False, description="Whether explicit null values of upstream resources are kept."
    )


class GenericLock(KptfileSection):
    """The version of an upstream package that is not stored in Git."""

    store_id: str = Field("", alias="storeID", description="ID of the store that contains the package.")
    resource_id: str = Field("", alias="resourceID", description="ID of the package in the store.")
    resource_version: str = Field("", description="Version of the package.")


class UpstreamLock(KptfileSection):
    """The upstream version that the last update merged. Its commit is the merge base of the next update."""

    type: str = Field("", description="Type of the upstream: git or generic.")
    git: GitLock | None = None
    generic: GenericLock | None = None


class FunctionSelector(KptfileSection):
    """Properties that a resource must have to be selected."""

    api_version: str = Field("", description="API group and version that the resource must have.")
    kind: str = Field("", description="Kind that the resource must have.")
    name: str = Field("", description="Name that the resource must have.")
    namespace: str = Field("", description="Namespace that the resource must have.")
    labels: dict[str, str] = Field(default_factory=dict, description=_LABELS)
    annotations: dict[str, str] = Field(default_factory=dict, description=_ANNOTATIONS)

    @property
    def is_empty(self) -> bool:
        """Whether the selector sets no field."""
        texts = (self.api_version, self.kind, self.name, self.namespace)
        return not any(texts) and not self.labels and not self.annotations


class FunctionSpec(KptfileSection):
    """One entry of a pipeline: a function with its configuration and selectors."""

    image: str = Field(
        "", description="Image of the function. Use either image or exec.", examples=["set-namespace:v0.4.1"]
    )
    exec: str = Field("", description="Program that implements the function. Use either exec or image.")
    tag: str = Field("", description="Tag of the image, if the field image contains no tag.")
    name: str = Field("", description="Name of the function in this pipeline.")
    config_path: str | None = Field(None, description="File in the package that configures the function.")
    config_map: dict[str, ConfigText] | None = Field(
        None, description="Data of the ConfigMap that configures the function."
    )
    selectors: tuple[FunctionSelector, ...] = Field(
        (), description="Resources that are passed to the function. The default is all resources."
    )
    exclude: tuple[FunctionSelector, ...] = Field((), description="Resources that are not passed to the function.")

    @property
    def display_name(self) -> str:
        """The image or the command of the function, for messages."""
        return self.image or self.exec


class KptfilePipeline(KptfileSection):
    """Functions that change and validate the resources of the package."""

    mutators: tuple[FunctionSpec, ...] = Field(
        (), description="Functions that change resources, in the order of execution."
    )
    validators: tuple[FunctionSpec, ...] = Field(
        (), description="Functions that validate resources, in the order of execution."
    )


class ReadinessGate(KptfileSection):
    """A condition that must be True before the package is published."""

    condition_type: str = Field(description="Type of the condition.")


class KptfileInfo(KptfileSection):
    """Information about the package. Only the readiness gates have an effect on the reconciler."""

    site: str = Field("", description="Home page.")
    emails: tuple[str, ...] = Field((), description="Email addresses of the authors.")
    license: str = Field("", description="License.")
    license_file: str = Field("", description="File with the text of the license.")
    description: str = Field("", description="Description.")
    keywords: tuple[str, ...] = Field((), description="Search keywords.")
    man: str = Field("", description="File with the manual.")
    readiness_gates: tuple[ReadinessGate, ...] = Field(
        (), description="Conditions that must be True before the package can be published."
    )


class StoredCondition(KptfileSection):
    """A condition of the package."""

    type: str = Field(description="Type of the condition.")
    status: ConditionStatus = Field("Unknown", description="Status of the condition.")
    reason: str = Field("", description="Reason for the status, as one word.")
    message: str = Field("", description="Message.")


class KptfileStatus(KptfileSection):
    """Conditions of the package."""

    conditions: tuple[StoredCondition, ...] = Field((), description="List of conditions.")
    render_status: Any = Field(None, description="Status of the last render, which kpt writes.")


class KptfileInventory(KptfileSection):
    """The inventory that the command kpt live apply uses."""

    namespace: str = Field("", description="Namespace of the inventory.")
    name: str = Field("", description="Name of the inventory.")
    inventory_id: str = Field("", alias="inventoryID", description="ID of the inventory.")
    labels: dict[str, str] = Field(default_factory=dict, description="Labels of the inventory.")
    annotations: dict[str, str] = Field(default_factory=dict, description="Annotations of the inventory.")


class PackageMetadata(Metadata):
    """Metadata of a package."""

    model_config = ConfigDict(extra="allow")

    name: str = Field("", description="Name of the package.")
    namespace: str = Field("", description="Namespace of the package.")
    labels: dict[str, str] = Field(default_factory=dict, description="Labels of the package.")
    annotations: dict[str, str] = Field(default_factory=dict, description="Annotations of the package.")


class Kptfile(KrmObject):
    """The metadata, the upstream and the functions of a package."""

    model_config = ConfigDict(extra="allow")
    api_versions: ClassVar = (KPT_API_VERSION,)
    is_open: ClassVar = True
    is_name_optional: ClassVar = True

    metadata: PackageMetadata = PackageMetadata()
    upstream: KptfileUpstream | None = None
    upstream_lock: UpstreamLock | None = None
    info: KptfileInfo = KptfileInfo()
    pipeline: KptfilePipeline = KptfilePipeline()
    inventory: KptfileInventory | None = None
    status: KptfileStatus = KptfileStatus()
