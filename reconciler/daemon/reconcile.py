"""One reconcile: heads → trees → catalog → variants → outcomes → commits → push → status (design 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from typing import TypeVar

from reconciler.daemon.approvals import Approved
from reconciler.daemon.claims import settle_claims
from reconciler.daemon.codes import PUSH_FAILED, PUSH_POSTPONED, PUSH_REFUSED, REPOSITORY_UNREACHABLE
from reconciler.daemon.config import ConfigSnapshot
from reconciler.daemon.desk import Desk
from reconciler.daemon.doubts import with_doubts
from reconciler.daemon.events import log
from reconciler.daemon.isolation import Steps, error_finding, log_failures
from reconciler.daemon.proposals import push_findings
from reconciler.daemon.publish import HEADS, Written, describe
from reconciler.daemon.pushes import push_plans
from reconciler.daemon.recollection import Recollection
from reconciler.daemon.remotes import Remote, Remotes
from reconciler.daemon.requests import Requested
from reconciler.daemon.settled import Settled
from reconciler.daemon.states import read_states
from reconciler.daemon.tags import Tagged, all_tagged
from reconciler.daemon.tools import ConfigSource, Publisher, Tools
from reconciler.gitio.verdicts import Done, Failed, Lost, Outcome, Postponed, Refused
from reconciler.krm.codes import INTERNAL_ERROR, internal_error
from reconciler.krm.conditions import Condition
from reconciler.krm.digest import digest
from reconciler.krm.findings import Code, Finding
from reconciler.krm.identity import ObjectKey
from reconciler.planning.approvals import policy_findings
from reconciler.planning.confirmed import confirmed
from reconciler.planning.decide import VALID
from reconciler.planning.destination import Destination
from reconciler.planning.fleet import DestinationPlan, FleetPlan
from reconciler.planning.outcome import Blocked, Draft
from reconciler.planning.plan import Decided, decide_destination
from reconciler.planning.proposal import Proposal
from reconciler.planning.recorded import Elsewhere
from reconciler.planning.shard import Shard
from reconciler.planning.state import DestinationState
from reconciler.planning.survey import Surveyed, Workshop
from reconciler.planning.wanted import Wanted
from reconciler.reporting.leaving import waiting
from reconciler.reporting.tally import blocked_objects
from reconciler.rules.variant import RoomResult
from reconciler.snapshot.catalog import Catalog

MOST_TRIES = 5
# how long a proposal to the config that did not get through rests, while nothing moves
RETRY_SECONDS = 300
# a thread that loads code for longer than this is left behind
_LOADING_SECONDS = 60
_UNFINISHED: Outcome = Postponed("an unexpected exception ended the writing of the status")
_ALONE = Shard()
_One = TypeVar("_One")


@dataclass(frozen=True)
class Report:
    """What a pass found and did: the plan, what became of each destination, and how much was rendered.

    `due` is when the same heads will ask for another pass: the first move that settles, in seconds since 1970.
    `proposed` is what became of the proposal to the config, `tagged` of revisions, `approved` of drafts that people
    need not approve; what these fail at holds up nobody else. `opened` counts new pull requests. `postponed`: something
    waits for its turn at a remote, or for a push to end, and the next pass goes on with it. `doubts` are those of the
    catalog.
    """

    plan: FleetPlan
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    written: Mapping[str, Written] = field(default_factory=dict)
    renders: int = 0
    due: int | None = None
    proposed: Outcome = field(default_factory=Done)
    tagged: Tagged = field(default_factory=Tagged)
    approved: Approved = field(default_factory=Approved)
    opened: int = 0
    postponed: bool = False
    doubts: tuple[Finding, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether the world let everything be done; what is wrong with the config does not count."""
        return (
            not self._codes & {one.name for one in (REPOSITORY_UNREACHABLE, PUSH_FAILED, PUSH_REFUSED)}
            and not self.has_internal_errors
            and not self.waits
            and not self.postponed
        )

    @property
    def settled(self) -> bool:
        """Whether trying again over the same heads would change nothing: what a host refused, it refuses again."""
        return PUSH_FAILED.name not in self._codes and not isinstance(self.proposed, Lost)

    @property
    def waits(self) -> bool:
        """Whether a package waits for a function that the world interrupted; each rests on its own (design 10.19)."""
        return any(one.waits for one in self.plan.destinations)

    @property
    def has_internal_errors(self) -> bool:
        """Whether an unexpected exception ended the work on anything, so that another pass has to try again."""
        return any(one.code == INTERNAL_ERROR.name for one in self.plan.all_findings())

    @property
    def _codes(self) -> set[str]:
        return {finding.code for plan in self.plan.destinations for finding in plan.findings}


@dataclass(frozen=True)
class Gathered:
    """What a pass starts from: the config and its objects, with all remotes fetched, and the time it is.

    `findings` are those of steps that failed unexpectedly on the way.
    """

    snapshot: ConfigSnapshot
    catalog: Catalog
    heads: str
    now: int
    findings: tuple[Finding, ...] = ()


def gather(source: ConfigSource, remotes: Remotes, tools: Tools) -> Gathered:
    """Read the config and fetch every remote that it names. Raises GitError when the config cannot be read."""
    return _gather(source.read(), remotes, tools)


def gather_what_moved(source: ConfigSource, remotes: Remotes, tools: Tools, last: Settled | None) -> Gathered | Settled:
    """Return what `gather` does, or the last pass when nothing has moved since, and nothing is due.

    Of a config that is the same, the remotes are known: nothing of it is read before something has moved.
    """
    snapshot = source.read()
    if last is None or last.config != snapshot.id:
        return _gather(snapshot, remotes, tools)
    tools.progress("fetching", 0, 1)
    remotes.fetch(last.upstreams, last.destinations)
    _look_at_requests(last.destinations, remotes, tools)
    tools.progress("fetching", 1, 1)
    tools.functions.look_again()
    for name in last.functions:
        # another process has asked for them
        tools.functions.identity(name)
    now, seen = int(tools.clock()), heads(remotes, tools)
    if seen == last.heads and last.holds(now):
        return last
    steps = Steps()
    catalog = _settle(snapshot, tools.read_catalog(snapshot), remotes, tools, steps)
    return Gathered(snapshot, catalog, seen, now, tuple(steps.findings))


def gather_all(sources: Sequence[ConfigSource], remotes: Remotes, tools: Tools) -> list[Gathered]:
    """Read several configs, and fetch every remote that any of them names, once. Raises GitError as `gather`."""
    return _gather_all([source.read() for source in sources], remotes, tools)


def _gather(snapshot: ConfigSnapshot, remotes: Remotes, tools: Tools) -> Gathered:
    return _gather_all([snapshot], remotes, tools)[0]


def _gather_all(snapshots: Sequence[ConfigSnapshot], remotes: Remotes, tools: Tools) -> list[Gathered]:
    tools.progress("reading the config", 0, 1)
    catalogs = [tools.read_catalog(one) for one in snapshots]
    tools.progress("reading the config", 1, 1)
    tools.progress("fetching", 0, 1)
    with ThreadPoolExecutor(1) as aside:
        # git fetches in processes of its own, and hosts take their time: what waits for no remote is loaded meanwhile
        loaded = [aside.submit(tools.load, one) for one in catalogs]
        named = [tools.urls(one) for one in catalogs]
        upstreams, destinations = ({url for urls in each for url in urls} for each in zip(*named, strict=True))
        remotes.fetch(upstreams, destinations)
        steps = Steps()
        steps.run("the heads of mirrors", partial(_note_earlier_heads, catalogs, remotes, tools), None)
        _look_at_requests(sorted(destinations), remotes, tools)
        for one in loaded:
            steps.run("loading the parser of expressions", partial(_finish_loading, one), None)
    tools.progress("fetching", 1, 1)
    tools.functions.look_again()
    seen, now = heads(remotes, tools), int(tools.clock())
    pairs = zip(snapshots, catalogs, strict=True)
    settled = [(one, _settle(one, catalog, remotes, tools, steps)) for one, catalog in pairs]
    late = tuple(steps.findings)
    return [Gathered(snapshot, catalog, seen, now, late) for snapshot, catalog in settled]


def _settle(snapshot: ConfigSnapshot, catalog: Catalog, remotes: Remotes, tools: Tools, steps: Steps) -> Catalog:
    return steps.run(
        "conflicting definitions", partial(settle_claims, catalog, snapshot, remotes, tools), catalog
    )  # fmt: skip


def _finish_loading(loading: Future[None]) -> None:
    try:
        loading.result(_LOADING_SECONDS)
    except TimeoutError:
        # The code that needs the parser loads it again.
        log.warning("loading_takes_long", seconds=_LOADING_SECONDS)


def _log_moves(done: Iterable[Written]) -> None:
    """Log the repositories whose new URL a state has recorded."""
    for plan in (one.plan for one in done):
        if plan.before.url != plan.after.url:
            name, before, after = plan.destination.name, plan.before.url, plan.after.url
            log.info("repository_moved", destination=name, before=before, after=after)


def _keep_heads(fleet: FleetPlan, context: Desk, publisher: Publisher, tools: Tools) -> None:
    context.note_heads(one for one in fleet.destinations if context.has_planned(one.destination))
    publisher.keep_heads(tools.known_heads)


def _note_earlier_heads(catalogs: Iterable[Catalog], remotes: Remotes, tools: Tools) -> None:
    """Note the heads that mirrors had before their first fetch: a cache of an earlier version has no other record."""
    if not remotes.earlier_refs:
        return
    for one in (one for catalog in catalogs for one in tools.destinations(catalog)):
        if head := remotes.earlier_refs.get(one.url, {}).get(HEADS + one.branch):
            tools.known_heads.note(one, head)
    tools.known_heads.keep()


def _look_at_requests(urls: Iterable[str], remotes: Remotes, tools: Tools) -> None:
    """Read the pull requests of repositories that we have put drafts into: those have a state."""
    board, prefix = tools.requests.board, tools.state_ref.partition("{repository}")[0]
    near = {url: remote for url in urls if board.has_driver(url) and (remote := remotes.get(url))}
    board.look(url for url, remote in near.items() if any(ref.startswith(prefix) for ref in remote.refs))


def heads(remotes: Remotes, tools: Tools) -> str:
    """Return a digest of what a pass starts from besides the config: refs, functions, proposals, pull requests."""
    return digest([remotes.digest(), tools.functions.digest(), tools.proposals.heads(), tools.requests.board.digest()])


def reconcile(source: ConfigSource, remotes: Remotes, tools: Tools, publisher: Publisher) -> Report:
    """Run one pass, whole."""
    return decide_and_publish(gather(source, remotes, tools), remotes, tools, publisher)


def catalog_findings(catalog: Catalog) -> tuple[Finding, ...]:
    """Return what is wrong with files and objects before any room looks at them."""
    return (*catalog.findings, *(one.finding for one in catalog.unreadable), *catalog.doubts)


@dataclass(frozen=True)
class Begun:
    """A pass that can decide: what rooms make of the config, the desk, and the destinations that are looked at.

    `found` is what it starts from, with the doubts that states raise about the config. `all_destinations` are also
    those of other shards, in the same order; `known_destinations` also those that nothing is planned for.
    """

    found: Gathered
    room: RoomResult
    desk: Desk
    destinations: Sequence[Destination]
    all_destinations: Sequence[Destination]
    known_destinations: Sequence[Destination] = ()


def begin(
    found: Gathered,
    remotes: Remotes,
    tools: Tools,
    decide: Callable[[Surveyed, Workshop], Decided] = decide_destination,
    only: Destination | None = None,
    recollection: Recollection | None = None,
    shard: Shard = _ALONE,
) -> Begun:
    """Read the states of all destinations, and ask the rooms; `decide` is what becomes of one of them.

    Where `only` one is looked at, its state will do: by others rooms tell what may go, and not what is wanted here.
    Rooms are told of the whole fleet; what a `shard` decides on are its own destinations.
    """
    destinations = [only] if only else tools.destinations(found.catalog)
    states = read_states(destinations, remotes, tools.state_ref, recollection)
    known = {one: state for one, state in states.items() if isinstance(state, DestinationState)}
    catalog = with_doubts(found.catalog, found.snapshot, destinations, known.values(), tools.max_delete_percent)
    found = replace(found, catalog=catalog)
    room = tools.rooms(found.catalog, remotes, known, found.now)
    if not shard.is_alone:
        room = replace(room, guards=confirmed(room.guards, known))
    wanted = recollection.wanted_of(room) if recollection is not None else Wanted(room)
    looked_at = [one for one in destinations if one in states or wanted.has(one.key)]
    elsewhere = [one for one in looked_at if not shard.holds(one)]
    desk = Desk(
        found.snapshot, found.catalog, remotes, tools, room, wanted, found.now, decide, recollection, elsewhere
    )  # fmt: skip
    return Begun(found, room, desk, [one for one in looked_at if shard.holds(one)], looked_at, destinations)


def decide_and_publish(
    found: Gathered, remotes: Remotes, tools: Tools, publisher: Publisher, recollection: Recollection | None = None
) -> Report:
    """Plan and publish; a destination that loses a race is fetched and planned again, alone, five times.

    `recollection` is what a service knows of the last pass; it is brought up to date.
    """
    shard = tools.shard
    begun = begin(found, remotes, tools, recollection=recollection, shard=shard)
    found = begun.found
    desk, published = begun.desk, _published(begun, remotes, tools, publisher)
    done, steps = published.done, Steps()
    tagged = _tag(desk, done, publisher, tools.max_pushes, steps)
    approved = Approved()
    if tools.by_annotation:
        approved = steps.run("approvals by annotation", lambda: _approve(desk, done, publisher, found.now), approved)
    _log_moves(done)
    plans = published.as_pushed()
    # one shard alone tells of the others, and proposes to the config that they share
    elsewhere = desk.plan_elsewhere(plans.values()) if shard.leads else Elsewhere()
    known = {**plans, **{one.destination.key: one for one in elsewhere.plans}}
    proposal = plan_proposal(found, begun.room, tools, known.values(), steps) if shard.leads else Proposal()
    proposed: Outcome = Done()
    if shard.leads:
        push = partial(publisher.propose, tools.proposals, proposal, found.snapshot)
        proposed = steps.run("the push of the proposal to the config", push, proposed)
    retry = found.now + RETRY_SECONDS
    standing = [plan.destination for plan in plans.values() if not plan.findings]
    request = partial(publisher.request, tools.requests, standing, remotes, tools.names, retry)
    requested = steps.run("pull requests", request, Requested())

    def fleet_of(looked_at: Sequence[Destination]) -> FleetPlan:
        shown = [known[one.key] for one in looked_at]
        ahead = [finding for one in shown for finding in policy_findings(one)] if tools.by_annotation else []
        told = (
            *push_findings(proposal, proposed), *tagged.findings, *approved.findings, *ahead, *requested.findings,
            *steps.findings,
        )  # fmt: skip
        return _fleet(found, begun, shown, proposal, told)

    fleet = replace(fleet_of(begun.destinations), is_part=not shard.is_alone)
    whole = None
    if shard.leads:
        whole = fleet if shard.is_alone else replace(fleet_of(begun.all_destinations), awaited=elsewhere.awaited)
    log_failures(fleet.all_findings())
    late = Steps()
    finished = late.run("the status of the config objects", partial(publisher.finish, whole, remotes), _UNFINISHED)
    late.findings += publisher.status_findings
    late.run("the time of publications", partial(publisher.remember, tools.published), None)
    late.run("the heads of cluster branches", partial(_keep_heads, fleet, desk, publisher, tools), None)
    if recollection is not None:
        late.run("the results of this pass", partial(_recollect, recollection, fleet, desk, published, remotes), None)
    if late.findings:
        # the status was written before, and cannot report this
        log_failures(late.findings)
        fleet = replace(fleet, findings=(*fleet.findings, *late.findings))
    put_off = [one for one in (*published.outcomes.values(), proposed, finished) if isinstance(one, Postponed)]
    is_to_retry = isinstance(proposed, Failed) or tagged.failed or approved.failed
    next_wave = found.now if desk.rollouts.is_unsure and desk.renders else desk.rollouts.due
    again = [ceil(tools.clock() + one.seconds) for one in put_off if one.seconds is not None]
    due = _due(begun.room, retry if is_to_retry else None, approved.due, requested.due, next_wave, *again)
    return Report(
        fleet, published.outcomes, published.written, desk.renders, due, proposed, tagged, approved, requested.opened,
        bool(put_off), found.catalog.doubts,
    )  # fmt: skip


@dataclass
class _Published:
    """What a pass has planned, what it has written of it, and what became of that, by name of the destination."""

    plans: dict[ObjectKey, DestinationPlan] = field(default_factory=dict)
    written: dict[str, Written] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    @property
    def done(self) -> list[Written]:
        """What has arrived."""
        return [one for name, one in self.written.items() if isinstance(self.outcomes[name], Done)]

    def as_pushed(self) -> dict[ObjectKey, DestinationPlan]:
        """Return the plans as they came out."""
        written = self.written.values()
        return self.plans | {one.plan.destination.key: _as_pushed(one.plan, self.outcomes[one.name]) for one in written}


def _published(begun: Begun, remotes: Remotes, tools: Tools, publisher: Publisher) -> _Published:
    """Plan and push, again for those that have lost a race."""
    desk, found = begun.desk, _Published()
    left = begun.destinations
    for _ in range(MOST_TRIES):
        others = [plan for key, plan in found.plans.items() if key not in {one.key for one in left}]
        found.plans |= {plan.destination.key: plan for plan in desk.plan(left, others)}
        # what is as the last pass has left it has nothing to be written
        planned = [found.plans[one.key] for one in left if desk.has_planned(one)]
        for one, outcome in _publish(desk, planned, remotes, publisher, tools.max_pushes):
            found.outcomes[one.name], found.written[one.name] = outcome, one
        left = [one for one in begun.destinations if isinstance(found.outcomes.get(one.name), Lost)]
        if not left:
            break
        log.info("race_lost", destinations=[one.name for one in left])
        remotes.fetch((), {one.url for one in left})
    return found


def _approve(desk: Desk, done: Iterable[Written], publisher: Publisher, now: int) -> Approved:
    return publisher.approve(_by_remote(desk, ((one.plan.destination, one) for one in done)), now)


def _recollect(results: Recollection, fleet: FleetPlan, context: Desk, published: _Published, remotes: Remotes) -> None:
    """Remember how the destinations of a fleet were left; where others may have moved refs since, nothing is known."""
    for plan in fleet.destinations:
        if context.has_planned(plan.destination):
            known = context.left(plan, published.written.get(plan.destination.name))
            results.note(plan.destination, None if remotes.fetched_again else known)
    results.end(plan.destination.key for plan in fleet.destinations)


def plan_fleet(pass_data: Begun, tools: Tools, reference: tuple[Begun, FleetPlan] | None = None) -> FleetPlan:
    """Return what a pass decides for the whole fleet; nothing is committed, and so nothing can be published.

    `reference` is the result of another config over the same remotes: equal parts are not decided again.
    """
    if reference:
        plans = pass_data.desk.plan_beside(pass_data.destinations, reference[0].desk, reference[1].destinations)
    else:
        plans = pass_data.desk.plan(pass_data.destinations, ())
    found = pass_data.found
    fleet = _fleet(found, pass_data, plans, plan_proposal(found, pass_data.room, tools, plans, Steps()))
    log_failures(fleet.all_findings())
    return fleet


def _fleet(
    found: Gathered, begun: Begun, plans: Iterable[DestinationPlan], proposal: Proposal, told: Iterable[Finding] = ()
) -> FleetPlan:
    catalog, desk = found.catalog, begun.desk
    return FleetPlan(
        found.snapshot.id, desk.as_of(), begun.room, tuple(plans),
        (*catalog_findings(catalog), *found.findings, *proposal.findings, *map(internal_error, desk.failures), *told),
        catalog.is_whole, proposal, catalog.objects, desk.policies, desk.rollouts.gates,
    )  # fmt: skip


def plan_proposal(
    found: Gathered, result: RoomResult, tools: Tools, plans: Iterable[DestinationPlan], steps: Steps
) -> Proposal:
    """Return what the config itself is to say, beside the drafts of these plans."""
    return steps.run("the proposal to the config", lambda: _planned_proposal(found, result, tools, plans), Proposal())


def _planned_proposal(found: Gathered, result: RoomResult, tools: Tools, plans: Iterable[DestinationPlan]) -> Proposal:
    taken: dict[str, set[str]] = {}
    for plan in plans:
        drafts = {*plan.after.drafts, *(layout.branch for layout in plan.layouts)}
        taken.setdefault(plan.destination.repository_id, set()).update({plan.destination.branch}, drafts)
    return tools.proposals.plan(result.pins, found.snapshot, not found.catalog.unreadable, taken)


def _due(room: RoomResult, *more: int | None) -> int | None:
    moves = (*(one.settling for one in room.variants), *(pin.settling for pin in room.pins))
    return min([*(move.until for move in moves if move), *(one for one in more if one is not None)], default=None)


def push_code(outcome: Outcome) -> Code:
    """Return the code of the finding about a push that did not arrive."""
    match outcome:
        case Refused():
            return PUSH_REFUSED
        case Postponed():
            return PUSH_POSTPONED
        case _:
            return PUSH_FAILED


def _as_pushed(plan: DestinationPlan, outcome: Outcome) -> DestinationPlan:
    """Return the plan as it came out: what could not be pushed is not drafted."""
    if isinstance(outcome, Done):
        return plan
    code = push_code(outcome)
    message = f"Repository {plan.destination.name}: {describe(outcome)}"
    error = outcome.error if isinstance(outcome, Failed) else None
    finding = error_finding(error, code, message, plan.destination.where)
    condition = Condition("Ready", "False", finding.code, finding.message)
    outcomes = tuple(
        Blocked(one.variant, one.record, (VALID, condition), (finding,), one.seen) if isinstance(one, Draft) else one
        for one in plan.outcomes
    )
    leaving = tuple(one for one in plan.leaving if one.finding and not one.is_new)
    return replace(plan, outcomes=outcomes, findings=(finding,), after=plan.before, leaving=leaving)


def _publish(
    desk: Desk, plans: Iterable[DestinationPlan], remotes: Remotes, publisher: Publisher, most: int
) -> Iterable[tuple[Written, Outcome]]:
    groups = _by_remote(desk, ((plan.destination, plan) for plan in plans if not plan.findings))
    desk.tell("writing", 0, len(groups))
    yield from push_plans(groups, desk, remotes, publisher, most)
    desk.tell("writing", len(groups), len(groups))


def _tag(context: Desk, written: Iterable[Written], publisher: Publisher, most: int, steps: Steps) -> Tagged:
    groups = _by_remote(context, ((one.plan.destination, one) for one in written if one.plan.tags))

    def tag(group: tuple[Remote, list[Written]]) -> Tagged:
        scope = f"the tags of {group[0].mirror.url}"
        return steps.run(scope, lambda: publisher.tag(*group), Tagged(failed=True))

    with ThreadPoolExecutor(most) as pool:
        return all_tagged(pool.map(tag, groups))


def _by_remote(desk: Desk, found: Iterable[tuple[Destination, _One]]) -> list[tuple[Remote, list[_One]]]:
    by_url: dict[str, list[_One]] = {}
    for destination, one in found:
        by_url.setdefault(destination.url, []).append(one)
    return [(remote, ready) for url, ready in by_url.items() if (remote := desk.remote(url))]


def tally(report: Report) -> dict[str, int]:
    """Return how many packages came to which outcome, and the number of renders.

    `blocked` counts packages, and objects of the config that are blocked by an error finding.
    """
    counts = [one.counts for one in report.plan.destinations]
    drafted, unchanged, blocked = map(sum, zip((0, 0, 0), *counts, strict=True))
    blocked += len(blocked_objects(report.plan))
    return {
        "drafted": drafted,
        "unchanged": unchanged,
        "blocked": blocked,
        "held": sum(len(plan.held) for plan in report.plan.destinations),
        "leaving": sum(len(waiting(plan)) for plan in report.plan.destinations),
        "renders": report.renders,
        **({"approved": len(report.approved.packages)} if report.approved.packages else {}),
        **({"requests": report.opened} if report.opened else {}),
    }
