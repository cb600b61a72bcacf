"""Searches the history of a branch for the local commits that changed values of a package."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property

from reconciler.catalog.files import CommitId
from reconciler.git.object_reader import Commit
from reconciler.inspect.value_history import ValueHistory
from reconciler.inspect.verify import build_commit_info, is_reconciler_commit
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.entries import ConflictEntry
from reconciler.output.explain.model import PackageExplanation, ValueNotFoundError, ValueStep
from reconciler.output.explain.value_query import ValueQuery
from reconciler.output.explain.verification import CommitInfo
from reconciler.planning.attribution.removable_layers import EditOrigin, LocalEdit
from reconciler.planning.model.targets import Target
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import TargetReference

# Maximum number of commits that are searched for local changes of one package. The commits of older local changes stay
# unknown.
_MAX_COMMITS = 200


@dataclass(frozen=True)
class LocalCommits:
    """The commits of people that changed a package, in the history of one commit.

    Attributes:
        head: The commit whose history is searched.
    """

    target: Target
    remote: Remote
    package: str
    head: CommitId

    @cached_property
    def _commits(self) -> tuple[Commit, ...]:
        """The commits, the newest first. A merge commit is replaced by the commits that it merged."""
        path = self.target.get_package_path(self.package)
        found = self.remote.mirror.list_commits_changing_any(self.head, [path], _MAX_COMMITS)
        commits = (commit for commit_id in found for commit in self._list_merged(commit_id, path))
        return tuple(commit for commit in commits if not is_reconciler_commit(commit))

    def _list_merged(self, commit_id: CommitId, path: str) -> Iterator[Commit]:
        commit = self.remote.read_commit(commit_id)
        if len(commit.parents) < 2:
            yield commit
            return
        yield from map(self.remote.read_commit, self.remote.mirror.list_merged_commits_changing(commit_id, path))

    def find_value(self, resource: str, pointer: str) -> CommitInfo | None:
        """Return the last commit in which a person changed a value. Return None if there is none.

        Args:
            resource: The resource as `Kind/namespace/name`.
        """
        reference = TargetReference(self.target.name, self.package)
        values = ValueHistory(reference, ValueQuery(resource, pointer), self.target, self.remote)

        def is_change(commit: Commit, parent: CommitId | None) -> bool:
            before = values.read_value(parent) if parent else None
            after = values.read_value(commit.id)
            return before is None or not after.is_same_value(before)

        try:
            return self._find(is_change)
        except ValueNotFoundError:
            # The name of the resource matches several resources in an earlier version.
            return None

    def find_file(self, file: str) -> CommitInfo | None:
        """Return the last commit in which a person changed a file of the package. Return None if there is none."""
        path = f"{self.target.get_package_path(self.package)}/{file}"

        def is_change(commit: Commit, parent: CommitId | None) -> bool:
            before = self.remote.find_blob_at(parent, path) if parent else None
            return self.remote.find_blob_at(commit.id, path) != before

        return self._find(is_change)

    def find_conflict(self, conflict: ConflictEntry) -> CommitInfo | None:
        """Return the commit of the local change in a conflict. Return None if it is unknown."""
        if conflict.resource and conflict.pointer:
            return self.find_value(conflict.resource, conflict.pointer)
        return self.find_file(conflict.file) if conflict.file else None

    def _find(self, is_change: Callable[[Commit, CommitId | None], bool]) -> CommitInfo | None:
        changes = (commit for commit in self._commits if is_change(commit, next(iter(commit.parents), None)))
        found = next(changes, None)
        return build_commit_info(found) if found else None


def add_local_commits(
    explanation: PackageExplanation, open_commits: Callable[[EditOrigin], LocalCommits | None]
) -> PackageExplanation:
    """Add to each layer with a local change the commit in which a person made this change.

    Args:
        open_commits: Returns the commits on the branch of a local change. Returns None if there is no such branch.
    """

    # All values share the list of commits of a branch.
    find_commits = cache(open_commits)

    def add_to_step(step: ValueStep, resource: str, pointer: str) -> ValueStep:
        if not isinstance(step.removable_layer, LocalEdit):
            return step
        commits = find_commits(step.removable_layer.origin)
        return replace(step, local_commit=commits.find_value(resource, pointer) if commits else None)

    def add_to_steps(steps: Sequence[ValueStep], resource: str, pointer: str) -> tuple[ValueStep, ...]:
        return tuple(add_to_step(step, resource, pointer) for step in steps)

    values = (
        replace(value, steps=add_to_steps(value.steps, value.resource, value.pointer)) for value in explanation.values
    )
    return replace(explanation, values=tuple(values))
