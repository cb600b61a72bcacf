"""Three-way merge of a Kptfile. The result is an edit of the local Kptfile, so that its comments are kept.

`merge_kptfile_structs` reproduces the merge of kpt. kpt converts the Kptfiles to Go structs before the merge, and
derives the merge keys of a list from the fields of its elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3 import MergeRules, merge_data
from reconciler.krm.merge3.rules import ABSENT, Conflict
from reconciler.krm.merge3.text import write_merged_document
from reconciler.krm.schema.merge_schemas import ATOMIC_SCHEMA, UNKNOWN_SCHEMA, MergeSchema
from reconciler.packages.kptfile import Kptfile, order_sections
from reconciler.packages.update.kptfile_functions import align_functions, merge_functions
from reconciler.packages.update.kptfile_values import MergeOutcome, SideValues, choose_side
from reconciler.packages.update.options import MergeOptions

StructData = Mapping[str, Any]

_SECTIONS = ("info", "pipeline", "inventory", "status")
_STRING_MAPS = ("labels", "annotations", "configMap")
_FUNCTION_LISTS = ("mutators", "validators")
_GENERATED_NAME_PREFIX = "_kpt-merge_"


def merge_kptfile_structs(sides: SideValues, rules: MergeRules) -> tuple[StructData, tuple[Conflict, ...]]:
    """Merge labels, annotations, info, pipeline, inventory and status as kpt does. Keep all other local fields.

    Raises:
        MergeError: The elements of a list have a merge key such as `name` on one side, and none on another side.
    """
    parts = sides.map_sides(_select_merged_parts)
    if _can_generate_names(parts):
        parts = parts.map_sides(partial(_map_functions, change=_add_generated_name))
    merged_parts, conflicts = merge_data(*parts, UNKNOWN_SCHEMA, replace(rules, requires_names=True))
    result = {} if merged_parts is ABSENT else _map_functions(merged_parts, change=_encode_function)
    return _apply_parts(sides.local, result), conflicts


def _select_merged_parts(data: StructData) -> dict[str, Any]:
    """Return the parts of a Kptfile that kpt merges. As in the Go structs of kpt, empty fields are omitted."""
    metadata = data.get("metadata") or {}
    parts: dict[str, Any] = {
        name: _decode_struct(data[name]) for name in _SECTIONS if isinstance(data.get(name), Mapping)
    }
    return parts | {"metadata": _decode_struct({name: metadata.get(name) for name in ("labels", "annotations")})}


def _decode_struct(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode_struct(entry) for entry in value]
    if not isinstance(value, Mapping):
        return value
    fields = {
        key: _decode_string_map(entry) if key in _STRING_MAPS else _decode_struct(entry) for key, entry in value.items()
    }
    return {key: entry for key, entry in fields.items() if entry not in (None, "", [], {})}


def _decode_string_map(value: Any) -> Any:
    """Return a map of strings as kpt decodes it: null becomes "", and numbers and booleans become strings."""
    if not isinstance(value, Mapping):
        return value
    return {key: _decode_string(entry) for key, entry in value.items()}


def _decode_string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _can_generate_names(sides: SideValues) -> bool:
    """Return whether kpt generates names for the functions of these pipelines.

    kpt does so if no function has a name, and the generated names are unique in each list.
    """
    for functions in (functions for side in sides for functions in _iterate_function_lists(side)):
        names = [_generate_name(function) for function in functions]
        if any("name" in function for function in functions) or len(set(names)) < len(names):
            return False
    return True


def _iterate_function_lists(side: StructData) -> Iterator[list[dict[str, Any]]]:
    pipeline = side.get("pipeline") or {}
    yield from (pipeline[name] for name in _FUNCTION_LISTS if name in pipeline)


def _generate_name(function: StructData) -> str:
    return _GENERATED_NAME_PREFIX + str(function.get("exec") or str(function.get("image", "")).split(":")[0])


def _map_functions(side: StructData, change: Callable[[StructData], StructData]) -> StructData:
    """Return Kptfile data with `change` applied to each function of the pipeline. Empty lists are removed."""
    if "pipeline" not in side:
        return side
    pipeline = side["pipeline"]
    lists = {name: [change(function) for function in pipeline[name]] for name in _FUNCTION_LISTS if pipeline.get(name)}
    return {
        **side,
        "pipeline": {**{key: value for key, value in pipeline.items() if key not in _FUNCTION_LISTS}, **lists},
    }


def _add_generated_name(function: StructData) -> StructData:
    return {**function, "name": _generate_name(function)}


def _remove_generated_name(function: StructData) -> StructData:
    if not str(function.get("name", "")).startswith(_GENERATED_NAME_PREFIX):
        return function
    return {key: value for key, value in function.items() if key != "name"}


def _encode_function(function: StructData) -> StructData:
    return dict(_decode_struct(_remove_generated_name(function)))


def _apply_parts(local: StructData, merged: StructData) -> dict[str, Any]:
    """Replace the parts of the local Kptfile that kpt merges by the parts in `merged`, and return the result."""
    sections = {name: merged[name] for name in _SECTIONS if name in merged}
    other_fields = {key: value for key, value in local.items() if key not in _SECTIONS or key in sections}
    metadata = local.get("metadata") or {}
    other_metadata = {key: value for key, value in metadata.items() if key not in ("labels", "annotations")}
    merged_maps = {key: value for key, value in (merged.get("metadata") or {}).items() if value}
    metadata_field = (
        {"metadata": {**other_metadata, **merged_maps}} if other_metadata or merged_maps or metadata else {}
    )
    return {**other_fields, **sections, **metadata_field}


Data = Mapping[str, Any]
Path = tuple[str, ...]

KPTFILE_SCHEMA = MergeSchema(
    {
        "info": MergeSchema(
            {
                "emails": MergeSchema(items=ATOMIC_SCHEMA, keys=()),
                "keywords": MergeSchema(items=ATOMIC_SCHEMA, keys=()),
                "readinessGates": MergeSchema(items=UNKNOWN_SCHEMA, keys=("conditionType",)),
            }
        ),
        "pipeline": MergeSchema({"mutators": ATOMIC_SCHEMA, "validators": ATOMIC_SCHEMA}),
        "status": MergeSchema({"conditions": MergeSchema(items=UNKNOWN_SCHEMA, keys=("type",))}),
    }
)
"""The merge keys of the lists in a Kptfile. The lists of its pipeline are merged by `merge_functions`."""

_IDENTITY: tuple[Path, ...] = (("apiVersion",), ("kind",))
_PACKAGE: tuple[Path, ...] = (("metadata", "name"), ("metadata", "namespace"))
_UPSTREAM: tuple[Path, ...] = (("upstream",), ("upstreamLock",))
# Take each of these fields completely from one side, because a combination of two sides would be inconsistent.
_ONE_SIDED_FIELDS: tuple[Path, ...] = (("upstream", "git"), ("upstreamLock",), ("status", "renderStatus"))
_PIPELINES: tuple[Path, ...] = (("pipeline", "mutators"), ("pipeline", "validators"))


def merge_kptfile(
    origin: Kptfile | None,
    updated: Kptfile | None,
    local: Kptfile,
    options: MergeOptions,
    *,
    take_upstream: bool = False,
    whole: bool = False,
) -> tuple[Kptfile, tuple[Conflict, ...]]:
    """Merge upstream changes into the local Kptfile. A missing Kptfile is treated as an empty Kptfile.

    Args:
        origin: The Kptfile of the merge base.
        updated: The Kptfile of the new upstream version.
        local: The Kptfile on the branch.
        take_upstream: Whether the result has the sections `upstream` and `upstreamLock` of `updated`. By default, the
            result has the sections of `local`.
        whole: Whether to merge the name and the upstream sections too. Use True to merge two versions of one package.
            By default, the name comes from `local`, and `take_upstream` determines the upstream sections.

    Returns:
        The merged Kptfile and the conflicts. The attributes `file` and `resource` of the conflicts are empty.

    Raises:
        MergeError: With the profile `compat`, the elements of a list have the key `name` in one Kptfile and not in
            another.
    """
    sides = SideValues(*(kptfile.data if kptfile else {} for kptfile in (origin, updated, local)))
    if take_upstream:
        sides = sides._replace(local=_copy_upstream(sides.updated, sides.local))
    for path in _list_local_paths(sides.updated, whole=whole):
        sides = sides.map_sides(_create_value_setter(path, _get_value(sides.local, path)))
    if options.profile == "compat" and not whole:
        data, conflicts = merge_kptfile_structs(sides, options.rules)
        return local.with_data(data), conflicts
    data, conflicts = _merge_data(sides, options.rules)
    return _write_data(origin, updated, local, data, options.rules), conflicts


def _write_data(
    origin: Kptfile | None, updated: Kptfile | None, local: Kptfile, data: Data, rules: MergeRules
) -> Kptfile:
    """Return a Kptfile with the content `data`.

    The YAML notation of a value, such as its quotes and comments, comes from a Kptfile that contains this value.
    """
    if updated is None:
        return local.with_data(data)
    if origin and origin.to_bytes() == local.to_bytes():
        return updated.with_data(data)
    origin_document, updated_document = origin.document if origin else None, updated.document
    return local.with_document(
        write_merged_document(
            local.document,
            origin_document,
            updated_document,
            order_sections(data),
            KPTFILE_SCHEMA,
            rules,
            align_functions,
        )
    )


def _list_local_paths(updated: Data, *, whole: bool) -> tuple[Path, ...]:
    """Return the paths of the fields that are always taken from the local Kptfile."""
    if not whole:
        return (*_IDENTITY, *_PACKAGE, *_UPSTREAM)
    # Keep the local name if the new upstream Kptfile has no name, because a package must have a name.
    return _IDENTITY if _get_value(updated, ("metadata", "name")) is not ABSENT else (*_IDENTITY, *_PACKAGE)


def _copy_upstream(updated: Data, local: Data) -> Data:
    for path in _UPSTREAM:
        if (value := _get_value(updated, path)) is not ABSENT:
            local = _set_value(local, path, value)
    return local


def _merge_data(sides: SideValues, rules: MergeRules) -> tuple[Data, tuple[Conflict, ...]]:
    special_conflicts: list[Conflict] = []
    for path, (value, conflicts) in _merge_special_fields(sides, rules):
        special_conflicts += [
            replace(conflict, pointer=format_pointer(path) + conflict.pointer) for conflict in conflicts
        ]
        sides = sides.map_sides(_create_value_setter(path, value))
    data, conflicts = merge_data(*sides, KPTFILE_SCHEMA, rules)
    return data, (*conflicts, *special_conflicts)


def _merge_special_fields(sides: SideValues, rules: MergeRules) -> Iterator[tuple[Path, MergeOutcome]]:
    """Yield the merge outcomes of fields with special merge rules. Other fields are merged by `_merge_data`."""
    for path in _ONE_SIDED_FIELDS:
        yield path, choose_side(sides.map_sides(partial(_get_value, path=path)), rules.winner)
    for path in _PIPELINES:
        yield path, merge_functions(sides.map_sides(partial(_get_value, path=path)), rules)


def _get_value(data: Any, path: Path) -> Any:
    for key in path:
        if not isinstance(data, Mapping) or key not in data:
            return ABSENT
        data = data[key]
    return data


def _create_value_setter(path: Path, value: Any) -> Callable[[Data], Data]:
    return lambda data: _set_value(data, path, value)


def _set_value(data: Data, path: Path, value: Any) -> Data:
    """Return `data` with `value` at `path`. The value ABSENT removes the field.

    A mapping that becomes empty is removed too.
    """
    key, *inner_path = path
    if inner_path:
        inner = data.get(key)
        mapping = inner if isinstance(inner, Mapping) else {}
        value = _set_value(mapping, tuple(inner_path), value)
        if not value:
            # Remove a mapping that this call emptied. Keep a mapping that was already empty.
            value = ABSENT if mapping else data.get(key, ABSENT)
    if value is ABSENT:
        return {name: old_value for name, old_value in data.items() if name != key}
    return {**data, key: value}
