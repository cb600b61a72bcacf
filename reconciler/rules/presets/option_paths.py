"""Options whose places in Helm values lie within one another: which of them wins, and where that is wrong.

See greenhouse 7.5 and 9. What values they make together is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.caching import cached
from reconciler.krm.findings import Finding
from reconciler.rules.presets.codes import CONFLICTING_OPTION_PATHS, OVERLAPPING_OPTION_PATHS, SECRET_PATH_SHADOWED
from reconciler.rules.presets.helm_values import PathFault, Step, is_free, nested, steps_of
from reconciler.rules.presets.layers import RANK
from reconciler.rules.presets.model import Given, SecretRef
from reconciler.rules.presets.resolved import ResolvedOption


@dataclass(frozen=True)
class _List:
    """Names that lead through one list, and names that want a map where it is."""

    inside: tuple[str, ...]
    beside: tuple[str, ...]


@dataclass(frozen=True)
class _Relations:
    """Which of some names lie above others, the lists that some lead through, and whether one is to be a map, too."""

    pairs: tuple[tuple[str, str], ...] = ()
    lists: tuple[_List, ...] = ()

    @property
    def mixed(self) -> bool:
        """Whether two names want a list and a map at one place."""
        return any(one.beside for one in self.lists)


def path_findings(options: Sequence[ResolvedOption]) -> Iterator[Finding]:
    """Yield what is wrong, or odd, about options at, above or below one another, or in one list."""
    by_name = {one.name: one for one in options}
    relations = _relations(tuple(by_name))
    yield from _overlaps(by_name, relations)
    if any(isinstance(one.source, SecretRef) for one in options):
        yield from _shadowed(by_name, relations)
    if relations.pairs or relations.mixed:
        yield from conflict_findings(options, nested(given_values(options)).faults)


def given_values(options: Iterable[ResolvedOption]) -> list[tuple[str, Any]]:
    """Return the options that are not kept in a Secret, by name."""
    return [(one.name, one.source.value) for one in options if isinstance(one.source, Given)]


def secrets_of(options: Iterable[ResolvedOption], values: Mapping[str, Any]) -> list[tuple[ResolvedOption, SecretRef]]:
    """Return the options from Secrets that count beside these values, in their order (greenhouse 7.5).

    Flux lets what is written win at some places and the secret at others, by how deep they lie. So no place is to have
    both, and the secret is what goes. Of two secrets at one place the later is set last.
    """
    found: dict[tuple[Step, ...], tuple[ResolvedOption, SecretRef]] = {}
    for one in options:
        steps = steps_of(one.name)
        if isinstance(one.source, SecretRef) and is_free(values, steps):
            found.pop(steps, None)
            found[steps] = (one, one.source)
    return list(found.values())


def conflict_findings(options: Iterable[ResolvedOption], faults: Iterable[PathFault]) -> Iterator[Finding]:
    """Yield an error for each option that has no place in the values (greenhouse 9)."""
    by_name = {one.name: one for one in options}
    for fault in faults:
        one, other = by_name[fault.name], by_name.get(fault.other)
        beside = f", and {other.winner} gives {other.name}" if other else ""
        message = f"{one.winner} gives {one.name}{beside}: {one.name} {fault.message}"
        yield CONFLICTING_OPTION_PATHS.finding(message, one.winner.where)


def _overlaps(options: Mapping[str, ResolvedOption], relations: _Relations) -> Iterator[Finding]:
    for pair in relations.pairs:
        above, below = (options[name] for name in pair)
        written = isinstance(above.source, Given) and isinstance(below.source, Given)
        if written and RANK[below.winner.layer] < RANK[above.winner.layer]:
            message = (
                f"{above.winner} gives {above.name}, and {below.winner} gives {below.name}, which wins there though it"
                f" is of a lower layer ({below.winner.layer})"
            )
            yield OVERLAPPING_OPTION_PATHS.finding(message, below.winner.where)


def _shadowed(options: Mapping[str, ResolvedOption], relations: _Relations) -> Iterator[Finding]:
    """Yield one warning for each secret that meets others, whatever the number of those."""
    met: dict[str, dict[str, None]] = {}
    for name, other in _meetings(options, relations):
        met.setdefault(name, {})[other] = None
    for name, others in met.items():
        one, (first, *more) = options[name], (options[other] for other in others)
        beside = "".join(f", {other.name}" for other in more)
        why = (
            "secrets have no place at one another, nor within"
            if all(isinstance(other.source, SecretRef) for other in (first, *more))
            else "of values at one place, or in one list, those that are written win over those of a secret"
        )
        message = f"{one.winner} gives {name} by a secret, and {first.winner} gives {first.name}{beside}: {why}"
        yield SECRET_PATH_SHADOWED.finding(message, one.winner.where)


def _meetings(options: Mapping[str, ResolvedOption], relations: _Relations) -> Iterator[tuple[str, str]]:
    """Yield each secret with what it meets; two secrets that meet are told of one of them."""
    secrets = {name for name, one in options.items() if isinstance(one.source, SecretRef)}
    for above, below in relations.pairs:
        if above in secrets:
            yield above, below
        elif below in secrets:
            yield below, above
    for one in relations.lists:
        written = [name for name in one.inside if name not in secrets]
        # one is enough: a long list is not told name by name
        yield from ((name, other) for name in one.inside if name in secrets for other in (*written, *one.beside)[:1])
        yield from ((name, other) for name in one.beside if name in secrets for other in written[:1])


# most Plugins of a definition have the same options
@cached(1_024)
def _relations(names: tuple[str, ...]) -> _Relations:
    places: dict[tuple[Step, ...], list[str]] = {}
    for name in names:
        places.setdefault(steps_of(name), []).append(name)
    pairs: list[tuple[str, str]] = []
    below: dict[tuple[Step, ...], tuple[list[str], list[str]]] = {}
    for steps, here in places.items():
        pairs += [(here[0], other) for other in here[1:]]
        for depth, step in enumerate(steps):
            below.setdefault(steps[:depth], ([], []))[isinstance(step, int)].extend(here)
            pairs += [(above, name) for above in places.get(steps[:depth], ()) for name in here]
    lists = [_List(tuple(inside), tuple(beside)) for beside, inside in below.values() if inside]
    return _Relations(tuple(sorted(pairs)), tuple(lists))
