"""Tools: the parts that a pass is made of, as ports; wiring builds the real ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from reconciler.daemon.approvals import Approved
from reconciler.daemon.config import ConfigSnapshot
from reconciler.daemon.first_seen import FirstSeen
from reconciler.daemon.known_heads import KnownHeads
from reconciler.daemon.open_drafts import RefNames
from reconciler.daemon.proposals import Proposals
from reconciler.daemon.publish import Written
from reconciler.daemon.remotes import Remote, Remotes
from reconciler.daemon.requests import Requested, Requests
from reconciler.daemon.tags import Tagged
from reconciler.executors.port import Executor
from reconciler.gitio.errors import GitError
from reconciler.gitio.verdicts import Outcome
from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.planning.destination import Destination
from reconciler.planning.drafts import Writer
from reconciler.planning.fleet import FleetPlan
from reconciler.planning.proposal import Proposal
from reconciler.planning.render import Renderer
from reconciler.planning.shard import Shard
from reconciler.planning.state import DestinationState
from reconciler.planning.tags import Tagging
from reconciler.rules.clusters.versions import KnownClusters
from reconciler.rules.composition.kinds import MadeKind
from reconciler.rules.variant import RoomResult
from reconciler.snapshot.catalog import Catalog, ConfigObject
from reconciler.snapshot.claims import Conflict
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import TreeId


class ConfigSource(Protocol):
    """Where the config is read from."""

    def read(self) -> ConfigSnapshot:
        """Return the config as it is now; raises GitError."""
        ...


class Publisher(Protocol):
    """What becomes of a plan: pushed, shown, or written to a folder. There is no other difference."""

    @property
    def unwritten(self) -> str:
        """Why the status of the last pass did not get where it should; "" when it did."""
        ...

    @property
    def status_findings(self) -> Sequence[Finding]:
        """A finding for each object whose status the last pass could not write."""
        ...

    def publish(self, remote: Remote, written: Sequence[Written]) -> Mapping[str, Outcome]:
        """Bring one remote's destinations there; return what became of each, by name.

        Called for several remotes at once, each in a thread of its own.
        """
        ...

    def tag(self, remote: Remote, written: Sequence[Written]) -> Tagged:
        """Make the tags that revisions of these destinations lack, after their states are in; threads as `publish`."""
        ...

    def approve(self, groups: Sequence[tuple[Remote, Sequence[Written]]], now: int) -> Approved:
        """Publish what annotations approve and is due `now`, by remote, after everything else of them is in."""
        ...

    def request(
        self, requests: Requests, destinations: Sequence[Destination], remotes: Remotes, names: RefNames, retry: int
    ) -> Requested:
        """Bring the pull requests of these destinations up to date; `retry` is when to try again what failed."""
        ...

    def propose(self, proposals: Proposals, proposal: Proposal, snapshot: ConfigSnapshot) -> Outcome:
        """Bring a proposal to the config there; return what became of it."""
        ...

    def finish(self, plan: FleetPlan | None, remotes: Remotes) -> Outcome:
        """Bring the status of the config objects there, unless another shard does; return what became of it.

        It is the last act of a pass.
        """
        ...

    def remember(self, seen: FirstSeen) -> None:
        """Write down what a pass saw first, if it was one that counts."""
        ...

    def keep_heads(self, heads: KnownHeads) -> None:
        """Write the last known heads of cluster branches into the cache, if the pass pushes."""
        ...


class Rooms(Protocol):
    """All rooms together."""

    def __call__(
        self, catalog: Catalog, remotes: Remotes, states: Mapping[Destination, DestinationState], now: int
    ) -> RoomResult:
        """Return what the rooms make of a catalog; `states` are those of all destinations that can be read.

        `now`, in seconds since 1970, decides what has settled.
        """
        ...


class Lint(Protocol):
    """What is odd about a config beside what rooms tell in a pass."""

    def __call__(self, catalog: Catalog, remotes: Remotes, room: RoomResult, now: int) -> tuple[Finding, ...]:
        """Return it; `room` is what the rooms make of the catalog."""
        ...


class FunctionsToday(Protocol):
    """What the functions outside this process are: they may change though no head moves."""

    def look_again(self) -> None:
        """Forget what they were: a pass looks at each once."""
        ...

    def identity(self, name: str) -> str:
        """Return what one of them is, by its fact name; "" where that cannot be told now."""
        ...

    @property
    def asked(self) -> tuple[str, ...]:
        """The fact names of all that were asked for so far, in order."""
        ...

    def digest(self) -> str:
        """Return a digest of all that were asked for so far."""
        ...


@dataclass(frozen=True)
class Tools:
    """The services of a pass, as `wiring` built them.

    `places` are the addresses of the repositories that settings name, by setting, or why one cannot be used.
    `rivals` finds objects that claim one cluster, name or place, and `claimed_targets` the targets that objects of a
    conflict define.
    """

    read_catalog: Callable[[ConfigSnapshot], Catalog]
    load: Callable[[Catalog], None]
    destinations: Callable[[Catalog], Sequence[Destination]]
    urls: Callable[[Catalog], tuple[Sequence[str], Sequence[str]]]
    places: Callable[[], Mapping[str, str | GitError]]
    rooms: Rooms
    lint: Lint
    fleet: Callable[[Catalog], KnownClusters]
    conflicts: Callable[[Catalog], Mapping[ObjectKey, Finding]]
    rivals: Callable[[Catalog], Sequence[Conflict]]
    claimed_targets: Callable[[Catalog, Sequence[Conflict]], Mapping[ConfigObject, Destination]]
    renderer: Callable[[Catalog], Renderer]
    functions: FunctionsToday
    lock_tree: Callable[[FileTree, Catalog, Remotes], TreeId | None]
    upstreams_at: Callable[[str, Catalog], Sequence[str]]
    writer: Callable[[str], Writer]
    state_ref: str
    draft_template: str
    removal_template: str
    tagging: Callable[[Catalog], Tagging]
    made_kinds: Callable[[Catalog], tuple[tuple[MadeKind, ...], tuple[Finding, ...]]]
    proposals: Proposals
    requests: Requests
    published: FirstSeen
    known_heads: KnownHeads
    clock: Callable[[], float]
    executor: Executor | None = None
    by_annotation: bool = False
    dates_actions: bool = True
    shard: Shard = field(default_factory=Shard)
    max_pushes: int = 8
    max_delete_percent: int = 30
    missing_is_empty: bool = False
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None

    @property
    def names(self) -> RefNames:
        """The templates of refs."""
        return RefNames(self.state_ref, self.draft_template, self.removal_template)


def keeping_stages(tools: Tools) -> Tools:
    """Return tools whose renders tell of each step that led to them, so that they can be explained.

    They run in this process: an executor brings back packages, and not what led to them.
    """
    return replace(tools, renderer=lambda catalog: replace(tools.renderer(catalog), keeps_stages=True), executor=None)
