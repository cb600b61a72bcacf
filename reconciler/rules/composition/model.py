"""What composition reads, as values: types, components, bindings, environments and builds (openchoreo 1, design 10.22).

Definitions and addons, which hold templates, are in `catalogue`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from reconciler.krm.identity import ObjectKey
from reconciler.krm.selectors import LabelSelector
from reconciler.krm.yaml import Path
from reconciler.snapshot.catalog import ConfigObject

GROUP: Final = "platform"
API_VERSION: Final = "platform/v1alpha1"
DEFINITION, ADDON, TYPE = "ComponentDefinition", "Addon", "ComponentType"
COMPONENT, BINDING, RESULT = "Component", "EnvBinding", "RenderResult"
KINDS: Final = (DEFINITION, ADDON, TYPE, COMPONENT, BINDING, RESULT)
"""The kinds of this group that have a meaning of their own, so that no component type may make them (openchoreo 2)."""

GLUE_GROUP: Final = "reconciler.dev"
GLUE_API_VERSION: Final = "reconciler.dev/v1alpha1"
ENVIRONMENT, BUILD = "Environment", "Build"

DEFAULT_INSTANCE: Final = "default"
Side = Literal["platform", "developer"]
Values = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Rule:
    """A rule on effective values as it is written: a CEL expression that must be true, and what to say if it is not."""

    name: str
    expression: str
    message: str
    path: Path


@dataclass(frozen=True, order=True)
class Instance:
    """One use of an addon, by which provenance and messages name it (openchoreo 2).

    One addon may be baked in and be opted into as well, under one id, and these are two.
    """

    addon: str
    id: str = DEFAULT_INSTANCE
    side: Side = "platform"

    def __str__(self) -> str:
        return f"{self.addon}/{self.id}"


@dataclass(frozen=True, eq=False)
class PlatformAddon:
    """An addon that a type has baked in, with what platform engineers say of its values."""

    instance: Instance
    config: Values
    path: Path
    is_named: bool
    condition: Any = None


@dataclass(frozen=True, eq=False)
class AllowedAddon:
    """An addon that the components of a type may opt into."""

    name: str
    defaults: Values
    path: Path
    description: str = ""


@dataclass(frozen=True, eq=False)
class ComponentType:
    """A component type as it is written (openchoreo 1.3)."""

    one: ConfigObject
    definition: str
    version: str = ""
    platform: tuple[PlatformAddon, ...] = ()
    allowed: tuple[AllowedAddon, ...] = ()
    rules: tuple[Rule, ...] = ()
    bake: str = ""


@dataclass(frozen=True, eq=False)
class ListedAddon:
    """An addon of a Component without a type, which lists its own (openchoreo 13.2)."""

    instance: Instance
    config: Values
    path: Path
    is_named: bool


@dataclass(frozen=True, eq=False)
class Component:
    """A component as it is written: of a generated kind, or of none, and then it names its definition itself.

    `values` are those of the component and, by key, of the developer addons that it opts into.
    """

    one: ConfigObject
    values: Values
    definition: str = ""
    addons: tuple[ListedAddon, ...] | None = None

    @property
    def key(self) -> ObjectKey:
        """Its identity."""
        return self.one.key

    @property
    def has_type(self) -> bool:
        """Whether its kind is one that a component type makes."""
        return self.addons is None


@dataclass(frozen=True, eq=False)
class Overrides:
    """What an environment says of values: of the component's, of platform addons, of those of developers."""

    component: Values = field(default_factory=dict)
    platform: Values = field(default_factory=dict)
    developer: Values = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class EnvBinding:
    """An environment that a component is to run in (openchoreo 1.5); `component` is "" where it names none."""

    one: ConfigObject
    component: str
    namespace: str
    environment: str
    overrides: Overrides
    endpoints: Sequence[Any] = ()
    acknowledged: frozenset[str] = frozenset()

    @property
    def key(self) -> ObjectKey:
        """Its identity."""
        return self.one.key


@dataclass(frozen=True, eq=False)
class Environment:
    """Which clusters serve an environment: those named, and those selected; and what templates see of it (design 3)."""

    one: ConfigObject
    clusters: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    context: Values = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Build:
    """What was built for a component: its spec is what templates see as `build`, and as `workload` (design 10.22)."""

    one: ConfigObject
    context: Values

    @property
    def workload(self) -> Values:
        """What is known of the workload."""
        found: Values = self.context.get("workload") or {}
        return found
