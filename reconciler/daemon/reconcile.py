"""One reconcile: heads → trees → catalog → variants → outcomes → commits → push → status (design 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Protocol

from reconciler.daemon.codes import (
    ENGINE_TOO_OLD,
    PUSH_FAILED,
    PUSH_REFUSED,
    REPOSITORY_UNREACHABLE,
    STATE_UNREADABLE,
)
from reconciler.daemon.config import ConfigSnapshot
from reconciler.daemon.events import log
from reconciler.daemon.proposals import Proposals, push_findings
from reconciler.daemon.publish import Written, describe, proposed_ref, write_plans
from reconciler.daemon.remotes import DestinationObjects, Remote, Remotes
from reconciler.gitio.errors import GitError, ObjectMissingError, TooLargeError
from reconciler.gitio.verdicts import Done, Failed, Lost, Outcome, Refused
from reconciler.krm.conditions import Condition
from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.planning.claims import Claims
from reconciler.planning.decide import VALID, Render
from reconciler.planning.destination import STATUS_FOLDER, Destination, conflicts, draft_branch
from reconciler.planning.drafts import Writer
from reconciler.planning.fleet import DestinationPlan, FleetPlan
from reconciler.planning.ingredients import TooLargeToReadError
from reconciler.planning.outcome import Blocked, Draft, Rendered, Unchanged
from reconciler.planning.plan import Workshop, new_state, plan_destination
from reconciler.planning.proposal import Proposal
from reconciler.planning.source import Ingredients
from reconciler.planning.standing import Heads
from reconciler.planning.state import DestinationState, EngineTooOldError, StateUnreadableError
from reconciler.rules.variant import RoomResult, Upstream, Variant
from reconciler.snapshot.catalog import Catalog
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import CommitId, TreeId

MOST_TRIES = 5
# how long a proposal to the config that did not get through rests, while nothing moves
RETRY_SECONDS = 300
HEADS = "refs/heads/"
# destinations whose state is read in one go: their trees have to fit among those that a reader remembers
_READ_AHEAD = 500
# remotes written to at once
_AT_ONCE = 8


class ConfigSource(Protocol):
    """Where the config is read from."""

    def read(self) -> ConfigSnapshot:
        """Return the config as it is now; raises GitError."""
        ...


class Publisher(Protocol):
    """What becomes of a plan: pushed, shown, or written to a folder. There is no other difference."""

    @property
    def done(self) -> bool:
        """Whether the status of the last pass got where it should."""
        ...

    def publish(self, remote: Remote, written: Sequence[Written]) -> Mapping[str, Outcome]:
        """Bring one remote's destinations there; return what became of each, by name.

        Called for several remotes at once, each in a thread of its own.
        """
        ...

    def propose(self, proposals: Proposals, proposal: Proposal, snapshot: ConfigSnapshot) -> Outcome:
        """Bring a proposal to the config there; return what became of it."""
        ...

    def finish(self, plan: FleetPlan, remotes: Remotes) -> None:
        """Bring the status of the config objects there; the last act of a pass."""
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


class FunctionsToday(Protocol):
    """What the functions outside this process are: they may change though no head moves."""

    def look_again(self) -> None:
        """Forget what they were: a pass looks at each once."""
        ...

    def identity(self, name: str) -> str:
        """Return what one of them is, by its fact name; "" where that cannot be told now."""
        ...

    def digest(self) -> str:
        """Return a digest of all that were asked for so far."""
        ...


@dataclass(frozen=True)
class Tools:
    """The parts that a pass is made of, as wiring built them."""

    read_catalog: Callable[[ConfigSnapshot], Catalog]
    load: Callable[[Catalog], None]
    destinations: Callable[[Catalog], Sequence[Destination]]
    urls: Callable[[Catalog], tuple[Sequence[str], Sequence[str]]]
    rooms: Rooms
    render: Callable[[Catalog], Render]
    functions: FunctionsToday
    lock_tree: Callable[[FileTree, Catalog, Remotes], TreeId | None]
    writer: Callable[[str], Writer]
    state_ref: str
    draft_template: str
    proposals: Proposals
    clock: Callable[[], float]
    missing_is_empty: bool = False
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None


@dataclass(frozen=True)
class Report:
    """What a pass found and did: the plan, what became of each destination, and how much was rendered.

    `due` is when the same heads will ask for another pass: the first move that settles, in seconds since 1970.
    `proposed` is what became of the proposal to the config; what it fails at holds up nobody else.
    """

    plan: FleetPlan
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    written: Mapping[str, Written] = field(default_factory=dict)
    renders: int = 0
    due: int | None = None
    proposed: Outcome = field(default_factory=Done)

    @property
    def clean(self) -> bool:
        """Whether the world let everything be done; what is wrong with the config does not count."""
        return (
            not self._codes & {one.name for one in (REPOSITORY_UNREACHABLE, PUSH_FAILED, PUSH_REFUSED)}
            and not self.waits
        )

    @property
    def settled(self) -> bool:
        """Whether trying again over the same heads would change nothing: what a host refused, it refuses again."""
        return PUSH_FAILED.name not in self._codes and not isinstance(self.proposed, Lost)

    @property
    def waits(self) -> bool:
        """Whether a package waits for a function that the world interrupted; each rests on its own (design 10.19)."""
        return any(isinstance(one, Blocked) and one.retry for _, one in self.plan.outcomes())

    @property
    def _codes(self) -> set[str]:
        return {finding.code for plan in self.plan.destinations for finding in plan.findings}


@dataclass(frozen=True)
class Gathered:
    """What a pass starts from: the config and its objects, with all remotes fetched, and the time it is."""

    snapshot: ConfigSnapshot
    catalog: Catalog
    heads: str
    now: int


def gather(source: ConfigSource, remotes: Remotes, tools: Tools) -> Gathered:
    """Read the config and fetch every remote that it names. Raises GitError when the config cannot be read."""
    tools.progress("reading the config", 0, 1)
    snapshot = source.read()
    catalog = tools.read_catalog(snapshot)
    tools.progress("reading the config", 1, 1)
    tools.progress("fetching", 0, 1)
    with ThreadPoolExecutor(1) as aside:
        # git fetches in processes of its own, and hosts take their time: what waits for no remote is loaded meanwhile
        loaded = aside.submit(tools.load, catalog)
        remotes.fetch(*tools.urls(catalog))
        loaded.result()
    tools.progress("fetching", 1, 1)
    tools.functions.look_again()
    return Gathered(snapshot, catalog, heads(remotes, tools), int(tools.clock()))


def heads(remotes: Remotes, tools: Tools) -> str:
    """Return a digest of what a pass starts from besides the config: refs of remotes, functions, proposals."""
    return digest([remotes.digest(), tools.functions.digest(), tools.proposals.heads()])


def reconcile(source: ConfigSource, remotes: Remotes, tools: Tools, publisher: Publisher) -> Report:
    """Run one pass, whole."""
    return decide_and_publish(gather(source, remotes, tools), remotes, tools, publisher)


def validate(source: ConfigSource, remotes: Remotes, tools: Tools) -> tuple[Finding, ...]:
    """Return every finding about the config: files, objects, references; nothing is rendered."""
    found = gather(source, remotes, tools)
    room = tools.rooms(found.catalog, remotes, {}, found.now)
    proposal = _proposal(found, room, tools, ())
    findings = (*_catalog_findings(found.catalog), *proposal.findings)
    return FleetPlan(found.snapshot.id, 0, room, (), findings).all_findings()


def _catalog_findings(catalog: Catalog) -> tuple[Finding, ...]:
    return (*catalog.findings, *(one.finding for one in catalog.unreadable))


def decide_and_publish(found: Gathered, remotes: Remotes, tools: Tools, publisher: Publisher) -> Report:
    """Plan and publish; a destination that loses a race is fetched and planned again, alone, five times."""
    snapshot, catalog = found.snapshot, found.catalog
    destinations = tools.destinations(catalog)
    states = read_states(destinations, remotes, tools.state_ref)
    known = {one: state for one, state in states.items() if isinstance(state, DestinationState)}
    room = tools.rooms(catalog, remotes, known, found.now)
    desk = _Desk(snapshot, catalog, remotes, tools, room)
    destinations = [one for one in destinations if one in states or desk.is_wanted(one)]
    plans: dict[ObjectKey, DestinationPlan] = {}
    outcomes: dict[str, Outcome] = {}
    written: dict[str, Written] = {}
    left = destinations
    for _ in range(MOST_TRIES):
        plans |= {destination.key: desk.plan(destination, index, len(left)) for index, destination in enumerate(left)}
        tools.progress("planning", len(left), len(left))
        for one, outcome in _publish(desk, [plans[destination.key] for destination in left], publisher):
            outcomes[one.name], written[one.name] = outcome, one
        left = [one for one in destinations if isinstance(outcomes.get(one.name), Lost)]
        if not left:
            break
        log.info("race_lost", destinations=[one.name for one in left])
        remotes.fetch((), {one.url for one in left})
    plans |= {one.plan.destination.key: _as_pushed(one.plan, outcomes[one.name]) for one in written.values()}
    proposal = _proposal(found, room, tools, plans.values())
    proposed = publisher.propose(tools.proposals, proposal, snapshot)
    fleet = FleetPlan(
        snapshot.id, desk.as_of(), room, tuple(plans[one.key] for one in destinations),
        (*_catalog_findings(catalog), *proposal.findings, *push_findings(proposal, proposed)),
        not catalog.unreadable, proposal,
    )  # fmt: skip
    publisher.finish(fleet, remotes)
    due = _due(room, found.now + RETRY_SECONDS if isinstance(proposed, Failed) else None)
    return Report(fleet, outcomes, written, desk.renders, due, proposed)


def _proposal(found: Gathered, room: RoomResult, tools: Tools, plans: Iterable[DestinationPlan]) -> Proposal:
    taken: dict[str, set[str]] = {}
    for plan in plans:
        drafts = {*plan.after.drafts, *(layout.branch for layout in plan.layouts)}
        taken.setdefault(plan.destination.url, set()).update({plan.destination.branch}, drafts)
    return tools.proposals.plan(room.pins, found.snapshot, not found.catalog.unreadable, taken)


def _due(room: RoomResult, retry: int | None) -> int | None:
    moves = (*(one.settling for one in room.variants), *(pin.settling for pin in room.pins))
    return min([*(move.until for move in moves if move), *([] if retry is None else [retry])], default=None)


def _as_pushed(plan: DestinationPlan, outcome: Outcome) -> DestinationPlan:
    """Return the plan as it came out: what could not be pushed is not drafted."""
    if isinstance(outcome, Done):
        return plan
    code = PUSH_REFUSED if isinstance(outcome, Refused) else PUSH_FAILED
    message = f"Repository {plan.destination.name}: {describe(outcome)}"
    finding = code.finding(message, plan.destination.where)
    condition = Condition("Ready", "False", code.name, message)
    outcomes = tuple(
        Blocked(one.variant, one.record, (VALID, condition), (finding,), one.seen) if isinstance(one, Draft) else one
        for one in plan.outcomes
    )
    return replace(plan, outcomes=outcomes, findings=(finding,), after=plan.before)


def _publish(desk: _Desk, plans: Iterable[DestinationPlan], publisher: Publisher) -> Iterable[tuple[Written, Outcome]]:
    by_url: dict[str, list[DestinationPlan]] = {}
    for plan in plans:
        if not plan.findings:
            by_url.setdefault(plan.destination.url, []).append(plan)
    groups = [(remote, ready) for url, ready in by_url.items() if (remote := desk.remote(url))]

    def publish(group: tuple[Remote, Sequence[DestinationPlan]]) -> list[tuple[Written, Outcome]]:
        try:
            written = write_plans(*group, desk.snapshot.seconds, desk.sources_read)
            outcomes = publisher.publish(group[0], written)
        except GitError as error:
            # one remote's full disk or damaged mirror is no reason to leave the others (tenet 6)
            return [(Written(plan), Failed(error)) for plan in group[1]]
        return [(one, outcomes[one.name]) for one in written]

    # each remote is one thread's alone; a fleet of many remotes mostly waits for their hosts
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for index, done in enumerate(pool.map(publish, groups)):
            desk.tell("writing", index, len(groups))
            yield from done


class _Desk:
    """What one pass has at hand while it plans."""

    def __init__(
        self, snapshot: ConfigSnapshot, catalog: Catalog, remotes: Remotes, tools: Tools, room: RoomResult
    ) -> None:
        self.snapshot = snapshot
        self._catalog = catalog
        self._remotes = remotes
        self._tools = tools
        self._room = room
        self._writer = tools.writer(snapshot.id)
        self._render = tools.render(catalog)
        self._roots: dict[str, CommitId] = {}
        self._by_place: dict[tuple[str, str], list[Variant]] = {}
        for variant in room.variants:
            place = (variant.place.namespace, variant.place.repository)
            self._by_place.setdefault(place, []).append(variant)
        stalled = {one.owner.key for one in room.stalled}
        self._unplaced = frozenset(stalled | room.kept)
        self._alive = frozenset({variant.owner.key for variant in room.variants} | self._unplaced)
        self.sources_read: dict[TreeId, FileTree] = {}
        self.renders = 0

    def tell(self, stage: str, done: int, total: int) -> None:
        """Say how far the pass is."""
        self._tools.progress(stage, done, total)

    def remote(self, url: str) -> Remote | None:
        """Return a destination's remote; one that does not exist yet is empty where that is asked for."""
        if self._tools.missing_is_empty:
            return self._remotes.even_if_missing(url)
        return self._remotes.get(url)

    def is_wanted(self, destination: Destination) -> bool:
        """Return whether the destination is some variant's downstream."""
        return (destination.key.namespace, destination.name) in self._by_place

    def as_of(self) -> int:
        """Return the latest date among the commits that were read (design 10.13)."""
        dates = [variant.upstream.committer_seconds for variant in self._room.variants]
        return max([self.snapshot.seconds, *dates])

    def plan(self, destination: Destination, index: int, total: int) -> DestinationPlan:
        """Return one destination's plan; what cannot be read of it spoils it alone (tenet 6)."""
        self.tell("planning", index, total)
        try:
            return self._plan(destination)
        except GitError as error:
            return _left_alone(destination, _trouble(destination, error))

    def _plan(self, destination: Destination) -> DestinationPlan:
        remote = self.remote(destination.url)
        clash = self._conflicts.get(destination.key)
        if clash or remote is None:
            finding = clash or self._unreachable(destination)
            return _left_alone(destination, finding)
        state = _read_state(destination, remote, self._tools.state_ref) or new_state(destination)
        if isinstance(state, Finding):
            return _left_alone(destination, state)
        claims = self._claims(destination)
        heads = self._heads(destination, remote, state, claims)
        shop = Workshop(
            self._catalog, _Sources(self, remote), self._counted, self._writer,
            self._tools.draft_template, self.snapshot.seconds,
        )  # fmt: skip
        return plan_destination(destination, claims, state, heads, DestinationObjects(remote, destination), shop)

    @cached_property
    def _conflicts(self) -> Mapping[ObjectKey, Finding]:
        return conflicts(self._tools.destinations(self._catalog))

    def _unreachable(self, destination: Destination) -> Finding:
        return _trouble(destination, self._remotes.failures.get(destination.url))

    def _claims(self, destination: Destination) -> Claims:
        variants = tuple(self._by_place.get((destination.key.namespace, destination.name), ()))
        return Claims(variants, self._alive, self._unplaced, not self._catalog.unreadable)

    def _heads(self, destination: Destination, remote: Remote, state: DestinationState, claims: Claims) -> Heads:
        refs = remote.refs
        names = {draft_branch(self._tools.draft_template, destination, one.place.package) for one in claims.variants}
        names |= set(state.drafts)
        names |= {draft_branch(self._tools.draft_template, destination, package) for package in state.packages}
        drafts = {name: refs[HEADS + name] for name in names if HEADS + name in refs}
        proposed = {name: refs[proposed_ref(name)] for name in names if proposed_ref(name) in refs}
        branch = refs.get(HEADS + destination.branch)
        return Heads(branch or self._root(remote), branch is None, drafts, proposed)

    def _root(self, remote: Remote) -> CommitId:
        url = remote.mirror.url
        if url not in self._roots:
            self._roots[url] = remote.mirror.root_commit()
        return self._roots[url]

    def _counted(self, variant: Variant, made: Ingredients) -> Rendered:
        self.renders += 1
        return self._render(variant, made)

    def upstream_files(self, upstream: Upstream, destination: Remote) -> FileTree:
        """Return an upstream package's files, and remember them for the state that will name them by their tree.

        What a reference has moved away from may be gone there; the state of a destination keeps what it was made of.
        """
        remote = self._remotes.get(upstream.url)
        assert remote is not None
        try:
            files = _read_files(remote, upstream.tree)
        except ObjectMissingError:
            files = _read_files(destination, upstream.tree)
        self.sources_read[files.id] = files
        return files

    def lock_tree(self, files: FileTree) -> TreeId | None:
        """Return the upstream tree that a Kptfile's lock names."""
        return self._tools.lock_tree(files, self._catalog, self._remotes)

    def is_behind(self, upstream: Upstream, commit: CommitId) -> bool:
        """Return whether an upstream's commit is in the history of another; False when that one is gone."""
        remote = self._remotes.get(upstream.url)
        return remote is not None and remote.is_behind(upstream.commit, commit)

    def function(self, name: str) -> str:
        """Return what a function outside this process is today."""
        return self._tools.functions.identity(name)


def read_states(
    destinations: Iterable[Destination], remotes: Remotes, state_ref: str
) -> dict[Destination, DestinationState | Finding]:
    """Return what is remembered of each destination, or why it must be left alone; those never seen are absent."""
    found: dict[Destination, DestinationState | Finding] = {}
    waiting = iter(destinations)
    while group := tuple(islice(waiting, _READ_AHEAD)):
        near = [(one, remote) for one in group if (remote := remotes.get(one.url))]
        for remote, mine in _by_remote(near):
            remote.read_states_ahead(_heads(remote, (state_ref.format(repository=one.name) for one in mine)))
        states = {one: state for one, remote in near if (state := _read_state(one, remote, state_ref))}
        for remote, mine in _by_remote(near):
            remote.read_ahead(_heads(remote, _branches(mine, states)), STATUS_FOLDER)
        found |= states
    return found


def _by_remote(near: Iterable[tuple[Destination, Remote]]) -> Iterable[tuple[Remote, list[Destination]]]:
    groups: dict[Remote, list[Destination]] = {}
    for destination, remote in near:
        groups.setdefault(remote, []).append(destination)
    return groups.items()


def _heads(remote: Remote, refs: Iterable[str]) -> list[CommitId]:
    known = remote.refs
    return [known[ref] for ref in refs if ref in known]


def _branches(
    destinations: Iterable[Destination], states: Mapping[Destination, DestinationState | Finding]
) -> Iterator[str]:
    for destination in destinations:
        yield HEADS + destination.branch
        state = states.get(destination)
        yield from (HEADS + name for name in (state.drafts if isinstance(state, DestinationState) else ()))


def _read_state(destination: Destination, remote: Remote, state_ref: str) -> DestinationState | Finding | None:
    commit = remote.refs.get(state_ref.format(repository=destination.name))
    if commit is None:
        return None
    try:
        return remote.state(commit)
    except EngineTooOldError as error:
        return ENGINE_TOO_OLD.finding(f"Repository {destination.name}: {error}; left alone", destination.where)
    except StateUnreadableError as error:
        message = (
            f"Repository {destination.name}: {error}; left alone until the ref is mended, or deleted to be rebuilt"
        )
        return STATE_UNREADABLE.finding(message, destination.where)


def _trouble(destination: Destination, error: GitError | None) -> Finding:
    why = f"{error.message} (next step: {error.next_step})" if error else "it was not fetched"
    return REPOSITORY_UNREACHABLE.finding(f"Repository {destination.name}: {why}", destination.where)


def _left_alone(destination: Destination, finding: Finding) -> DestinationPlan:
    state = new_state(destination)
    return DestinationPlan(destination, Heads(), state, state, findings=(finding,))


class _Sources:
    """Contents of trees for one destination."""

    def __init__(self, desk: _Desk, remote: Remote) -> None:
        self._desk = desk
        self.lock_tree = desk.lock_tree
        self.function = desk.function
        self._read = desk.sources_read
        self._remote = remote

    def upstream(self, upstream: Upstream) -> FileTree:
        """Return an upstream package's files."""
        return self._desk.upstream_files(upstream, self._remote)

    def is_behind(self, upstream: Upstream, commit: CommitId) -> bool:
        """Return whether an upstream's commit is in the history of another."""
        return self._desk.is_behind(upstream, commit)

    def keep(self, files: FileTree) -> TreeId:
        """Remember a tree that state will name."""
        self._read.setdefault(files.id, files)
        return files.id

    def standing(self, tree: TreeId) -> FileTree:
        """Return the files of a tree of the destination, or of a source that was read and is not there yet."""
        return self._read[tree] if tree in self._read else _read_files(self._remote, tree)


def _read_files(remote: Remote, tree: TreeId) -> FileTree:
    try:
        return remote.files(tree)
    except TooLargeError as error:
        raise TooLargeToReadError(error.message) from error


def tally(report: Report) -> dict[str, int]:
    """Return how many packages came to which outcome, and the number of renders."""
    found = [outcome for _, outcome in report.plan.outcomes()]
    return {
        "drafted": sum(isinstance(one, Draft) for one in found),
        "unchanged": sum(isinstance(one, Unchanged) for one in found),
        "blocked": sum(isinstance(one, Blocked) for one in found),
        "held": sum(len(plan.held) for plan in report.plan.destinations),
        "renders": report.renders,
    }
