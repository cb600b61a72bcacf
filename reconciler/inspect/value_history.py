"""The history of one value on a branch, and the binary search for the version that changed a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from reconciler.catalog.files import CommitId, FileTree, TreeId
from reconciler.inspect.committed_packages import list_packages
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.explain.builder import format_closest_names
from reconciler.output.explain.model import ValueNotFoundError
from reconciler.output.explain.value_query import FoundValue, ValueQuery, format_value_not_found
from reconciler.planning.model.targets import Target
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import TargetReference, UnknownTargetError

# Some versions cannot be compared. Therefore, each step of the binary search tries up to this number of versions.
_MAX_CANDIDATES = 5
NO_VALUE = FoundValue()


@dataclass(frozen=True)
class ValueChangeCommit:
    """A commit that changed the value.

    Attributes:
        parent: The first parent of the commit.
        before, after: The value before and after the commit.
    """

    commit: CommitId
    parent: CommitId | None
    before: FoundValue
    after: FoundValue


class ValueHistory:
    """Reads one value of a package at the commits of a branch."""

    def __init__(self, reference: TargetReference, query: ValueQuery, target: Target, remote: Remote) -> None:
        self.reference = reference
        self.query = query
        self.target = target
        self.remote = remote
        self.path = target.get_package_path(reference.package)
        self._values: dict[TreeId | None, FoundValue] = {None: NO_VALUE}
        self._last_file = ""

    def find_last_change(self, head: CommitId) -> ValueChangeCommit:
        """Return the last change of the value in the history of the commit `head`."""
        commits = self.remote.mirror.list_commits_changing(head, self.path)
        if not commits:
            existing = list_packages(self.target, self.remote, head)
            names = format_closest_names(self.reference.package, existing)
            raise UnknownTargetError(
                f"{self.reference}: {self.target.name} has no such package; existing packages: {names}"
            )
        change = self._find_change(commits)
        if change is None:
            files = self._read_package_files(head) or self._read_package_files(commits[-1]) or FileTree()
            raise ValueNotFoundError(format_value_not_found(str(self.reference), self.query, files))
        return change

    def find_commit_setting(self, commits: Sequence[CommitId], value: FoundValue) -> CommitId | None:
        """Return the first commit in the list that changed the value to `value`, or None if no commit did this."""
        for commit in commits:
            parents = self.remote.read_commit(commit).parents
            before = self.read_value(parents[0]) if parents else NO_VALUE
            if self.read_value(commit).is_same_value(value) and not before.is_same_value(value):
                return commit
        return None

    def _find_change(self, commits: Sequence[CommitId]) -> ValueChangeCommit | None:
        after = self.read_value(commits[0])
        for commit, older_commit in zip(commits, [*commits[1:], None], strict=True):
            # Compare the values at these two commits only, because no commit between the two changed the package.
            before = self.read_value(older_commit) if older_commit else NO_VALUE
            if not before.is_same_value(after):
                parents = self.remote.read_commit(commit).parents
                return ValueChangeCommit(commit, parents[0] if parents else None, before, after)
        return None

    def read_value(self, commit: CommitId) -> FoundValue:
        """Return the value in the package at a commit."""
        tree = self.remote.find_tree_at(commit, self.path)
        if tree not in self._values:
            self._values[tree] = self._read_value_in_tree(commit, tree)
        return self._values[tree]

    def _read_value_in_tree(self, commit: CommitId, tree: TreeId | None) -> FoundValue:
        # First read only the file that contained the last found value, because a value seldom moves to another file.
        # Reading the whole package is slower.
        blob = self.remote.find_blob_at(commit, f"{self.path}/{self._last_file}") if self._last_file else None
        if blob and (value := self.query.find_in_file(self._last_file, self.remote.read_file(blob))):
            return value
        value = self.query.find_in_package(self.remote.read_files(tree)) if tree else NO_VALUE
        self._last_file = value.file or self._last_file
        return value

    def _read_package_files(self, commit: CommitId) -> FileTree | None:
        tree = self.remote.find_tree_at(commit, self.path)
        return self.remote.read_files(tree) if tree else None


def find_change_point(old: int, new: int, is_new: Callable[[int], bool | None]) -> tuple[int, int]:
    """Return the last version before a change, and the first version after it.

    There can be versions between the two that cannot be compared. If there are several changes, the result is about one
    of them.

    Args:
        old: A version before the change. This version is not checked.
        new: A later version, after the change. This version is not checked.
        is_new: Returns whether a version contains the change, or None if the version cannot be compared.
    """
    while new - old > 1:
        candidates = _list_versions_around((old + new) // 2, old, new)
        checks = ((version, is_new(version)) for version in candidates)
        check = next((check for check in checks if check[1] is not None), None)
        if check is None:
            break
        old, new = (old, check[0]) if check[1] else (check[0], new)
    return old, new


def _list_versions_around(middle: int, old: int, new: int) -> Iterator[int]:
    offsets = (0, *(sign * offset for offset in range(1, _MAX_CANDIDATES) for sign in (-1, 1)))
    versions = (middle + offset for offset in offsets if old < middle + offset < new)
    yield from islice(versions, _MAX_CANDIDATES)
