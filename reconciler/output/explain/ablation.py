"""Ablation: renders a package without one layer, to find the value that the package has without this layer.

A layer is one origin of values, such as a config field or a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from reconciler.controllers.nested_values import get_value
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.output.explain.builder import explain, parse_data_path
from reconciler.output.explain.model import (
    AblationResult,
    ExplainedValue,
    PackageExplanation,
    ValueNotFoundError,
    ValueStep,
)
from reconciler.packages.package import Package, PackageResource
from reconciler.planning.attribution.provenance_trace import find_previous_path
from reconciler.planning.attribution.re_render import ReRenderedPackage
from reconciler.planning.attribution.removable_layers import ConfigField, RemovableLayer

# Limit the number of values, because each layer of each value requires a render.
MAX_ABLATED_VALUES = 10
RenderWithoutLayer = Callable[[RemovableLayer], ReRenderedPackage | str]
"""Renders the package without a layer. Returns an error text if no object requests the package without this layer."""


def add_ablations(explanation: PackageExplanation, render_without_layer: RenderWithoutLayer) -> PackageExplanation:
    """Add to each layer of each value the result of a render without this layer.

    Return the unchanged explanation if it contains more than `MAX_ABLATED_VALUES` values.
    """
    renders: dict[str, ReRenderedPackage | str] = {}

    def ablate(layer: RemovableLayer | None, value: ExplainedValue) -> AblationResult | None:
        if layer is None:
            return None
        name = repr(layer)
        if name not in renders:
            results = (render_without_layer(attempt) for attempt in _list_attempts(layer, explanation.package))
            first = next(results)
            renders[name] = next((result for result in (first, *results) if _is_rendered(result)), first)
        return _find_value_without_layer(value, explanation.package, renders[name])

    def add_to_step(step: ValueStep, value: ExplainedValue) -> ValueStep:
        inputs = tuple(add_to_step(expression_input, value) for expression_input in step.expression_inputs)
        return replace(step, ablation=ablate(step.removable_layer, value), expression_inputs=inputs)

    if len(explanation.values) > MAX_ABLATED_VALUES:
        return explanation
    values = (
        replace(value, steps=tuple(add_to_step(step, value) for step in value.steps)) for value in explanation.values
    )
    return replace(explanation, values=tuple(values))


def _list_attempts(layer: RemovableLayer, package: ReRenderedPackage) -> Iterator[RemovableLayer]:
    """Yield the layers that the caller removes, one after the other, until a render without the layer succeeds.

    The first is `layer`. If `layer` is the only item of a list, the render without `layer` can fail, because an empty
    list can be invalid. Therefore, the second is the whole object that contains the list.
    """
    yield layer
    if isinstance(layer, ConfigField) and layer.path and isinstance(layer.path[-1], int):
        items = get_value(package.objects[layer.key].data, layer.path[:-1])
        if len(items) == 1:
            yield ConfigField(layer.key, ())


def _is_rendered(result: ReRenderedPackage | str) -> bool:
    return isinstance(result, ReRenderedPackage) and result.rendered is not None


def _find_value_without_layer(
    value: ExplainedValue, package: ReRenderedPackage, other: ReRenderedPackage | str
) -> AblationResult:
    if isinstance(other, str):
        return AblationResult(blocked_reason=other)
    if other.rendered is None or package.rendered is None:
        return AblationResult(blocked_reason=other.blocked_reason or "the render failed")
    resource, other_resource = (_find_resource(value, candidate) for candidate in (package, other))
    if other_resource is None:
        return AblationResult()
    location = value.option or _find_other_pointer(value, resource, other_resource)
    if location is None:
        return AblationResult()
    try:
        explanation = explain(other, other_resource.key.reference, location)
    except ValueNotFoundError:
        return AblationResult()
    matching = [candidate for candidate in explanation.values if value.option or candidate.pointer == location]
    # Skip removed values, because a removed list item has the same pointer as the next item.
    results = [candidate.steps[-1].after for candidate in matching if candidate.steps[-1].after is not ABSENT]
    return AblationResult(results[-1] if results else ABSENT)


def _find_resource(value: ExplainedValue, package: ReRenderedPackage) -> PackageResource | None:
    """Return the resource of `package` with the same kind, namespace and name as the resource of the value.

    If there is no such resource, return the only resource of the same kind in the same file. Otherwise, return None.
    """
    resources = Package(package.rendered.files).resources if package.rendered else ()
    same_name = [resource for resource in resources if resource.key.reference == value.resource]
    if same_name:
        return next((resource for resource in same_name if resource.file == value.file), same_name[0])
    kind = value.resource.partition("/")[0]
    same_kind = [resource for resource in resources if (resource.file, resource.kind) == (value.file, kind)]
    return same_kind[0] if len(same_kind) == 1 else None


def _find_other_pointer(
    value: ExplainedValue, resource: PackageResource | None, other_resource: PackageResource
) -> str | None:
    """Return the pointer of the value in `other_resource`. A list item can have a different index there.

    Return None if `other_resource` lacks the list item.
    """
    data = resource.data if resource and value.removed_from is ABSENT else value.removed_from
    if data is ABSENT or "!/" in value.pointer:
        return value.pointer
    path = find_previous_path(other_resource.data, data, parse_data_path(value.pointer, data))
    return None if path is None else format_pointer(path)
