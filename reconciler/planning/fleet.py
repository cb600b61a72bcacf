"""The plan of one pass: everything that was decided, destination by destination, as one value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.planning.absence import ABSENCES
from reconciler.planning.branches import Layout
from reconciler.planning.destination import Destination
from reconciler.planning.outcome import Blocked, Draft, Held, Leaving, Outcome, Unchanged, reconciled_owners
from reconciler.planning.proposal import Proposal
from reconciler.planning.settling import settling_findings
from reconciler.planning.standing import Heads
from reconciler.planning.state import DestinationState
from reconciler.planning.tags import MissingTag
from reconciler.rules.overrides.read_policy import Policies
from reconciler.rules.overrides.rollout import Gate, RuleId
from reconciler.rules.overrides.usage import Usage, unused_findings, usage_of
from reconciler.rules.variant import RoomResult
from reconciler.rules.variants.codes import UPSTREAM_WARNING
from reconciler.snapshot.catalog import ConfigObject
from reconciler.snapshot.objects import CommitId


@dataclass(frozen=True)
class DestinationPlan:
    """What was decided for one destination. `before` and `after` are its state; findings are about it as a whole.

    `leaving` are packages on their way out, `kept` heads with people's work that go with them.
    A destination that could not be read has a finding and no outcomes: nothing is written to it. `tags` are what
    its revisions lack, and get once the state is in.
    """

    destination: Destination
    heads: Heads
    before: DestinationState
    after: DestinationState
    outcomes: tuple[Outcome, ...] = ()
    held: tuple[Held, ...] = ()
    layouts: tuple[Layout, ...] = ()
    findings: tuple[Finding, ...] = ()
    leaving: tuple[Leaving, ...] = ()
    kept: tuple[CommitId, ...] = ()
    tags: tuple[MissingTag, ...] = ()

    @cached_property
    def told(self) -> tuple[Finding, ...]:
        """What was found about it as a whole, and about packages that go."""
        return (
            *self.findings,
            *(held.finding for held in self.held),
            *(leaving.finding for leaving in self.leaving if leaving.finding),
        )

    @cached_property
    def told_of_packages(self) -> tuple[Finding, ...]:
        """What was found about the packages that are wanted on it."""
        return tuple(one for each in self.outcomes for one in (*_of(each), *settling_findings(each.variant)))

    @cached_property
    def counts(self) -> tuple[int, int, int]:
        """How many packages are drafted anew, unchanged and blocked."""
        kinds = [type(one) for one in self.outcomes]
        return kinds.count(Draft), kinds.count(Unchanged), kinds.count(Blocked)

    @property
    def drafts_anything(self) -> bool:
        """Whether it brings contents that are new: no other pass has the same plan, and nobody should hold on to it."""
        return self.counts[0] > 0

    @cached_property
    def waits(self) -> bool:
        """Whether a package waits for what the world kept from being done."""
        return any(isinstance(one, Blocked) and one.retry for one in self.outcomes)

    @cached_property
    def reconciled(self) -> frozenset[ObjectKey]:
        """The owners whose package is as they want it, or drafted, without error."""
        return reconciled_owners(self.outcomes)


@dataclass(frozen=True)
class FleetPlan:
    """What was decided for the fleet at one config commit.

    `config` is the commit id, or `tree:<id>` for a plain folder; `as_of` the latest committer date among the
    commits read, in seconds since 1970 (design 10.13). `complete` is False while a file of the config cannot be
    read, or an object has no name, so that nobody's absence is proved (design 10.5). `proposal` is what the config
    itself is to say, `objects` what it says now; `policies` are its override policies, and `rollouts` how far their
    rules have come. `is_part`: it is that of one shard, and others have destinations, too. `awaited` are the owners
    with a package that another shard has still to decide on, so that what was told of them stays.
    """

    config: str
    as_of: int
    room: RoomResult
    destinations: tuple[DestinationPlan, ...]
    findings: tuple[Finding, ...] = ()
    complete: bool = True
    proposal: Proposal = field(default_factory=Proposal)
    objects: Mapping[ObjectKey, ConfigObject] = field(default_factory=dict)
    policies: Policies = field(default_factory=Policies)
    rollouts: Mapping[RuleId, Gate] = field(default_factory=dict)
    is_part: bool = False
    awaited: frozenset[ObjectKey] = frozenset()

    def outcomes(self) -> Iterator[tuple[Destination, Outcome]]:
        """Yield every package's outcome with its destination."""
        for plan in self.destinations:
            yield from ((plan.destination, outcome) for outcome in plan.outcomes)

    @cached_property
    def usages(self) -> tuple[Usage, ...]:
        """How every sound override policy is used, on all clusters that could be read (kubeadmiral 10.4)."""
        if not self.policies.sound:
            return ()
        used = (
            (one.destination.name, package, record.policies)
            for one in self.destinations
            for package, record in one.after.standing()
            if record.policies
        )
        return usage_of(self.policies, used)

    @cached_property
    def _all_findings(self) -> tuple[Finding, ...]:
        found = [*self.findings, *self._unused(), *self.room.findings]
        found += chain.from_iterable(stalled.findings for stalled in self.room.stalled)
        found += chain.from_iterable(plan.told for plan in self.destinations)
        found += chain.from_iterable(plan.told_of_packages for plan in self.destinations)
        if not self.complete:
            found = [one for one in found if one.code not in ABSENCES]
        return tuple(dict.fromkeys(self._placed(found)))

    def all_findings(self) -> tuple[Finding, ...]:
        """Return everything that was found, about files, objects, destinations and packages, each once.

        What is about an object has the place of that object in the config, or of the set that made it. What says only
        that something is not there is left out while it may be in a file that cannot be read.
        """
        return self._all_findings

    def _unused(self) -> tuple[Finding, ...]:
        if not self.policies.sound or self.is_part or self.awaited:
            return ()
        # of what cannot be read, or has never been made, nobody knows which policies it names
        unmade = (isinstance(one, Blocked) and one.record is None for _, one in self.outcomes())
        is_known = not (self.room.stalled or any(plan.findings for plan in self.destinations) or any(unmade))
        return unused_findings(self.usages, self.policies) if is_known else ()

    def _placed(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        owners: dict[str, ObjectKey] = {}
        for one in findings:
            where = one.where
            if where.file or where.package or not where.object:
                yield one
                continue
            owners = owners or self._owners()
            written = self.objects.get(owners[where.object]) if where.object in owners else None
            yield replace(one, where=replace(where, file=written.file, line=written.where.line)) if written else one

    def _owners(self) -> dict[str, ObjectKey]:
        owners = [*(one.owner for one in self.room.variants), *(one.owner for one in self.room.stalled)]
        return {str(one.key): one.set or one.key for one in owners}


def _of(outcome: Outcome) -> tuple[Finding, ...]:
    match outcome:
        case Draft():
            return outcome.rendered.findings
        case Unchanged():
            # remembered from its last render; what references say today is the room's to tell
            return tuple(one for one in outcome.findings if one.code != UPSTREAM_WARNING.name)
        case Blocked():
            return outcome.findings
