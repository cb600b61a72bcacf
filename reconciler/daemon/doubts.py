"""Doubts about a config as a whole, by a comparison with what the states of targets record of earlier passes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from reconciler.daemon.config import ConfigSnapshot
from reconciler.krm.findings import Finding, Where
from reconciler.planning.codes import CONFIG_DIRECTORY_MISSING, CONFIG_EMPTY, CONFIG_HISTORY_REPLACED
from reconciler.planning.destination import Destination
from reconciler.planning.evidence import ConfigFiles, find_doubts
from reconciler.planning.resets import ACK_RESET, acknowledged_resets, acknowledgement
from reconciler.planning.state import DestinationState
from reconciler.rules.composition.model import GROUP as COMPONENTS
from reconciler.snapshot.catalog import Catalog, is_config_path


def with_doubts(
    catalog: Catalog,
    snapshot: ConfigSnapshot,
    destinations: Sequence[Destination],
    states: Collection[DestinationState],
    max_percent: int,
) -> Catalog:
    """Return the catalog with every reason why an object that it does not have may not be deleted. Raises GitError."""
    found = (
        *emptiness(catalog, snapshot, bool(destinations)),
        *recorded_doubts(catalog, snapshot, destinations, states, max_percent),
    )
    return replace(catalog, doubts=found) if found else catalog


def recorded_doubts(
    catalog: Catalog,
    snapshot: ConfigSnapshot,
    destinations: Sequence[Destination],
    states: Collection[DestinationState],
    max_percent: int,
) -> tuple[Finding, ...]:
    """Return an error for each recorded object or history whose absence is not a deletion. Raises GitError."""
    config = ConfigFiles(snapshot.files, snapshot.directory, snapshot.entries)
    return (
        *_replaced_history(catalog, snapshot, destinations, states),
        *find_doubts(states, config, catalog, max_percent),
    )


def emptiness(catalog: Catalog, snapshot: ConfigSnapshot, has_targets: bool) -> Iterator[Finding]:
    """Yield an error for a config that has no target, or whose directory is not there."""
    if not snapshot.has_directory:
        yield CONFIG_DIRECTORY_MISSING.finding(
            f'the config repository has no directory "{snapshot.directory}": nothing is removed. Set config.directory'
            " to a directory that it has",
            Where(snapshot.directory),
        )
    elif not has_targets and not any(one.group == COMPONENTS for one in catalog.objects):
        # component types without a cluster are of use: their schemas are published with the status
        yield CONFIG_EMPTY.finding(
            f"the config has no Repository and no cluster, {_contents(catalog, snapshot)}: nothing is reconciled or"
            " removed. Correct the config branch, config.directory or .krmignore. To remove all packages, keep the"
            " Repository objects and delete the files of everything else",
            Where(snapshot.directory),
        )


def _contents(catalog: Catalog, snapshot: ConfigSnapshot) -> str:
    files = [path for path in snapshot.files if is_config_path(path)]
    ignored = sum(catalog.documents(path) is None for path in files) - len(catalog.unreadable)
    hidden = f", {ignored} of them hidden by .krmignore" if ignored > 0 else ""
    return f"but {len(catalog.objects)} other objects in {len(files)} YAML and JSON files{hidden}"


def _replaced_history(
    catalog: Catalog, snapshot: ConfigSnapshot, destinations: Iterable[Destination], states: Iterable[DestinationState]
) -> Iterator[Finding]:
    lineage = snapshot.lineage
    known = sorted({state.config_root for state in states if state.config_root})
    if lineage is None or all(map(lineage.has_root, known)):
        return
    owners = (catalog.get(one.key) for one in destinations)
    acknowledged = {text for one in owners if one for text in acknowledged_resets(one.annotations)}
    for root in known:
        if not lineage.has_root(root) and acknowledgement(root) not in acknowledged:
            yield CONFIG_HISTORY_REPLACED.finding(
                f"the config branch began with commit {root} in earlier passes, and its history does not contain that"
                " commit any more: nothing is removed. Restore the branch; or merge the earlier history with 'git merge"
                " --allow-unrelated-histories --strategy=ours'; or, to accept the new history, annotate any Repository"
                f' with {ACK_RESET}: "{acknowledgement(root)}"'
            )
