"""Packages that nothing wants any more, in words: what a pass does about them, and what waits for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.planning.destination import Destination
from reconciler.planning.fleet import DestinationPlan, FleetPlan
from reconciler.planning.outcome import Leaving
from reconciler.reporting.causes import object_words
from reconciler.reporting.status_file import told
from reconciler.reporting.values import one_line

# what is on its way out until people have decided; the rest is done by the pass that finds it
_WAITS_FOR_PEOPLE = ("proposed", "declined")
_DOES = {
    "proposed": "propose to remove",
    "withdrawn": "take out of its draft",
    "orphaned": "leave to people",
}


@dataclass(frozen=True)
class Departure:
    """One package on its way out, with the destination that it leaves."""

    destination: Destination
    leaving: Leaving

    @property
    def place(self) -> str:
        """Where the package is, `<repository>/<package>`."""
        return f"{self.destination.name}/{self.leaving.package}"

    @property
    def is_done_now(self) -> bool:
        """Whether this pass does something about it; what waits for people was proposed before."""
        return self.leaving.is_new or self.leaving.how in ("withdrawn", "orphaned")

    @property
    def title(self) -> str:
        """What the pass does about it, on one line."""
        return one_line(f"{_DOES[self.leaving.how]} {self.place} ({object_words(self.leaving.owner.key)})")

    @property
    def branch(self) -> str:
        """The removal draft that it is on, or was on when people declined."""
        removal = self.leaving.record.removal
        return removal.branch if removal else ""

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return told({
            "repository": self.destination.name, "package": self.leaving.package,
            "owner": self.leaving.owner.as_data(), "state": self.leaving.how, "branch": self.branch,
            "why": self.leaving.why,
        })  # fmt: skip


def departures(plan: FleetPlan) -> tuple[Departure, ...]:
    """Return every package on its way out, by place."""
    found = [Departure(one.destination, leaving) for one in plan.destinations for leaving in one.leaving]
    return tuple(sorted(found, key=lambda one: one.place))


def waiting(plan: DestinationPlan) -> tuple[Departure, ...]:
    """Return a destination's packages whose removal waits for people, or was declined; a second pass says the same."""
    found = [one for one in plan.leaving if one.how in _WAITS_FOR_PEOPLE]
    return tuple(Departure(plan.destination, one) for one in sorted(found, key=lambda one: one.package))


def waiting_data(plan: DestinationPlan) -> Iterator[Mapping[str, Any]]:
    """Yield what the status branch says of those packages."""
    for one in waiting(plan):
        yield told({"package": one.place, "state": one.leaving.how, "branch": one.branch, "reason": one.leaving.why})
