"""What would stand there without a layer: each is tried, and the package explained as it would be (tenet 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from reconciler.controllers.nested_values import get_value
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.output.explain.builder import explain, parse_data_path
from reconciler.output.explain.model import (
    AblationResult,
    ExplainedPackage,
    ExplainedValue,
    PackageExplanation,
    ValueNotFoundError,
    ValueStep,
)
from reconciler.packages.package import Package, PackageResource
from reconciler.planning.attribution.provenance_trace import find_previous_path
from reconciler.planning.attribution.re_render import ConfigField, RemovableLayer

# of more values at once nobody asks what each would be
MAX_ABLATED_VALUES = 10
RenderWithout = Callable[[RemovableLayer], ExplainedPackage | str]
"""Makes the package without a layer; a text says why there would be none."""


def add_ablations(explanation: PackageExplanation, attempt: RenderWithout) -> PackageExplanation:
    """Return the explanation of a few values with what each would be without each of its layers."""
    tried: dict[str, ExplainedPackage | str] = {}

    def leave_out(layer: RemovableLayer | None, value: ExplainedValue) -> AblationResult | None:
        if layer is None:
            return None
        name = repr(layer)
        if name not in tried:
            results = (attempt(one) for one in _attempts(layer, explanation.explained))
            first = next(results)
            tried[name] = next((one for one in (first, *results) if _is_made(one)), first)
        return _without(value, explanation.explained, tried[name])

    def each(step: ValueStep, value: ExplainedValue) -> ValueStep:
        given = (replace(one, ablation=leave_out(one.removable_layer, value)) for one in step.expression_inputs)
        return replace(step, ablation=leave_out(step.removable_layer, value), expression_inputs=tuple(given))

    if len(explanation.values) > MAX_ABLATED_VALUES:
        return explanation
    values = (replace(one, steps=tuple(each(step, one) for step in one.steps)) for one in explanation.values)
    return replace(explanation, values=tuple(values))


def _attempts(layer: RemovableLayer, explained: ExplainedPackage) -> Iterator[RemovableLayer]:
    """Yield what to take away for a layer: what it says, or the object, where that says nothing else in its list."""
    yield layer
    if isinstance(layer, ConfigField) and layer.path and isinstance(layer.path[-1], int):
        items = get_value(explained.objects[layer.key].data, layer.path[:-1])
        if len(items) == 1:
            yield ConfigField(layer.key, ())


def _is_made(one: ExplainedPackage | str) -> bool:
    return isinstance(one, ExplainedPackage) and one.rendered is not None


def _without(value: ExplainedValue, explained: ExplainedPackage, other: ExplainedPackage | str) -> AblationResult:
    if isinstance(other, str):
        return AblationResult(blocked_reason=other)
    if other.rendered is None or explained.rendered is None:
        return AblationResult(blocked_reason=other.blocked_reason or "it cannot be made")
    now, then = (_resource(value, one) for one in (explained, other))
    if then is None:
        return AblationResult()
    place = value.option or _moved(value, now, then)
    if place is None:
        return AblationResult()
    try:
        found = explain(other, str(then.key), place)
    except ValueNotFoundError:
        return AblationResult()
    same = [one for one in found.values if value.option or one.pointer == place]
    # what is gone from a list has the pointer of what has come to its place
    ends = [one.steps[-1].after for one in same if one.steps[-1].after is not ABSENT]
    return AblationResult(ends[-1] if ends else ABSENT)


def _resource(value: ExplainedValue, explained: ExplainedPackage) -> PackageResource | None:
    """Return the resource of a value: of its identity, else the only one of its kind in its file."""
    known = Package(explained.rendered.files).resources if explained.rendered else ()
    found = [one for one in known if str(one.key) == value.resource]
    if found:
        return next((one for one in found if one.file == value.file), found[0])
    kind = value.resource.partition("/")[0]
    alike = [one for one in known if (one.file, one.kind) == (value.file, kind)]
    return alike[0] if len(alike) == 1 else None


def _moved(value: ExplainedValue, now: PackageResource | None, then: PackageResource) -> str | None:
    """Return where the item of a list would be that stands at a pointer now; None where it would not be there."""
    known = now.data if now and value.removed_from is ABSENT else value.removed_from
    if known is ABSENT or "!/" in value.pointer:
        return value.pointer
    at = find_previous_path(then.data, known, parse_data_path(value.pointer, known))
    return None if at is None else format_pointer(at)
