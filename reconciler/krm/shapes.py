"""Shapes: which lists of a resource are merged element by element, and by which keys (kpt.md 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Shape:
    """What is known of the structure of a value; UNKNOWN says nothing.

    `keys` of a list: None means atomic, () a set of scalars, else the fields that tell its elements apart.
    `defaults` are values that the API server gives to key fields which are left out.
    """

    fields: Mapping[str, Shape] = field(default_factory=dict)
    """Of a mapping: its fields by name."""
    others: Shape | None = None
    """Of a mapping: any field that `fields` does not name."""
    items: Shape | None = None
    """Of a list: its elements."""
    keys: tuple[str, ...] | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)

    def child(self, name: str) -> Shape:
        """Return the shape of a mapping's field."""
        return self.fields.get(name) or self.others or UNKNOWN

    @property
    def element(self) -> Shape:
        """The shape of a list's elements."""
        return self.items or UNKNOWN


UNKNOWN = Shape()
