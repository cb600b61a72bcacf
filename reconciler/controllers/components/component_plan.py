"""Compiled plan of a component type, or of a component without a type.

A plan contains the data that all components of a type have in common.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property

from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.components.addon_order import AddonOrderConstraints
from reconciler.controllers.components.definitions import Addon, ComponentDefinition
from reconciler.controllers.components.effective_values import EffectiveValues, ValueLayer, compute_effective_values
from reconciler.controllers.components.model import AddonInstance, AddonRole, Component, Values
from reconciler.controllers.components.schema.openapi import Schema
from reconciler.controllers.components.templates.directives import CompiledRule, TemplateCondition
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field


@dataclass(frozen=True, eq=False)
class AddonUse:
    """Use of an addon in a component type or component.

    Attributes:
        key: Field that contains the values of the addon in components and overrides, e.g. `logLevel`.
        schema: Schema of all fields of the addon. The component type can replace the defaults of the addon.
        declared_by: Component type or component that lists the addon.
        path: Path of the list entry of the addon in `declared_by`, e.g. `spec.platformAddons[0]`.
        config: Values in the field `config` of this list entry.
        condition: Condition in this list entry. The condition can use the values of the component.
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
        """Role that uses the addon: platform or developer."""
        return self.instance.role

    @property
    def override_key(self) -> str:
        """Key that selects the addon in the overrides of an EnvBinding.

        The key is used only for components without a component type.
        """
        return self.instance.id if self.has_instance_id else self.key

    @property
    def config_path(self) -> DataPath:
        """Path of the field `config` in the object that lists the addon."""
        return (*self.path, "config")

    @property
    def config_layer(self) -> ValueLayer:
        """Value layer with the field `config` of the object that lists the addon."""
        return ValueLayer(self.role, self.declared_by, self.config_path, self.config)

    @cached_property
    def values(self) -> EffectiveValues:
        """Values of the addon from the field `config` and the defaults of the schema, without overrides."""
        return compute_effective_values((self.config_layer,), self.schema, self.addon.schema)


@dataclass(frozen=True, eq=False)
class ComponentPlan:
    """Compiled data that all components of a type have in common.

    Attributes:
        manifest: Component type, or component without a type.
        platform_uses: Uses of platform addons, in execution order.
        allowed_uses: Uses of the developer addons that components can select, by key.
        listed_uses: Uses of the addons that a component without a type lists.
        kind: Kind that the component type generates.
        schema: Schema of the field `spec` of the components.
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
        """All uses of addons. Developer addons that a component does not select are included."""
        return (*self.platform_uses, *self.allowed_uses.values(), *self.listed_uses)

    @cached_property
    def order_constraints(self) -> Mapping[str, AddonOrderConstraints]:
        """Order constraints of each addon, by addon name."""
        return {use.addon.name: use.addon.order_constraints for use in self.uses}

    def iter_dependencies(self, component: Component) -> Iterator[Hashable]:
        """Yield all parts of the plan on which the render of a component depends.

        For a developer addon that the component does not select, only the key of the addon is a dependency.
        """
        yield from (self.manifest, self.definition, *(use.addon for use in (*self.platform_uses, *self.listed_uses)))
        for key, use in self.allowed_uses.items():
            yield use.addon if component.values.get(key) is not None else key
