"""Reads the targets of a fleet for the index of the console. Targets whose refs have not moved are not read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager

from reconciler.catalog.files import CommitId
from reconciler.inspect.report import read_cluster
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.output.fleet.builder import build_fleet_index, index_target
from reconciler.output.fleet.model import FleetIndex, TargetEntry
from reconciler.output.report.model import ReportCluster
from reconciler.planning.model.targets import Target
from reconciler.reconcile.remotes.targets import DraftReader, OpenTarget


@dataclass(frozen=True)
class ObservedPass:
    """The result of a pass that the index needs.

    Attributes:
        config: The ID of the config.
        completed_at: The end of the pass, in seconds since 1970.
        targets: All targets of this shard with their labels.
        errors: The error of each target that the pass could not read, by target.
    """

    config: str
    completed_at: int
    targets: Mapping[Target, Mapping[str, str]]
    findings: tuple[Finding, ...] = ()
    errors: Mapping[Target, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _KnownTarget:
    """A target as it was read last.

    Attributes:
        drafts: The draft branches that the state of the target records.
        heads: The commits of the refs on which the entry depends, by ref.
    """

    target: Target
    labels: Mapping[str, str]
    drafts: tuple[str, ...]
    heads: Mapping[str, CommitId]
    entry: TargetEntry


class FleetIndexer:
    """Builds an index after each pass.

    Args:
        open_reader: Opens a reader of these repositories, by URL, at the state of their last fetch.
    """

    def __init__(self, open_reader: Callable[[frozenset[str]], AbstractContextManager[DraftReader]]) -> None:
        self._open_reader = open_reader
        self._known: dict[ObjectKey, _KnownTarget] = {}
        self._number = 0

    def update(self, observed: ObservedPass, report_progress: Callable[[int, int], None]) -> FleetIndex:
        """Return the index after a pass.

        Args:
            report_progress: Receives the number of completed targets, and the number of all targets.

        Raises:
            GitError: The repositories cannot be opened.
        """
        total = len(observed.targets)
        with self._open_reader(frozenset(target.url for target in observed.targets)) as reader:
            known: dict[ObjectKey, _KnownTarget] = {}
            for number, entry in enumerate(self._read_targets(observed, reader), 1):
                known[entry.target.key] = entry
                report_progress(number, total)
        self._known = known
        self._number += 1
        targets = [target.entry for target in known.values() if _is_shown(target)]
        return build_fleet_index(self._number, observed.completed_at, observed.config, targets, observed.findings)

    def find_target(self, name: str) -> Target | None:
        """Return the target with this name from the last update."""
        return next((known.target for known in self._known.values() if known.target.name == name), None)

    def _read_targets(self, observed: ObservedPass, reader: DraftReader) -> Iterator[_KnownTarget]:
        for target, labels in observed.targets.items():
            known = self._known.get(target.key)
            if error := observed.errors.get(target):
                yield _add_error(known, target, labels, error)
            elif known and (known.target, known.labels) == (target, labels) and not known.entry.read_error:
                heads = reader.read_heads(target, known.drafts)
                yield known if heads == known.heads else _read_target(reader, target, labels)
            else:
                yield _read_target(reader, target, labels)


def _read_target(reader: DraftReader, target: Target, labels: Mapping[str, str]) -> _KnownTarget:
    open_target: OpenTarget = replace(reader.read_target(target), labels=labels)
    entry = index_target(read_cluster(reader, open_target))
    drafts = tuple(draft.branch for draft in open_target.drafts)
    return _KnownTarget(target, labels, drafts, reader.read_heads(target, drafts), entry)


def _add_error(known: _KnownTarget | None, target: Target, labels: Mapping[str, str], error: str) -> _KnownTarget:
    """Return a target that the pass could not read. The packages that were read last remain."""
    if known is None:
        unread = index_target(ReportCluster(target, labels, read_error=error))
        return _KnownTarget(target, labels, (), {}, unread)
    entry = replace(known.entry, labels=labels, read_error=error)
    return replace(known, target=target, labels=labels, entry=entry)


def _is_shown(known: _KnownTarget) -> bool:
    """Return whether the index contains a target.

    A repository with `deployment: false` is included only if it cannot be read or contains managed packages.
    """
    entry = known.entry
    return known.target.is_deployment or bool(entry.packages or entry.read_error)
