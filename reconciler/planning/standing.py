"""What stands on a destination's branches: recognising what was published, and what was declined (git.md 4.10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from reconciler.planning.destination import Destination, draft_branch
from reconciler.planning.state import (
    KEPT_REVISIONS,
    DestinationState,
    DraftBranch,
    Offer,
    PackageRecord,
    Revision,
)
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import BlobId, CommitId, TreeId


class Repository(Protocol):
    """The objects of one remote, read by id; nothing is missing that a ref reaches."""

    def tree_at(self, commit: CommitId, path: str) -> TreeId | None:
        """Return the tree that stands at a path of a commit; None when there is none."""
        ...

    def blob_at(self, commit: CommitId, path: str) -> BlobId | None:
        """Return the blob that stands at a path of a commit; None when there is none."""
        ...

    def obstacle(self, commit: CommitId, path: str, *, is_file: bool = False) -> str | None:
        """Return the path of what occupies the place of a folder, or of a regular file; None if the place is free."""
        ...

    def files(self, tree: TreeId) -> FileTree:
        """Return the regular files of a tree."""
        ...

    def first_parents(self, old: CommitId, new: CommitId) -> Sequence[CommitId] | None:
        """Return the commits after `old` up to `new` along first parents, oldest first; None if it is no ancestor."""
        ...

    def fork(self, head: CommitId, branch: CommitId) -> CommitId | None:
        """Return the last commit that `head` and `branch` both hold: where a merge of them begins; None without one."""
        ...

    def seconds(self, commit: CommitId) -> int:
        """Return the committer date of a commit, in seconds since 1970."""
        ...

    def is_ours(self, commit: CommitId) -> bool:
        """Return whether a commit says that it is one of ours: such a one has the date of its content."""
        ...


@dataclass(frozen=True)
class Heads:
    """The heads of one destination as this pass fetched them; drafts and proposals by draft branch name.

    `absent`: the cluster branch does not exist, and `branch` is the root commit that it would be created at.
    `removals` are the names of those draft branches that take packages away. From pull requests: `held` are the
    commits that people approved, or that are on their way to be merged, `closed` the drafts that people do not want.
    `resting` is the branch that GitOps Promoter expects, while there is no draft on it.
    """

    branch: CommitId | None = None
    absent: bool = False
    drafts: Mapping[str, CommitId] = field(default_factory=dict)
    proposed: Mapping[str, CommitId] = field(default_factory=dict)
    removals: frozenset[str] = frozenset()
    held: Mapping[str, CommitId] = field(default_factory=dict)
    closed: frozenset[str] = frozenset()
    resting: CommitId | None = None

    def offering(self, draft: str) -> CommitId | None:
        """Return the head of a draft that is up for review; a closed pull request is a branch that is gone."""
        return None if draft in self.closed else self.drafts.get(draft)


def removal_names(template: str, destination: Destination, state: DestinationState) -> frozenset[str]:
    """Return the names of all removal drafts that a destination has or may get, its state lost or not."""
    known = (name for name, draft in state.drafts.items() if draft.removes)
    each = state.packages if "{package}" in template else ("",)
    return frozenset([*known, *(draft_branch(template, destination, package) for package in each)])


@dataclass(frozen=True)
class Sighting:
    """A package as one commit of the cluster branch left it: its tree and its status blob."""

    commit: CommitId
    tree: TreeId | None
    status: BlobId | None


def recognise(
    state: DestinationState, destination: Destination, heads: Heads, repository: Repository
) -> DestinationState:
    """Return the state with every publication since the last pass taken in, and the new head as seen.

    For each first-parent commit that touches a package: a tree or a status blob that newly equals an offer's
    publishes that offer; a package gone whole has nothing of ours any more; anything else is a person's edit.
    A branch that does not exist was not seen, whatever it would be created at.
    """
    if heads.branch is None or heads.absent or heads.branch == state.seen:
        return state
    commits = repository.first_parents(state.seen, heads.branch) if state.seen else None
    start = state.seen if commits is not None else None
    packages = {
        package: _recognise_package(
            record,
            _sighting(repository, destination, package, start) if start else None,
            [_sighting(repository, destination, package, one) for one in commits or (heads.branch,)],
        )
        for package, record in state.packages.items()
    }
    return replace(state, seen=heads.branch, packages=packages)


def _sighting(repository: Repository, destination: Destination, package: str, commit: CommitId) -> Sighting:
    tree = repository.tree_at(commit, destination.path(package))
    return Sighting(commit, tree, repository.blob_at(commit, destination.status_path(package)))


def _recognise_package(record: PackageRecord, before: Sighting | None, sightings: Sequence[Sighting]) -> PackageRecord:
    for now in sightings:
        if before is None or (now.tree, now.status) != (before.tree, before.status):
            record = _take_in(record, before, now)
        before = now
    return _undone(record, [one.tree for one in sightings])


def _undone(record: PackageRecord, trees: Sequence[TreeId | None]) -> PackageRecord:
    """A removal that was approved and taken back before anybody looked was declined: the package is there again."""
    removal, last = record.removal, trees[-1] if trees else None
    if removal is None or last is None or None not in trees:
        return record
    return replace(record, removal=replace(removal, against=last, declined=True))


def _take_in(record: PackageRecord, before: Sighting | None, now: Sighting) -> PackageRecord:
    if now.tree is None:
        return replace(record, ours=None)
    for offer in reversed(record.offers):
        if _newly(offer, before, now):
            return _published(record, offer, now.commit)
    for revision in reversed(record.revisions):
        if _newly(revision.offer, before, now):
            return _back_at(record, revision)
    return record


def _newly(offer: Offer, before: Sighting | None, now: Sighting) -> bool:
    if now.status == offer.status and (before is None or before.status != now.status):
        return True
    # without an earlier look, a tree that was there when the offer was made is no sign of it
    known = before.tree if before else offer.against
    return now.tree == offer.rendered and now.tree != known


def _published(record: PackageRecord, offer: Offer, commit: CommitId) -> PackageRecord:
    newer = record.offers[record.offers.index(offer) + 1 :]
    revision = Revision(record.revision + 1, commit, offer, record.workspace)
    put = None if record.put == offer else record.put
    return replace(
        record,
        revision=revision.number,
        ours=offer,
        put=put,
        offers=newer,
        revisions=(*record.revisions, revision)[-KEPT_REVISIONS:],
        # what goes on after an earlier head was merged is another draft (porch 1.1: a workspace is one revision's)
        workspace=record.workspace + 1 if put else record.workspace,
    )


def _back_at(record: PackageRecord, revision: Revision) -> PackageRecord:
    """The branch went back to an earlier revision: what was undone is declined; or forward again: it is not."""
    known = [one.offer for one in record.revisions]
    undone = record.ours if record.ours in known and known.index(record.ours) > known.index(revision.offer) else None
    declined = [tree for tree in record.declined if tree != revision.offer.rendered]
    declined += [undone.rendered] if undone and undone.rendered not in declined else []
    return replace(record, ours=revision.offer, declined=tuple(declined)[-KEPT_REVISIONS:])


def settle_drafts(
    state: DestinationState, destination: Destination, heads: Heads, repository: Repository
) -> DestinationState:
    """Return the state after looking at the draft branches: what people dropped is remembered as declined.

    A branch that is gone, or whose pull request was closed, with the cluster branch as the offer found it, declines
    the offer; with the cluster branch changed it is unclear, and planned again. A package that a person took out of a
    draft is declined, too; a head that is not the one we pushed makes the branch an edited one (git.md 3, life of a
    draft).
    """
    packages = {
        package: _settle_removal(
            _settle(record, record.put, destination.path(package), heads, repository) if record.put else record,
            destination.path(package), heads, repository,
        )
        for package, record in state.packages.items()
    }  # fmt: skip
    drafts = {
        name: _draft(name, state.drafts.get(name), head, heads, repository)
        for name, head in heads.drafts.items()
        if name not in heads.closed
    }
    return replace(state, packages=packages, drafts=drafts)


def _draft(name: str, known: DraftBranch | None, head: CommitId, heads: Heads, repository: Repository) -> DraftBranch:
    if known is not None and not known.edited and known.head == head:
        return known
    # a branch that nobody remembers, as after a lost state, counts as people's work
    known = known or DraftBranch(head, heads.branch or head, removes=name in heads.removals)
    # people merge the cluster branch in, and what it has undone since must not come back with the next merge
    base = repository.fork(head, heads.branch) if heads.branch else None
    return replace(known, base=base or known.base, edited=True)


def _settle(record: PackageRecord, put: Offer, path: str, heads: Heads, repository: Repository) -> PackageRecord:
    published = repository.tree_at(heads.branch, path) if heads.branch else None
    head = heads.offering(record.draft)
    if head is None:
        return _declined(record, put) if published == put.against else replace(record, put=None)
    drafted = repository.tree_at(head, path)
    if drafted == put.rendered:
        return record
    if drafted == put.against:
        return _declined(record, put)
    # the branch was brought up to date by people, and says nothing about the package any more
    return replace(record, put=None) if drafted == published else record


def _settle_removal(record: PackageRecord, path: str, heads: Heads, repository: Repository) -> PackageRecord:
    """Look at what became of a removal: approved, declined by dropping it, or waiting for people."""
    removal = record.removal
    if removal is None or heads.branch is None:
        return record
    published, head = repository.tree_at(heads.branch, path), heads.offering(removal.branch)
    if published is None:
        # as for a package whose owner is gone, no published version counts from here on
        return replace(record, removal=None, revisions=())
    if removal.declined or (head and repository.tree_at(head, path) is None):
        return record
    if head is None and published != removal.against:
        # neither the one nor the other: what is there now may be another question
        return replace(record, removal=None)
    return replace(record, removal=replace(removal, against=published, declined=True))


def _declined(record: PackageRecord, put: Offer) -> PackageRecord:
    rest = tuple(tree for tree in record.declined if tree != put.rendered)
    dropped = put.plain if put.merged != put.plain else None
    return replace(record, put=None, declined=(*rest, put.rendered)[-KEPT_REVISIONS:], dropped=dropped)
