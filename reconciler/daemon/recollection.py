"""What a service remembers of its destinations, so that a pass costs what has changed and not what is there.

A destination whose refs are where the last pass left them, that the same variants want, and whose packages would hear
the same answers, comes to the plan that it was left with. All else is planned. Nothing here is worth more than time: a
pass without it comes to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from reconciler.daemon.request_board import Said
from reconciler.krm.identity import ObjectKey
from reconciler.packages.functions.facts import is_function
from reconciler.planning.claims import Claims
from reconciler.planning.destination import Destination
from reconciler.planning.fleet import DestinationPlan, FleetPlan
from reconciler.planning.left import Left
from reconciler.planning.outcome import Outcome
from reconciler.planning.state import DestinationState
from reconciler.planning.wanted import Wanted
from reconciler.rules.variant import RoomResult
from reconciler.snapshot.objects import CommitId
from reconciler.snapshot.trace import Answers, Trace

Refs = Mapping[str, CommitId | None]
"""The refs that a plan goes by, by name; None for one that is not there."""


@dataclass(frozen=True)
class Known:
    """A destination as it was left, with the refs that it goes by and what its pull requests said."""

    destination: Destination
    left: Left
    refs: Refs
    said: Said
    state_commit: CommitId | None


class Recollection:
    """The destinations that the last passes have left with nothing to do, each question of them with its answer."""

    def __init__(self) -> None:
        self._known: dict[ObjectKey, Known] = {}
        self._answers: dict[str, str] = {}
        self._shared: dict[frozenset[tuple[str, str]], Trace] = {}
        self._moved: frozenset[str] = frozenset()
        self._wanted: Wanted | None = None

    def __len__(self) -> int:
        return len(self._known)

    def wanted_of(self, room: RoomResult) -> Wanted:
        """Return who wants what by what rooms have made of the config; of the very same that is worked out once."""
        if self._wanted is None or not self._wanted.is_of(room):
            self._wanted = Wanted(room)
        return self._wanted

    def state(self, destination: Destination, commit: CommitId) -> DestinationState | None:
        """Return what a state commit says, if it is the one that the destination was left with."""
        known = self._known.get(destination.key)
        return known.left.plan.after if known and known.state_commit == commit else None

    def ask(self, answers: Answers, function: Callable[[str], str]) -> None:
        """Ask every question again, each once, however many packages have it; `function` says what one is today."""
        self._moved = frozenset(
            asked
            for asked, was in self._answers.items()
            if ((function(asked) or was) if is_function(asked) else answers.to(asked)) != was
        )

    def plan(
        self, destination: Destination, refs: Mapping[str, CommitId], claims: Claims, said: Callable[[Known], Said]
    ) -> DestinationPlan | None:
        """Return the plan that a destination was left with, if it still holds."""
        known = self._known.get(destination.key)
        if known is None or not _stands(known, destination, refs):
            return None
        holds = (
            known.left.is_wanted_so(claims)
            and known.left.answers.keys().isdisjoint(self._moved)
            and said(known) == known.said
        )
        return known.left.plan if holds else None

    def settled(
        self, destination: Destination, refs: Mapping[str, CommitId], claims: Claims, said: Callable[[Known], Said]
    ) -> Mapping[str, Outcome]:
        """Return what packages of a destination that is planned again come to by themselves, as far as that holds."""
        known = self._known.get(destination.key)
        if known is None or not _stands(known, destination, refs) or said(known) != known.said:
            return {}
        return known.left.settled(claims, self._moved)

    def fleet(self, plan: FleetPlan) -> FleetPlan | None:
        """Return the plan that the next pass over the same comes to; None where it has to look at a destination."""
        known = [self._known.get(one.destination.key) for one in plan.destinations]
        left = tuple(one.left.plan for one in known if one)
        return replace(plan, destinations=left) if len(left) == len(known) else None

    def note(self, destination: Destination, known: Known | None) -> None:
        """Remember a destination as a pass has left it, or that it has to be planned again."""
        if known is None:
            self._known.pop(destination.key, None)
            return
        # clusters that are alike have heard the same
        answers = self._shared.setdefault(frozenset(known.left.answers.items()), known.left.answers)
        self._known[destination.key] = replace(known, left=replace(known.left, answers=answers))
        self._answers |= answers

    def end(self, there: Iterable[ObjectKey]) -> None:
        """End a pass over these destinations; what nobody asks any more is forgotten now and then."""
        for gone in self._known.keys() - set(there):
            del self._known[gone]
        if len(self._shared) > 2 * len(self._known) + 1:
            self._shared = {
                frozenset(one.items()): one for one in (known.left.answers for known in self._known.values())
            }
            self._answers = {name: answer for one in self._shared.values() for name, answer in one.items()}


def _stands(known: Known, destination: Destination, refs: Mapping[str, CommitId]) -> bool:
    """Return whether a destination is the one that was left, with its refs where they were."""
    is_same = known.destination is destination or known.destination == destination
    return is_same and all(refs.get(name) == commit for name, commit in known.refs.items())
