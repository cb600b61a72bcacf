"""What changed between trees: the moves of a branch, and whether somebody else moved the same (git.md finding 5)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

from reconciler.gitio.names import is_path
from reconciler.gitio.reader import TreeEntry
from reconciler.planning.open_drafts import Offered
from reconciler.snapshot.objects import TreeId


class Trees(Protocol):
    """The trees of a repository, by id."""

    def tree(self, tree: TreeId) -> tuple[TreeEntry, ...]:
        """Return the entries of a tree."""
        ...

    def entry(self, tree: TreeId, path: str) -> TreeEntry | None:
        """Return what stands at `path` below `tree`."""
        ...


Move = tuple[str, TreeEntry | None]


def moves(
    trees: Trees, old: TreeId | None, new: TreeId | None, head: TreeId | None = None, folder: str = ""
) -> Iterator[Move]:
    """Yield each path that differs with what stands there in `new`, None where it is gone.

    A folder that came or went is one path, unless `head` has its own version of it: then its files are.
    """
    before, after, mine = (_entries(trees, tree) for tree in (old, new, head))
    for name in sorted({*before, *after}):
        one, other, here = before.get(name), after.get(name), mine.get(name)
        if one == other:
            continue
        if _goes_inside(one, other, here):
            was, will, own = (TreeId(entry.id) if entry and entry.is_tree else None for entry in (one, other, here))
            yield from moves(trees, was, will, own, f"{folder}{name}/")
        else:
            yield f"{folder}{name}", other


def _entries(trees: Trees, tree: TreeId | None) -> dict[str, TreeEntry]:
    return {entry.name: entry for entry in trees.tree(tree)} if tree else {}


def _goes_inside(one: TreeEntry | None, other: TreeEntry | None, here: TreeEntry | None) -> bool:
    if any(entry and not entry.is_tree for entry in (one, other)):
        return False
    has_its_own = here is not None and here.is_tree and here not in (one, other)
    return bool(one and other) or has_its_own


def collide(trees: Trees, head: TreeId, base: TreeId, branch: TreeId, outside: Collection[str]) -> bool:
    """Return whether `head` has changed something since `base` that taking in `branch` would undo.

    Paths in `outside`, and what lies below them, do not count. What no tree of ours may hold cannot be taken in at all.
    """
    for path, entry in moves(trees, base, branch, head):
        if not is_path(path):
            return True
        if any(path == one or path.startswith(f"{one}/") for one in outside):
            continue
        if trees.entry(head, path) not in (entry, trees.entry(base, path)):
            return True
    return False


def offered(
    trees: Trees, head: TreeId | None, base: TreeId | None, branch: TreeId | None, folder: str = ""
) -> Iterator[Offered]:
    """Yield each file that `head` has changed since `base` and that `branch` does not have so.

    Of folders that are new, every file is yielded: each belongs to a package of its own.
    """
    old, new, there = ({one.name: one for one in trees.tree(tree)} if tree else {} for tree in (base, head, branch))
    for name in sorted({*old, *new}):
        was, now, has = old.get(name), new.get(name), there.get(name)
        if now in (was, has):
            continue
        path, folders = f"{folder}{name}", [_folder(one) for one in (now, was, has)]
        left, came = _leaf(was), _leaf(now)
        inner = folders[0] or folders[1]
        if left != came or (inner and has not in (None, was) and not folders[2]):
            fits = has == was and is_path(path)
            yield Offered(path, came.id if came else None, came.mode if came else "", fits)
        if inner:
            yield from offered(trees, folders[0], folders[1], folders[2], f"{path}/")


def _folder(entry: TreeEntry | None) -> TreeId | None:
    return TreeId(entry.id) if entry and entry.is_tree else None


def _leaf(entry: TreeEntry | None) -> TreeEntry | None:
    return None if entry and entry.is_tree else entry
