"""Values of override policies that were read and are valid, and the result of one overrider item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reconciler.controllers.clusters.selection import ClusterSelection
from reconciler.controllers.provenance import EmbeddedChange
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.json_text import compute_digest
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey
from reconciler.krm.selectors import LabelSelector
from reconciler.krm.times import parse_duration_seconds

KUBEADMIRAL_GROUP = "core.kubeadmiral.io"
KUBEADMIRAL_API_VERSION = f"{KUBEADMIRAL_GROUP}/v1alpha1"
OVERRIDE_POLICY_KIND = "OverridePolicy"
CLUSTER_OVERRIDE_POLICY_KIND = "ClusterOverridePolicy"

ImageComponent = Literal["Registry", "Repository", "Tag", "Digest"]
ImageOperator = Literal["addIfAbsent", "overwrite", "delete"]
MapOperator = Literal["addIfAbsent", "overwrite", "delete", "set"]
ListOperator = Literal["append", "overwrite", "delete"]
PatchOperator = Literal["add", "remove", "replace", "set"]
TextFormat = Literal["yaml", "json", "toml", "ini"]
Overrider = Literal["image", "command", "args", "envs", "annotations", "labels", "fields", "jsonpatch"]
OVERRIDERS: tuple[Overrider, ...] = (
    "image", "command", "args", "envs", "annotations", "labels", "fields", "jsonpatch",
)  # fmt: skip
"""In the order in which a rule applies them, independent of the order in the file."""


@dataclass(frozen=True)
class ImageOperation:
    """A change of one component of an image reference."""

    component: ImageComponent
    operator: ImageOperator
    value: str = ""


@dataclass(frozen=True)
class ImageItem:
    """Changes of images: those of the named containers, of all containers without names, or the string at `path`."""

    names: tuple[str, ...] = ()
    path: tuple[str, ...] | None = None
    operations: tuple[ImageOperation, ...] = ()


@dataclass(frozen=True)
class ListItem:
    """A change of the command or args of one container."""

    container: str
    operator: ListOperator
    value: tuple[str, ...]


@dataclass(frozen=True)
class EnvItem:
    """A change of the environment of one container; `value` contains complete entries."""

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
    """One operation of a JSON patch; `value` is ABSENT if the operation has none."""

    operator: PatchOperator
    path: tuple[str, ...]
    value: Any = ABSENT


@dataclass(frozen=True)
class FieldItem:
    """JSON patch operations on the content of the string at `path`."""

    path: tuple[str, ...]
    format: TextFormat
    operations: tuple[PatchItem, ...]


OverrideItem = ImageItem | ListItem | EnvItem | MapItem | FieldItem | PatchItem


@dataclass(frozen=True)
class Rollout:
    """The waves in which clusters receive the text of a rule, and the soak time of a wave before the next one starts.

    A cluster is in the first wave that selects it. Clusters that no wave selects are in one more wave after the others.
    """

    waves: tuple[ClusterSelection, ...]
    soak: str = ""

    @property
    def soak_seconds(self) -> int:
        """The soak time in seconds; 0 if there is none."""
        return parse_duration_seconds(self.soak) or 0


@dataclass(frozen=True)
class OverrideRule:
    """One entry of overrideRules; `overriders` are in the order of OVERRIDERS, each with its items in written order.

    Attributes:
        template: The overriders as data if they contain variables; each cluster then has its own items.
        text: The rule's clusters and overriders as JSON, so that it can be stored and read again later.
    """

    targets: ClusterSelection = field(default_factory=ClusterSelection)
    overriders: tuple[tuple[Overrider, tuple[OverrideItem, ...]], ...] = ()
    template: Any = None
    name: str = ""
    rollout: Rollout | None = None
    text: str = ""

    @property
    def digest(self) -> str:
        """A short digest of the text."""
        return digest_rule_text(self.text)


def digest_rule_text(text: str) -> str:
    """Return a short digest of the text of a rule."""
    return compute_digest(text)


@dataclass(frozen=True)
class ResourceSelector:
    """The resources that a policy selects: by group and kind for all versions, optionally by namespace, name or labels.

    An unreadable selector may select any resource of its namespace, or of all namespaces.
    """

    group: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    labels: LabelSelector | None = None

    @property
    def is_unreadable(self) -> bool:
        """Whether the selector could not be read."""
        return not self.kind

    def as_data(self) -> list[Any]:
        """Return the content as data, so that selectors with equal selections compare equal."""
        labels = None if self.labels is None else self.labels.as_data()
        return [self.group, self.kind, self.namespace, self.name, labels]


@dataclass(frozen=True)
class OverridePolicy:
    """A valid policy and its location."""

    key: ObjectKey
    file: str
    line: int
    digest: str
    rules: tuple[OverrideRule, ...]

    @property
    def label(self) -> str:
        """The policy's name in provenance and messages: kind, namespace if it has one, and name."""
        return "/".join(part for part in (self.key.kind, self.key.namespace, self.key.name) if part)


@dataclass(frozen=True)
class OverrideEffect:
    """The data of a resource after one item (the same object if unchanged), with issues; unusable after an error."""

    data: Any
    issues: tuple[ResourceIssue, ...] = ()
    inside: EmbeddedChange | None = None

    @property
    def has_errors(self) -> bool:
        """Whether one of the issues is an error."""
        return any(issue.is_error for issue in self.issues)

    def and_then(self, step: Callable[[Any], OverrideEffect]) -> OverrideEffect:
        """Return the combined effect of this one and a next step, which is skipped after an error."""
        if self.has_errors:
            return self
        after = step(self.data)
        return OverrideEffect(after.data, self.issues + after.issues)
