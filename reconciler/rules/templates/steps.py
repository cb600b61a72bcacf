"""Provenance of a child's template: what its parent gave, what its own replaced, what was dropped (design 10.28)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import Path
from reconciler.rules.edits import value_at
from reconciler.rules.fields import dotted
from reconciler.rules.provenance import Step, steps_of
from reconciler.rules.templates.merge import Property
from reconciler.rules.templates.model import MARK, Member


def steps_of_template(
    child: Member, parent: ObjectKey, properties: tuple[Property, ...], result: Any
) -> tuple[Step, ...]:
    """Return what the parent gives, followed by what the child has in its place; then what was dropped; the mark."""
    rule, path = child.rule, child.rule.child.path
    template = value_at(child.resource.data, path)
    found: list[Step] = []
    for one in properties:
        if one.inherited is ABSENT:
            continue
        place = (*path, one.name)
        found += _steps(place, ABSENT, one.inherited, str(parent), dotted((*rule.parent.path, one.name)))
        if one.own is not ABSENT:
            found += _steps(place, one.inherited, one.own, str(child.key), dotted(place))
    for name in template if isinstance(template, dict) else ():
        if template[name] is None or name not in rule.properties:
            found += _steps((*path, name), template[name], ABSENT, rule.label, "spec.properties")
    mark: Path = ("metadata", "annotations", MARK)
    found += _steps(mark, value_at(child.resource.data, mark), value_at(result, mark), rule.label, "spec.child")
    return tuple(found)


def _steps(path: Path, before: Any, after: Any, by: str, where: str) -> Iterator[Step]:
    """Yield the steps of one value, at the place where it stands."""
    old, new = ({} if value is ABSENT else {"value": value} for value in (before, after))
    for step in steps_of(old, new, by, where):
        yield Step((*path, *step.path[1:]), by, where, step.op, step.before, step.after)
