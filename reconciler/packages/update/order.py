"""Order: in which order the documents of a file stand after a merge (kpt.md 6.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from reconciler.packages.update.matching import Entry, Group


def in_order(groups: Sequence[Group], path: str) -> list[Group]:
    """Return the resources of a file in their order: the local one, or upstream's where upstream changed it.

    What is new from upstream follows its predecessor there.
    """
    local, updated = _standing(groups, path, "local"), _standing(groups, path, "updated")
    ordered = _reordered(local, updated, _standing(groups, path, "origin"))
    return _with_new(ordered, updated, {id(group) for group in ordered})


def in_index_order(groups: Sequence[Group]) -> list[Group]:
    """Return the resources of a file by their number in it, each merged like a field, as upstream's tool does."""
    return sorted(groups, key=_merged_index)


def _standing(groups: Sequence[Group], path: str, side: Literal["origin", "updated", "local"]) -> list[Group]:
    found: list[tuple[int, Group]] = []
    for group in groups:
        entry: Entry | None = getattr(group, side)
        if entry and entry.path == path:
            found.append((entry.index, group))
    return [group for _, group in sorted(found, key=lambda pair: pair[0])]


def _reordered(local: list[Group], updated: list[Group], origin: list[Group]) -> list[Group]:
    """Return the local order, with what all sides have in upstream's order if that is not the old one."""
    on_all = {id(group) for group in local} & {id(group) for group in updated} & {id(group) for group in origin}
    new_order = [group for group in updated if id(group) in on_all]
    if new_order == [group for group in origin if id(group) in on_all]:
        return list(local)
    following = iter(new_order)
    return [next(following) if id(group) in on_all else group for group in local]


def _with_new(ordered: list[Group], updated: list[Group], placed: set[int]) -> list[Group]:
    """Return the order with upstream's new resources behind the one before them, or before the one behind them."""
    waiting: list[Group] = []
    after: Group | None = None
    for group in updated:
        if id(group) in placed:
            if waiting:
                position = _position(ordered, group)
                ordered[position:position] = waiting
                waiting = []
            after = group
        elif after is None:
            waiting.append(group)
        else:
            ordered.insert(_position(ordered, after) + 1, group)
            after = group
    return ordered + waiting


def _position(ordered: Sequence[Group], group: Group) -> int:
    return next(index for index, other in enumerate(ordered) if other is group)


def _merged_index(group: Group) -> int:
    origin, updated, local = group.origin, group.updated, group.local
    if updated and (not origin or not local or updated.index != origin.index):
        return updated.index
    return local.index if local else 0
