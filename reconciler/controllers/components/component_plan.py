"""The compiled plan of a component type, or of a component without a type.

A plan contains everything that the components of a type have in common.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.components.addon_order import AddonOrderConstraints
from reconciler.controllers.components.definitions import Addon, ComponentDefinition
from reconciler.controllers.components.effective_values import EffectiveValues, ValueLayer, compute_effective_values
from reconciler.controllers.components.model import AddonInstance, AddonRole, Component, Values
from reconciler.controllers.components.schema import Schema
from reconciler.controllers.components.templates import CompiledRule, TemplateCondition
from reconciler.krm.yaml import DataPath


@dataclass(frozen=True, eq=False)
class AddonUse:
    """One use of an addon in a component type or component.

    Attributes:
        instance: Identity of the addon instance.
        addon: The addon.
        key: Key of the addon in components and overrides.
        schema: Full schema of the addon, with the defaults of the component type.
        declared_by: Object that declares the use.
        path: Path of the declaration in this object.
        config: Values that the declaration sets.
        condition: Condition of the component type, evaluated with the values of the component.
        has_instance_id: Whether the declaration sets `instanceId`.
    """

    instance: AddonInstance
    addon: Addon
    key: str
    schema: Schema
    declared_by: ConfigObject
    path: DataPath
    config: Values = field(default_factory=dict)
    condition: TemplateCondition | None = None
    has_instance_id: bool = False

    @property
    def role(self) -> AddonRole:
        """Role that declares the use."""
        return self.instance.role

    @property
    def override_key(self) -> str:
        """Key for overrides in EnvBindings, for components without a type."""
        return self.instance.id if self.has_instance_id else self.key

    @property
    def config_path(self) -> DataPath:
        """Path of the values in the declaration."""
        return (*self.path, "config")

    @property
    def config_layer(self) -> ValueLayer:
        """The layer with the values under `config` of the component or addon."""
        return ValueLayer(self.role, self.declared_by, self.config_path, self.config)

    @cached_property
    def values(self) -> EffectiveValues:
        """Effective values without overrides. All components of the type share them."""
        return compute_effective_values((self.config_layer,), self.schema, self.addon.schema)


@dataclass(frozen=True, eq=False)
class ComponentPlan:
    """Everything that components of a type have in common.

    Attributes:
        manifest: The component type, or the component without a type.
        definition: The component definition.
        platform_uses: Uses of platform addons, in execution order.
        allowed_uses: Developer addons that components can opt into, by key.
        listed_uses: Addons of a component without a type, which has no other addons.
        rules: Validation rules of the component type.
        kind: Kind that the component type generates.
        schema: Schema of the components' `spec`.
    """

    manifest: ConfigObject
    definition: ComponentDefinition
    platform_uses: tuple[AddonUse, ...] = ()
    allowed_uses: Mapping[str, AddonUse] = field(default_factory=dict)
    listed_uses: tuple[AddonUse, ...] = ()
    rules: tuple[CompiledRule, ...] = ()
    kind: str = ""
    schema: Schema = field(default_factory=dict)

    @property
    def uses(self) -> Sequence[AddonUse]:
        """All uses of addons, whether a component selects them or not."""
        return (*self.platform_uses, *self.allowed_uses.values(), *self.listed_uses)

    @cached_property
    def order_constraints(self) -> Mapping[str, AddonOrderConstraints]:
        """Order constraints of all addons, by addon name."""
        return {use.addon.name: use.addon.order_constraints for use in self.uses}

    def iter_dependencies(self, component: Component) -> Iterator[Hashable]:
        """Yield everything that the render of a component depends on.

        Of a developer addon that the component does not select, the render depends only on the key.
        """
        yield from (self.manifest, self.definition, *(use.addon for use in (*self.platform_uses, *self.listed_uses)))
        for key, use in self.allowed_uses.items():
            yield use.addon if component.values.get(key) is not None else key
