"""One value as the three sides have it, and the values that make sense only as a whole, never as a mixture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from reconciler.krm.conflicts import Chosen, Conflict
from reconciler.krm.yaml.same import same

Outcome: TypeAlias = tuple[Any, tuple[Conflict, ...]]
"""The merged value, or ABSENT, and the conflicts; their pointers begin at the value."""


class Values(NamedTuple):
    """A value as it was upstream, as it is upstream now, and as it is locally; ABSENT where a side has none."""

    origin: Any
    updated: Any
    local: Any

    def each(self, change: Callable[[Any], Any]) -> Values:
        """Return what `change` makes of each."""
        return Values(*map(change, self))

    @property
    def undisputed(self) -> Outcome | None:
        """The outcome where at most one side changed the value, or both alike; None where they disagree."""
        if same(self.updated, self.origin) or same(self.updated, self.local):
            return self.local, ()
        return (self.updated, ()) if same(self.local, self.origin) else None


def one_of(sides: Values, winner: Chosen) -> Outcome:
    """Return the value of the side that changed it; where both did, differently, the winner's and a conflict (D2)."""
    if sides.undisputed:
        return sides.undisputed
    conflict = Conflict("field", "", sides.origin, sides.local, sides.updated, winner, "D2")
    return (sides.updated if winner == "upstream" else sides.local), (conflict,)


def merge_selectors(sides: Values, winner: Chosen, *, empty_means_all: bool) -> Outcome:
    """Return selectors merged by their content: what either side took away is gone, what either side added is there.

    Where both sides edited the same selector, or where the result would select everything and no side asked for that,
    the list is one side's as a whole.
    """
    lists = sides.each(lambda value: value if isinstance(value, list) else [])
    by_content = _by_content(lists) if all(lists) or not empty_means_all else None
    if sides.undisputed or by_content is None or (empty_means_all and not by_content):
        return one_of(sides, winner)
    return by_content, ()


def _by_content(lists: Values) -> list[Any] | None:
    """Return the merged list, None where both sides replaced the same element."""
    origin, updated, local = lists
    added_up, added_here = _without(updated, origin), _without(local, origin)
    gone_up, gone_here = _without(origin, updated), _without(origin, local)
    both_replaced = any(_holds(gone_here, value) for value in gone_up) and added_up and added_here
    if both_replaced and not same(added_up, added_here):
        return None
    return [*_without(local, gone_up), *_without(added_up, local)]


def _without(values: list[Any], others: list[Any]) -> list[Any]:
    return [value for value in values if not _holds(others, value)]


def _holds(values: list[Any], value: Any) -> bool:
    return any(same(other, value) for other in values)
