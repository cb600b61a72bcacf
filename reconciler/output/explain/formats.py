"""Formats the result of `reconciler explain` as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.controllers.plugin_presets.option_layers import INJECTED_LAYER
from reconciler.krm.json_text import DIGEST_PATTERN
from reconciler.krm.merge3.rules import ABSENT
from reconciler.output.explain.model import (
    RESOURCE_LAYER,
    SOURCE_LAYERS,
    AblationResult,
    ExplainedValue,
    FieldDependencies,
    ResourceLocation,
    ValueStep,
)
from reconciler.output.explain.result import ExplainedPackage, ExplanationResult, OptionLayerEntry
from reconciler.output.explain.verification import format_commit
from reconciler.output.findings.formats import format_findings
from reconciler.output.status.package_sections import format_children, format_settings_to_repeat
from reconciler.output.text import format_both_values, format_value, shorten_id, to_one_line
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.package_context import PACKAGE_CONTEXT_FILE

_MAX_CHILDREN = 50
_ADDON_LAYER = "addon"
_UNSET_LAYER = "unset"
# Group the values of these layers, because one step of such a layer often sets values in many resources.
_GROUPED_LAYERS = frozenset({"edit", "draft", "clone", "context", "pipeline", "injection", "function", "controller"})


def format_explanation(result: ExplanationResult) -> str:
    """Return the explanation as text: the inputs of the package, the steps of each value, and other details."""
    package = result.summary
    sections = [
        _list_heading_lines(result),
        *(_list_value_lines(value) for value in result.items if _has_own_table(value, result)),
        *_list_grouped_values(result),
        *_list_unchanged_values(result),
        _list_omitted_resources(result),
        [*format_children(package.templates, _MAX_CHILDREN), *format_settings_to_repeat(package.templates)],
        _list_option_layers(package.option_layers),
    ]
    return "\n\n".join("\n".join(map(to_one_line, section)) for section in map(list, sections) if section) + "\n"


def _list_heading_lines(result: ExplanationResult) -> Iterator[str]:
    package, config = result.summary, result.metadata.config
    yield package.package
    if package.commit:
        yield f"  at commit {shorten_id(package.commit)}, rendered with the config {shorten_id(config)}"
    elif not config.startswith("tree:"):
        yield f"  config: {shorten_id(config)}"
    if package.is_rendered and not package.is_reproduced:
        yield "  warning: the re-rendered package differs from this commit; the values below are the re-rendered values"
    if package.blocked_reason:
        yield f"  blocked: {package.blocked_reason}"
    yield from (f"  {line}" for line in format_findings(entry.to_finding() for entry in result.findings))
    if package.owner:
        created_by = f", created by {package.owner_parent}" if package.owner_parent else ""
        yield f"  owner: {package.owner.reference}{created_by}"
    if package.source:
        yield f"  source: {package.source}"
    objects = [entry for entry in package.inputs.get("objects", ()) if "file" in entry]
    if objects:
        names = (f"{_format_object_name(entry)} ({entry['file']})" for entry in objects)
        yield f"  inputs: {', '.join(names)}"
    if addons := [override["name"] for override in package.applied_overrides if override["layer"] == _ADDON_LAYER]:
        yield f"  addons, in the order of application: {', '.join(addons)}"
    for injected in package.injected:
        origin = f"{injected['object']}{_format_file(injected.get('from', ''))}"
        yield f"  injected: {origin} at the injection point {injected['point']} of {injected['file']}"


def _format_object_name(entry: Mapping[str, str]) -> str:
    return "/".join(entry[part] for part in ("kind", "namespace", "name") if part in entry)


def _format_file(file: str) -> str:
    return f" ({file})" if file else ""


def _list_value_lines(value: ExplainedValue) -> Iterator[str]:
    yield f"{_format_value_name(value)}: {_format_result(value.steps[-1])}"
    rows = [(step.instance or step.layer, _format_change(step), _format_origin(step)) for step in value.steps]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for number, (step, (layer, change, origin)) in enumerate(zip(value.steps, rows, strict=True), 1):
        wins = "  wins" if number == len(rows) else ""
        yield f"  {number}. {layer.ljust(widths[0])}  {change.ljust(widths[1])}  {origin}{wins}"
        yield from _list_step_details(step)
    if value.dependencies:
        yield from _list_dependencies(value.dependencies)


def _format_value_name(value: ExplainedValue) -> str:
    if not value.resource:
        return f"chart value {_format_chart_value_name(value)}"
    option = f" {value.option}" if value.option else ""
    return f"{value.resource} {value.pointer}{option} in {value.file}"


def _format_chart_value_name(value: ExplainedValue) -> str:
    return f"{value.option} of source {value.source}" if value.source else value.option


def _list_dependencies(dependencies: FieldDependencies) -> Iterator[str]:
    """Yield the chart values that affect a field, and the number of values whose effect is unknown."""
    yield "  depends on chart values:" if dependencies.values else "  depends on no chart value that was checked"
    for value in dependencies.values:
        yield f"    {_format_chart_value_name(value)}: {_format_result(value.steps[-1])}"
        yield from (f"      {step.layer}  {_format_change(step)}  {_format_origin(step)}" for step in value.steps)
    if dependencies.unknown:
        yield f"    unknown, because the chart fails if these values change: {', '.join(dependencies.unknown)}"
    if dependencies.unchecked_count:
        count = dependencies.unchecked_count
        yield f"    not checked: {count} values (limit of the setting sources.helm.explain_renders)"


def _list_step_details(step: ValueStep) -> Iterator[str]:
    """Yield the local commit and the inputs of a step, and the value that the resource has without this step."""
    if step.local_commit:
        yield f"       {format_commit(step.local_commit)}"
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
    """Return a location such as ` (config/web.yaml:12 spec.replicas)`, or "" if no part of the location is known."""
    position = f"{file}:{line}" if file and line else file
    location = " ".join(part for part in (position, field) if part)
    revision = f"{'digest' if DIGEST_PATTERN.fullmatch(commit) else 'commit'} {shorten_id(commit)}" if commit else ""
    parts = [part for part in (location, revision) if part]
    return f" ({', '.join(parts)})" if parts else ""


def _has_own_table(value: ExplainedValue, result: ExplanationResult) -> bool:
    """Return whether the text shows a value in a separate table. Other values are in groups or omitted."""
    is_in_group = value.is_unchanged or _get_group_key(value) is not None or _is_omitted(value, result)
    return not is_in_group or len(result.items) == 1


def _get_group_key(value: ExplainedValue) -> tuple[str, ...] | None:
    """Return the key of the group that a value belongs to. Return None for a value that belongs to no group.

    The values of a group were set by the same step. A value that several steps set belongs to no group.
    """
    last = value.steps[-1]
    if len(value.steps) > 1 or last.layer not in _GROUPED_LAYERS or last.ablation:
        return None
    return last.layer, last.set_by, last.function_config, last.file, last.field, last.commit


def _list_grouped_values(result: ExplanationResult) -> Iterator[Iterable[str]]:
    """Group the values that only one step set, e.g. a function or a local change. Yield the lines of each group."""
    groups: dict[tuple[str, ...], list[ExplainedValue]] = {}
    for value in result.items:
        key = _get_group_key(value)
        if key and not _has_own_table(value, result) and not _is_omitted(value, result):
            groups.setdefault(key, []).append(value)
    for values in groups.values():
        step = values[0].steps[-1]
        lines = {value.steps[-1].line for value in values}
        origin = _format_origin(step if len(lines) == 1 else replace(step, line=0))
        entries = (f"  {value.resource} {value.pointer}: {_format_result(value.steps[-1])}" for value in values)
        yield [f"layer {step.layer}, set by {origin}:", *entries]


def _is_omitted(value: ExplainedValue, result: ExplanationResult) -> bool:
    """Return whether the output omits a value.

    If the user requested no resource, the output omits the values in Kptfiles and package contexts.
    """
    return not result.summary.requested_resource and value.file.endswith((KPTFILE, PACKAGE_CONTEXT_FILE))


def _list_omitted_resources(result: ExplanationResult) -> Iterator[str]:
    omitted = dict.fromkeys(value.resource for value in result.items if _is_omitted(value, result))
    if omitted and len(result.items) > 1:
        yield f"not shown: {', '.join(omitted)}; to explain one of these resources, add its name to the command"


def _list_unchanged_values(result: ExplanationResult) -> Iterator[Iterable[str]]:
    """Yield one group of lines per resource for values that are equal to the source of the package."""
    by_location: dict[ResourceLocation, list[ExplainedValue]] = {}
    for value in result.items:
        if value.is_unchanged and not _has_own_table(value, result):
            by_location.setdefault(value.location, []).append(value)
    for (file, resource), values in by_location.items():
        lines = dict.fromkeys(_format_unchanged(value.steps[-1], result.summary) for value in values)
        has_others = len(values) < sum(value.location == (file, resource) for value in result.items)
        title = f"{resource} in {file}, {'all other values' if has_others else 'all values'}:"
        yield [title, *(f"  {line}" for line in lines)]
    if not result.items and result.summary.is_rendered:
        yield [
            "All values are unchanged from the source. To list the values of a resource, add its name to the command."
        ]


def _format_unchanged(step: ValueStep, package: ExplainedPackage) -> str:
    """Return the origin of a value that is equal to the source of the package."""
    if step.layer == RESOURCE_LAYER:
        return f"unchanged from {step.set_by}{_format_file(step.file)}"
    if step.layer in SOURCE_LAYERS and package.upstream.get("sources"):
        return f"unchanged from {step.set_by}{_format_location(step.file, 0, '', step.commit)}"
    if step.layer in SOURCE_LAYERS:
        # Only a value from a template of a chart has a file without a line.
        template = f", template {step.file}" if step.file and not step.line else ""
        return f"unchanged from the source: {package.source}{template}"
    layer = f"{step.layer} {step.instance}" if step.instance else step.layer
    loop = f", for each item of {format_value(step.loop)}" if step.loop else ""
    return f"from the template of the layer {layer}: {step.set_by}{_format_file(step.file)}{loop}"


def _list_option_layers(layers: Sequence[OptionLayerEntry]) -> Iterator[str]:
    # Only list option layers of Plugins, because the layers of component values have no common order.
    if not any(layer.is_effective for layer in layers):
        return
    yield "option layers, from the lowest to the highest precedence; * marks a layer that sets one of the values above:"
    width = max(len(layer.id) for layer in layers)
    for layer in layers:
        yield f"  {'*' if layer.is_effective else ' '} {layer.id.ljust(width)}  {layer.source}"
