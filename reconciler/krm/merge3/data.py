"""Three-way merge of plain data. The result is one value and a list of conflicts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.lists import (
    ElementIdentity,
    ElementKeys,
    find_element_keys,
    format_scalar,
    interleave,
    is_equal_as_text,
    merge_keyed_list_like_kpt,
    merge_scalar_lists,
    order_like_local,
    order_like_upstream,
)
from reconciler.krm.merge3.rules import ABSENT, SAFE, ChosenSide, Conflict, ConflictKind, MergeError, MergeRules
from reconciler.krm.schema.merge_schemas import UNKNOWN_SCHEMA, MergeSchema
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass, replace


@dataclass(slots=True, eq=False)
class _Position:
    """Index of an element in the merged list. It is set after all elements of the list are merged."""

    index: int = 0

    def __str__(self) -> str:
        return str(self.index)


_Path: TypeAlias = tuple[str | _Position, ...]


def merge_data(
    origin: Any, updated: Any, local: Any, schema: MergeSchema = UNKNOWN_SCHEMA, rules: MergeRules = SAFE
) -> tuple[Any, tuple[Conflict, ...]]:
    """Merge the local value and the updated value, which are both based on the value `origin`.

    Each value can be ABSENT. The result can share parts with the inputs, so do not change the result in place.

    The JSON pointer of a conflict in a list element contains the index of the element in the merged list. If the merged
    list does not contain the element, the index in the local list is used, or else the index in the updated list.

    Returns:
        The merged value, or ABSENT if nothing remains, and the conflicts.

    Raises:
        MergeError: The sides have different types or merge keys, and `rules` reproduce the error that kpt reports.
    """
    merge = _FieldMerge(rules)
    data = merge.merge_value(local, origin, updated, schema, ())
    return data, merge.collect_conflicts()


class _FieldMerge:
    """Recursive merge of three values. The parameters have the same order as in kpt: `local`, `origin`, `updated`."""

    def __init__(self, rules: MergeRules) -> None:
        self.rules = rules
        self.conflicts: list[tuple[_Path, Conflict]] = []

    def collect_conflicts(self) -> tuple[Conflict, ...]:
        """Return the conflicts.

        Call this method after the merge, because the pointers contain indexes of the merged lists.
        """
        return tuple(replace(conflict, pointer=format_pointer(map(str, path))) for path, conflict in self.conflicts)

    def merge_value(self, local: Any, origin: Any, updated: Any, schema: MergeSchema, path: _Path) -> Any:
        """Return the merged value. Return ABSENT if nothing remains."""
        if self.rules.can_copy_a_side:
            if is_equal_data(origin, updated):
                return local
            if is_equal_data(local, origin):
                return updated
        sides = (local, origin, updated)
        if len(types := {_describe_type(side) for side in sides} - {"nothing"}) > 1:
            return self._merge_different_types(local, origin, updated, path)
        if types <= {"scalar"} or self._is_decided_by_null(local, origin, updated):
            return self._merge_atomic(local, origin, updated, path)
        if types == {"mapping"}:
            merged = self._merge_mapping(local, origin, updated, schema, path)
        else:
            merged = self._merge_list(local, origin, updated, schema, path)
        # Return null if upstream set the field to null and the local side has no other value. kpt removes the field.
        return None if merged is ABSENT and updated is None and self.rules.keeps_nulls else merged

    def _is_decided_by_null(self, local: Any, origin: Any, updated: Any) -> bool:
        """Return whether the value is replaced or removed as a whole, because one side is null.

        The fields or elements of the other sides are then not merged.
        """
        if not self.rules.keeps_nulls:
            return origin is not None and None in (local, updated)
        if updated is None:
            return not (_is_collection(local) and _is_collection(origin))
        return local is None or (local is ABSENT and origin is None)

    def _merge_different_types(self, local: Any, origin: Any, updated: Any, path: _Path) -> Any:
        if not self.rules.reports_type_conflicts:
            types = ", ".join(
                f"{side} {type_name}"
                for side, value in (("local", local), ("origin", origin), ("upstream", updated))
                if (type_name := _describe_type(value)) != "nothing"
            )
            pointer = format_pointer(map(str, path)) or "the document"
            raise MergeError(f"{pointer} must have the same type on all sides of the merge; types: {types}")
        return self._merge_atomic(local, origin, updated, path, "D7")

    def _merge_atomic(self, local: Any, origin: Any, updated: Any, path: _Path, rule: str = "D2") -> Any:
        """Merge values that are replaced as a whole, such as scalars, atomic lists and nulls."""
        if not self.rules.keeps_nulls:
            if self._is_decided_by_null(local, origin, updated):
                return self._merge_null(local, origin, updated, path)
            local, origin, updated = (ABSENT if side is None else side for side in (local, origin, updated))
        if self._is_equal(updated, origin) or self._is_equal(local, updated):
            return local
        if self._is_equal(local, origin):
            return updated
        self._report_conflict("field", path, (local, origin, updated), self.rules.winner, rule)
        return updated if self.rules.winner == "upstream" else local

    def _merge_null(self, local: Any, origin: Any, updated: Any, path: _Path) -> Any:
        """Remove a field that one side set to null, as in kpt. Report a conflict if the values of all sides differ."""
        if not any(map(self._is_equal, (local, origin, updated), (origin, updated, local))):
            chosen: ChosenSide = "upstream" if updated is None else "local"
            self._report_conflict("field", path, (local, origin, updated), chosen, "D2")
        return ABSENT

    def _is_equal(self, left: Any, right: Any) -> bool:
        return is_equal_data(left, right) if self.rules.compares_types else is_equal_as_text(left, right)

    def _report_conflict(
        self, kind: ConflictKind, path: _Path, sides: tuple[Any, Any, Any], chosen: ChosenSide, rule: str
    ) -> None:
        local, origin, updated = sides
        self.conflicts.append((path, Conflict(kind, "", origin, local, updated, chosen, rule)))

    def _merge_mapping(self, local: Any, origin: Any, updated: Any, schema: MergeSchema, path: _Path) -> Any:
        ours, base, theirs = _get_mapping(local), _get_mapping(origin), _get_mapping(updated)

        def merge_fields(names: Iterable[str]) -> dict[str, Any]:
            merged = {
                name: self.merge_value(
                    ours.get(name, ABSENT), base.get(name, ABSENT), theirs.get(name, ABSENT),
                    schema.find_field(name), (*path, name),
                )
                for name in names
            }  # fmt: skip
            return {name: value for name, value in merged.items() if not self._is_absent(value)}

        existing = merge_fields(ours)
        new_names = [name for name in theirs if name not in ours]
        if self.rules.keeps_upstream_order:
            result = interleave(existing, merge_fields(new_names), theirs)
        else:
            result = existing | merge_fields(sorted(new_names))
        return ABSENT if not result and self._is_removed(local, origin, updated) else result

    def _is_absent(self, value: Any) -> bool:
        return value is ABSENT or (value is None and not self.rules.keeps_nulls)

    def _is_removed(self, local: Any, origin: Any, updated: Any) -> bool:
        """Return whether an empty merged mapping or list is removed. Otherwise it is kept as an empty value."""
        if _is_absent_or_null(local) and _is_absent_or_null(updated):
            return True
        return (
            self.rules.removes_emptied_collections
            and not _is_absent_or_null(origin)
            and (_is_absent_or_null(local) or _is_absent_or_null(updated))
        )

    def _merge_list(self, local: Any, origin: Any, updated: Any, schema: MergeSchema, path: _Path) -> Any:
        sides = (local, origin, updated)
        keys = find_element_keys(sides, schema, self.rules, path)
        if keys is None:
            items = merge_scalar_lists(local, origin, updated) if self.rules.merges_scalar_lists else None
            return self._merge_atomic(local, origin, updated, path) if items is None else items
        if self.rules.strict_keys and not all(keys.identifies_all(_list_or_empty(side)) for side in sides):
            return self._merge_atomic(local, origin, updated, path, "D6")
        if _is_absent_or_null(updated) and not _is_absent_or_null(origin):
            if not self.rules.keeps_local_elements:
                return ABSENT
            if not keys.index_by_identity(_list_or_empty(local)).keys() <= keys.index_by_identity(origin).keys():
                self._report_conflict("field", path, sides, "local", "D5")
        result = self._merge_elements(
            _list_or_empty(local), _list_or_empty(origin), _list_or_empty(updated), keys, schema, path
        )
        return ABSENT if not result and self._is_removed(local, origin, updated) else result

    def _merge_elements(
        self,
        local: list[Any],
        origin: list[Any],
        updated: list[Any],
        keys: ElementKeys,
        schema: MergeSchema,
        path: _Path,
    ) -> list[Any]:
        if keys.fields and not self.rules.strict_keys:
            return self._merge_elements_like_kpt(local, origin, updated, keys, schema, path)
        ours, base, theirs = map(keys.index_by_identity, (local, origin, updated))
        positions = _find_positions(local, updated, keys)
        merged: dict[ElementIdentity, Any] = {}
        for identity in ours | base | theirs:
            element_path = (*path, positions.setdefault(identity, _Position()))
            local_element, origin_element, updated_element = (
                side.get(identity, ABSENT) for side in (ours, base, theirs)
            )
            value = self._merge_element(
                local_element, origin_element, updated_element, keys, schema.element_schema, element_path
            )
            if value is not ABSENT:
                merged[identity] = value
        identities = [keys.get_identity(element) for element in local]
        order: list[ElementIdentity | None] = [*order_like_local(merged, identities)]
        if self.rules.keeps_upstream_order and identities == list(base):
            order = [*order_like_upstream(merged, base, theirs)]
        for index, ordered in reversed(list(enumerate(order))):
            if ordered is not None:
                positions[ordered].index = index
        unidentified = (element for element, identity in zip(local, identities, strict=True) if identity is None)
        return [next(unidentified) if identity is None else merged[identity] for identity in order]

    def _merge_elements_like_kpt(
        self,
        local: list[Any],
        origin: list[Any],
        updated: list[Any],
        keys: ElementKeys,
        schema: MergeSchema,
        path: _Path,
    ) -> list[Any]:
        positions: list[tuple[Any, _Position]] = []

        def merge(ours: Any, base: Any, theirs: Any) -> Any:
            index = _find_index(local, ours) if ours is not ABSENT else _find_index(updated, theirs)
            # Reuse the position of a local element that was merged before. If the merge keys are not unique, one local
            # element is merged several times, with different elements of the other sides.
            known = (position for value, position in positions if value is ours and ours is not ABSENT)
            position = next(known, _Position(index))
            value = self._merge_element(ours, base, theirs, keys, schema.element_schema, (*path, position))
            positions.append((value, position))
            return value

        result = merge_keyed_list_like_kpt(local, origin, updated, keys.fields, merge)
        for value, position in positions:
            position.index = _find_index(result, value, position.index)
        return result

    def _merge_element(
        self, local: Any, origin: Any, updated: Any, keys: ElementKeys, schema: MergeSchema, path: _Path
    ) -> Any:
        sides = (local, origin, updated)
        if origin is not ABSENT and self.rules.keeps_edited_elements and updated is ABSENT and local is not ABSENT:
            if is_equal_data(local, origin):
                return ABSENT
            self._report_conflict("element", path, sides, "local", "D3")
            return local
        if origin is not ABSENT and self.rules.keeps_removals and local is ABSENT:
            if updated is not ABSENT and not is_equal_data(updated, origin):
                self._report_conflict("element", path, sides, "local", "D4")
            return ABSENT
        merged = self.merge_value(local, origin, updated, schema, path)
        if self._is_absent(merged) or merged == {}:
            return ABSENT
        is_partial = local is ABSENT or updated is ABSENT or not self.rules.strict_keys
        if not is_partial or not keys.fields:
            return merged
        missing_keys = self._read_missing_keys(merged, sides, keys)
        return merged | missing_keys if missing_keys else merged

    def _read_missing_keys(self, merged: Any, sides: Iterable[Any], keys: ElementKeys) -> dict[str, Any]:
        """Return the key fields that are missing in a merged element. The values come from the elements in `sides`.

        The caller adds these fields to the merged element, because an element without its key fields is invalid. With
        the rules of kpt, the values are strings, e.g. `port: "80"`.
        """
        missing = [name for name in keys.fields if name not in merged]
        values = {name: side[name] for name in missing for side in sides if side is not ABSENT and name in side}
        return {
            name: value if self.rules.strict_keys else format_scalar(value)
            for name, value in values.items()
            if value is not None
        }


def _find_index(elements: list[Any], element: Any, missing: int = 0) -> int:
    return next((index for index, other in enumerate(elements) if other is element), missing)


def _find_positions(local: list[Any], updated: list[Any], keys: ElementKeys) -> dict[ElementIdentity, _Position]:
    """Return the index of each element in the local list, or in the updated list if the local list lacks it."""
    positions: dict[ElementIdentity, _Position] = {}
    for side in (local, updated):
        for index, element in enumerate(side):
            identity = keys.get_identity(element)
            if identity is not None:
                positions.setdefault(identity, _Position(index))
    return positions


def _describe_type(value: Any) -> Literal["mapping", "list", "scalar", "nothing"]:
    if isinstance(value, dict):
        return "mapping"
    if isinstance(value, list):
        return "list"
    return "nothing" if _is_absent_or_null(value) else "scalar"


def _is_absent_or_null(value: Any) -> bool:
    return value is ABSENT or value is None


def _is_collection(value: Any) -> bool:
    return isinstance(value, dict | list)


def _get_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list_or_empty(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
