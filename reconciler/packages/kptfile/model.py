"""The typed content of a Kptfile, and the notation of field paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from reconciler.krm.objects import ConditionStatus


def format_field_path(path: Sequence[str | int]) -> str:
    """Return a path in the notation `pipeline.mutators[0].configPath`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


Profile = Literal["safe", "compat"]
Strategy = Literal["resource-merge", "fast-forward", "force-delete-replace", "copy-merge"]


def _decode_config_text(value: object) -> object:
    # kpt decodes every scalar into its source text. A float's value does not contain its source text, so that a float
    # is rejected.
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else "" if value is None else value


ConfigText = Annotated[str, BeforeValidator(_decode_config_text)]


class KptfileSection(BaseModel):
    """A section of a Kptfile. Unknown fields are kept, and null reads as absent."""

    model_config = ConfigDict(frozen=True, extra="allow", alias_generator=to_camel, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {key: value for key, value in data.items() if value is not None}


class GitUpstream(KptfileSection):
    """Git location of an upstream package; `ref` is a branch, tag or commit."""

    repo: str = ""
    directory: str = ""
    ref: str = ""


class GitLock(GitUpstream):
    """Git location of an upstream package with its resolved commit."""

    commit: str = ""


class KptfileUpstream(KptfileSection):
    """upstream: the location of the upstream package and the update strategy."""

    type: str = ""
    git: GitUpstream | None = None
    update_strategy: Strategy | None = None
    preserve_explicit_null: bool = False


class GenericLock(KptfileSection):
    """Location of an upstream package outside of Git."""

    store_id: str = Field("", alias="storeID")
    resource_id: str = Field("", alias="resourceID")
    resource_version: str = ""


class UpstreamLock(KptfileSection):
    """upstreamLock: the upstream revision of the last merge; `git.commit` is the origin of the next merge."""

    type: str = ""
    git: GitLock | None = None
    generic: GenericLock | None = None


class Selector(KptfileSection):
    """Selects the resources of a function. All given fields must be equal; labels and annotations must be subsets."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    @property
    def is_empty(self) -> bool:
        """Whether the selector has no field."""
        texts = (self.api_version, self.kind, self.name, self.namespace)
        return not any(texts) and not self.labels and not self.annotations


class FunctionSpec(KptfileSection):
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
    def display_name(self) -> str:
        """The image or command, for messages."""
        return self.image or self.exec


class KptfilePipeline(KptfileSection):
    """pipeline: the functions in their order of execution."""

    mutators: tuple[FunctionSpec, ...] = ()
    validators: tuple[FunctionSpec, ...] = ()


class ReadinessGate(KptfileSection):
    """info.readinessGates[]: a condition that must be True before the package is published."""

    condition_type: str


class KptfileInfo(KptfileSection):
    """info: the fields that this project uses, and other fields that kpt defines."""

    site: str = ""
    emails: tuple[str, ...] = ()
    license: str = ""
    license_file: str = ""
    description: str = ""
    keywords: tuple[str, ...] = ()
    man: str = ""
    readiness_gates: tuple[ReadinessGate, ...] = ()


class StoredCondition(KptfileSection):
    """status.conditions[] as written in the file."""

    type: str
    status: ConditionStatus = "Unknown"
    reason: str = ""
    message: str = ""


class KptfileStatus(KptfileSection):
    """status: the conditions, and the render status that kpt writes. This project never writes the render status."""

    conditions: tuple[StoredCondition, ...] = ()
    render_status: Any = None


class KptfileMetadata(KptfileSection):
    """metadata: the package name, labels and annotations."""

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class KptfileInventory(KptfileSection):
    """inventory: the inventory object in the cluster with which kpt applies the package."""

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
