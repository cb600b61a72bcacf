"""Draft branches: which commits make a branch say what was decided (git.md 3, life of a draft)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from reconciler.planning.state import DestinationState, DraftBranch
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import BlobId, CommitId, TreeId


@dataclass(frozen=True)
class Step:
    """One commit to be: what a package and its status file become, and the words and date of it.

    `content` and `status` None drop them. `seconds` is the commit's own lower bound; parents and the config head
    raise it.
    """

    package: str
    content: FileTree | TreeId | None
    status: bytes | BlobId | None
    message: str
    seconds: int = 0


@dataclass(frozen=True)
class Sync:
    """A pure merge of the cluster branch: its side wherever it moved from `since` to `commit` (git.md finding 5)."""

    commit: CommitId
    since: CommitId


@dataclass(frozen=True)
class Grow:
    """Put `steps` on top of `start`: the draft's head, or a commit of the cluster branch for a new or rebuilt draft.

    `base` is the commit of the cluster branch that the draft starts at, `edited` whether people's commits are on it.
    With `sync` the cluster branch is merged in first. `metadata` is a file, path and bytes, that every step puts beside
    the packages for who takes the draft over; it is nobody's work.
    """

    branch: str
    old: CommitId | None
    start: CommitId
    base: CommitId
    steps: tuple[Step, ...]
    edited: bool = False
    sync: Sync | None = None
    metadata: tuple[str, bytes] | None = None


@dataclass(frozen=True)
class End:
    """Delete the draft branch: nothing is left on it that the cluster branch does not have."""

    branch: str
    old: CommitId


@dataclass(frozen=True)
class Rest:
    """Put the branch at a commit of the cluster branch: there is no draft, and somebody expects the branch."""

    branch: str
    old: CommitId | None
    commit: CommitId


@dataclass(frozen=True)
class Keep:
    """Leave the branch where it is."""

    branch: str


Layout = Grow | End | Rest | Keep


class History(Protocol):
    """What lies on a draft branch, and what the cluster branch has done since."""

    def steps(self, head: CommitId, base: CommitId) -> Sequence[Step]:
        """Return our commits after `base` up to `head` as steps, oldest first."""
        ...

    def collides(self, head: CommitId, base: CommitId, branch: CommitId, outside: Collection[str]) -> bool:
        """Return whether `head` and `branch` have both changed a path since `base`, differently and in no `outside`."""
        ...

    def offers_more(self, head: CommitId, base: CommitId, branch: CommitId, besides: Collection[str] = ()) -> bool:
        """Return whether a path at `head` differs from what `base` and `branch` have there, `besides` some packages."""
        ...


@dataclass(frozen=True)
class Wishes:
    """What was decided for the packages of one draft branch.

    `changed`: new steps by package; `withdrawn`: by package, the step that puts back what the cluster branch has;
    `standing`: packages whose offer stays; `as_they_are`: by package, the step that puts back what the draft has, for
    those which a merge of the cluster branch would change; `moved`: packages that the draft changes, or is
    to change, and that the cluster branch has changed since the draft's base; `edited`: packages that hold people's
    changes on the cluster branch.
    """

    changed: Mapping[str, Step]
    withdrawn: Mapping[str, Step]
    standing: frozenset[str]
    moved: frozenset[str]
    edited: frozenset[str]
    as_they_are: Mapping[str, Step] = field(default_factory=dict)

    @property
    def kept(self) -> frozenset[str]:
        """The packages whose offer goes on as it is."""
        return self.standing - self.withdrawn.keys() - self.changed.keys()

    @property
    def stale(self) -> frozenset[str]:
        """The kept packages that people changed on the cluster branch: put on it anew, the offer would undo that."""
        return self.moved & self.kept & self.edited


def lay_out(
    branch: str, head: CommitId | None, state: DestinationState, published: CommitId, wishes: Wishes, history: History
) -> Layout:
    """Return how one draft branch comes to say what was decided.

    `head` is the branch as fetched, and known to `state` if it exists; `published` the head of the cluster branch.
    """
    changed = _in_order(wishes.changed)
    if head is None:
        return Grow(branch, None, published, published, changed) if changed else Keep(branch)
    known = state.drafts[branch]
    if known.edited:
        return _edited(branch, head, known, published, wishes, history)
    if not wishes.kept and not changed:
        return End(branch, head)
    if wishes.withdrawn or (wishes.moved and not wishes.stale):
        return _rebuilt(branch, known, published, wishes, history)
    return Grow(branch, head, head, known.base, changed) if changed else Keep(branch)


def begin_anew(branch: str, head: CommitId | None, published: CommitId, wishes: Wishes) -> Layout:
    """Return how a draft that people closed goes on: nothing of it does, and what is wanted now is another draft."""
    changed = _in_order(wishes.changed)
    if changed:
        return Grow(branch, head, published, published, changed)
    return End(branch, head) if head else Keep(branch)


def _edited(
    branch: str, head: CommitId, known: DraftBranch, published: CommitId, wishes: Wishes, history: History
) -> Layout:
    """Somebody moved the head, or nobody knows who made it: only append, until nothing is left on it."""
    if not history.offers_more(head, known.base, published, wishes.withdrawn.keys()):
        changed = _in_order(wishes.changed)
        return Grow(branch, head, published, published, changed) if changed else End(branch, head)
    wanted = {**wishes.withdrawn, **wishes.changed}
    if not wanted:
        return Keep(branch)
    if not wishes.moved & wanted.keys():
        return Grow(branch, head, head, known.base, _in_order(wanted), edited=True)
    steps = _in_order({**wishes.as_they_are, **wanted})
    return Grow(branch, head, head, published, steps, edited=True, sync=Sync(published, known.base))


def _rebuilt(branch: str, known: DraftBranch, published: CommitId, wishes: Wishes, history: History) -> Grow:
    """Lay the draft anew on the cluster branch; on its old base while an offer is stale, so that Git merges that."""
    base = known.base if wishes.stale else published
    kept = [step for step in history.steps(known.head, known.base) if step.package in wishes.kept]
    return Grow(branch, known.head, base, base, (*kept, *_in_order(wishes.changed)))


def _in_order(steps: Mapping[str, Step]) -> tuple[Step, ...]:
    return tuple(steps[package] for package in sorted(steps))
