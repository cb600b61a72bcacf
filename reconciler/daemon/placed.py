"""What clusters have of placed resources, as their states tell: the port of that room over real Git (design 10.16)."""

from __future__ import annotations

from dataclasses import replace

from reconciler.daemon.owned import Owned, States
from reconciler.daemon.publish import HEADS
from reconciler.daemon.remotes import DestinationObjects, Remote, Remotes
from reconciler.gitio.errors import GitError
from reconciler.krm.identity import ObjectKey
from reconciler.planning.destination import Destination
from reconciler.planning.standing import Heads, recognise, settle_drafts
from reconciler.planning.state import DestinationState, PackageRecord
from reconciler.rules.placement.model import OWNER_GROUP, OWNER_KIND
from reconciler.snapshot.files import FileTree


class Placed(Owned):
    """The packages of placed resources on all clusters whose state can be read, and what the last of each came from."""

    def __init__(self, states: States, remotes: Remotes) -> None:
        super().__init__(states, OWNER_GROUP, OWNER_KIND)
        self._destinations = {one.name: (one, state) for one, state in states.items() if one.deployment}
        self._remotes = remotes

    def places(self) -> dict[ObjectKey, list[str]]:
        """Return for each owner of placed resources the clusters that have its package now."""
        found: dict[ObjectKey, list[str]] = {}
        for (cluster, _), owner in self.owned().items():
            found.setdefault(owner.key, []).append(cluster)
        return found

    def earlier(self, cluster: str, package: str) -> FileTree | None:
        """Return the source of the last offer of a package as it came, None if that is not known."""
        destination, state = self._destinations.get(cluster, (None, None))
        remote = self._remotes.get(destination.url) if destination else None
        if destination is None or state is None or remote is None or package not in state.packages:
            return None
        try:
            record = _as_it_stands(destination, state, package, remote)
            offer = record.put or record.ours
            return remote.files(offer.base) if offer else None
        except GitError:
            # whoever decides on the package is told
            return None


def _as_it_stands(destination: Destination, state: DestinationState, package: str, remote: Remote) -> PackageRecord:
    """Return what is remembered of a package, brought up to date: what was dropped just now is no last offer."""
    record, refs = state.packages[package], remote.refs
    branch = refs.get(HEADS + destination.branch)
    if branch is None:
        return record
    drafts = {record.draft: refs[HEADS + record.draft]} if HEADS + record.draft in refs else {}
    heads, objects = Heads(branch, drafts=drafts), DestinationObjects(remote, destination)
    alone = replace(state, packages={package: record})
    now = settle_drafts(recognise(alone, destination, heads, objects), destination, heads, objects)
    return now.packages[package]
