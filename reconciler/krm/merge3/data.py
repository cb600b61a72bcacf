"""The field merge of plain data: three values in, one value and the conflicts out (kpt.md 7)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from reconciler.krm.conflicts import ABSENT, Chosen, Conflict, ConflictKind
from reconciler.krm.merge3.items import merge_items
from reconciler.krm.merge3.kpt_lists import merge_keyed_list
from reconciler.krm.merge3.lists import Identity, Keys, find_keys, same_text
from reconciler.krm.merge3.order import local_order, upstream_order, woven
from reconciler.krm.merge3.rules import SAFE, MergeError, MergeRules
from reconciler.krm.pointer import format_pointer
from reconciler.krm.shapes import UNKNOWN, Shape
from reconciler.krm.yaml.same import same


@dataclass(slots=True, eq=False)
class _Position:
    """Where an element stands in the merged list, which is known only when all of them are merged."""

    index: int = 0

    def __str__(self) -> str:
        return str(self.index)


_Path: TypeAlias = tuple[str | _Position, ...]


def merge_data(
    origin: Any, updated: Any, local: Any, shape: Shape = UNKNOWN, rules: MergeRules = SAFE
) -> tuple[Any, tuple[Conflict, ...]]:
    """Return (merged data, ABSENT when nothing remains; conflicts), for three values any of which may be ABSENT.

    What stands on one side only is shared with it. Pointers name an element by its place in the merged list or, if it
    is gone, in the local one, or else in upstream's. Raises MergeError under rules like kpt's (kpt.md 7.1, 7.4).
    """
    merge = _FieldMerge(rules)
    data = merge.value(local, origin, updated, shape, ())
    return data, merge.found()


class _FieldMerge:
    """One walk over three values side by side; `local`, `origin`, `updated` in kpt's order throughout."""

    def __init__(self, rules: MergeRules) -> None:
        self.rules = rules
        self.conflicts: list[tuple[_Path, Conflict]] = []

    def found(self) -> tuple[Conflict, ...]:
        """Return the conflicts, now that every position is known."""
        return tuple(replace(conflict, pointer=format_pointer(map(str, path))) for path, conflict in self.conflicts)

    def value(self, local: Any, origin: Any, updated: Any, shape: Shape, path: _Path) -> Any:
        """Return the merged value, ABSENT when there is none."""
        if self.rules.takes_sides:
            if same(origin, updated):
                return local
            if same(local, origin):
                return updated
        sides = (local, origin, updated)
        if len(kinds := {_kind(side) for side in sides} - {"nothing"}) > 1:
            return self._clash(local, origin, updated, path)
        if kinds <= {"scalar"} or self._is_about_null(local, origin, updated):
            return self._single(local, origin, updated, path)
        if kinds == {"mapping"}:
            merged = self._mapping(local, origin, updated, shape, path)
        else:
            merged = self._list(local, origin, updated, shape, path)
        # D9: upstream made it null, and nothing local stands against that
        return None if merged is ABSENT and updated is None and self.rules.keeps_nulls else merged

    def _is_about_null(self, local: Any, origin: Any, updated: Any) -> bool:
        """Tell whether a null decides, rather than what a collection holds."""
        if not self.rules.keeps_nulls:
            return origin is not None and None in (local, updated)
        if updated is None:
            return not (_is_collection(local) and _is_collection(origin))
        return local is None or (local is ABSENT and origin is None)

    def _clash(self, local: Any, origin: Any, updated: Any, path: _Path) -> Any:
        if not self.rules.settles_clashes:
            kinds = ", ".join(
                f"{side} a {kind}"
                for side, value in (("local", local), ("origin", origin), ("upstream", updated))
                if (kind := _kind(value)) != "nothing"
            )
            place = format_pointer(map(str, path)) or "the document"
            raise MergeError(f"{place} must be of one kind on all sides: {kinds}")
        return self._single(local, origin, updated, path, "D7")

    # values that are taken whole

    def _single(self, local: Any, origin: Any, updated: Any, path: _Path, rule: str = "D2") -> Any:
        """Merge values that have no parts: scalars, atomic lists, nulls (kpt.md 7.3)."""
        if not self.rules.keeps_nulls:
            if self._is_about_null(local, origin, updated):
                return self._cleared(local, origin, updated, path)
            local, origin, updated = (ABSENT if side is None else side for side in (local, origin, updated))
        if self._equal(updated, origin) or self._equal(local, updated):
            return local
        if self._equal(local, origin):
            return updated
        self._report("field", path, (local, origin, updated), self.rules.winner, rule)
        return updated if self.rules.winner == "upstream" else local

    def _cleared(self, local: Any, origin: Any, updated: Any, path: _Path) -> Any:
        """Remove what one side made null, whatever the other side made of it (kpt.md 8.10)."""
        if not any(map(self._equal, (local, origin, updated), (origin, updated, local))):
            chosen: Chosen = "upstream" if updated is None else "local"
            self._report("field", path, (local, origin, updated), chosen, "D2")
        return ABSENT

    def _equal(self, left: Any, right: Any) -> bool:
        return same(left, right) if self.rules.compares_types else same_text(left, right)

    def _report(self, kind: ConflictKind, path: _Path, sides: tuple[Any, Any, Any], chosen: Chosen, rule: str) -> None:
        local, origin, updated = sides
        self.conflicts.append((path, Conflict(kind, "", origin, local, updated, chosen, rule)))

    # mappings

    def _mapping(self, local: Any, origin: Any, updated: Any, shape: Shape, path: _Path) -> Any:
        ours, base, theirs = _entries(local), _entries(origin), _entries(updated)

        def merged(names: Iterable[str]) -> dict[str, Any]:
            found = {
                name: self.value(
                    ours.get(name, ABSENT), base.get(name, ABSENT), theirs.get(name, ABSENT),
                    shape.child(name), (*path, name),
                )
                for name in names
            }  # fmt: skip
            return {name: value for name, value in found.items() if not self._is_gone(value)}

        kept = merged(ours)
        new = [name for name in theirs if name not in ours]
        result = woven(kept, merged(new), theirs) if self.rules.keeps_order else kept | merged(sorted(new))
        return ABSENT if not result and self._is_dropped(local, origin, updated) else result

    def _is_gone(self, value: Any) -> bool:
        return value is ABSENT or (value is None and not self.rules.keeps_nulls)

    def _is_dropped(self, local: Any, origin: Any, updated: Any) -> bool:
        """Tell whether a collection of which nothing is left goes with its contents (D1)."""
        if _is_nothing(local) and _is_nothing(updated):
            return True
        return self.rules.drops_emptied and not _is_nothing(origin) and (_is_nothing(local) or _is_nothing(updated))

    # lists

    def _list(self, local: Any, origin: Any, updated: Any, shape: Shape, path: _Path) -> Any:
        sides = (local, origin, updated)
        keys = find_keys(sides, shape, self.rules, path)
        if keys is None:
            items = merge_items(local, origin, updated) if self.rules.weaves_items else None
            return self._single(local, origin, updated, path) if items is None else items
        if self.rules.strict_keys and not all(keys.tell_apart(_items(side)) for side in sides):
            return self._single(local, origin, updated, path, "D6")
        if _is_nothing(updated) and not _is_nothing(origin):
            if not self.rules.keeps_local_elements:
                return ABSENT
            if not keys.by_identity(_items(local)).keys() <= keys.by_identity(origin).keys():
                self._report("field", path, sides, "local", "D5")
        result = self._elements(_items(local), _items(origin), _items(updated), keys, shape, path)
        return ABSENT if not result and self._is_dropped(local, origin, updated) else result

    def _elements(
        self, local: list[Any], origin: list[Any], updated: list[Any], keys: Keys, shape: Shape, path: _Path
    ) -> list[Any]:
        if keys.fields and not self.rules.strict_keys:
            return self._elements_as_kpt(local, origin, updated, keys, shape, path)
        ours, base, theirs = keys.by_identity(local), keys.by_identity(origin), keys.by_identity(updated)
        positions = _positions(local, updated, keys)
        merged: dict[Identity, Any] = {}
        for identity in ours | base | theirs:
            here = (*path, positions.setdefault(identity, _Position()))
            one, two, three = (side.get(identity, ABSENT) for side in (ours, base, theirs))
            value = self._element(one, two, three, keys, shape.element, here)
            if value is not ABSENT:
                merged[identity] = value
        names = [keys.identity(element) for element in local]
        order: list[Identity | None] = [*local_order(merged, names)]
        if self.rules.keeps_order and names == list(base):
            order = [*upstream_order(merged, base, theirs)]
        for index, place in reversed(list(enumerate(order))):
            if place is not None:
                positions[place].index = index
        nameless = (element for element, name in zip(local, names, strict=True) if name is None)
        return [next(nameless) if identity is None else merged[identity] for identity in order]

    def _elements_as_kpt(
        self, local: list[Any], origin: list[Any], updated: list[Any], keys: Keys, shape: Shape, path: _Path
    ) -> list[Any]:
        placed: list[tuple[Any, _Position]] = []

        def merge(one: Any, two: Any, three: Any) -> Any:
            position = _Position(_index(local, one) if one is not ABSENT else _index(updated, three))
            value = self._element(one, two, three, keys, shape.element, (*path, position))
            placed.append((value, position))
            return value

        result = merge_keyed_list(local, origin, updated, keys.fields, merge)
        for value, position in placed:
            position.index = _index(result, value, position.index)
        return result

    def _element(self, local: Any, origin: Any, updated: Any, keys: Keys, shape: Shape, path: _Path) -> Any:
        sides = (local, origin, updated)
        if origin is not ABSENT and self.rules.keeps_edited_elements and updated is ABSENT and local is not ABSENT:
            if same(local, origin):
                return ABSENT
            self._report("element", path, sides, "local", "D3")
            return local
        if origin is not ABSENT and self.rules.keeps_removals and local is ABSENT:
            if updated is not ABSENT and not same(updated, origin):
                self._report("element", path, sides, "local", "D4")
            return ABSENT
        merged = self.value(local, origin, updated, shape, path)
        if self._is_gone(merged) or merged == {}:
            return ABSENT
        is_partial = local is ABSENT or updated is ABSENT or not self.rules.strict_keys
        return _with_keys(merged, sides, keys) if is_partial and keys.fields else merged


def _index(elements: list[Any], element: Any, missing: int = 0) -> int:
    return next((index for index, other in enumerate(elements) if other is element), missing)


def _with_keys(merged: Any, sides: Iterable[Any], keys: Keys) -> Any:
    """Return the element with its key fields, which no side can take away from it."""
    missing = [name for name in keys.fields if name not in merged]
    values = {name: side[name] for name in missing for side in sides if side is not ABSENT and name in side}
    return merged | {name: value for name, value in values.items() if value is not None} if values else merged


def _positions(local: list[Any], updated: list[Any], keys: Keys) -> dict[Identity, _Position]:
    """Return where elements stand in the local list or else in upstream's, for those that are gone from the merged."""
    positions: dict[Identity, _Position] = {}
    for side in (local, updated):
        for index, element in enumerate(side):
            identity = keys.identity(element)
            if identity is not None:
                positions.setdefault(identity, _Position(index))
    return positions


def _kind(value: Any) -> Literal["mapping", "list", "scalar", "nothing"]:
    if isinstance(value, dict):
        return "mapping"
    if isinstance(value, list):
        return "list"
    return "nothing" if _is_nothing(value) else "scalar"


def _is_nothing(value: Any) -> bool:
    return value is ABSENT or value is None


def _is_collection(value: Any) -> bool:
    return isinstance(value, dict | list)


def _entries(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
