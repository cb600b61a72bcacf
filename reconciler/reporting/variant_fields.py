"""Where a PackageVariant says something of its package: in its own text, or in the target of the set that made it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import Path
from reconciler.rules.edits import value_at
from reconciler.rules.variant import Owner
from reconciler.snapshot.catalog import ConfigObject

Field = tuple[ConfigObject, Path]
_Find = Callable[[Any], Path | None]


class VariantFields:
    """Finds the fields by which an owner, or its set, gives a package its context and its functions."""

    def __init__(self, objects: Mapping[ObjectKey, ConfigObject], owner: Owner) -> None:
        self._texts = tuple(_texts(objects, owner))

    def context(self, name: str) -> Field | None:
        """Return where a key of the package context is given its value, or is taken away (porch 8.1)."""
        return self._first(lambda spec: _of_map(spec, name)) or self._first(lambda spec: _removed(spec, name))

    def function(self, stage: str, number: int) -> Field | None:
        """Return where a function is that is put in front of the pipeline (porch 8.2)."""
        return self._first(lambda spec: _there(spec, ("pipeline", stage, number)))

    def _first(self, find: _Find) -> Field | None:
        for one, at in self._texts:
            if path := find(value_at(one.data, at)):
                return one, (*at, *path)
        return None


def _texts(objects: Mapping[ObjectKey, ConfigObject], owner: Owner) -> Iterator[Field]:
    """Yield where the spec of an owner is written: as its own, or as what its set says to each of its targets."""
    if one := objects.get(owner.key):
        yield one, ("spec",)
    elif owner.set and (made_by := objects.get(owner.set)):
        yield from ((made_by, ("spec", "targets", number, "template")) for number in owner.targets)


def _there(spec: Any, path: Path) -> Path | None:
    return path if value_at(spec, path) is not ABSENT else None


def _of_map(spec: Any, name: str) -> Path | None:
    """Return the entry of the context that gives a key its value: a later one wins, and expressions over what is plain.

    Which key an expression comes to is not known here: where it could be this one, and others could, too, none is told.
    """
    context = value_at(spec, ("packageContext",))
    entries = value_at(context, ("dataExprs",))
    listed = entries if isinstance(entries, list) else [] if entries is ABSENT else [entries]
    at: list[Path] = [("packageContext", "dataExprs", number) for number in range(len(listed))]
    named = [number for number, one in enumerate(listed) if value_at(one, ("key",)) == name]
    computed = [number for number, one in enumerate(listed) if value_at(one, ("keyExpr",)) is not ABSENT]
    is_plain = value_at(context, ("data", name)) is not ABSENT
    if named:
        return None if any(number > named[-1] for number in computed) else at[named[-1]]
    if computed:
        return None if is_plain or len(computed) > 1 else at[computed[0]]
    return ("packageContext", "data", name) if is_plain else None


def _removed(spec: Any, name: str) -> Path | None:
    keys = value_at(spec, ("packageContext", "removeKeys"))
    found = [number for number, key in enumerate(keys) if key == name] if isinstance(keys, list) else []
    return ("packageContext", "removeKeys", found[0]) if found else None
