"""The plan of one pass: everything that was decided, destination by destination, as one value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from reconciler.krm.findings import Finding
from reconciler.planning.branches import Layout
from reconciler.planning.destination import Destination
from reconciler.planning.outcome import Blocked, Draft, Held, Outcome, Unchanged
from reconciler.planning.proposal import Proposal
from reconciler.planning.settling import settling_findings
from reconciler.planning.standing import Heads
from reconciler.planning.state import DestinationState
from reconciler.rules.variant import RoomResult
from reconciler.rules.variants.codes import UPSTREAM_WARNING


@dataclass(frozen=True)
class DestinationPlan:
    """What was decided for one destination. `before` and `after` are its state; findings are about it as a whole.

    A destination that could not be read has a finding and no outcomes: nothing is written to it.
    """

    destination: Destination
    heads: Heads
    before: DestinationState
    after: DestinationState
    outcomes: tuple[Outcome, ...] = ()
    held: tuple[Held, ...] = ()
    layouts: tuple[Layout, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class FleetPlan:
    """What was decided for the fleet at one config commit.

    `config` is the commit id, or `tree:<id>` for a plain folder; `as_of` the latest committer date among the
    commits read, in seconds since 1970 (design 10.13). `complete` is False while a file of the config cannot be
    read, so that nobody's absence is proved (design 10.5). `proposal` is what the config itself is to say.
    """

    config: str
    as_of: int
    room: RoomResult
    destinations: tuple[DestinationPlan, ...]
    findings: tuple[Finding, ...] = ()
    complete: bool = True
    proposal: Proposal = field(default_factory=Proposal)

    def outcomes(self) -> Iterator[tuple[Destination, Outcome]]:
        """Yield every package's outcome with its destination."""
        for plan in self.destinations:
            yield from ((plan.destination, outcome) for outcome in plan.outcomes)

    def all_findings(self) -> tuple[Finding, ...]:
        """Return everything that was found, about files, objects, destinations and packages, each once."""
        found = [*self.findings, *self.room.findings]
        for stalled in self.room.stalled:
            found += stalled.findings
        for plan in self.destinations:
            found += plan.findings
            found += (held.finding for held in plan.held)
        for _, outcome in self.outcomes():
            found += (*_of(outcome), *settling_findings(outcome.variant))
        return tuple(dict.fromkeys(found))


def _of(outcome: Outcome) -> tuple[Finding, ...]:
    match outcome:
        case Draft():
            return outcome.rendered.findings
        case Unchanged():
            # remembered from its last render; what references say today is the room's to tell
            return tuple(one for one in outcome.findings if one.code != UPSTREAM_WARNING.name)
        case Blocked():
            return outcome.findings
