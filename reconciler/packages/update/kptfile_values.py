"""The values of one Kptfile field in a three-way merge, and the merge of fields that are taken from one side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from reconciler.krm.merge3.rules import ChosenSide, Conflict
from reconciler.krm.yaml.compare import is_equal_data

MergeOutcome: TypeAlias = tuple[Any, tuple[Conflict, ...]]
"""The merged value and the conflicts. The value ABSENT means a removed field. Pointers are relative to the value."""


class SideValues(NamedTuple):
    """One value in the origin, updated and local Kptfile of a merge. The value is ABSENT on a side that does not
    contain it.
    """

    origin: Any
    updated: Any
    local: Any

    def map_sides(self, change: Callable[[Any], Any]) -> SideValues:
        """Apply `change` to the value of each side, and return the results."""
        return SideValues(*map(change, self))

    @property
    def one_sided_outcome(self) -> MergeOutcome | None:
        """The merged value if at most one side changed the value, or if both sides changed it equally.

        None if both sides changed the value differently.
        """
        if is_equal_data(self.updated, self.origin) or is_equal_data(self.updated, self.local):
            return self.local, ()
        return (self.updated, ()) if is_equal_data(self.local, self.origin) else None


def choose_side(sides: SideValues, winner: ChosenSide) -> MergeOutcome:
    """Return the value of the side that changed the value.

    If both sides changed the value differently, return the value of `winner` and a conflict.
    """
    if sides.one_sided_outcome:
        return sides.one_sided_outcome
    conflict = Conflict("field", "", sides.origin, sides.local, sides.updated, winner, "D2")
    return (sides.updated if winner == "upstream" else sides.local), (conflict,)


def merge_selectors(sides: SideValues, winner: ChosenSide, *, empty_means_all: bool) -> MergeOutcome:
    """Merge two lists of selectors: apply the removals and the additions of both sides.

    If both sides replaced the same selector differently, the result is the whole list of one side.

    Args:
        winner: The side whose list is used if the lists cannot be merged.
        empty_means_all: Whether an empty list selects all resources. In this case, an empty merged list is replaced by
            the list of one side.
    """
    lists = sides.map_sides(lambda value: value if isinstance(value, list) else [])
    merged = _merge_by_content(lists) if all(lists) or not empty_means_all else None
    if sides.one_sided_outcome or merged is None or (empty_means_all and not merged):
        return choose_side(sides, winner)
    return merged, ()


def _merge_by_content(lists: SideValues) -> list[Any] | None:
    """Return the merged list. Return None if both sides replaced the same list element differently."""
    origin, updated, local = lists
    added_upstream, added_locally = _remove_values(updated, origin), _remove_values(local, origin)
    removed_upstream, removed_locally = _remove_values(origin, updated), _remove_values(origin, local)
    is_replaced_twice = (
        any(_contains(removed_locally, value) for value in removed_upstream) and added_upstream and added_locally
    )
    if is_replaced_twice and not is_equal_data(added_upstream, added_locally):
        return None
    return [*_remove_values(local, removed_upstream), *_remove_values(added_upstream, local)]


def _remove_values(values: list[Any], others: list[Any]) -> list[Any]:
    return [value for value in values if not _contains(others, value)]


def _contains(values: list[Any], value: Any) -> bool:
    return any(is_equal_data(other, value) for other in values)
