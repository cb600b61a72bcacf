"""Questions about the history of commits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.support.in_process_git.objects import (
    ObjectStore,
    UnsupportedError,
    find_path,
    list_parents,
    read_tree_of,
)


def list_ancestors(store: ObjectStore, commits: Sequence[str]) -> set[str]:
    """Return these commits and all commits in their history."""
    found, pending = set[str](), list(commits)
    while pending:
        commit = pending.pop()
        if commit not in found:
            found.add(commit)
            pending += list_parents(store, commit)
    return found


def is_ancestor(store: ObjectStore, ancestor: str, commit: str) -> bool:
    """Return whether a commit is another commit or in its history."""
    store.read(ancestor, b"commit")
    return ancestor in list_ancestors(store, [commit])


def find_merge_base(store: ObjectStore, first: str, second: str) -> str | None:
    """Return the only best common ancestor of two commits, or None if they have no common ancestor."""
    common = list_ancestors(store, [first]) & list_ancestors(store, [second])
    best = common - {parent for commit in common for parent in list_parents(store, commit)}
    if len(best) > 1:
        raise UnsupportedError
    return next(iter(best), None)


def list_first_parents(store: ObjectStore, commit: str, excluded: Sequence[str]) -> Iterator[str]:
    """Yield a commit and its first parents, up to the history of the excluded commits."""
    known = list_ancestors(store, excluded)
    current: str | None = commit
    while current is not None and current not in known:
        yield current
        current = next(iter(list_parents(store, current)), None)


def has_changed(store: ObjectStore, commit: str, paths: Sequence[str]) -> bool:
    """Return whether a commit changed one of these paths against its first parent."""
    parent = next(iter(list_parents(store, commit)), None)
    return any(_find(store, commit, path) != (_find(store, parent, path) if parent else None) for path in paths)


def _find(store: ObjectStore, commit: str, path: str) -> tuple[bytes, str] | None:
    return find_path(store, read_tree_of(store, commit), path)
