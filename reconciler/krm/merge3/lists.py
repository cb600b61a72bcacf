"""Which lists merge element by element, and what tells their elements apart (kpt.md 7.4, 9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from reconciler.krm.merge3.rules import MergeError, MergeRules
from reconciler.krm.pointer import format_pointer
from reconciler.krm.shapes import Shape
from reconciler.krm.yaml.same import same
from reconciler.krm.yaml.scalar import other_text

Identity: TypeAlias = tuple[str | None, ...]


@dataclass(frozen=True)
class Keys:
    """What tells the elements of one list apart: some of their fields or, with none, their own value."""

    fields: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)

    def identity(self, element: Any) -> Identity | None:
        """Return what the element is known by; None when it lacks every key."""
        if not self.fields:
            return None if element is None or isinstance(element, dict | list) else (scalar_text(element),)
        if not isinstance(element, dict):
            return None
        values = [element.get(name) for name in self.fields]
        if all(value is None for value in values) or any(isinstance(value, dict | list) for value in values):
            return None
        return tuple(
            self.defaults.get(name) if value is None else scalar_text(value)
            for name, value in zip(self.fields, values, strict=True)
        )

    def by_identity(self, elements: Iterable[Any]) -> dict[Identity, Any]:
        """Return the elements that have an identity, the first of several that share one."""
        found: dict[Identity, Any] = {}
        for element in elements:
            identity = self.identity(element)
            if identity is not None:
                found.setdefault(identity, element)
        return found

    def tell_apart(self, elements: Sequence[Any]) -> bool:
        """Tell whether every element has an identity of its own."""
        return len(self.by_identity(elements)) == len(elements)


_SCALARS = (str, int, float)
_NAME = Keys(("name",))


def find_keys(sides: Iterable[Any], shape: Shape, rules: MergeRules, path: Sequence[Any] = ()) -> Keys | None:
    """Return the keys of a list that stands at `path` on these sides; None for an atomic list."""
    if shape.keys is not None:
        return Keys(shape.keys, shape.defaults if rules.strict_keys else {})
    if shape.closed:
        return None
    lists = [side for side in sides if isinstance(side, list) and side]
    if rules.demands_names:
        return _demanded(lists, path)
    is_named = rules.infers_names and lists and all(map(_have_names, lists))
    return _NAME if is_named and all(map(_NAME.tell_apart, lists)) else None


def _demanded(lists: Sequence[list[Any]], path: Sequence[Any]) -> Keys | None:
    named = [_have_names(elements) for elements in lists]
    if any(named) and not all(named):
        raise MergeError(f"{format_pointer(path)}: conflicting merge keys: only on some sides all have a name")
    return _NAME if any(named) else None


def _have_names(elements: list[Any]) -> bool:
    return all(isinstance(element, dict) and "name" in element for element in elements)


def scalar_text(value: Any) -> str:
    """Return the text by which a scalar is compared where its type does not count."""
    return value if isinstance(value, str) else other_text(value)


def same_text(left: Any, right: Any) -> bool:
    """Tell whether two values are equal as kpt sees it: scalars by their text, collections as data (kpt.md 7.1)."""
    if isinstance(left, _SCALARS) and isinstance(right, _SCALARS):
        return scalar_text(left) == scalar_text(right)
    return same(left, right)
