"""Override policies as values: what was read and found sound (kubeadmiral 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.digest import digest
from reconciler.krm.durations import duration_seconds
from reconciler.krm.identity import ObjectKey
from reconciler.krm.selectors import LabelSelector
from reconciler.rules.clusters.model import Targets

GROUP = "core.kubeadmiral.io"
API_VERSION = f"{GROUP}/v1alpha1"
NAMESPACED_KIND = "OverridePolicy"
CLUSTER_KIND = "ClusterOverridePolicy"

Component = Literal["Registry", "Repository", "Tag", "Digest"]
ImageOperator = Literal["addIfAbsent", "overwrite", "delete"]
MapOperator = Literal["addIfAbsent", "overwrite", "delete", "set"]
ListOperator = Literal["append", "overwrite", "delete"]
PatchOperator = Literal["add", "remove", "replace", "set"]
TextFormat = Literal["yaml", "json", "toml", "ini"]
Overrider = Literal["image", "command", "args", "envs", "annotations", "labels", "fields", "jsonpatch"]
OVERRIDERS: tuple[Overrider, ...] = (
    "image", "command", "args", "envs", "annotations", "labels", "fields", "jsonpatch",
)  # fmt: skip
"""In the order in which a rule applies them, whatever the order in its file (kubeadmiral 4, 12)."""


@dataclass(frozen=True)
class ImageOperation:
    """A change of one component of an image."""

    component: Component
    operator: ImageOperator
    value: str = ""


@dataclass(frozen=True)
class ImageItem:
    """Changes of the images of some containers, all without names, or of the string at `path`."""

    names: tuple[str, ...] = ()
    path: tuple[str, ...] | None = None
    operations: tuple[ImageOperation, ...] = ()


@dataclass(frozen=True)
class ListItem:
    """A change of the command or the arguments of one container."""

    container: str
    operator: ListOperator
    value: tuple[str, ...]


@dataclass(frozen=True)
class EnvItem:
    """A change of the environment of one container; the entries are as they are to stand in it."""

    container: str
    operator: MapOperator
    value: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class MapItem:
    """A change of the labels or annotations of the object."""

    operator: MapOperator
    value: Mapping[str, str]


@dataclass(frozen=True)
class PatchItem:
    """One operation of a JSON patch; `value` is ABSENT where none is written."""

    operator: PatchOperator
    path: tuple[str, ...]
    value: Any = ABSENT


@dataclass(frozen=True)
class FieldItem:
    """Operations of a patch on what the string at `path` holds."""

    path: tuple[str, ...]
    format: TextFormat
    operations: tuple[PatchItem, ...]


Item = ImageItem | ListItem | EnvItem | MapItem | FieldItem | PatchItem


@dataclass(frozen=True)
class Rollout:
    """The waves in which clusters get the text of a rule, and how long it must have stood in one before the next.

    A cluster is in the first wave that lets it through; those that none does are in one more, after all others.
    """

    waves: tuple[Targets, ...]
    soak: str = ""

    @property
    def soak_seconds(self) -> int:
        """The soak time; 0 where none is written."""
        return duration_seconds(self.soak) or 0


@dataclass(frozen=True)
class Rule:
    """One of overrideRules; `overriders` are in the order of OVERRIDERS, each with its items as written.

    `template` are the overriders as data, if they have variables: then every cluster has items of its own. `text` is
    all that it says of clusters and overriders, so that it can be kept, and read again later.
    """

    targets: Targets = field(default_factory=Targets)
    overriders: tuple[tuple[Overrider, tuple[Item, ...]], ...] = ()
    template: Any = None
    name: str = ""
    rollout: Rollout | None = None
    text: str = ""

    @property
    def digest(self) -> str:
        """A short name for the text."""
        return text_digest(self.text)


def text_digest(text: str) -> str:
    """Return the short name of the text of a rule."""
    return digest(text)


@dataclass(frozen=True)
class ResourceSelector:
    """Which resources a policy chooses: by group and kind whatever the version, and more closely where more is said.

    An unreadable one may be meant for any resource of the namespace, or of all: what it says nobody knows.
    """

    group: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    labels: LabelSelector | None = None

    @property
    def is_unreadable(self) -> bool:
        """Whether nobody knows what is meant."""
        return not self.kind

    def as_data(self) -> list[Any]:
        """Return all that it says, so that selectors that choose the same way are equal."""
        labels = None if self.labels is None else self.labels.as_data()
        return [self.group, self.kind, self.namespace, self.name, labels]


@dataclass(frozen=True)
class Policy:
    """A sound policy, and where it is written."""

    key: ObjectKey
    file: str
    line: int
    digest: str
    rules: tuple[Rule, ...]

    @property
    def label(self) -> str:
        """How provenance and messages name it: kind, namespace if it has one, name (kubeadmiral 10.3)."""
        return "/".join(part for part in (self.key.kind, self.key.namespace, self.key.name) if part)
