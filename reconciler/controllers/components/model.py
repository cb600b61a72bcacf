"""Model of the kinds that components are declared with, and of the names derived from object names.

Component definitions and addons contain templates; their model is in `definitions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import re2

from reconciler.catalog.catalog import ConfigObject
from reconciler.krm.objects import ObjectKey
from reconciler.krm.selectors import LabelSelector
from reconciler.krm.yaml import DataPath

GROUP: Final = "platform"
API_VERSION: Final = "platform/v1alpha1"
DEFINITION, ADDON, TYPE = "ComponentDefinition", "Addon", "ComponentType"
COMPONENT, BINDING, RESULT = "Component", "EnvBinding", "RenderResult"
KINDS: Final = (DEFINITION, ADDON, TYPE, COMPONENT, BINDING, RESULT)
"""Kinds in this API group that have a fixed meaning, so no component type may generate them."""

RECONCILER_GROUP: Final = "reconciler.dev"
RECONCILER_API_VERSION: Final = "reconciler.dev/v1alpha1"
ENVIRONMENT, BUILD = "Environment", "Build"

DEFAULT_INSTANCE: Final = "default"
AddonRole = Literal["platform", "developer"]
Values = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class ValidationRule:
    """Rule on effective values: a CEL expression that must be true, and the message if it is false."""

    name: str
    expression: str
    message: str
    path: DataPath


@dataclass(frozen=True, order=True)
class AddonInstance:
    """Identity of one use of an addon, as it appears in provenance and messages.

    A component type can add an addon itself and also allow it for developers. These are two instances, even with the
    same id, because their roles differ.
    """

    addon: str
    id: str = DEFAULT_INSTANCE
    role: AddonRole = "platform"

    def __str__(self) -> str:
        return f"{self.addon}/{self.id}"


@dataclass(frozen=True, eq=False)
class PlatformAddon:
    """Addon that a component type adds to all its components, with the values that it sets."""

    instance: AddonInstance
    config: Values
    path: DataPath
    has_instance_id: bool
    condition: Any = None


@dataclass(frozen=True, eq=False)
class AllowedAddon:
    """Addon that the components of a type can opt into."""

    name: str
    defaults: Values
    path: DataPath
    description: str = ""


@dataclass(frozen=True, eq=False)
class ComponentType:
    """Component type as declared. `flattened_name` is the name of the definition to generate, or ""."""

    manifest: ConfigObject
    definition: str
    version: str = ""
    platform_addons: tuple[PlatformAddon, ...] = ()
    developer_addons: tuple[AllowedAddon, ...] = ()
    rules: tuple[ValidationRule, ...] = ()
    flattened_name: str = ""


@dataclass(frozen=True, eq=False)
class ListedAddon:
    """Addon of a Component without a type. Such a component lists its addons itself."""

    instance: AddonInstance
    config: Values
    path: DataPath
    has_instance_id: bool


@dataclass(frozen=True, eq=False)
class Component:
    """Component as declared: of a generated kind, or of kind Component, which names its definition itself.

    `values` contains the values of the component and, under the key of each addon, the values of developer addons.
    """

    manifest: ConfigObject
    values: Values
    definition: str = ""
    addons: tuple[ListedAddon, ...] | None = None

    @property
    def key(self) -> ObjectKey:
        """Identity of the component."""
        return self.manifest.key

    @property
    def has_type(self) -> bool:
        """Whether a component type generates the kind of the component."""
        return self.addons is None


@dataclass(frozen=True, eq=False)
class EnvironmentOverrides:
    """Values that an environment overrides: of the component, of platform addons and of developer addons."""

    component: Values = field(default_factory=dict)
    platform: Values = field(default_factory=dict)
    developer: Values = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class EnvBinding:
    """Binding of a component to an environment. `component` is "" if the binding does not name one."""

    manifest: ConfigObject
    component: str
    namespace: str
    environment: str
    overrides: EnvironmentOverrides
    endpoints: Sequence[Any] = ()
    acknowledged: frozenset[str] = frozenset()

    @property
    def key(self) -> ObjectKey:
        """Identity of the binding."""
        return self.manifest.key


@dataclass(frozen=True, eq=False)
class ComponentEnvironment:
    """Environment: the clusters that it names and selects, and its template variable `env`."""

    manifest: ConfigObject
    clusters: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    context: Values = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Build:
    """Result of a build. Templates can read the spec as `build` and `workload`."""

    manifest: ConfigObject
    context: Values

    @property
    def workload(self) -> Values:
        """Values of the template variable `workload`."""
        workload: Values = self.context.get("workload") or {}
        return workload


_KEY_PATTERN = re2.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Kubernetes: the lower-case kind must be a DNS label that begins with a letter.
_KIND_PATTERN = re2.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_SIBILANT_ENDINGS = ("s", "x", "z", "ch", "sh")


def to_camel_case(name: str) -> str:
    """Return a name in camel case: `config-files` becomes `configFiles`."""
    first, *later = name.replace(".", "-").replace("_", "-").split("-")
    return first + "".join(_capitalize(part) for part in later)


def derive_addon_key(name: str) -> str | None:
    """Return the key of a developer addon in components, or None if its name does not form a valid key."""
    key = to_camel_case(name)
    return key if _KEY_PATTERN.fullmatch(key) else None


def derive_kind(name: str) -> str | None:
    """Return the kind that a component type generates, or None if its name does not form a valid kind."""
    kind = _capitalize(to_camel_case(name))
    return kind if _KIND_PATTERN.fullmatch(kind) else None


def pluralize_kind(kind: str) -> str:
    """Return the plural name of a kind for its CRD."""
    lower_kind = kind.lower()
    if lower_kind.endswith(_SIBILANT_ENDINGS):
        return f"{lower_kind}es"
    # A consonant must precede the "y": "bay" becomes "bays".
    if lower_kind.endswith("y") and lower_kind[-2:-1] not in ("", *"aeiou"):
        return f"{lower_kind[:-1]}ies"
    return f"{lower_kind}s"


def derive_crd_name(kind: str, group: str) -> str:
    """Return the name of the CRD, which Kubernetes requires to be `<plural>.<group>`."""
    return f"{pluralize_kind(kind)}.{group}"


def _capitalize(part: str) -> str:
    return part[:1].upper() + part[1:]
