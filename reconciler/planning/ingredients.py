"""Gathering: the trees that a package is made from, read from upstreams, branches and state (git.md 3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from reconciler.krm.isolation import ExpectedError
from reconciler.planning.conflicts import read_conflict
from reconciler.planning.last_mile import Had
from reconciler.planning.source import Ingredients, Standing, stands_alone
from reconciler.planning.state import Offer, PackageRecord, Seen
from reconciler.rules.overrides.usage import policy_of
from reconciler.rules.variant import Earlier, Generated, Upstream
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import CommitId, TreeId


class TooLargeToReadError(ExpectedError):
    """A package is beyond the limits of what is read; the text says which. It spoils itself only."""


class PackageMalformedError(TooLargeToReadError):
    """The tree of a package has entries that contradict each other, or that no file system can hold."""


class Sources(Protocol):
    """The contents of trees: of upstream packages, and of what stands on a destination's branches.

    Both raise TooLargeToReadError.
    """

    def upstream(self, upstream: Upstream) -> FileTree:
        """Return an upstream package's files."""
        ...

    def is_behind(self, upstream: Upstream, commit: CommitId) -> bool:
        """Return whether an upstream's commit is in the history of another, as far as that is still known."""
        ...

    def standing(self, tree: TreeId) -> FileTree:
        """Return the files of a tree of the destination."""
        ...

    def lock_tree(self, files: FileTree) -> TreeId | None:
        """Return the upstream tree that a Kptfile's lock names; None when it cannot be found."""
        ...

    def function(self, name: str) -> str:
        """Return what a function outside this process is today, by its fact name; "" where that cannot be told."""
        ...

    def keep(self, files: FileTree) -> TreeId:
        """Remember a tree that state will name, and return its id."""
        ...


def ingredients_of(
    source: Upstream | Generated, record: PackageRecord, seen: Seen, sources: Sources
) -> Ingredients | None:
    """Return what a package is made from; None when the upstream that it once came from cannot be found.

    Where no offer of ours tells how a package came to be, people made it, from the upstream at its lock (design 10.7),
    or, where a room makes it, from nothing.
    """
    came = source.files if isinstance(source, Generated) else sources.upstream(source)
    ours = _standing(seen.published, record.ours, source, came, sources)
    put = _standing(seen.drafted, record.put, source, came, sources)
    if (ours is None and seen.published) or (put is None and seen.drafted):
        return None
    if put:
        put = replace(put, conflicts=tuple(map(read_conflict, record.conflicts)))
    earlier = _earlier(record, sources, put or ours)
    return Ingredients(
        came, ours, put, earlier, isinstance(source, Generated), _had(record, seen), _deleted(record, seen)
    )


def _standing(
    tree: TreeId | None, offer: Offer | None, source: Upstream | Generated, came: FileTree, sources: Sources
) -> Standing | None:
    if tree is None:
        return None
    files = sources.standing(tree)
    if offer:
        known = {tree: files, came.id: came}
        for name in (offer.rendered, offer.merged, offer.plain, offer.base):
            known[name] = known.get(name) or sources.standing(name)
        return Standing(files, known[offer.rendered], known[offer.merged], known[offer.plain], known[offer.base])
    base = FileTree() if isinstance(source, Generated) else _base_of(files, source, came, sources)
    return Standing(files, files, files, base, base) if base is not None else None


def _base_of(files: FileTree, upstream: Upstream, came: FileTree, sources: Sources) -> FileTree | None:
    """Return the upstream that people made a package from; what follows none is never updated, and needs none."""
    if stands_alone(files):
        return came
    tree = sources.lock_tree(files)
    if tree is None or tree == upstream.tree:
        return came if tree else None
    return sources.upstream(replace(upstream, tree=tree))


def _deleted(record: PackageRecord, seen: Seen) -> TreeId | None:
    """Return the last published version of a package that people deleted without a removal draft."""
    if seen.published or not record.owned or record.ours or not record.revisions:
        return None
    return record.revisions[-1].offer.rendered


def _had(record: PackageRecord, seen: Seen) -> Had:
    policies = (policy_of(name) for name in record.policies)
    # what is owned and was never rendered was found again by its status file
    is_known = record.wanted is not None or not record.owned
    return Had(tuple(one for one in policies if one), record.arrived(seen.published), is_known)


def _earlier(record: PackageRecord, sources: Sources, branch: Standing | None) -> Earlier | None:
    last = record.put or record.ours
    if last is None:
        return None
    files = branch.files if branch else None
    return Earlier(sources.standing(last.rendered), sources.standing(last.base), files)
