"""The typed content of a Kptfile, and the text form of field paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from reconciler.api.kpt import UpdateStrategy
from reconciler.krm.objects import ConditionStatus

Profile = Literal["safe", "compat"]


def _decode_config_text(value: object) -> object:
    # Convert booleans and integers to strings, as kpt does. Do not convert floats, because a parsed float does not
    # contain its original text, e.g. "1.10".
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else "" if value is None else value


ConfigText = Annotated[str, BeforeValidator(_decode_config_text)]


class KptfileSection(BaseModel):
    """A section of a Kptfile. Unknown fields are kept. A field with the value null is treated as absent."""

    model_config = ConfigDict(frozen=True, extra="allow", alias_generator=to_camel, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {key: value for key, value in data.items() if value is not None}


class GitUpstream(KptfileSection):
    """The Git location of an upstream package. `ref` is a branch, a tag or a commit."""

    repo: str = ""
    directory: str = ""
    ref: str = ""


class GitLock(GitUpstream):
    """The Git location of an upstream package. `commit` is the commit that `ref` resolved to."""

    commit: str = ""


class KptfileUpstream(KptfileSection):
    """The section `upstream` of a Kptfile: the location of the upstream package and the update strategy."""

    type: str = ""
    git: GitUpstream | None = None
    update_strategy: UpdateStrategy | None = None
    preserve_explicit_null: bool = False


class GenericLock(KptfileSection):
    """The part `generic` of the section `upstreamLock`: the location of an upstream package that is not in Git."""

    store_id: str = Field("", alias="storeID")
    resource_id: str = Field("", alias="resourceID")
    resource_version: str = ""


class UpstreamLock(KptfileSection):
    """The section `upstreamLock` of a Kptfile: the upstream version of the last clone or update.

    `git.commit` is the merge base of the next update.
    """

    type: str = ""
    git: GitLock | None = None
    generic: GenericLock | None = None


class Selector(KptfileSection):
    """A selector of resources for a function.

    A resource must have all values that the selector sets, including all its labels and annotations.
    """

    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    @property
    def is_empty(self) -> bool:
        """Whether the selector sets no field."""
        texts = (self.api_version, self.kind, self.name, self.namespace)
        return not any(texts) and not self.labels and not self.annotations


class FunctionSpec(KptfileSection):
    """One entry of a pipeline: a function with its configuration and selectors."""

    image: str = ""
    exec: str = ""
    name: str = ""
    tag: str = ""
    config_path: str | None = None
    config_map: dict[str, ConfigText] | None = None
    selectors: tuple[Selector, ...] = ()
    exclude: tuple[Selector, ...] = ()

    @property
    def display_name(self) -> str:
        """The image or the command of the function, for messages."""
        return self.image or self.exec


class KptfilePipeline(KptfileSection):
    """The section `pipeline` of a Kptfile: the functions in the order in which they run."""

    mutators: tuple[FunctionSpec, ...] = ()
    validators: tuple[FunctionSpec, ...] = ()


class ReadinessGate(KptfileSection):
    """An entry of `info.readinessGates`: a condition that must be True before the package is published."""

    condition_type: str


class KptfileInfo(KptfileSection):
    """The section `info` of a Kptfile. The reconciler uses only `readiness_gates`."""

    site: str = ""
    emails: tuple[str, ...] = ()
    license: str = ""
    license_file: str = ""
    description: str = ""
    keywords: tuple[str, ...] = ()
    man: str = ""
    readiness_gates: tuple[ReadinessGate, ...] = ()


class StoredCondition(KptfileSection):
    """An entry of `status.conditions` in a Kptfile."""

    type: str
    status: ConditionStatus = "Unknown"
    reason: str = ""
    message: str = ""


class KptfileStatus(KptfileSection):
    """The section `status` of a Kptfile: the conditions, and the render status. Only kpt writes the render status."""

    conditions: tuple[StoredCondition, ...] = ()
    render_status: Any = None


class KptfileMetadata(KptfileSection):
    """The section `metadata` of a Kptfile: the name, labels and annotations of the package."""

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class KptfileInventory(KptfileSection):
    """The section `inventory` of a Kptfile, which identifies the object in which kpt lists the applied resources."""

    namespace: str = ""
    name: str = ""
    inventory_id: str = Field("", alias="inventoryID")
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class KptfileModel(KptfileSection):
    """The typed content of a whole Kptfile."""

    api_version: str
    kind: str
    metadata: KptfileMetadata = KptfileMetadata()
    upstream: KptfileUpstream | None = None
    upstream_lock: UpstreamLock | None = None
    info: KptfileInfo = KptfileInfo()
    pipeline: KptfilePipeline = KptfilePipeline()
    inventory: KptfileInventory | None = None
    status: KptfileStatus = KptfileStatus()
