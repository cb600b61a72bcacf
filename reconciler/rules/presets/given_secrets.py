"""Secrets that are written out in a list for many: the secret of one Plugin is no plain text of another.

See greenhouse 7.2. An organization that gives a password as it is gives it to all its Plugins, and most of them do not
declare it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

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
from reconciler.rules.presets.model import (
    OPTION_TYPES,
    ORGANIZATION,
    DefinitionName,
    DefinitionRef,
    Expression,
    Given,
    SecretRef,
)
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

    def add(self, lists: Iterable[_List], definition: ObjectKey, names: Collection[str]) -> None:
        """Note what lists give to these options of a definition; of two that declare one the first is told."""
        for one in lists:
            for where, secret in one.given_to(definition, names):
                known = self.found.setdefault(where, secret)
                self.found[where] = min(known, secret, key=lambda each: each.definition)

    def have(self, statements: Collection[Statement]) -> bool:
        """Tell whether one of the statements is one of them."""
        return any(one.where in self.found for one in statements)

    def finding(self, where: Where) -> Finding:
        """Return why what one of them gives is not written for anybody."""
        secret = self.found[where]
        # in the words of the Plugins that declare it, so that one entry is told of once
        given = f"{secret.field} gives {shown(secret.option)}, which {secret.definition} declares as secret"
        message = f"{given}: it {type_fault('secret', None)}"
        return SECRET_LITERAL.finding(message, where)


def withhold_secrets(
    outcomes: Sequence[Outcome], world: World, reach: Reach, kept: Collection[ObjectKey]
) -> list[Outcome]:
    """Return the outcomes; a Plugin that would be given in plain text what is a secret of another has failed.

    Where such a text has lost, or is of a wrong type, it is not shown. `kept` are presets and Plugins of which not all
    is known: what they may be for counts as if they had Plugins everywhere.
    """
    lists = [one for one in _lists(world) if one.plain]
    plain = {name for one in lists for name, _ in one.plain}
    doubtful = _doubtful(world, kept) if lists else set()
    keys = doubtful | {one.wish.spec.definition.key(one.wish.key.namespace) for one in outcomes if lists}
    # mostly none, and then nothing is looked through
    names = {key: some for key in keys if (some := plain & _secret_names(world, key))}
    secrets = _Secrets()
    for key in doubtful & names.keys():
        secrets.add(lists, key, names[key])
    for one, key in _given(outcomes, {one.contributor: one for one in lists}, world, reach) if names else ():
        secrets.add([one], key, names.get(key, ()))
    return [_withheld(one, secrets) for one in outcomes] if secrets.found else list(outcomes)


def _given(
    outcomes: Iterable[Outcome], lists: Mapping[Contributor, _List], world: World, reach: Reach
) -> Iterable[tuple[_List, ObjectKey]]:
    """Return the lists, each with the definitions of the Plugins that it is for."""
    # presets of one definition are for the same clusters, mostly
    wishes = {(one.wish.key.namespace, one.wish.spec.definition, one.wish.cluster_name): one.wish for one in outcomes}
    found: dict[tuple[Contributor, ObjectKey], None] = {}
    for wish in wishes.values():
        key = wish.spec.definition.key(wish.key.namespace)
        found |= {(one, key): None for one in _lists_for(wish, world, reach) if one in lists}
    return [(lists[one], key) for one, key in found]


@dataclass(frozen=True, eq=False)
class _List:
    """A list for many, of an organization: what it gives as it is, and the definitions that it is for, () for all."""

    organization: str
    contributor: Contributor
    definitions: tuple[DefinitionName, ...] = ()

    @cached_property
    def plain(self) -> Sequence[tuple[str, Statement]]:
        """The entries that are no references."""
        return [(name, said) for name, said in self.contributor.statements if _is_plain(said)]

    def given_to(self, definition: ObjectKey, names: Collection[str]) -> Iterator[tuple[Where, _Secret]]:
        """Yield what it gives to these options of a definition, if it is for that."""
        ref = DefinitionRef(definition.kind, definition.name)
        is_for = definition.namespace in ("", self.organization) and (
            not self.definitions or any(one.means(ref) for one in self.definitions)
        )
        for name, said in self.plain if is_for else ():
            if name in names:
                yield said.where, _Secret(name, said.field, definition)


def _lists(world: World) -> Iterator[_List]:
    for key, one in world.own.items():
        yield _List(key.name if key.kind == ORGANIZATION else key.namespace, one)
    for namespace, overrides in world.overrides.items():
        yield from (_List(namespace, one.contributor, one.read.definitions) for one in overrides if one.read.sound)


def _doubtful(world: World, kept: Collection[ObjectKey]) -> set[ObjectKey]:
    """Return the definitions that somebody may be using of whom not all is known."""
    if not world.catalog.is_whole:
        return set(world.present)
    found: set[ObjectKey] = set()
    for key in kept:
        one = world.catalog.get(key)
        name = _definition_name(one.data) if one else ""
        found |= {each for each in world.present if each.namespace in ("", key.namespace) and name in ("", each.name)}
    return found


def _definition_name(data: Mapping[str, Any]) -> str:
    """Return the definition that an invalid preset or Plugin names, "" if that cannot be told."""
    spec = data.get("spec")
    plugin = spec.get("plugin", spec) if isinstance(spec, Mapping) else None
    if not isinstance(plugin, Mapping):
        return ""
    ref = plugin.get("pluginDefinitionRef")
    name = ref.get("name") if isinstance(ref, Mapping) else plugin.get("pluginDefinitionName")
    return name if isinstance(name, str) else ""


def _secret_names(world: World, key: ObjectKey) -> frozenset[str]:
    """Return the options that a definition declares as secret; of one that is invalid, those that may be."""
    usable = world.definitions.get(key)
    if usable:
        return frozenset(one.name for one in usable.definition.options.values() if one.type == "secret")
    invalid = world.catalog.get(key)
    spec = invalid.data.get("spec") if invalid else None
    options = spec.get("options") if isinstance(spec, Mapping) else None
    entries = [each for each in options if isinstance(each, Mapping)] if isinstance(options, list) else []
    named = [each for each in entries if isinstance(each.get("name"), str)]
    return frozenset(one["name"] for one in named if one.get("type") == "secret" or one.get("type") not in OPTION_TYPES)


def _is_plain(said: Statement) -> bool:
    match said.source:
        case SecretRef():
            return False
        case Expression(text=text):
            return VAULT not in text
        case Given(value=value):
            return bool(type_fault("secret", value)) and value != ""


def _lists_for(wish: Wish, world: World, reach: Reach) -> Iterator[Contributor]:
    namespace = wish.key.namespace
    yield from world.lists_for(namespace, wish.cluster_name)
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
