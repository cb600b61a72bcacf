"""What would stand there without a layer: each is tried, and the package explained as it would be (tenet 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.pointer import format_pointer
from reconciler.packages.package import Package, PackageResource
from reconciler.planning.trail import came_from
from reconciler.planning.without import ConfigField, Layer
from reconciler.reporting.explain import explain
from reconciler.reporting.explain_page import path_of
from reconciler.reporting.explanation import Explained, Explanation, NothingToExplainError, Step, Value, Without
from reconciler.rules.edits import value_at

# of more values at once nobody asks what each would be
MOST_TRIED = 10
Try = Callable[[Layer], Explained | str]
"""Makes the package without a layer; a text says why there would be none."""


def with_each_left_out(explanation: Explanation, attempt: Try) -> Explanation:
    """Return the explanation of a few values with what each would be without each of its layers."""
    tried: dict[str, Explained | str] = {}

    def leave_out(layer: Layer | None, value: Value) -> Without | None:
        if layer is None:
            return None
        name = repr(layer)
        if name not in tried:
            results = (attempt(one) for one in _attempts(layer, explanation.explained))
            first = next(results)
            tried[name] = next((one for one in (first, *results) if _is_made(one)), first)
        return _without(value, explanation.explained, tried[name])

    def each(step: Step, value: Value) -> Step:
        given = (replace(one, without=leave_out(one.removable, value)) for one in step.given)
        return replace(step, without=leave_out(step.removable, value), given=tuple(given))

    if len(explanation.values) > MOST_TRIED:
        return explanation
    values = (replace(one, steps=tuple(each(step, one) for step in one.steps)) for one in explanation.values)
    return replace(explanation, values=tuple(values))


def _attempts(layer: Layer, explained: Explained) -> Iterator[Layer]:
    """Yield what to take away for a layer: what it says, or the object, where that says nothing else in its list."""
    yield layer
    if isinstance(layer, ConfigField) and layer.path and isinstance(layer.path[-1], int):
        items = value_at(explained.objects[layer.key].data, layer.path[:-1])
        if len(items) == 1:
            yield ConfigField(layer.key, ())


def _is_made(one: Explained | str) -> bool:
    return isinstance(one, Explained) and one.rendered is not None


def _without(value: Value, explained: Explained, other: Explained | str) -> Without:
    if isinstance(other, str):
        return Without(trouble=other)
    if other.rendered is None or explained.rendered is None:
        return Without(trouble=other.trouble or "it cannot be made")
    now, then = (_resource(value, one) for one in (explained, other))
    if then is None:
        return Without()
    place = value.option or _moved(value, now, then)
    if place is None:
        return Without()
    try:
        found = explain(other, str(then.key), place)
    except NothingToExplainError:
        return Without()
    same = [one for one in found.values if value.option or one.pointer == place]
    # what is gone from a list has the pointer of what has come to its place
    ends = [one.steps[-1].after for one in same if one.steps[-1].after is not ABSENT]
    return Without(ends[-1] if ends else ABSENT)


def _resource(value: Value, explained: Explained) -> PackageResource | None:
    """Return the resource of a value: of its identity, else the only one of its kind in its file."""
    known = Package(explained.rendered.files).resources if explained.rendered else ()
    found = [one for one in known if str(one.key) == value.resource]
    if found:
        return next((one for one in found if one.file == value.file), found[0])
    kind = value.resource.partition("/")[0]
    alike = [one for one in known if (one.file, one.kind) == (value.file, kind)]
    return alike[0] if len(alike) == 1 else None


def _moved(value: Value, now: PackageResource | None, then: PackageResource) -> str | None:
    """Return where the item of a list would be that stands at a pointer now; None where it would not be there."""
    known = now.data if now and value.lost_from is ABSENT else value.lost_from
    if known is ABSENT or "!/" in value.pointer:
        return value.pointer
    at = came_from(then.data, known, path_of(value.pointer, known))
    return None if at is None else format_pointer(at)
