"""Models of valid override policies, and the effect of one overrider item on a resource."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from reconciler.api.kubeadmiral import ImageComponent, ImageOperator, ListOperator, MapOperator, PatchOperator
from reconciler.controllers.clusters.selection import ClusterSelection
from reconciler.controllers.provenance import EmbeddedChange
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.json_text import compute_digest
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey
from reconciler.krm.selectors import LabelSelector
from reconciler.krm.times import parse_duration_seconds
from reconciler.lazy_dataclasses import dataclass, field

OVERRIDE_POLICY_KIND = "OverridePolicy"
CLUSTER_OVERRIDE_POLICY_KIND = "ClusterOverridePolicy"

TextFormat = Literal["yaml", "json", "toml", "ini"]
Overrider = Literal["image", "command", "args", "envs", "annotations", "labels", "fields", "jsonpatch"]
OVERRIDERS: tuple[Overrider, ...] = (
    "image", "command", "args", "envs", "annotations", "labels", "fields", "jsonpatch",
)  # fmt: skip
"""All overriders in the order in which a rule applies them. The order in the manifest has no effect."""


@dataclass(frozen=True)
class ImageOperation:
    """A change of one part of an image reference: the registry, the repository, the tag or the digest."""

    component: ImageComponent
    operator: ImageOperator
    value: str = ""


@dataclass(frozen=True)
class ImageItem:
    """Changes of images. If `path` is set, the item changes only the image reference at this path.

    If `path` is None, the item changes the images of the containers in `names`. If `names` is empty, it changes the
    images of all containers.
    """

    names: tuple[str, ...] = ()
    path: tuple[str, ...] | None = None
    operations: tuple[ImageOperation, ...] = ()


@dataclass(frozen=True)
class ListItem:
    """A change of `command` or `args` in one container."""

    container: str
    operator: ListOperator
    value: tuple[str, ...]


@dataclass(frozen=True)
class EnvItem:
    """A change of the environment of one container. `value` contains complete entries of `env`."""

    container: str
    operator: MapOperator
    value: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class MapItem:
    """A change of the labels or annotations of a resource."""

    operator: MapOperator
    value: Mapping[str, str]


@dataclass(frozen=True)
class PatchItem:
    """One operation of a JSON patch. `value` is ABSENT if the operation has no value."""

    operator: PatchOperator
    path: tuple[str, ...]
    value: Any = ABSENT


@dataclass(frozen=True)
class FieldItem:
    """JSON patch operations on a YAML, JSON, TOML or ini document. The document is the string at `path`."""

    path: tuple[str, ...]
    format: TextFormat
    operations: tuple[PatchItem, ...]


OverrideItem = ImageItem | ListItem | EnvItem | MapItem | FieldItem | PatchItem


@dataclass(frozen=True)
class Rollout:
    """The waves in which clusters receive a new version of a rule.

    `soak` is the time between the publication of one wave and the start of the next wave. A cluster is in the first
    wave that selects the cluster. Clusters that no wave selects are in an additional last wave.
    """

    waves: tuple[ClusterSelection, ...]
    soak: str = ""

    @property
    def soak_seconds(self) -> int:
        """The soak time in seconds. It is 0 if the rollout has no soak time."""
        return parse_duration_seconds(self.soak) or 0


@dataclass(frozen=True)
class OverrideRule:
    """One entry of `overrideRules`.

    Attributes:
        overriders: The overriders in the order of OVERRIDERS. The items of each overrider have the order of the
            manifest.
        template: The overriders as data with cluster variables, which are replaced for each cluster. None if the
            overriders contain no variables.
        text: The clusters and overriders of the rule as JSON. The state stores this text.
    """

    targets: ClusterSelection = field(default_factory=ClusterSelection)
    overriders: tuple[tuple[Overrider, tuple[OverrideItem, ...]], ...] = ()
    template: Any = None
    name: str = ""
    rollout: Rollout | None = None
    text: str = ""

    @property
    def digest(self) -> str:
        """A short digest of `text`."""
        return digest_rule_text(self.text)


def digest_rule_text(text: str) -> str:
    """Return a short digest of the JSON text that a rule has in `OverrideRule.text`."""
    return compute_digest(text)


@dataclass(frozen=True)
class ResourceSelector:
    """The resources that a policy selects: the resources of a group and kind, in all versions.

    `namespace`, `name` and `labels` can restrict the selection. If the selector cannot be read, `kind` is "". It may
    then select any resource in `namespace`, or any resource in all namespaces if `namespace` is "" too.
    """

    group: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    labels: LabelSelector | None = None

    @property
    def is_unreadable(self) -> bool:
        """Whether the selector could not be read. Such a selector may select any resource."""
        return not self.kind

    def as_data(self) -> list[Any]:
        """Return the selector as data. Equal selectors have equal data."""
        labels = None if self.labels is None else self.labels.as_data()
        return [self.group, self.kind, self.namespace, self.name, labels]


@dataclass(frozen=True)
class OverridePolicy:
    """A valid policy, and its location in the config."""

    key: ObjectKey
    file: str
    line: int
    digest: str
    rules: tuple[OverrideRule, ...]

    @property
    def label(self) -> str:
        """The name of the policy in messages and provenance, e.g. "OverridePolicy/namespace/name"."""
        return "/".join(part for part in (self.key.kind, self.key.namespace, self.key.name) if part)


@dataclass(frozen=True)
class OverrideEffect:
    """The effect of one overrider item: the changed data of a resource, and issues.

    `data` is the same object as before if the item changes nothing. If an issue is an error, `data` must not be used.
    """

    data: Any
    issues: tuple[ResourceIssue, ...] = ()
    inside: EmbeddedChange | None = None

    @property
    def has_errors(self) -> bool:
        """Whether one of the issues is an error."""
        return any(issue.is_error for issue in self.issues)

    def and_then(self, step: Callable[[Any], OverrideEffect]) -> OverrideEffect:
        """Return the combined effect of this effect and `step`. Skip `step` if this effect has errors."""
        if self.has_errors:
            return self
        after = step(self.data)
        return OverrideEffect(after.data, self.issues + after.issues)
