"""Secrets that are written out in a list for many: the secret of one Plugin is no plain text of another.

See greenhouse 7.2. An organization that gives a password as it is gives it to all its Plugins, and most of them do not
declare it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.krm.findings import Finding, Where, errors
from reconciler.krm.identity import ObjectKey
from reconciler.rules.fields import shown
from reconciler.rules.presets.codes import (
    EXPRESSION_FAILED,
    EXPRESSION_RETYPED,
    OPTION_TYPE_MISMATCH,
    REGEX_MISMATCH,
    SECRET_LITERAL,
)
from reconciler.rules.presets.layers import Contributor, Statement
from reconciler.rules.presets.model import Definition, Expression, Given, SecretRef
from reconciler.rules.presets.outcome import Failed, Made, Outcome, Wish, failed_for
from reconciler.rules.presets.provenance import PluginProvenance
from reconciler.rules.presets.resolved import ResolvedOption
from reconciler.rules.presets.types import VAULT, type_fault
from reconciler.rules.presets.world import Reach, World

# what these say has the value in it
_QUOTING = {one.name for one in (EXPRESSION_FAILED, EXPRESSION_RETYPED, OPTION_TYPE_MISMATCH, REGEX_MISMATCH)}


@dataclass(frozen=True)
class _Secret:
    """An option that a definition declares as secret, and that a list for many gives as it is."""

    option: str
    field: str
    definition: ObjectKey


@dataclass
class _Secrets:
    """The entries of lists for many that give some Plugin a secret as it is, by their places."""

    found: dict[Where, _Secret] = field(default_factory=dict)

    def have(self, statements: Collection[Statement]) -> bool:
        """Tell whether one of the statements is one of them."""
        return any(one.where in self.found for one in statements)

    def finding(self, where: Where) -> Finding:
        """Return why what one of them gives is not written for anybody."""
        secret = self.found[where]
        message = (
            f"{secret.field} gives {shown(secret.option)} to many, and {secret.definition} declares it as secret: it"
            f" {type_fault('secret', None)}, whoever gets it"
        )
        return SECRET_LITERAL.finding(message, where)


def withhold_secrets(outcomes: Sequence[Outcome], world: World, reach: Reach) -> list[Outcome]:
    """Return the outcomes; a Plugin that would be given in plain text what is a secret of another has failed.

    Where such a text has lost, or is of a wrong type, it is not shown.
    """
    secrets = _Secrets()
    names = _declared(outcomes, world)
    for one in outcomes:
        definition = _definition(one.wish, world)
        if definition and names.get(definition.one.key):
            secrets.found |= dict(_given(one.wish, definition, names[definition.one.key], world, reach))
    return [_withheld(one, secrets) for one in outcomes] if secrets.found else list(outcomes)


def _declared(outcomes: Sequence[Outcome], world: World) -> Mapping[ObjectKey, frozenset[str]]:
    """Return the secret options of each definition that lists for many give as they are; mostly there are none."""
    lists = [*world.own.values(), *(one.contributor for some in world.overrides.values() for one in some)]
    plain = {name for one in lists for name, said in one.statements if _is_plain(said)}
    keys = {one.wish.spec.definition.key(one.wish.key.namespace) for one in outcomes} if plain else set()
    used = [world.definitions[key].definition for key in keys if key in world.definitions]
    return {
        one.one.key: frozenset(plain & {o.name for o in one.options.values() if o.type == "secret"}) for one in used
    }


def _is_plain(said: Statement) -> bool:
    match said.source:
        case SecretRef():
            return False
        case Expression(text=text):
            return VAULT not in text
        case Given(value=value):
            return bool(type_fault("secret", value)) and value != ""


def _definition(wish: Wish, world: World) -> Definition | None:
    usable = world.definitions.get(wish.spec.definition.key(wish.key.namespace))
    return usable.definition if usable else None


def _given(
    wish: Wish, definition: Definition, names: Collection[str], world: World, reach: Reach
) -> Iterator[tuple[Where, _Secret]]:
    """Yield what lists for many give the secret options of a Plugin as it is."""
    for one in _lists_for(wish, world, reach):
        for name, said in one.statements:
            if name in names and _is_plain(said):
                yield said.where, _Secret(name, said.field, definition.one.key)


def _lists_for(wish: Wish, world: World, reach: Reach) -> Iterator[Contributor]:
    namespace = wish.key.namespace
    yield from world.lists_for(namespace, wish.cluster.name if wish.cluster else "")
    meant = reach.meant(namespace, wish.spec.definition, wish.cluster)
    yield from (one.contributor for one in meant if one.read.sound)


def _withheld(one: Outcome, secrets: _Secrets) -> Outcome:
    match one:
        case Made():
            return _of_made(one, secrets)
        case Failed(wish=wish, findings=findings) if any(_tells(each, secrets) for each in findings):
            hidden = tuple(secrets.finding(each.where) if _tells(each, secrets) else each for each in findings)
            return failed_for(wish, errors(hidden), hidden)
        case _:
            return one


def _tells(finding: Finding, secrets: _Secrets) -> bool:
    return finding.code in _QUOTING and finding.where in secrets.found


def _of_made(one: Made, secrets: _Secrets) -> Outcome:
    provenance = one.variant.provenance
    if not isinstance(provenance, PluginProvenance):
        return one
    options = [_hidden(option, secrets) for option in provenance.resolution.options]
    faults = tuple(
        secrets.finding(option.winner.where)
        for option in options
        if option.winner.where in secrets.found
        and isinstance(option.source, Given)
        and type_fault("secret", option.source.value)
    )
    if faults:
        others = (each for each in one.variant.findings if not _tells(each, secrets))
        return failed_for(one.wish, faults, (*faults, *others))
    resolution = replace(provenance.resolution, options=tuple(options))
    return replace(one, variant=replace(one.variant, provenance=replace(provenance, resolution=resolution)))


def _hidden(option: ResolvedOption, secrets: _Secrets) -> ResolvedOption:
    return replace(option, hides=True) if secrets.have(option.said) and not option.hides else option
