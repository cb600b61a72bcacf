"""The ground that one destination's plan stands on: its branches and its state, as this pass found them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from reconciler.planning.branches import History
from reconciler.planning.destination import Destination, Packages, are_nested, draft_branch
from reconciler.planning.standing import Heads, Repository
from reconciler.planning.state import DestinationState, DraftBranch, PackageRecord, Seen
from reconciler.planning.tags import TaggedRevision
from reconciler.snapshot.objects import BlobId, CommitId, TreeId


class Objects(Repository, History, Protocol):
    """A destination's repository, draft histories and tags of revisions included."""

    def tagged(self, packages: Collection[str]) -> Mapping[str, Sequence[TaggedRevision]]:
        """Return the revisions of these packages that have tags, by package: dear, and asked for a lost state only."""
        ...


Standing = tuple[TreeId | None, BlobId | None]


@dataclass(frozen=True)
class Ground:
    """A destination with what is remembered of it, its heads and its objects.

    `template` names new draft branches, `removals` those that take packages away.
    """

    destination: Destination
    state: DestinationState
    heads: Heads
    objects: Objects
    template: str
    removals: str = "removals/{repository}"

    @cached_property
    def owned(self) -> Packages:
        """The packages that somebody's are by state."""
        return Packages(name for name, one in self.state.packages.items() if one.owned)

    def branch_of(self, package: str) -> str:
        """Return the draft branch of a package.

        An offer keeps its branch; a new name that an open draft stands in the way of gives way to that draft.
        """
        record = self.state.packages.get(package)
        if record and record.put:
            return record.draft
        return self._give_way(draft_branch(self.template, self.destination, package), removes=False)

    def removal_branch(self, package: str) -> str:
        """Return the branch on which a package is put up for removal; it gives way as a draft's does."""
        return self._give_way(draft_branch(self.removals, self.destination, package), removes=True)

    def _give_way(self, name: str, removes: bool) -> str:
        known = sorted(one for one, draft in self.state.drafts.items() if draft.removes == removes)
        return next((one for one in known if are_nested(one, name)), name)

    def is_frozen(self, branch: str) -> bool:
        """Return whether a draft branch is proposed as it stands, or approved on its forge."""
        head = self.heads.offering(branch)
        return head is not None and head in (self.heads.proposed.get(branch), self.heads.held.get(branch))

    def is_stuck(self, branch: str) -> bool:
        """Return whether bringing a draft branch up to date would undo what people did there beside our packages.

        Nothing holds up where all of it is on the cluster branch already, so that the draft ends.
        """
        known, published = self.state.drafts.get(branch), self.heads.branch
        if known is None or not known.edited or published is None or not self._collides(branch, known):
            return False
        return self.objects.offers_more(self.heads.drafts[branch], known.base, published)

    def at(self, commit: CommitId | None, package: str) -> Standing:
        """Return a package's tree and status blob at a commit."""
        if commit is None:
            return None, None
        path, status = self.destination.path(package), self.destination.status_path(package)
        return self.objects.tree_at(commit, path), self.objects.blob_at(commit, status)

    def obstacle(self, package: str) -> str | None:
        """Return what occupies the place of the folder or the status file of a package, as `<branch>:<path>`.

        Writing the package would replace it. On both branches, it may be a file in place of a folder, a folder in place
        of the status file, a symbolic link or a submodule.
        """
        branch, path = self.branch_of(package), self.destination.path(package)
        status = self.destination.status_path(package)
        for name, head in ((self.destination.branch, self.heads.branch), (branch, self.heads.drafts.get(branch))):
            if head is None or None not in self.at(head, package):
                continue
            found = self.objects.obstacle(head, path) or self.objects.obstacle(head, status, is_file=True)
            if found:
                return f"{name}:{found}"
        return None

    def look(self, package: str) -> Seen:
        """Return what stands at a package's place: on the cluster branch, and on its draft where it differs.

        A draft carries the whole branch; a package is on it only when it differs from the draft's base and from
        the cluster branch as it is now. What was published from it counts no more: if the package was edited on
        the cluster branch after the draft was merged, the draft that is left over contains no newer version of it.
        """
        branch = self.branch_of(package)
        published, _ = self.at(self.heads.branch, package)
        known = self.state.drafts.get(branch)
        if known is None:
            return Seen(published)
        drafted, _ = self.at(self.heads.drafts[branch], package)
        at_base, _ = self.at(known.base, package)
        stuck = self.has_moved(package) and self.is_stuck(branch)
        is_on_draft = drafted not in (at_base, published) and not self._is_left_over(package, known, drafted)
        return Seen(published, drafted if is_on_draft else None, self.is_frozen(branch), stuck)

    def _is_left_over(self, package: str, known: DraftBranch, drafted: TreeId | None) -> bool:
        """Return whether a draft branch has a package only because it was published from there.

        Nothing was put on the branch since: what differs from the cluster branch is newer there, or was undone there.
        """
        record = self.state.packages.get(package)
        if record is None or record.put:
            return False
        return not known.edited or drafted in {one.offer.rendered for one in record.revisions}

    def has_moved(self, package: str) -> bool:
        """Return whether the cluster branch has changed a package since its open draft began."""
        known = self._open_draft(package)
        return known is not None and self.at(known.base, package) != self.at(self.heads.branch, package)

    def is_touched(self, package: str) -> bool:
        """Return whether the open draft of a package changes it or its status file."""
        known = self._open_draft(package)
        head = self.heads.drafts.get(self.branch_of(package))
        return known is not None and self.at(known.base, package) != self.at(head, package)

    def _collides(self, branch: str, known: DraftBranch) -> bool:
        """Return whether people's work on a draft, outside of our packages, would be lost by merging the branch."""
        assert self.heads.branch
        ours = [one for one, record in self.state.packages.items() if _is_on(record, branch)]
        outside = [path for one in ours for path in (self.destination.path(one), self.destination.status_path(one))]
        return self.objects.collides(self.heads.drafts[branch], known.base, self.heads.branch, outside)

    def _open_draft(self, package: str) -> DraftBranch | None:
        return self.state.drafts.get(self.branch_of(package))


def _is_on(record: PackageRecord, branch: str) -> bool:
    removed_there = record.removal is not None and not record.removal.declined and record.removal.branch == branch
    return removed_there or (record.put is not None and record.draft == branch)
