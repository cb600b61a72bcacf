"""Plans: a type, or a component without one, with all that its components are rendered by (openchoreo 11, 13)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from reconciler.krm.yaml import Path
from reconciler.rules.composition.catalogue import Addon, Definition
from reconciler.rules.composition.effective import Effective, Layer, effective_values
from reconciler.rules.composition.model import Component, Instance, Side, Values
from reconciler.rules.composition.order import Wishes
from reconciler.rules.composition.schema import Schema
from reconciler.rules.composition.text import CompiledRule, Condition
from reconciler.snapshot.catalog import ConfigObject


@dataclass(frozen=True, eq=False)
class Use:
    """One instance of an addon as somebody wants it: `by` says so at `path`.

    `schema` is the addon's full one, with the defaults that a type has of its own. `config` are the values that are
    given there. `key` is that of its addon, and `is_named` tells that it has an id of its own.
    """

    instance: Instance
    addon: Addon
    key: str
    schema: Schema
    by: ConfigObject
    path: Path
    config: Values = field(default_factory=dict)
    condition: Condition | None = None
    is_named: bool = False

    @property
    def side(self) -> Side:
        """Who wants it."""
        return self.instance.side

    @property
    def override_key(self) -> str:
        """The key by which environments override the addon of a component without a type (openchoreo 13.2)."""
        return self.instance.id if self.is_named else self.key

    @property
    def config_path(self) -> Path:
        """Where its values are given."""
        return (*self.path, "config")

    @property
    def config_layer(self) -> Layer:
        """The values that are given there."""
        return Layer(self.side, self.by, self.config_path, self.config)

    @cached_property
    def values(self) -> Effective:
        """Its values where nobody else says anything of them: the same for all components that it works for."""
        return effective_values((self.config_layer,), self.schema, self.addon.schema)


@dataclass(frozen=True, eq=False)
class Plan:
    """All that a component is rendered by, but itself and its environment.

    `platform` are in the order of their work; `allowed` are by the key that components opt into them by, and `listed`
    those of a component without a type, which has no others. `rules` are the type's, whose scope is the component.
    """

    one: ConfigObject
    definition: Definition
    platform: tuple[Use, ...] = ()
    allowed: Mapping[str, Use] = field(default_factory=dict)
    listed: tuple[Use, ...] = ()
    rules: tuple[CompiledRule, ...] = ()
    kind: str = ""
    schema: Schema = field(default_factory=dict)

    @property
    def uses(self) -> Sequence[Use]:
        """All uses of addons, whether or not a component has them."""
        return (*self.platform, *self.allowed.values(), *self.listed)

    @cached_property
    def wishes(self) -> Mapping[str, Wishes]:
        """What all its addons declare of their order, by name."""
        return {use.addon.name: use.addon.wishes for use in self.uses}

    def seen_by(self, component: Component) -> Iterator[Hashable]:
        """Yield all of it that a component is rendered by: of addons that it may opt into, those that it does.

        Of the others it sees their keys, by which fields and overrides are known, and nothing else.
        """
        yield from (self.one, self.definition, *(use.addon for use in (*self.platform, *self.listed)))
        for key, use in self.allowed.items():
            yield use.addon if component.values.get(key) is not None else key
