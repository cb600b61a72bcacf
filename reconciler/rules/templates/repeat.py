"""What a child has to repeat of its parent's template if it wants to inherit and add (strimzi 10)."""

from __future__ import annotations

from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.yaml import Path
from reconciler.krm.yaml.same import same
from reconciler.rules.templates.lost import NAMED_LISTS
from reconciler.rules.templates.merge import Property


def repeated(properties: tuple[Property, ...], path: Path) -> Any:
    """Return a template, at its path, with all that a child would inherit, and its own on top of it.

    Mappings are united, and so are lists whose entries have names; of everything else the child's own counts. A
    property that the child does not have is inherited already, and not in it; one that it resets stays reset, so that
    this can take the place of its whole template.
    """
    wanted: Any = {
        one.name: one.own if one.inherited is ABSENT or one.source == "reset" else _united(one.inherited, one.own, "")
        for one in properties
        if one.own is not ABSENT
    }
    for step in reversed(path):
        wanted = {step: wanted}
    return wanted


def _united(inherited: Any, own: Any, name: str) -> Any:
    if isinstance(inherited, dict) and isinstance(own, dict):
        more = {key: _united(inherited[key], value, key) if key in inherited else value for key, value in own.items()}
        return {**inherited, **more}
    field = NAMED_LISTS.get(name)
    if field and isinstance(inherited, list) and isinstance(own, list):
        return [*(one for one in inherited if not _has(own, one, field)), *own]
    return own


def _has(items: list[Any], wanted: Any, field: str) -> bool:
    """Tell whether a list has an entry of the same name; entries without one are only the same if they are equal."""
    name = wanted.get(field, ABSENT) if isinstance(wanted, dict) else ABSENT
    if name is ABSENT:
        return any(same(one, wanted) for one in items)
    return any(isinstance(one, dict) and same(one.get(field, ABSENT), name) for one in items)
