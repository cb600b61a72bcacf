"""Shapes: which lists of a resource are merged element by element, and by which keys (kpt.md 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Shape:
    """What is known of the structure of a value; UNKNOWN says nothing, ATOMIC that nothing in it is merged by element.

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
    closed: bool = False
    """Whether a schema says all of it: what is not named here is ATOMIC, and nothing is left to infer (D22)."""

    def child(self, name: str) -> Shape:
        """Return the shape of a mapping's field."""
        return self.fields.get(name) or self.others or self._rest

    @property
    def element(self) -> Shape:
        """The shape of a list's elements."""
        return self.items or self._rest

    @property
    def _rest(self) -> Shape:
        return ATOMIC if self.closed else UNKNOWN


UNKNOWN = Shape()
ATOMIC = Shape(closed=True)
