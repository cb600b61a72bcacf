"""What a change of parents or children does to templates, and whether that restarts pods (strimzi 11)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml.same import same
from reconciler.rules.templates.effect import TemplateEffect, effect_of
from reconciler.rules.templates.model import Options
from reconciler.rules.templates.pairs import Pairs


@dataclass(frozen=True)
class TemplateChange:
    """The properties of a child's effective template that changed, and the kinds of objects that they shape.

    `rolls`: pods are restarted, because what they are made of changes; None where nobody knows. `moved_from` is the
    parent that the child had, if it has another one now, which to an operator is another child.
    """

    child: ObjectKey
    properties: tuple[str, ...]
    lands_on: tuple[str, ...]
    rolls: bool | None
    moved_from: ObjectKey | None = None

    def as_data(self) -> dict[str, Any]:
        """Return it as status files write it."""
        data = {"resource": str(self.child), "properties": [*self.properties], "objects": [*self.lands_on]}
        moved = {"movedFrom": str(self.moved_from)} if self.moved_from else {}
        return {**data, "rolls": self.rolls, **moved}


def changes(
    before: Pairs, now: Pairs, options: Options | None = None, of: Collection[ObjectKey] | None = None
) -> tuple[TemplateChange, ...]:
    """Return the children that were there before, and whose effective template or parent is another now, by name.

    What is published may be materialised or not: both mean the same. `of` are those to look at; None looks at all.
    """
    operator = (options or Options()).operator
    found: list[TemplateChange] = []
    children = now.children if of is None else {key: now.children[key] for key in sorted(of) if key in now.children}
    for key, child in children.items():
        parent, was = now.parent_of(child), before.children.get(key)
        if parent is None or was is None:
            continue
        had = before.parent_of(was)
        moved = had.key if had and had.key != parent.key else None
        names = _changed(before.effective(key), now.effective(key), child.rule.properties)
        if (names or moved) and all(isinstance(value, dict) for value in now.effective(key).values()):
            found.append(_told(effect_of(child, parent, operator, "report"), names, moved))
    return tuple(found)


def _told(effect: TemplateEffect, names: tuple[str, ...], moved: ObjectKey | None) -> TemplateChange:
    known = effect.description
    kinds = dict.fromkeys(kind for name in names for kind in known.lands_on.get(name, ()))
    rolls = None if known.rolling is None else not known.rolling.isdisjoint(names)
    return TemplateChange(effect.child.key, names, tuple(kinds), rolls, moved)


def _changed(before: dict[str, Any], now: dict[str, Any], names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if not same(before.get(name, ABSENT), now.get(name, ABSENT)))
