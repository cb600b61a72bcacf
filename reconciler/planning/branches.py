"""Draft branches: which commits make a branch say what was decided (git.md 3, life of a draft)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from reconciler.planning.destination import Destination
from reconciler.planning.state import DestinationState, PackageRecord
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import BlobId, CommitId, TreeId


@dataclass(frozen=True)
class Step:
    """One commit to be: what a package and its status file become, and the words and date of it.

    `content` None drops both. `seconds` is the commit's own lower bound; parents and the config head raise it.
    """

    package: str
    content: FileTree | TreeId | None
    status: bytes | BlobId | None
    message: str
    seconds: int = 0


@dataclass(frozen=True)
class Grow:
    """Put `steps` on top of `start`; `start` is the draft's head, or the cluster branch for a new or rebuilt draft.

    `base` is the commit of the cluster branch that the draft starts at.
    """

    branch: str
    old: CommitId | None
    start: CommitId
    base: CommitId
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class End:
    """Delete the draft branch: nothing is left on it that the cluster branch does not have."""

    branch: str
    old: CommitId


@dataclass(frozen=True)
class Keep:
    """Leave the branch where it is."""

    branch: str


@dataclass(frozen=True)
class HoldBack:
    """Changes that cannot be written now; the reason is for people."""

    branch: str
    packages: tuple[str, ...]
    reason: str


Layout = Grow | End | Keep | HoldBack


class History(Protocol):
    """What lies on a draft branch of ours."""

    def steps(self, head: CommitId, base: CommitId) -> Sequence[Step]:
        """Return the commits after `base` up to `head` as steps, oldest first."""
        ...


@dataclass(frozen=True)
class Wishes:
    """What was decided for the packages of one draft branch.

    `changed`: new steps by package, `withdrawn`: packages to take out, `standing`: packages whose offer stays,
    `moved`: whether the cluster branch moved in a path that the draft touches.
    """

    changed: Mapping[str, Step]
    withdrawn: frozenset[str]
    standing: frozenset[str]
    moved: bool


def lay_out(
    branch: str, head: CommitId | None, state: DestinationState, published: CommitId, wishes: Wishes, history: History
) -> Layout:
    """Return how one draft branch comes to say what was decided.

    `head` is the branch as fetched, `published` the head of the cluster branch.
    """
    known = state.drafts.get(branch)
    changed = tuple(wishes.changed[package] for package in sorted(wishes.changed))
    if head is None:
        return Grow(branch, None, published, published, changed) if changed else Keep(branch)
    if known is None or known.head != head:
        return _edited(branch, head, known.base if known else published, wishes, changed)
    left = wishes.standing - wishes.withdrawn | frozenset(wishes.changed)
    if not left:
        return End(branch, head)
    if wishes.moved or wishes.withdrawn:
        kept = tuple(
            step for step in history.steps(head, known.base) if step.package in wishes.standing - wishes.withdrawn
        )
        return Grow(branch, head, published, published, (*kept, *changed))
    return Grow(branch, head, head, known.base, changed) if changed else Keep(branch)


def _edited(branch: str, head: CommitId, base: CommitId, wishes: Wishes, changed: tuple[Step, ...]) -> Layout:
    # somebody moved the head: from now on we only append, until the draft ends
    if not changed:
        return Keep(branch)
    if wishes.moved:
        reason = "people changed the draft, and the cluster branch has moved on in a package of it"
        return HoldBack(branch, tuple(step.package for step in changed), reason)
    return Grow(branch, head, head, base, changed)


def moved_here(records: Mapping[str, PackageRecord], published: Mapping[str, TreeId | None]) -> bool:
    """Return whether the cluster branch changed in a package that the draft offers, since it was offered."""
    return any(record.put and record.put.against != published[package] for package, record in records.items())


def paths_of(destination: Destination, package: str) -> tuple[str, str]:
    """Return the two places that a package's commit touches."""
    return destination.path(package), destination.status_path(package)
