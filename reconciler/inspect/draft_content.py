"""Reads the content of a draft for a page of the console. Contents that were read recently are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock

from reconciler.inspect.fleet_index import FleetIndexer
from reconciler.inspect.local_commits import LocalCommits
from reconciler.krm.internal_errors import ExpectedError
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.changes.package_changes import PackageChanges
from reconciler.output.entries import ConflictEntry, build_conflict_entries
from reconciler.output.explain.verification import CommitInfo
from reconciler.output.fleet.large_diffs import MAX_BYTES, build_limited_diffs
from reconciler.output.fleet.model import DraftMember
from reconciler.output.fleet.resource_diffs import ResourceDiff
from reconciler.output.text import format_object_reference

_KEPT_CONTENTS = 64
_MAX_READS = 4
ConflictPlace = tuple[str, str, str]
"""The file, the resource and the pointer of a conflict."""


@dataclass(frozen=True)
class DraftContent:
    """The differences between a draft and the published package.

    Attributes:
        local_commits: Maps the location of a conflict to the commit of its local change. Unknown commits are omitted.
        changed_bytes: The size of the changed files.
        is_complete: Whether the draft is small enough to show all its differences.
    """

    diffs: tuple[ResourceDiff, ...]
    local_commits: Mapping[ConflictPlace, CommitInfo] = field(default_factory=dict)
    changed_bytes: int = 0
    is_complete: bool = True


class DraftMovedError(ExpectedError):
    """The draft does not exist any more, or its branch has a different head now."""


class DraftContentReader:
    """Reads contents of drafts. Threads can share the object. One thread reads a draft, and the others wait for it.

    Args:
        indexer: Opens the target of the draft.
    """

    def __init__(self, indexer: FleetIndexer) -> None:
        self._indexer = indexer
        self._lock = Lock()
        # The number of locks is limited. Several drafts can share one lock, but the read of a large draft delays only
        # few other drafts.
        self._read_locks = tuple(Lock() for _ in range(_MAX_READS))
        self._kept: OrderedDict[tuple[str, ...], DraftContent] = OrderedDict()

    def find(self, member: DraftMember, resource: str = "") -> DraftContent | None:
        """Return the content of a draft if it was read recently. Otherwise, return None without waiting."""
        for key in (_build_key(member, ""), _build_key(member, resource)):
            with self._lock:
                content = self._kept.get(key)
                if content and (content.is_complete or key[-1] == resource):
                    self._kept.move_to_end(key)
                    return content
        return None

    def read(self, member: DraftMember, changes: PackageChanges, resource: str = "") -> DraftContent:
        """Return the content of a draft.

        Args:
            changes: The changes of the draft.
            resource: The resource whose lines are read first if the draft is too large.

        Raises:
            DraftMovedError: The branch of the draft does not have the head of `member`.
            GitError: The repository cannot be read.
        """
        key = _build_key(member, resource)
        with self._read_locks[hash(key[:2]) % _MAX_READS]:
            content = self.find(member, resource)
            if content is None:
                content = self._read(member, changes, resource)
                with self._lock:
                    self._kept[key] = content
                    if len(self._kept) > _KEPT_CONTENTS:
                        self._kept.popitem(last=False)
        return content

    def _read(self, member: DraftMember, changes: PackageChanges, resource: str) -> DraftContent:
        with self._indexer.open_target(member.target) as found:
            if found is None:
                raise DraftMovedError
            reader, target = found
            draft = next((draft for draft in target.drafts if draft.branch == member.branch), None)
            if draft is None or (draft.head, draft.published_head) != (member.head, member.published_head):
                raise DraftMovedError
            details = reader.read_draft_details(draft, frozenset({member.package}), should_read_files=True)
            package = next((package for package in details.packages), None)
            if package is None:
                raise DraftMovedError
            commits = LocalCommits(target.target, reader.get_remote(target.target), member.package, draft.head)
            conflicts = build_conflict_entries(list(package.package.conflicts))
            local_commits = {
                get_place(conflict): commit for conflict in conflicts if (commit := commits.find_conflict(conflict))
            }
        places = (format_object_reference(conflict.resource) or conflict.file for conflict in conflicts)
        requested = tuple(filter(None, (resource, *places)))
        diffs, size = build_limited_diffs(package.before, package.after, changes, requested)
        return DraftContent(diffs, local_commits, size, is_complete=size <= MAX_BYTES)


def _build_key(member: DraftMember, resource: str) -> tuple[str, ...]:
    return member.target, member.package, member.head, member.published_head, resource


def get_place(conflict: ConflictEntry) -> ConflictPlace:
    """Return the place that identifies a conflict in a draft."""
    return conflict.file, conflict.resource, conflict.pointer
