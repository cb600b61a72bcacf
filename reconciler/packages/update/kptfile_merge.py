"""Three-way merge of a Kptfile: an edit of the local one, so that no comment is lost (kpt.md 10, D21, D23)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from reconciler.krm.conflicts import ABSENT, Conflict
from reconciler.krm.merge3 import MergeRules, merge_data
from reconciler.krm.merge3.text import write_merged
from reconciler.krm.pointer import format_pointer
from reconciler.krm.shapes import ATOMIC, UNKNOWN, Shape
from reconciler.packages.kptfile import Kptfile, in_order
from reconciler.packages.update.kptfile_functions import merge_functions
from reconciler.packages.update.kptfile_pairing import aligned_functions
from reconciler.packages.update.kptfile_structs import merge_structs
from reconciler.packages.update.kptfile_values import Outcome, Values, one_of
from reconciler.packages.update.options import MergeOptions

Data = Mapping[str, Any]
Path = tuple[str, ...]

KPTFILE_SHAPE = Shape(
    {
        "info": Shape(
            {
                "emails": Shape(items=ATOMIC, keys=()),
                "keywords": Shape(items=ATOMIC, keys=()),
                "readinessGates": Shape(items=UNKNOWN, keys=("conditionType",)),
            }
        ),
        "pipeline": Shape({"mutators": ATOMIC, "validators": ATOMIC}),
        "status": Shape({"conditions": Shape(items=UNKNOWN, keys=("type",))}),
    }
)
"""How the lists of a Kptfile are merged, but for those of its pipeline (kpt.md D23)."""

_IDENTITY: tuple[Path, ...] = (("apiVersion",), ("kind",))
_PACKAGE: tuple[Path, ...] = (("metadata", "name"), ("metadata", "namespace"))
_UPSTREAM: tuple[Path, ...] = (("upstream",), ("upstreamLock",))
# a place upstream is not mixed from two sides, and neither is a report
_WHOLE: tuple[Path, ...] = (("upstream", "git"), ("upstreamLock",), ("status", "renderStatus"))
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
    """Return the local Kptfile with what upstream changed, and the places that both sides changed (kpt.md 10).

    A side without a Kptfile says nothing. Name, namespace and upstream are the local ones. `take_upstream` takes
    upstream and lock from `updated`, where it has them: for subpackages and force-delete-replace. `whole` merges all
    of this like everything else, in `safe` even where the profile is `compat`: upstream's tool never merges two sides
    of one package (git.md 3). Conflicts name no file and no resource. Raises MergeError, in `compat`, where a list has
    names on one side only (kpt.md 10.3).
    """
    sides = Values(*(kptfile.data if kptfile else {} for kptfile in (origin, updated, local)))
    if take_upstream:
        sides = sides._replace(local=_with_upstream_of(sides.updated, sides.local))
    for path in _settled_paths(sides.updated, whole=whole):
        sides = sides.each(_set(path, _value(sides.local, path)))
    if options.profile == "compat" and not whole:
        data, conflicts = merge_structs(sides, options.rules)
        return local.with_data(data), conflicts
    data, conflicts = _merge_safely(sides, options.rules)
    return _written(origin, updated, local, data, options.rules), conflicts


def _written(origin: Kptfile | None, updated: Kptfile | None, local: Kptfile, data: Data, rules: MergeRules) -> Kptfile:
    """Return the Kptfile that says `data`, in the words of the side that said it."""
    if updated is None:
        return local.with_data(data)
    if origin and origin.to_bytes() == local.to_bytes():
        return updated.with_data(data)
    base, now = origin.document if origin else None, updated.document
    return local.with_document(
        write_merged(local.document, base, now, in_order(data), KPTFILE_SHAPE, rules, aligned_functions)
    )


def _settled_paths(updated: Data, *, whole: bool) -> tuple[Path, ...]:
    """Return the paths where the local value stays."""
    if not whole:
        return (*_IDENTITY, *_PACKAGE, *_UPSTREAM)
    # a package always has a name
    return _IDENTITY if _value(updated, ("metadata", "name")) is not ABSENT else (*_IDENTITY, *_PACKAGE)


def _with_upstream_of(updated: Data, local: Data) -> Data:
    for path in _UPSTREAM:
        if (value := _value(updated, path)) is not ABSENT:
            local = _with_value(local, path, value)
    return local


def _merge_safely(sides: Values, rules: MergeRules) -> tuple[Data, tuple[Conflict, ...]]:
    told: list[Conflict] = []
    for path, (value, conflicts) in _parts(sides, rules):
        told += [replace(conflict, pointer=format_pointer(path) + conflict.pointer) for conflict in conflicts]
        sides = sides.each(_set(path, value))
    merged, conflicts = merge_data(*sides, KPTFILE_SHAPE, rules)
    return merged, (*conflicts, *told)


def _parts(sides: Values, rules: MergeRules) -> Iterator[tuple[Path, Outcome]]:
    """Yield what is merged in a way of its own; the rest of the Kptfile is merged field by field."""
    for path in _WHOLE:
        yield path, one_of(sides.each(partial(_value, path=path)), rules.winner)
    for path in _PIPELINES:
        yield path, merge_functions(sides.each(partial(_value, path=path)), rules)


def _value(data: Any, path: Path) -> Any:
    for key in path:
        if not isinstance(data, Mapping) or key not in data:
            return ABSENT
        data = data[key]
    return data


def _set(path: Path, value: Any) -> Callable[[Data], Data]:
    return lambda data: _with_value(data, path, value)


def _with_value(data: Data, path: Path, value: Any) -> Data:
    """Return data with this value, ABSENT for none; a mapping that this leaves empty goes too."""
    key, *below = path
    if below:
        inner = data.get(key)
        inside = inner if isinstance(inner, Mapping) else {}
        value = _with_value(inside, tuple(below), value)
        if not value:
            # only what this took the last value from goes
            value = ABSENT if inside else data.get(key, ABSENT)
    if value is ABSENT:
        return {name: kept for name, kept in data.items() if name != key}
    return {**data, key: value}
