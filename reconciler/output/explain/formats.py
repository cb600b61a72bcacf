"""Formats an explanation as text and as JSON data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from reconciler.controllers.plugin_presets.option_layers import INJECTED_LAYER, OptionLayer
from reconciler.controllers.results import UpstreamPackage, Variant
from reconciler.krm.merge3.rules import ABSENT
from reconciler.output.explain.model import (
    RESOURCE_LAYER,
    SOURCE_LAYERS,
    AblationResult,
    ExplainedValue,
    PackageExplanation,
    ResourceLocation,
    ValueStep,
)
from reconciler.output.findings.formats import build_findings_data, format_findings
from reconciler.output.json_data import drop_empty
from reconciler.output.status.package_sections import format_children, format_settings_to_repeat
from reconciler.output.status.package_status import build_injected_data, build_inputs_data
from reconciler.output.text import format_both_values, format_value, shorten_id, to_one_line
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.package_context import PACKAGE_CONTEXT_FILE
from reconciler.planning.attribution.re_render import ReRenderedPackage

_MAX_CHILDREN = 50
_ADDON_LAYER = "addon"
_UNSET_LAYER = "unset"
# Group the values of these layers, because one step of such a layer often sets values in many resources.
_GROUPED_LAYERS = frozenset({"edit", "draft", "clone", "context", "pipeline", "injection", "function", "room"})


def format_explanation(explanation: PackageExplanation) -> str:
    """Return the explanation as text: the inputs of the package, the steps of each value, and other details."""
    children = explanation.template_children
    sections = [
        _list_heading_lines(explanation.package),
        *(_list_value_lines(value) for value in explanation.values if _has_own_table(value, explanation)),
        *_list_grouped_values(explanation),
        *_list_unchanged_values(explanation),
        _list_omitted_resources(explanation),
        [*format_children(children, _MAX_CHILDREN), *format_settings_to_repeat(children)],
        _list_option_layers(explanation.option_layers, explanation.effective_layers),
    ]
    return "\n\n".join("\n".join(map(to_one_line, section)) for section in map(list, sections) if section) + "\n"


def build_explanation_data(explanation: PackageExplanation) -> dict[str, Any]:
    """Return the explanation as JSON data, and omit empty fields."""
    package = explanation.package
    provenance = package.variant.provenance if package.variant else None
    return drop_empty({
        "package": package.target,
        "config": package.config,
        "at": package.commit,
        "isSure": package.is_reproduced if package.commit else None,
        "owner": package.owner.as_data() if package.owner else None,
        "upstream": package.variant.source.as_data() if package.variant else None,
        "inputs": drop_empty(_build_inputs(package)),
        "injected": build_injected_data(package.rendered) if package.rendered else [],
        "appliedOverrides": provenance.list_applied_overrides() if provenance else [],
        "trouble": package.blocked_reason,
        "findings": build_findings_data(package.findings),
        "layers": [
            {"id": layer.id, "source": layer.source, "said": layer.id in explanation.effective_layers}
            for layer in explanation.option_layers
        ],
        "values": [_build_value_data(value) for value in explanation.values],
        "templates": [dict(child) for child in explanation.template_children],
    })  # fmt: skip


def _build_inputs(package: ReRenderedPackage) -> dict[str, Any]:
    if package.variant is None or package.rendered is None:
        return {}
    return build_inputs_data(package.variant, package.rendered, package.trace, package.config)


def _list_heading_lines(package: ReRenderedPackage) -> Iterator[str]:
    yield package.target
    if package.commit:
        yield f"  at commit {shorten_id(package.commit)}, rendered with the config {shorten_id(package.config)}"
    elif not package.config.startswith("tree:"):
        yield f"  config: {shorten_id(package.config)}"
    if package.rendered and not package.is_reproduced:
        yield "  warning: the re-rendered package differs from this commit; the values below are the re-rendered values"
    if package.blocked_reason:
        yield f"  blocked: {package.blocked_reason}"
    yield from (f"  {line}" for line in format_findings(package.findings))
    if package.owner:
        created_by = f", created by {package.owner.parent}" if package.owner.parent else ""
        yield f"  owner: {package.owner.key}{created_by}"
    if package.variant:
        yield f"  source: {_format_source(package)}"
    objects = [entry for entry in _build_inputs(package).get("objects", ()) if "file" in entry]
    if objects:
        names = (f"{_format_object_name(entry)} ({entry['file']})" for entry in objects)
        yield f"  inputs: {', '.join(names)}"
    if package.variant and (addons := _list_addons(package.variant)):
        yield f"  addons, in the order of application: {', '.join(addons)}"
    for injected in build_injected_data(package.rendered) if package.rendered else ():
        origin = f"{injected['object']}{_format_file(injected.get('from', ''))}"
        yield f"  injected: {origin} at the injection point {injected['point']} of {injected['file']}"


def _format_source(package: ReRenderedPackage) -> str:
    upstream = package.variant.source if package.variant else None
    if isinstance(upstream, UpstreamPackage):
        name = f"{upstream.repository}/{upstream.package} {upstream.ref}"
        return f"upstream {name} at commit {shorten_id(upstream.commit)}"
    return f"generated by {package.owner.key if package.owner else 'its owner'}"


def _list_addons(variant: Variant) -> list[str]:
    overrides = variant.provenance.list_applied_overrides() if variant.provenance else []
    return [override["name"] for override in overrides if override["layer"] == _ADDON_LAYER]


def _format_object_name(entry: dict[str, str]) -> str:
    return "/".join(entry[part] for part in ("kind", "namespace", "name") if part in entry)


def _format_file(file: str) -> str:
    return f" ({file})" if file else ""


def _list_value_lines(value: ExplainedValue) -> Iterator[str]:
    option = f" {value.option}" if value.option else ""
    yield f"{value.resource} {value.pointer}{option} in {value.file}: {_format_result(value.steps[-1])}"
    rows = [(step.instance or step.layer, _format_change(step), _format_origin(step)) for step in value.steps]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for number, (step, (layer, change, origin)) in enumerate(zip(value.steps, rows, strict=True), 1):
        wins = "  wins" if number == len(rows) else ""
        yield f"  {number}. {layer.ljust(widths[0])}  {change.ljust(widths[1])}  {origin}{wins}"
        yield from _list_step_details(step)


def _list_step_details(step: ValueStep) -> Iterator[str]:
    """Yield the inputs of the expression of a step, and the value that the resource has without this step."""
    if step.loop:
        yield f"       for each item of {format_value(step.loop)}"
    for expression_input in step.expression_inputs:
        ablation = expression_input.ablation
        ablation_text = f"; without this input: {_format_ablation(ablation)}" if ablation else ""
        yield f"       input {expression_input.input_name}: {_format_input_origin(expression_input)}{ablation_text}"
    if step.ablation:
        yield f"       without this layer: {_format_ablation(step.ablation)}"


def _format_ablation(ablation: AblationResult) -> str:
    if ablation.blocked_reason:
        return f"the package is blocked: {ablation.blocked_reason}"
    return "no value" if ablation.value is ABSENT else format_value(ablation.value)


def _format_input_origin(expression_input: ValueStep) -> str:
    if expression_input.layer == _UNSET_LAYER:
        return "not set"
    location = _format_location(expression_input.file, expression_input.line, expression_input.field)
    return f"layer {expression_input.layer}, {expression_input.set_by}{location}"


def _format_result(last: ValueStep) -> str:
    return "removed" if last.after is ABSENT else format_value(last.after)


def _format_change(step: ValueStep) -> str:
    expression = "" if step.expression is ABSENT else f" = {format_value(step.expression)}"
    if step.before is ABSENT:
        added = "" if step.layer in SOURCE_LAYERS else "added "
        return f"{added}{format_value(step.after)}{expression}"
    if step.after is ABSENT:
        return f"removed, was {format_value(step.before)}"
    old, new = format_both_values(step.before, step.after)
    return f"{old} → {new}{expression}"


def _format_origin(step: ValueStep) -> str:
    if step.layer == INJECTED_LAYER and not step.field:
        return f"the reconciler, for {step.set_by}"
    config = f" with {step.function_config}" if step.function_config else ""
    location = _format_location(step.file, step.line, step.field, step.commit)
    return f"{step.set_by}{config}{location}"


def _format_location(file: str, line: int, field: str, commit: str = "") -> str:
    """Return a location such as ` (config/web.yaml:12 spec.replicas)`, or "" if no part of it is known."""
    position = f"{file}:{line}" if file and line else file
    location = " ".join(part for part in (position, field) if part)
    parts = [part for part in (location, f"commit {shorten_id(commit)}" if commit else "") if part]
    return f" ({', '.join(parts)})" if parts else ""


def _has_own_table(value: ExplainedValue, explanation: PackageExplanation) -> bool:
    """Return whether the text shows a value in a separate table. Other values are in groups or omitted."""
    is_in_group = value.is_unchanged or _get_group_key(value) is not None or _is_omitted(value, explanation)
    return not is_in_group or len(explanation.values) == 1


def _get_group_key(value: ExplainedValue) -> tuple[str, ...] | None:
    """Return the key to group values that one step set. Return None if several steps set the value."""
    last = value.steps[-1]
    if len(value.steps) > 1 or last.layer not in _GROUPED_LAYERS or last.ablation:
        return None
    return last.layer, last.set_by, last.function_config, last.file, last.field, last.commit


def _list_grouped_values(explanation: PackageExplanation) -> Iterator[Iterable[str]]:
    """Yield one group of lines per step for values that one function, one person or the reconciler set."""
    groups: dict[tuple[str, ...], list[ExplainedValue]] = {}
    for value in explanation.values:
        key = _get_group_key(value)
        if key and not _has_own_table(value, explanation) and not _is_omitted(value, explanation):
            groups.setdefault(key, []).append(value)
    for values in groups.values():
        step = values[0].steps[-1]
        lines = {value.steps[-1].line for value in values}
        origin = _format_origin(step if len(lines) == 1 else replace(step, line=0))
        entries = (f"  {value.resource} {value.pointer}: {_format_result(value.steps[-1])}" for value in values)
        yield [f"layer {step.layer}, set by {origin}:", *entries]


def _is_omitted(value: ExplainedValue, explanation: PackageExplanation) -> bool:
    """Return whether a value is in a Kptfile or package context that the user did not request."""
    return not explanation.requested_resource and value.file.endswith((KPTFILE, PACKAGE_CONTEXT_FILE))


def _list_omitted_resources(explanation: PackageExplanation) -> Iterator[str]:
    omitted = dict.fromkeys(value.resource for value in explanation.values if _is_omitted(value, explanation))
    if omitted and len(explanation.values) > 1:
        yield f"not shown: {', '.join(omitted)}; to explain a resource, name it in the command"


def _list_unchanged_values(explanation: PackageExplanation) -> Iterator[Iterable[str]]:
    """Yield one group of lines per resource for values that are equal to the source of the package."""
    by_location: dict[ResourceLocation, list[ExplainedValue]] = {}
    for value in explanation.values:
        if value.is_unchanged and not _has_own_table(value, explanation):
            by_location.setdefault(value.location, []).append(value)
    for (file, resource), values in by_location.items():
        lines = dict.fromkeys(_format_unchanged(value.steps[-1], explanation.package) for value in values)
        has_others = len(values) < sum(value.location == (file, resource) for value in explanation.values)
        title = f"{resource} in {file}, {'all other values' if has_others else 'all values'}:"
        yield [title, *(f"  {line}" for line in lines)]
    if not explanation.values and explanation.package.rendered:
        yield ["All values are unchanged from the source. To list the values of a resource, name it in the command."]


def _format_unchanged(step: ValueStep, package: ReRenderedPackage) -> str:
    """Return the origin of a value that is equal to the source of the package."""
    if step.layer == RESOURCE_LAYER:
        return f"unchanged from {step.set_by}{_format_file(step.file)}"
    if step.layer in SOURCE_LAYERS:
        return f"unchanged from the source: {_format_source(package)}"
    layer = f"{step.layer} {step.instance}" if step.instance else step.layer
    loop = f", for each item of {format_value(step.loop)}" if step.loop else ""
    return f"from the template of the layer {layer}: {step.set_by}{_format_file(step.file)}{loop}"


def _list_option_layers(layers: Collection[OptionLayer], effective_layers: frozenset[str]) -> Iterator[str]:
    # Only list option layers of Plugins, because the layers of component values have no common order.
    if not layers or not effective_layers:
        return
    yield "option layers, from the lowest to the highest precedence; * marks a layer that sets one of the values above:"
    width = max(len(layer.id) for layer in layers)
    for layer in layers:
        yield f"  {'*' if layer.id in effective_layers else ' '} {layer.id.ljust(width)}  {layer.source}"


def _build_value_data(value: ExplainedValue) -> dict[str, Any]:
    location = {
        "file": value.file, "resource": value.resource, "pointer": value.pointer, "option": value.option,
    }  # fmt: skip
    return {**drop_empty(location), "steps": [_build_step_data(step) for step in value.steps]}


def _build_step_data(step: ValueStep) -> dict[str, Any]:
    values = {"before": step.before, "after": step.after, "expression": step.expression}
    origin = drop_empty({
        "layer": step.layer, "by": step.set_by, "file": step.file, "where": step.field, "commit": step.commit,
        "config": step.function_config, "op": step.operation,
    })  # fmt: skip
    line = {"line": step.line} if step.line else {}
    inputs = [_build_input_data(expression_input) for expression_input in step.expression_inputs]
    return {
        **origin,
        **line,
        **{name: value for name, value in values.items() if value is not ABSENT},
        **drop_empty({"instance": step.instance, "forEach": step.loop, "values": inputs}),
        **({"without": _build_ablation_data(step.ablation)} if step.ablation else {}),
    }


def _build_ablation_data(ablation: AblationResult) -> dict[str, Any]:
    if ablation.blocked_reason:
        return {"trouble": ablation.blocked_reason}
    return {} if ablation.value is ABSENT else {"value": ablation.value}


def _build_input_data(expression_input: ValueStep) -> dict[str, Any]:
    data = {
        "name": expression_input.input_name, "layer": expression_input.layer, "by": expression_input.set_by,
        "file": expression_input.file, "where": expression_input.field, "line": expression_input.line or None,
    }  # fmt: skip
    ablation = expression_input.ablation
    return {**drop_empty(data), **({"without": _build_ablation_data(ablation)} if ablation else {})}
