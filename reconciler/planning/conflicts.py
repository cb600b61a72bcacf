"""Conflicts as state and status files keep them: plain data, without secrets (design 10.8, 10.28, 10.29)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.krm.conflicts import ABSENT, Conflict
from reconciler.krm.digest import canonical_json
from reconciler.krm.pointer import PointerError, parse_pointer, resolve
from reconciler.krm.secrets import MASK, holds_secret
from reconciler.krm.yaml.same import same
from reconciler.packages.package import Package, PackageResource
from reconciler.snapshot.files import FileTree

_SIDES = ("base", "local", "upstream")
_PARTS = frozenset({"kind", "chosen", "rule"})
_CHOICES = ("upstream", "local", "rule")


def conflict_data(conflict: Conflict) -> dict[str, Any]:
    """Return a conflict as data; sides that have nothing there are left out.

    Values of Secrets, and such as hold one, are masked. Of whole resources, files and packages only the sides that
    have one are told, as True.
    """
    sides = {side: value for side in _SIDES if (value := getattr(conflict, side)) is not ABSENT}
    told = {
        "kind": conflict.kind,
        "file": conflict.file,
        "resource": conflict.resource,
        "pointer": conflict.pointer,
        **_shown(conflict, sides),
        "chosen": conflict.chosen,
        "rule": conflict.rule,
    }
    return {name: value for name, value in told.items() if value != "" or name in _SIDES}


def read_conflict(data: Mapping[str, Any]) -> Conflict:
    """Read what `conflict_data` wrote."""
    sides = {side: data.get(side, ABSENT) for side in _SIDES}
    texts = {name: data.get(name, "") for name in ("file", "resource", "pointer")}
    return Conflict(kind=data["kind"], chosen=data["chosen"], rule=data["rule"], **texts, **sides)


def recorded_conflicts(recorded: object) -> tuple[Mapping[str, Any], ...]:
    """Return the conflicts that a status file records, without entries that are not conflicts."""
    listed = recorded if isinstance(recorded, list) else ()
    return tuple(one for one in listed if _is_conflict(one))


def are_readable(recorded: object) -> bool:
    """Return whether every entry that a status file records as a conflict can be read."""
    return recorded is None or (isinstance(recorded, list) and all(map(_is_conflict, recorded)))


def _is_conflict(entry: object) -> bool:
    return isinstance(entry, dict) and entry.keys() >= _PARTS and entry["chosen"] in _CHOICES


def without_repeats(conflicts: Iterable[Conflict]) -> tuple[Conflict, ...]:
    """Return each conflict once; one that comes from state is the one that it was."""
    return tuple({canonical_json(conflict_data(one)): one for one in conflicts}.values())


def place_of(conflict: Conflict) -> tuple[str, str, str]:
    """Return what a conflict is about; a later one about the same takes its place."""
    return conflict.file, conflict.resource, conflict.pointer


def still_stands(conflict: Conflict, files: FileTree) -> bool:
    """Return whether a package still holds what decided a conflict; people may have settled it since.

    Of resources, files and packages it counts that they are there, or gone. What became of elements is not looked at.
    """
    decided = conflict.local if conflict.chosen == "local" else conflict.upstream
    match conflict.kind:
        case "field":
            values = (_value_at(one.data, conflict.pointer) for one in _resources(conflict, files))
            return decided == MASK or any(same(value, decided) for value in values)
        case "resource":
            return any(_resources(conflict, files)) == (decided is not ABSENT)
        case "file":
            return (conflict.file in files) == (decided is not ABSENT)
        case "package":
            return any(path.startswith(f"{conflict.file}/") for path in files) == (decided is not ABSENT)
        case "element":
            return True


def _resources(conflict: Conflict, files: FileTree) -> Iterator[PackageResource]:
    # one file is a package of its own as far as reading goes
    inside = FileTree({conflict.file: files[conflict.file]}) if conflict.file in files else FileTree()
    return (one for one in Package(inside).resources if str(one.key) == conflict.resource)


def _value_at(data: Any, pointer: str) -> Any:
    try:
        return resolve(data, parse_pointer(pointer))
    except PointerError:
        return ABSENT


def _shown(conflict: Conflict, sides: Mapping[str, Any]) -> Mapping[str, Any]:
    if conflict.kind not in ("field", "element"):
        return dict.fromkeys(sides, True)
    is_hidden = conflict.resource.startswith("Secret/") or any(map(holds_secret, sides.values()))
    return dict.fromkeys(sides, MASK) if is_hidden else sides
