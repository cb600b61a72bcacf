"""What a property hides: settings of the parent's that are not in effect, and those that are others (strimzi 8)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.yaml.same import same

_PLAIN = re.compile(r"[^.\[\]\"]+")
# lists whose entries have names, and the field that holds the name
NAMED_LISTS: Mapping[str, str] = {
    "env": "name",
    "volumes": "name",
    "templatedVolumes": "name",
    "imagePullSecrets": "name",
    "tolerations": "key",
    "hostAliases": "ip",
    "volumeMounts": "mountPath",
}


@dataclass(frozen=True)
class Hidden:
    """Inherited settings that a property hides, by path: `shadowed` are gone, `overridden` have other values."""

    shadowed: tuple[str, ...] = ()
    overridden: tuple[str, ...] = ()


def hidden(inherited: Any, value: Any) -> Hidden:
    """Return what of an inherited property is not in effect where the property has this value."""
    told = [(path, is_there) for path, is_there in _differences(inherited, value, "")]
    shadowed = dict.fromkeys(path for path, is_there in told if not is_there)
    overridden = dict.fromkeys(path for path, is_there in told if is_there)
    return Hidden(tuple(shadowed), tuple(overridden))


def named_entries(items: list[Any], field: str) -> dict[str, list[Any]]:
    """Return the entries of a list by their names; those that have none are under ""."""
    found: dict[str, list[Any]] = {}
    for item in items:
        name = item.get(field) if isinstance(item, Mapping) else None
        found.setdefault("" if name is None else str(name), []).append(item)
    return found


def _differences(inherited: Any, value: Any, path: str) -> Iterator[tuple[str, bool]]:
    """Yield the path of every setting that is not in the value as it was inherited, and whether there is another."""
    if same(inherited, value):
        return
    if isinstance(inherited, dict):
        inside = value if isinstance(value, dict) else {}
        # a mapping without anything in it sets nothing
        for key, one in inherited.items():
            yield from _differences(one, inside.get(key, ABSENT), _below(path, str(key)))
    elif isinstance(inherited, list) and inherited and (field := NAMED_LISTS.get(path.rpartition(".")[2])):
        yield from _entries(inherited, value if isinstance(value, list) else [], path, field)
    else:
        yield path, value is not ABSENT


def _entries(inherited: list[Any], value: list[Any], path: str, field: str) -> Iterator[tuple[str, bool]]:
    found = named_entries(value, field)
    for name, items in named_entries(inherited, field).items():
        if not same(items, found.get(name, ABSENT)):
            yield f"{path}[{name}]", name in found


def _below(path: str, key: str) -> str:
    if not _PLAIN.fullmatch(key):
        quoted = key.replace("\\", "\\\\").replace('"', '\\"')
        return f'{path}["{quoted}"]'
    return f"{path}.{key}" if path else key
