"""Reads the content of a draft for a page of the console. Contents that were read recently are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock

from reconciler.inspect.fleet_index import FleetIndexer
from reconciler.inspect.local_commits import LocalCommits
from reconciler.krm.internal_errors import ExpectedError
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.entries import ConflictEntry, build_conflict_entries
from reconciler.output.explain.verification import CommitInfo
from reconciler.output.fleet.model import DraftMember
from reconciler.output.fleet.resource_diffs import ResourceDiff, build_resource_diffs

_KEPT_CONTENTS = 64
ConflictPlace = tuple[str, str, str]
"""The file, the resource and the pointer of a conflict."""


@dataclass(frozen=True)
class DraftContent:
    """The differences between a draft and the published package.

    Attributes:
        local_commits: The commits of the local changes in conflicts, by conflict. Unknown commits are omitted.
    """

    diffs: tuple[ResourceDiff, ...]
    local_commits: Mapping[ConflictPlace, CommitInfo] = field(default_factory=dict)


class DraftMovedError(ExpectedError):
    """The draft does not exist any more, or its branch has a different head now."""


class DraftContentReader:
    """Reads contents of drafts. Threads can share the object: one thread reads, and the others wait.

    Args:
        indexer: Opens the target of the draft.
    """

    def __init__(self, indexer: FleetIndexer) -> None:
        self._indexer = indexer
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, str, str, str], DraftContent] = OrderedDict()

    def read(self, member: DraftMember) -> DraftContent:
        """Return the content of a draft.

        Raises:
            DraftMovedError: The branch of the draft does not have the head of `member`.
            GitError: The repository cannot be read.
        """
        key = (member.target, member.package, member.head, member.published_head)
        with self._lock:
            content = self._kept.pop(key, None) or self._read(member)
            self._kept[key] = content
            if len(self._kept) > _KEPT_CONTENTS:
                self._kept.popitem(last=False)
        return content

    def _read(self, member: DraftMember) -> DraftContent:
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
            local_commits = {
                get_place(conflict): commit
                for conflict in build_conflict_entries(list(package.package.conflicts))
                if (commit := commits.find_conflict(conflict))
            }
        return DraftContent(build_resource_diffs(package.before, package.after, package.changes), local_commits)


def get_place(conflict: ConflictEntry) -> ConflictPlace:
    """Return the place that identifies a conflict in a draft."""
    return conflict.file, conflict.resource, conflict.pointer
