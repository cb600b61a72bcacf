"""The merge of two templates: one level deep, whole properties, and nothing inside them (strimzi 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from reconciler.krm.conflicts import ABSENT

Source = Literal["parent", "child", "reset", "unset"]


@dataclass(frozen=True)
class Property:
    """One property of an effective template, and who decided it; ABSENT values are not there, or are null.

    `inherited` is what the parent says, `own` what the child says; `is_null`: the child says null, which inherits.
    """

    name: str
    source: Source
    inherited: Any = ABSENT
    own: Any = ABSENT
    is_null: bool = False

    @property
    def value(self) -> Any:
        """What is in effect; ABSENT if the property is unset."""
        return self.inherited if self.source == "parent" else self.own

    @property
    def is_inherited(self) -> bool:
        """Whether the parent decided it."""
        return self.source == "parent"


def merge_templates(names: tuple[str, ...], parent: Any, child: Any) -> tuple[Property, ...]:
    """Return every one of the named properties in their order; templates are mappings, or absent, or null."""
    return tuple(_merged(name, _field(parent, name), _field(child, name)) for name in names)


def effective(properties: tuple[Property, ...]) -> dict[str, Any]:
    """Return the template that is in effect, in the order of the properties; {} that resets stays."""
    return {one.name: one.value for one in properties if one.source != "unset"}


def _merged(name: str, inherited: Any, own: Any) -> Property:
    is_null = own is None
    inherited, own = (ABSENT if value is None else value for value in (inherited, own))
    return Property(name, _source(inherited, own), inherited, own, is_null)


def _source(inherited: Any, own: Any) -> Source:
    if own is ABSENT:
        return "unset" if inherited is ABSENT else "parent"
    # seed 004: {} opts out of what would be inherited, it does not inherit
    return "reset" if own == {} and inherited is not ABSENT else "child"


def _field(template: Any, name: str) -> Any:
    return template.get(name, ABSENT) if isinstance(template, Mapping) else ABSENT
