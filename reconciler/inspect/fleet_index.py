"""Reads the targets of a fleet for the index of the console. Targets whose refs have not moved are not read again.

After a start, the index uses the entries of targets that an earlier process has stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager

from reconciler.catalog.catalog import ConfigObject
from reconciler.git.errors import GitError
from reconciler.inspect.index_cache import IndexCache, IndexedTarget, StoredTarget
from reconciler.inspect.published_removals import ObservedRemoval, read_removal_event
from reconciler.inspect.report import read_cluster
from reconciler.krm.findings import Finding
from reconciler.krm.json_text import compute_digest
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.output.fleet.activity import ActivityEvent
from reconciler.output.fleet.builder import build_fleet_index, index_target
from reconciler.output.fleet.model import FleetIndex, TargetEntry
from reconciler.output.fleet.owner_places import locate_owners
from reconciler.output.fleet.rollouts import Rollout
from reconciler.output.fleet.target_data import TargetData
from reconciler.output.fleet.variants import VariantPool
from reconciler.planning.model.targets import Target
from reconciler.reconcile.failures import log_if_internal, repository_boundary
from reconciler.reconcile.remotes.targets import DraftReader, OpenTarget

# The objects of these targets are read together. Their trees must fit into the cache of an object reader.
_TARGETS_PER_PREFETCH = 100
# An update stores the entries only if more than this share has changed since they were last stored. The end of the
# process stores them too. Therefore, most updates store nothing, and a killed process loses only few entries.
_MAX_UNSTORED_SHARE = 0.05


@dataclass(frozen=True)
class ObservedPass:
    """The data of one pass from which `FleetIndexer` builds the index of the console.

    Attributes:
        config: The ID of the config.
        completed_at: The end of the pass, in seconds since 1970.
        targets: All targets of this shard with their labels.
        errors: Maps each target that the pass could not read to the error.
        removals: The packages whose removal was published since the previous pass.
        objects: The objects of the config.
        finding_tenants: The tenants of the findings. See `FleetIndex`.
    """

    config: str
    completed_at: int
    targets: Mapping[Target, Mapping[str, str]]
    findings: tuple[Finding, ...] = ()
    errors: Mapping[Target, str] = field(default_factory=dict)
    rollouts: tuple[Rollout, ...] = ()
    removals: tuple[ObservedRemoval, ...] = ()
    objects: Mapping[ObjectKey, ConfigObject] = field(default_factory=dict, repr=False)
    finding_tenants: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _KnownTarget:
    """A target with its data from the last time that it was read."""

    target: Target
    content: IndexedTarget

    @property
    def entry(self) -> TargetEntry:
        """The entry of the target in the index."""
        return self.content.entry


class FleetIndexer:
    """Builds an index after each pass, and opens the targets of the last index.

    Args:
        open_reader: Opens a reader of the repositories with these URLs, at the state of their last fetch.
        cache: Stores the entries of targets for later processes. If None, the entries are only in memory.
    """

    def __init__(
        self,
        open_reader: Callable[[frozenset[str]], AbstractContextManager[DraftReader]],
        cache: IndexCache | None = None,
    ) -> None:
        self._open_reader = open_reader
        self._cache = cache
        self._unstored_count = 0
        self._known: Mapping[ObjectKey, _KnownTarget] = {}
        self._pool = VariantPool()
        self._number = 0
        self._last: FleetIndex | None = None
        # The removals whose commits were not read yet, and the events about the other removals.
        self._unread_removals: tuple[ObservedRemoval, ...] = ()
        self._removal_events: list[ActivityEvent] = []

    def continue_from(self, previous: FleetIndexer, *, keeps_entries: bool) -> None:
        """Take over the index number and the known targets of a previous indexer, which must not be used any more.

        Args:
            keeps_entries: Whether the first update can use the entries of targets whose refs have not moved.
        """
        self._number = previous._number
        self._unread_removals, self._removal_events = previous._unread_removals, previous._removal_events
        known = previous._known
        self._known = known if keeps_entries else {key: _forget_heads(target) for key, target in known.items()}

    def update(self, observed: ObservedPass, report_progress: Callable[[int, int], None]) -> FleetIndex:
        """Return the index after a pass.

        Args:
            report_progress: Receives the number of completed targets, and the number of all targets.

        Raises:
            GitError: The repositories cannot be opened.
        """
        self._unread_removals += observed.removals
        opened = (*observed.targets, *(removal.target for removal in self._unread_removals))
        with self._open_reader(frozenset(target.url for target in opened)) as reader:
            if self._cache and not self._known:
                self._known = dict(_restore_targets(self._cache.read(), observed))
            known = self._keep_targets(observed, reader)
            report_progress(len(known), len(observed.targets))
            moved = [target for target in observed.targets if target.key not in known]
            for start in range(0, len(moved), _TARGETS_PER_PREFETCH):
                targets = moved[start : start + _TARGETS_PER_PREFETCH]
                reader.prefetch(targets)
                for target in targets:
                    known[target.key] = self._read_target(reader, target, observed.targets[target])
                    report_progress(len(known), len(observed.targets))
            now = observed.completed_at
            self._removal_events += [read_removal_event(removal, reader, now) for removal in self._unread_removals]
        self._unread_removals = ()
        self._known = known
        self._unstored_count += len(moved)
        if self._unstored_count > len(known) * _MAX_UNSTORED_SHARE:
            self.store()
        last, entries = self._last, [target.entry for target in known.values() if _is_shown(target)]
        if last and _is_equal(last, observed, entries):
            # Keep the index number, so that open pages do not request the same data again.
            self._last = index = replace(last, completed_at=observed.completed_at)
            return index
        self._number += 1
        self._pool.retain({draft.variant_digest for entry in entries for draft in entry.drafts})
        self._last = index = build_fleet_index(
            self._number, observed.completed_at, observed.config, entries, observed.findings, observed.rollouts,
            locate_owners(entries, observed.objects), observed.finding_tenants,
        )  # fmt: skip
        return index

    def take_removals(self) -> list[ActivityEvent]:
        """Return the events about published removals since the last call."""
        events, self._removal_events = self._removal_events, []
        return events

    def store(self) -> None:
        """Store the entries of all targets, if entries have changed since they were stored."""
        if self._cache and self._unstored_count:
            self._cache.write({key: _build_stored_target(target) for key, target in self._known.items()})
            self._unstored_count = 0

    @contextmanager
    def open_target(self, name: str) -> Iterator[tuple[DraftReader, OpenTarget] | None]:
        """Open the target with this name, and yield its reader and the target.

        Yield None if the last update did not contain such a target.

        Raises:
            GitError: The repository cannot be opened.
        """
        with self.open_targets({name}) as (reader, targets):
            yield (reader, targets[0]) if targets else None

    @contextmanager
    def open_targets(self, names: Set[str]) -> Iterator[tuple[DraftReader, Sequence[OpenTarget]]]:
        """Open the targets with these names. Yield a reader for all of them, and the list of targets, sorted by name.

        Omit names for which the last update found no target.

        Raises:
            GitError: A repository cannot be opened.
        """
        found = sorted(
            (known.target for known in self._known.values() if known.target.name in names),
            key=lambda target: target.name,
        )
        with self._open_reader(frozenset(target.url for target in found)) as reader:
            if len(found) > 1:
                reader.prefetch(found)
            yield reader, tuple(map(reader.read_target, found))

    def _keep_targets(self, observed: ObservedPass, reader: DraftReader) -> dict[ObjectKey, _KnownTarget]:
        """Return the targets whose refs have not moved, and the targets that the pass could not read."""
        kept: dict[ObjectKey, _KnownTarget] = {}
        for target, labels in observed.targets.items():
            known = self._known.get(target.key)
            if error := observed.errors.get(target):
                kept[target.key] = _add_error(known, target, labels, error)
            elif known and _is_unchanged(known, target, labels, reader):
                kept[target.key] = known
        return kept

    def _read_target(self, reader: DraftReader, target: Target, labels: Mapping[str, str]) -> _KnownTarget:
        open_target: OpenTarget = replace(reader.read_target(target), labels=labels)
        try:
            with repository_boundary(target.title):
                entry = index_target(read_cluster(reader, open_target), self._pool)
            error = entry.read_error
        except GitError as failure:
            log_if_internal(failure)
            error = f"{target.title}: {failure.full_message}"
        if error:
            return _add_error(self._known.get(target.key), target, labels, error)
        branches = open_target.draft_branches
        return _KnownTarget(target, IndexedTarget(branches, reader.read_heads(target, branches), entry))


def _forget_heads(known: _KnownTarget) -> _KnownTarget:
    """Return the target without its recorded branch heads, so that the next update reads the target again."""
    return replace(known, content=replace(known.content, heads={}))


def _restore_targets(
    stored: Mapping[ObjectKey, StoredTarget], observed: ObservedPass
) -> Iterator[tuple[ObjectKey, _KnownTarget]]:
    for target in observed.targets:
        found = stored.get(target.key)
        if found and found.definition == _compute_definition(target):
            yield target.key, _KnownTarget(target, found.content)


def _build_stored_target(known: _KnownTarget) -> StoredTarget:
    return StoredTarget(_compute_definition(known.target), known.content)


def _compute_definition(target: Target) -> str:
    return compute_digest([repr(replace(target, definition_sources={}))])


def _is_equal(index: FleetIndex, observed: ObservedPass, entries: Sequence[TargetEntry]) -> bool:
    """Return whether an index already contains the data of a pass and exactly these entries."""
    if (index.config, index.findings, index.rollouts) != (observed.config, observed.findings, observed.rollouts):
        return False
    return len(entries) == len(index.targets) and all(index.by_target.get(entry.name) is entry for entry in entries)


def _is_unchanged(known: _KnownTarget, target: Target, labels: Mapping[str, str], reader: DraftReader) -> bool:
    """Return whether the last read of a target succeeded, and its definition, labels and refs have not changed."""
    if (known.target, known.entry.labels) != (target, labels) or known.entry.read_error:
        return False
    return reader.read_heads(target, known.content.drafts) == known.content.heads


def _add_error(known: _KnownTarget | None, target: Target, labels: Mapping[str, str], error: str) -> _KnownTarget:
    """Return the data of an unreadable target: the error, and the packages of the last successful read."""
    if known is None:
        unread = index_target(TargetData(target, labels, read_error=error), VariantPool())
        return _KnownTarget(target, IndexedTarget(frozenset(), {}, unread))
    entry = replace(known.entry, labels=labels, read_error=error)
    return _KnownTarget(target, replace(known.content, entry=entry))


def _is_shown(known: _KnownTarget) -> bool:
    """Return whether the index contains a target.

    A repository with `deployment: false` is included only if it cannot be read or contains managed packages.
    """
    entry = known.entry
    return known.target.is_deployment or bool(entry.packages or entry.read_error)
