"""Three-way merge of the function lists `mutators` and `validators` in the pipeline of a Kptfile.

If one function in a list has a name, kpt replaces the whole list, and overwrites local changes. This merge pairs the
functions of both sides and merges each pair, so that local changes are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, TypeAlias

from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3 import MergeRules, merge_data
from reconciler.krm.merge3.lists import interleave
from reconciler.krm.merge3.rules import ABSENT, ChosenSide, Conflict, ConflictKind
from reconciler.krm.schema.merge_schemas import UNKNOWN_SCHEMA
from reconciler.krm.yaml.compare import IndexPair, align_items, is_equal_data
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.functions.registry import split_image
from reconciler.packages.update.kptfile_values import MergeOutcome, SideValues, merge_selectors

FunctionEntry: TypeAlias = Mapping[str, Any]
NumberedFunctions: TypeAlias = dict[int, FunctionEntry]

# The names of functions that Porch adds for a PackageVariant: PackageVariant.<variant>.<function>.<index>, where
# <function> can be empty.
_VARIANT_FUNCTION_NAME = re.compile(r"PackageVariant\..+\.[^.]*\.[0-9]+")
# If the functions with the same image form more than this number of pairs, pair functions by order, without comparing
# their content.
_MAX_COMPARISONS = 10_000


def number_functions(
    origin: Sequence[FunctionEntry], updated: Sequence[FunctionEntry], local: Sequence[FunctionEntry]
) -> tuple[NumberedFunctions, NumberedFunctions, NumberedFunctions]:
    """Assign a number to each function. Entries of different lists for the same function get the same number.

    Returns:
        Three mappings from numbers to functions, one for each list. Each mapping has the order of its list.
    """
    free_numbers = count(len(origin))
    pairs = {side: pair_functions(origin, functions) for side, functions in (("updated", updated), ("local", local))}
    local_numbers = [
        pairs["local"][index] if index in pairs["local"] else next(free_numbers) for index in range(len(local))
    ]
    new_indices = [index for index in range(len(updated)) if index not in pairs["updated"]]
    local_indices = [index for index in range(len(local)) if index not in pairs["local"]]
    added_pairs = pair_functions([local[index] for index in local_indices], [updated[index] for index in new_indices])
    added_numbers = {
        index: local_numbers[local_indices[added_pairs[position]]] if position in added_pairs else next(free_numbers)
        for position, index in enumerate(new_indices)
    }
    updated_numbers = [
        pairs["updated"][index] if index in pairs["updated"] else added_numbers[index] for index in range(len(updated))
    ]
    return (
        dict(enumerate(origin)),
        dict(zip(updated_numbers, updated, strict=True)),
        dict(zip(local_numbers, local, strict=True)),
    )


def align_functions(before: Sequence[Any], after: Sequence[Any]) -> list[IndexPair]:
    """Return pairs of indices of corresponding elements in two lists.

    Functions are paired by `pair_functions`, and elements of any other list by `align_items`.
    """
    if not all(isinstance(entry, Mapping) and ("image" in entry or "exec" in entry) for entry in (*before, *after)):
        return align_items(before, after)
    pairs = pair_functions(before, after)
    return [(pairs.get(index), index) for index in range(len(after))]


def pair_functions(before: Sequence[FunctionEntry], after: Sequence[FunctionEntry]) -> dict[int, int]:
    """Pair the functions of two pipelines. The result maps indices in `after` to indices in `before`.

    Functions without a counterpart are omitted. Rules:

    - Functions with the same name are paired. If a name occurs several times, its first function is paired by name.
    - Other functions are paired if they have the same image or command. The registry, tag and digest are not compared.
    - If several functions have the same image or command, the functions with the most similar content are paired first.
    - Functions with two different names are never paired. A function with a name can be paired with a function without
      a name.
    - Functions that a PackageVariant added are paired by name only.
    """
    old_names, new_names = _index_names(before), _index_names(after)
    pairs = {index: old_names[name] for name, index in new_names.items() if name in old_names}
    paired_indices = set(pairs.values())
    old_candidates, new_candidates = _group_by_base(before, paired_indices), _group_by_base(after, pairs)
    for base, candidates in new_candidates.items():
        pairs |= _pair_most_similar(before, after, old_candidates.get(base, []), candidates)
    return pairs


def is_variant_function(function: FunctionEntry) -> bool:
    """Return whether a PackageVariant added the function to the pipeline, according to its name."""
    return _VARIANT_FUNCTION_NAME.fullmatch(_get_text(function.get("name"))) is not None


def get_function_base(function: FunctionEntry) -> tuple[str, str]:
    """Return the type and base name of a function, e.g. ("image", "set-labels") or ("exec", "/usr/bin/set-size").

    The base name is the last path segment of the image without tag and digest, or the first word of the command.
    """
    if image := _get_text(function.get("image")):
        return "image", split_image(image)[0]
    command = _get_text(function.get("exec")).split(maxsplit=1)
    return "exec", command[0] if command else ""


def _index_names(functions: Sequence[FunctionEntry]) -> dict[str, int]:
    names: dict[str, int] = {}
    for index, function in enumerate(functions):
        if name := _get_text(function.get("name")):
            names.setdefault(name, index)
    return names


def _group_by_base(functions: Sequence[FunctionEntry], excluded: Container[int]) -> dict[tuple[str, str], list[int]]:
    groups: dict[tuple[str, str], list[int]] = {}
    for index, function in enumerate(functions):
        if index not in excluded and not is_variant_function(function):
            groups.setdefault(get_function_base(function), []).append(index)
    return groups


def _pair_most_similar(
    before: Sequence[FunctionEntry], after: Sequence[FunctionEntry], old_indices: list[int], new_indices: list[int]
) -> dict[int, int]:
    if len(old_indices) * len(new_indices) > _MAX_COMPARISONS:
        candidates = [(new_index, old_index) for old_index, new_index in zip(old_indices, new_indices, strict=False)]
        return {
            new_index: old_index
            for new_index, old_index in candidates
            if _can_be_paired(before[old_index], after[new_index])
        }
    old_features, new_features = (
        {old_index: _list_features(before[old_index]) for old_index in old_indices},
        {new_index: _list_features(after[new_index]) for new_index in new_indices},
    )
    ranked = sorted(
        (
            -_compute_similarity(old_features[old_index], new_features[new_index]),
            abs(old_position - new_position),
            old_index,
            new_index,
        )
        for old_position, old_index in enumerate(old_indices)
        for new_position, new_index in enumerate(new_indices)
        if _can_be_paired(before[old_index], after[new_index])
    )
    pairs: dict[int, int] = {}
    for _, _, old_index, new_index in ranked:
        if new_index not in pairs and old_index not in pairs.values():
            pairs[new_index] = old_index
    return pairs


def _can_be_paired(old: FunctionEntry, new: FunctionEntry) -> bool:
    names = _get_text(old.get("name")), _get_text(new.get("name"))
    return "" in names or names[0] == names[1]


def _list_features(function: FunctionEntry) -> frozenset[tuple[str, ...]]:
    """Return each field of a function, and each key and value of its mappings, as a set to compare functions."""
    features: set[tuple[str, ...]] = set()
    for field, value in function.items():
        entries = value.items() if isinstance(value, Mapping) else [("", value)]
        for key, entry in entries:
            features |= {(field, str(key)), (field, str(key), repr(entry))}
    return frozenset(features)


def _compute_similarity(old: frozenset[tuple[str, ...]], new: frozenset[tuple[str, ...]]) -> float:
    return len(old & new) / (len(old | new) or 1)


def _get_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def merge_function_order(
    origin: Sequence[int], updated: Sequence[int], local: Sequence[int], kept_numbers: Collection[int]
) -> tuple[list[int], bool]:
    """Merge the order of two function lists. Each number identifies a function.

    If only upstream changed the order, the result has the order of the upstream list. In any other case, it has the
    order of the local list. A function that is not in this list is inserted after the function that precedes it in the
    list of the other side.

    Returns:
        The ordered numbers in `kept_numbers`, and whether both sides changed the order differently.
    """
    moved_upstream, moved_locally = not _has_same_order(origin, updated), not _has_same_order(origin, local)
    base, other_order = (updated, local) if moved_upstream and not moved_locally else (local, updated)
    base_order = dict.fromkeys(number for number in base if number in kept_numbers)
    added_numbers = dict.fromkeys(
        number for number in other_order if number in kept_numbers and number not in base_order
    )
    return list(
        interleave(base_order, added_numbers, other_order)
    ), moved_upstream and moved_locally and not _has_same_order(updated, local)


def _has_same_order(first: Sequence[int], second: Sequence[int]) -> bool:
    """Return whether the numbers that occur in both lists have the same order in both lists."""
    in_first, in_second = set(first), set(second)
    return [number for number in first if number in in_second] == [number for number in second if number in in_first]


_EXCLUSIVE_FIELDS = (("image", "exec"), ("configMap", "configPath"))
"""Pairs of fields that exclude each other: a function can have only one field of a pair."""


def merge_functions(sides: SideValues, rules: MergeRules) -> MergeOutcome:
    """Merge one function list of a pipeline. The value is ABSENT if no function remains.

    `number_functions` determines which functions of the lists correspond. In the result, functions that only the
    PackageVariant of the local package added come first. `merge_function_order` orders the other functions.
    """
    if sides.one_sided_outcome:
        return sides.one_sided_outcome
    origin, updated, local = sides.map_sides(_list_functions)
    merge = _FunctionListMerge(*number_functions(origin, updated, local), rules)
    functions, conflicts = merge.build_result()
    if merge.keeps_additions and origin and not updated:
        conflicts = (_create_conflict("field", sides, "local", "D5"), *conflicts)
    return (sides.local if is_equal_data(functions, local) else functions or ABSENT), conflicts


@dataclass(frozen=True)
class _FunctionListMerge:
    """The merge of one function list.

    Each of the three sides maps a number to a function, in the order of its list. Equal numbers mean the same function.
    """

    origin: NumberedFunctions
    updated: NumberedFunctions
    local: NumberedFunctions
    rules: MergeRules

    @property
    def keeps_additions(self) -> bool:
        """Whether the merge keeps functions that a person added locally.

        Functions that a PackageVariant added do not count.
        """
        return any(self._is_addition(number) for number in self.local) and not self._loses_additions

    def build_result(self) -> tuple[list[FunctionEntry], tuple[Conflict, ...]]:
        """Return the merged functions in order, and the conflicts. Conflict pointers are relative to the list."""
        outcomes = {number: self._merge_one(number) for number in self.local | self.updated}
        kept_functions = {number: function for number, (function, _) in outcomes.items() if function is not ABSENT}
        order, has_order_conflict = merge_function_order(
            list(self.origin), list(self.updated), list(self.local), kept_functions
        )
        order = sorted(order, key=lambda number: not self._is_local_variant_function(number))
        conflicts = [self._order_conflict()] if has_order_conflict else []
        for number, (_, function_conflicts) in outcomes.items():
            conflicts += _add_pointer_prefix(function_conflicts, self._find_position(number, order))
        return [kept_functions[number] for number in order], tuple(conflicts)

    def _merge_one(self, number: int) -> MergeOutcome:
        if self._is_addition(number) and self._loses_additions:
            return ABSENT, ()
        return merge_function(
            SideValues(self.origin, self.updated, self.local).map_sides(_create_getter(number)), self.rules
        )

    @property
    def _loses_additions(self) -> bool:
        return bool(self.origin) and not self.updated and not self.rules.keeps_local_elements

    def _is_addition(self, number: int) -> bool:
        return self._is_only_local(number) and not is_variant_function(self.local[number])

    def _is_local_variant_function(self, number: int) -> bool:
        """Return whether the PackageVariant of the local package added the function.

        If the upstream package contains the function too, the function belongs to the upstream package.
        """
        return self._is_only_local(number) and is_variant_function(self.local[number])

    def _is_only_local(self, number: int) -> bool:
        return number not in self.origin and number not in self.updated

    def _find_position(self, number: int, order: Sequence[int]) -> tuple[int, ...]:
        """Return the index of a function for a conflict pointer, as a tuple with one element.

        The index is in the merged list. If the merged list does not contain the function, it is in the local or
        upstream list.
        """
        lists: tuple[Sequence[int], ...] = (order, list(self.local), list(self.updated))
        return next((numbers.index(number),) for numbers in lists if number in numbers)

    def _order_conflict(self) -> Conflict:
        sides = SideValues(self.origin, self.updated, self.local)
        return _create_conflict(
            "field", sides.map_sides(lambda side: [_describe_function(it) for it in side.values()]), "local", "D23"
        )


def merge_function(sides: SideValues, rules: MergeRules) -> MergeOutcome:
    """Merge one function of a pipeline. On a side that removed the function, the value is ABSENT.

    The pointers of conflicts are relative to the function.
    """
    if sides.one_sided_outcome:
        return sides.one_sided_outcome
    if sides.updated is ABSENT and is_variant_function(sides.origin):
        # Discard local changes of this function, because the PackageVariant that added the function also controls its
        # content.
        return ABSENT, (_create_conflict("element", sides, "upstream", "D23"),)
    if sides.updated is ABSENT and rules.keeps_edited_elements:
        return sides.local, (_create_conflict("element", sides, "local", "D3"),)
    if sides.local is ABSENT and rules.keeps_removals:
        return ABSENT, (_create_conflict("element", sides, "local", "D4"),)
    return _merge_fields(sides, rules)


def _merge_fields(sides: SideValues, rules: MergeRules) -> MergeOutcome:
    fields = sides.map_sides(lambda side: {} if side is ABSENT else side)
    conflicts: list[Conflict] = []
    for name in ("selectors", "exclude"):
        value, selector_conflicts = merge_selectors(
            fields.map_sides(_create_getter(name)), rules.winner, empty_means_all=name == "selectors"
        )
        conflicts += _add_pointer_prefix(selector_conflicts, (name,))
        fields = fields.map_sides(_create_setter(name, value))
    merged, field_conflicts = merge_data(*fields, UNKNOWN_SCHEMA, rules)
    removed = dict(_resolve_exclusive(fields, merged, rules.winner))
    merged = {name: value for name, value in merged.items() if name not in removed}
    if not merged.get("image") and not merged.get("exec"):
        return ABSENT, (*conflicts, *field_conflicts, _create_conflict("element", sides, "upstream", "D23"))
    return merged, (*conflicts, *field_conflicts, *removed.values())


def _resolve_exclusive(fields: SideValues, merged: FunctionEntry, winner: ChosenSide) -> Iterator[tuple[str, Conflict]]:
    """For each pair of exclusive fields such as `image` and `exec`, yield the field to remove and a conflict.

    Both fields of a pair can occur in the merged function if each side sets a different field of the pair.
    """
    for pair in _EXCLUSIVE_FIELDS:
        if not _has_both(merged, pair) or _has_both(fields.updated, pair) or _has_both(fields.local, pair):
            continue
        upstream_field = next((name for name in pair if fields.updated.get(name) is not None), None)
        local_field = next((name for name in pair if fields.local.get(name) is not None), None)
        kept_field = (upstream_field or local_field) if winner == "upstream" else (local_field or upstream_field)
        removed_field = pair[1] if kept_field == pair[0] else pair[0]
        yield (
            removed_field,
            _add_pointer_prefix(
                [_create_conflict("field", fields.map_sides(_create_getter(removed_field)), winner, "D23")],
                (removed_field,),
            )[0],
        )


def _has_both(function: FunctionEntry, pair: tuple[str, str]) -> bool:
    return all(function.get(field) is not None for field in pair)


def _create_getter(key: Any) -> Callable[[Mapping[Any, Any]], Any]:
    return lambda side: side.get(key, ABSENT)


def _create_setter(name: str, value: Any) -> Callable[[FunctionEntry], FunctionEntry]:
    if value is not ABSENT:
        return lambda function: {**function, name: value}
    return lambda function: {field: kept_value for field, kept_value in function.items() if field != name}


def _list_functions(value: Any) -> list[FunctionEntry]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def _create_conflict(kind: ConflictKind, sides: SideValues, chosen: ChosenSide, rule: str) -> Conflict:
    return Conflict(kind, "", sides.origin, sides.local, sides.updated, chosen, rule)


def _add_pointer_prefix(conflicts: Sequence[Conflict], path: tuple[str | int, ...]) -> list[Conflict]:
    return [replace(conflict, pointer=format_pointer(path) + conflict.pointer) for conflict in conflicts]


def _describe_function(function: FunctionEntry) -> str:
    return str(function.get("name") or function.get("image") or function.get("exec") or "")
