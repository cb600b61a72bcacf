"""Options whose places in Helm values lie within one another: which of them wins, and where that is wrong.

See greenhouse 7.5 and 9. What values they make together is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from reconciler.krm.findings import Finding
from reconciler.rules.presets.codes import CONFLICTING_OPTION_PATHS, OVERLAPPING_OPTION_PATHS, SECRET_PATH_SHADOWED
from reconciler.rules.presets.helm_values import Step, nested, steps_of
from reconciler.rules.presets.layers import RANK
from reconciler.rules.presets.model import Given, SecretRef
from reconciler.rules.presets.resolved import ResolvedOption


@dataclass(frozen=True)
class _Relations:
    """Which of some names lie above others, and whether two of them want a list and a map at one place."""

    pairs: tuple[tuple[str, str], ...] = ()
    mixed: bool = False


def path_findings(options: Sequence[ResolvedOption]) -> Iterator[Finding]:
    """Yield what is wrong, or odd, about options at, above or below one another."""
    by_name = {one.name: one for one in options}
    relations = _relations(tuple(by_name))
    for above, below in relations.pairs:
        yield from _pair_findings(by_name[above], by_name[below])
    if relations.pairs or relations.mixed:
        yield from _conflicts(by_name)


def _pair_findings(above: ResolvedOption, below: ResolvedOption) -> Iterator[Finding]:
    said = f"{above.winner} gives {above.name}, and {below.winner} gives {below.name}"
    if isinstance(above.source, SecretRef) or isinstance(below.source, SecretRef):
        message = f"{said}: of values at one place those that are written win over those of a secret"
        yield SECRET_PATH_SHADOWED.finding(message, below.winner.where)
    elif RANK[below.winner.layer] < RANK[above.winner.layer]:
        message = f"{said}, which wins there though it is of a lower layer ({below.winner.layer})"
        yield OVERLAPPING_OPTION_PATHS.finding(message, below.winner.where)


def _conflicts(options: Mapping[str, ResolvedOption]) -> Iterator[Finding]:
    given = [(one.name, one.source.value) for one in options.values() if isinstance(one.source, Given)]
    for fault in nested(given).faults:
        one, other = options[fault.name], options.get(fault.other)
        beside = f", and {other.winner} gives {other.name}" if other else ""
        message = f"{one.winner} gives {one.name}{beside}: {one.name} {fault.message}"
        yield CONFLICTING_OPTION_PATHS.finding(message, one.winner.where)


# most Plugins of a definition have the same options
@lru_cache(maxsize=1_024)
def _relations(names: tuple[str, ...]) -> _Relations:
    places: dict[tuple[Step, ...], list[str]] = {}
    for name in names:
        places.setdefault(steps_of(name), []).append(name)
    pairs: list[tuple[str, str]] = []
    below: dict[tuple[Step, ...], set[type]] = {}
    for steps, here in places.items():
        pairs += [(here[0], other) for other in here[1:]]
        for depth, step in enumerate(steps):
            below.setdefault(steps[:depth], set()).add(type(step))
            pairs += [(above, name) for above in places.get(steps[:depth], ()) for name in here]
    return _Relations(tuple(sorted(pairs)), any(len(kinds) > 1 for kinds in below.values()))
