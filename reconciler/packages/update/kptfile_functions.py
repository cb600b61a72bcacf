"""Three-way merge of a pipeline's functions: nobody's edit is lost because somebody named a function (kpt.md D23)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconciler.krm.conflicts import ABSENT, Chosen, Conflict, ConflictKind
from reconciler.krm.merge3 import MergeRules, merge_data
from reconciler.krm.pointer import format_pointer
from reconciler.krm.shapes import UNKNOWN
from reconciler.krm.yaml.same import same
from reconciler.packages.update.kptfile_order import merged_order
from reconciler.packages.update.kptfile_pairing import Function, Numbered, is_of_a_variant, numbered
from reconciler.packages.update.kptfile_values import Outcome, Values, merge_selectors

_EXCLUSIVE = (("image", "exec"), ("configMap", "configPath"))
"""Fields of which a function has at most one (kpt.md 2)."""


def merge_functions(sides: Values, rules: MergeRules) -> Outcome:
    """Return one merged list of a pipeline, given as it stands in each Kptfile; ABSENT for no list.

    Functions meet as `pair_functions` tells. The order is the local one, new functions beside their upstream
    neighbours; functions that only local has, put there by a PackageVariant, come first.
    """
    if sides.undisputed:
        return sides.undisputed
    before, now, here = sides.each(_functions)
    merge = _ListMerge(*numbered(before, now, here), rules)
    functions, conflicts = merge.result()
    if merge.keeps_additions and before and not now:
        conflicts = (_conflict("field", sides, "local", "D5"), *conflicts)
    return (sides.local if same(functions, here) else functions or ABSENT), conflicts


@dataclass(frozen=True)
class _ListMerge:
    """The functions of the three sides, by number, each in its own order."""

    origin: Numbered
    updated: Numbered
    local: Numbered
    rules: MergeRules

    @property
    def keeps_additions(self) -> bool:
        """Whether functions stay that neither upstream nor a PackageVariant gave to local."""
        return any(self._is_addition(number) for number in self.local) and not self._loses_additions

    def result(self) -> tuple[list[Function], tuple[Conflict, ...]]:
        """Return the merged functions in order, and the conflicts with pointers from the list."""
        outcomes = {number: self._merged(number) for number in self.local | self.updated}
        kept = {number: function for number, (function, _) in outcomes.items() if function is not ABSENT}
        order, clash = merged_order(list(self.origin), list(self.updated), list(self.local), kept)
        order = sorted(order, key=lambda number: not self._is_own(number))
        conflicts = [self._order_conflict()] if clash else []
        for number, (_, found) in outcomes.items():
            conflicts += _placed(found, self._place(number, order))
        return [kept[number] for number in order], tuple(conflicts)

    def _merged(self, number: int) -> Outcome:
        if self._is_addition(number) and self._loses_additions:
            return ABSENT, ()
        return merge_function(Values(self.origin, self.updated, self.local).each(_get(number)), self.rules)

    @property
    def _loses_additions(self) -> bool:
        return bool(self.origin) and not self.updated and not self.rules.keeps_local_elements

    def _is_addition(self, number: int) -> bool:
        return self._is_only_local(number) and not is_of_a_variant(self.local[number])

    def _is_own(self, number: int) -> bool:
        """Tell whether the variant of this package put the function there; what upstream has too is content."""
        return self._is_only_local(number) and is_of_a_variant(self.local[number])

    def _is_only_local(self, number: int) -> bool:
        return number not in self.origin and number not in self.updated

    def _place(self, number: int, order: Sequence[int]) -> tuple[int, ...]:
        """Return where a conflict points to: into the result, else into the local list, else into upstream's."""
        lists: tuple[Sequence[int], ...] = (order, list(self.local), list(self.updated))
        return next((numbers.index(number),) for numbers in lists if number in numbers)

    def _order_conflict(self) -> Conflict:
        sides = Values(self.origin, self.updated, self.local)
        return _conflict("field", sides.each(lambda side: [_title(it) for it in side.values()]), "local", "D23")


def merge_function(sides: Values, rules: MergeRules) -> Outcome:
    """Return one function, ABSENT when it goes. Conflicts point into the function."""
    if sides.undisputed:
        return sides.undisputed
    if sides.updated is ABSENT and is_of_a_variant(sides.origin):
        # what a variant put there is the variant's (design 10.8)
        return ABSENT, (_conflict("element", sides, "upstream", "D23"),)
    if sides.updated is ABSENT and rules.keeps_edited_elements:
        return sides.local, (_conflict("element", sides, "local", "D3"),)
    if sides.local is ABSENT and rules.keeps_removals:
        return ABSENT, (_conflict("element", sides, "local", "D4"),)
    return _merged_fields(sides, rules)


def _merged_fields(sides: Values, rules: MergeRules) -> Outcome:
    fields = sides.each(lambda side: {} if side is ABSENT else side)
    conflicts: list[Conflict] = []
    for name in ("selectors", "exclude"):
        value, found = merge_selectors(fields.each(_get(name)), rules.winner, empty_means_all=name == "selectors")
        conflicts += _placed(found, (name,))
        fields = fields.each(_set(name, value))
    merged, other = merge_data(*fields, UNKNOWN, rules)
    exclusive = dict(_exclusive(fields, merged, rules.winner))
    merged = {name: value for name, value in merged.items() if name not in exclusive}
    if not merged.get("image") and not merged.get("exec"):
        return ABSENT, (*conflicts, *other, _conflict("element", sides, "upstream", "D23"))
    return merged, (*conflicts, *other, *exclusive.values())


def _exclusive(fields: Values, merged: Function, winner: Chosen) -> Iterator[tuple[str, Conflict]]:
    """Yield the fields that must go, because each side brought another one of two that exclude each other."""
    for pair in _EXCLUSIVE:
        if not _has_both(merged, pair) or _has_both(fields.updated, pair) or _has_both(fields.local, pair):
            continue
        by_upstream = next((name for name in pair if fields.updated.get(name) is not None), None)
        by_local = next((name for name in pair if fields.local.get(name) is not None), None)
        stays = (by_upstream or by_local) if winner == "upstream" else (by_local or by_upstream)
        goes = pair[1] if stays == pair[0] else pair[0]
        yield goes, _placed([_conflict("field", fields.each(_get(goes)), winner, "D23")], (goes,))[0]


def _has_both(function: Function, pair: tuple[str, str]) -> bool:
    return all(function.get(field) is not None for field in pair)


def _get(key: Any) -> Callable[[Mapping[Any, Any]], Any]:
    return lambda side: side.get(key, ABSENT)


def _set(name: str, value: Any) -> Callable[[Function], Function]:
    if value is not ABSENT:
        return lambda function: {**function, name: value}
    return lambda function: {field: kept for field, kept in function.items() if field != name}


def _functions(value: Any) -> list[Function]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def _conflict(kind: ConflictKind, sides: Values, chosen: Chosen, rule: str) -> Conflict:
    return Conflict(kind, "", sides.origin, sides.local, sides.updated, chosen, rule)


def _placed(conflicts: Sequence[Conflict], path: tuple[str | int, ...]) -> list[Conflict]:
    return [replace(conflict, pointer=format_pointer(path) + conflict.pointer) for conflict in conflicts]


def _title(function: Function) -> str:
    return str(function.get("name") or function.get("image") or function.get("exec") or "")
