"""Claims: the end of conflicts between definitions, by what states record and by the history of the config branch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from reconciler.daemon.config import ConfigSnapshot
from reconciler.daemon.events import log
from reconciler.daemon.remotes import Remotes
from reconciler.daemon.states import read_states
from reconciler.daemon.tools import Tools
from reconciler.gitio.errors import GitError
from reconciler.planning.destination import Destination
from reconciler.planning.state import DestinationState
from reconciler.planning.survey import ConfigOrigin
from reconciler.rules.variant import object_id
from reconciler.snapshot.catalog import Catalog, ConfigObject, Settlement
from reconciler.snapshot.claims import Conflict, find_duplicates

States = Mapping[Destination, DestinationState]


def _fetch_nothing(urls: Collection[str]) -> None:
    """The caller has fetched all targets."""


def settle_claims(
    catalog: Catalog,
    snapshot: ConfigSnapshot,
    remotes: Remotes,
    tools: Tools,
    fetch: Callable[[Collection[str]], None] = _fetch_nothing,
) -> Catalog:
    """Return the catalog with each conflict settled for which a record or the history shows the earlier definition.

    The record of packages in the states of targets comes first. Other conflicts stay: none of their objects has an
    effect. `fetch` is called with the URLs of all targets where there is a conflict.
    """
    for find in (find_duplicates, tools.rivals):
        conflicts = find(catalog)
        if conflicts:
            _, targets = tools.urls(catalog)
            fetch(targets)
            catalog = catalog.settled(_settlement(conflicts, catalog, snapshot, remotes, tools))
    return catalog


def _settlement(
    conflicts: Sequence[Conflict], catalog: Catalog, snapshot: ConfigSnapshot, remotes: Remotes, tools: Tools
) -> Settlement:
    targets = tools.claimed_targets(catalog, conflicts)
    states = _states({*tools.destinations(catalog), *targets.values()}, remotes, tools)
    recorded = frozenset(_recorded(states.values()))
    settlement = Settlement()
    for conflict in conflicts:
        if settlement.rejected.isdisjoint(one.key for one in conflict.claims):
            holder = (
                _by_package(conflict, states.values())
                or _by_record(conflict, snapshot, recorded)
                or _by_target(conflict, targets, states, remotes)
                or _by_history(conflict, snapshot)
            )
            settlement |= conflict.settle(holder) if holder else Settlement()
    return settlement


def _states(destinations: Iterable[Destination], remotes: Remotes, tools: Tools) -> States:
    found = read_states(destinations, remotes, tools.state_ref)
    return {one: state for one, state in found.items() if isinstance(state, DestinationState)}


def _recorded(states: Iterable[DestinationState]) -> Iterator[tuple[str, str]]:
    """Yield the files that states record, each with the id of an object."""
    for state in states:
        for sources in (state.definition, *state.sources):
            yield from ((path, one) for path, ids in sources.items() for one in ids)


def _by_record(
    conflict: Conflict, snapshot: ConfigSnapshot, recorded: Collection[tuple[str, str]]
) -> ConfigObject | None:
    """Return the only definition that states record with its file."""
    path = ConfigOrigin(snapshot.directory).path
    return _only(one for one in conflict.claims if (path(one.file), object_id(one.key)) in recorded)


def _by_package(conflict: Conflict, states: Iterable[DestinationState]) -> ConfigObject | None:
    """Return the only claim of a package that this package is recorded to come from."""
    if not conflict.package:
        return None
    records = (state.packages.get(conflict.package) for state in states)
    recorded = {
        name for record in records if record and record.owned for ids in record.sources.values() for name in ids
    }
    return _only(one for one in conflict.claims if object_id(one.key) in recorded)


def _by_target(
    conflict: Conflict, targets: Mapping[ConfigObject, Destination], states: States, remotes: Remotes
) -> ConfigObject | None:
    """Return the only definition of a target whose state records its branch and directory."""
    mine = {one: targets[one] for one in conflict.claims if one in targets}
    if any(target.url in remotes.failures for target in mine.values()):
        return None
    found = [one for one, target in mine.items() if _is_recorded(target, states.get(target))]
    if len(mine) < len(conflict.claims):
        # several claims are for one target, and the layout has only one of them: the state records their identities
        known = {name for one in found for ids in states[mine[one]].definition.values() for name in ids}
        found = [one for one in conflict.claims if object_id(one.key) in known]
    return _only(found)


def _only(found: Iterable[ConfigObject]) -> ConfigObject | None:
    claims = list(found)
    return claims[0] if len(claims) == 1 else None


def _is_recorded(target: Destination, state: DestinationState | None) -> bool:
    return state is not None and (state.branch, state.directory) == (target.branch, target.directory)


def _by_history(conflict: Conflict, snapshot: ConfigSnapshot) -> ConfigObject | None:
    try:
        return conflict.find_first(snapshot.earlier(sorted({one.file for one in conflict.claims})))
    except GitError as error:
        log.warning("claims_not_looked_up", object=str(conflict.claims[0].key), why=error.message)
        return None
