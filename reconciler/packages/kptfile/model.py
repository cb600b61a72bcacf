"""What a Kptfile says, typed (kpt.md 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from reconciler.krm.conditions import Status

Profile = Literal["safe", "compat"]
Strategy = Literal["resource-merge", "fast-forward", "force-delete-replace", "copy-merge"]


def _as_config_text(value: object) -> object:
    # upstream decodes any scalar into the string it was; a float's text cannot be told from its value, so it is refused
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else "" if value is None else value


ConfigText = Annotated[str, BeforeValidator(_as_config_text)]


class Section(BaseModel):
    """A part of a Kptfile: unknown fields are kept, null reads as absent."""

    model_config = ConfigDict(frozen=True, extra="allow", alias_generator=to_camel, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {key: value for key, value in data.items() if value is not None}


class GitUpstream(Section):
    """Where a package comes from; `ref` is a branch, tag or commit."""

    repo: str = ""
    directory: str = ""
    ref: str = ""


class GitLock(GitUpstream):
    """The same, resolved."""

    commit: str = ""


class Upstream(Section):
    """upstream: what to follow and how to merge it."""

    type: str = ""
    git: GitUpstream | None = None
    update_strategy: Strategy | None = None
    preserve_explicit_null: bool = False


class GenericLock(Section):
    """An upstream that is not Git."""

    store_id: str = Field("", alias="storeID")
    resource_id: str = Field("", alias="resourceID")
    resource_version: str = ""


class UpstreamLock(Section):
    """upstreamLock: what was merged last; `git.commit` is the origin of the next merge."""

    type: str = ""
    git: GitLock | None = None
    generic: GenericLock | None = None


class Selector(Section):
    """Which resources a function sees: all given fields are equal, labels and annotations are subsets (kpt.md 2)."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    @property
    def is_empty(self) -> bool:
        """Whether it asks for nothing."""
        texts = (self.api_version, self.kind, self.name, self.namespace)
        return not any(texts) and not self.labels and not self.annotations


class FunctionSpec(Section):
    """One entry of a pipeline."""

    image: str = ""
    exec: str = ""
    name: str = ""
    tag: str = ""
    config_path: str | None = None
    config_map: dict[str, ConfigText] | None = None
    selectors: tuple[Selector, ...] = ()
    exclude: tuple[Selector, ...] = ()

    @property
    def label(self) -> str:
        """What people call the function: its image or command."""
        return self.image or self.exec


class Pipeline(Section):
    """pipeline: functions in the order they run."""

    mutators: tuple[FunctionSpec, ...] = ()
    validators: tuple[FunctionSpec, ...] = ()


class ReadinessGate(Section):
    """info.readinessGates[]: a condition that must be True before the package is published."""

    condition_type: str


class Info(Section):
    """info: the parts with a meaning for us."""

    site: str = ""
    emails: tuple[str, ...] = ()
    license: str = ""
    license_file: str = ""
    description: str = ""
    keywords: tuple[str, ...] = ()
    man: str = ""
    readiness_gates: tuple[ReadinessGate, ...] = ()


class StoredCondition(Section):
    """status.conditions[] as it stands in the file."""

    type: str
    status: Status = "Unknown"
    reason: str = ""
    message: str = ""


class KptfileStatus(Section):
    """status: conditions, and the render status that upstream's tool leaves there (never written by us, D26)."""

    conditions: tuple[StoredCondition, ...] = ()
    render_status: Any = None


class Metadata(Section):
    """metadata: the package name, labels and annotations."""

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Inventory(Section):
    """inventory: which cluster-side inventory the package is applied with."""

    namespace: str = ""
    name: str = ""
    inventory_id: str = Field("", alias="inventoryID")
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class KptfileModel(Section):
    """The typed view of a whole Kptfile."""

    api_version: str
    kind: str
    metadata: Metadata = Metadata()
    upstream: Upstream | None = None
    upstream_lock: UpstreamLock | None = None
    info: Info = Info()
    pipeline: Pipeline = Pipeline()
    inventory: Inventory | None = None
    status: KptfileStatus = KptfileStatus()
