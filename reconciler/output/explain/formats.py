"""An explanation for people, as tables of steps, and for tools, as data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from reconciler.controllers.plugin_presets.option_layers import INJECTED_LAYER, OptionLayer
from reconciler.controllers.results import UpstreamPackage, Variant
from reconciler.krm.merge3.rules import ABSENT
from reconciler.output.data import drop_empty
from reconciler.output.explain.model import (
    RESOURCE,
    SOURCES,
    AblationResult,
    ExplainedPackage,
    ExplainedValue,
    ExpressionInput,
    PackageExplanation,
    ResourceLocation,
    ValueStep,
)
from reconciler.output.findings.formats import build_findings_data, format_findings
from reconciler.output.status.package_sections import format_children, format_settings_to_repeat
from reconciler.output.status.package_status import build_injected_data, build_inputs_data
from reconciler.output.text import format_both_values, format_value, to_one_line
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.package_context import PACKAGE_CONTEXT_FILE

_SHORT = 12
_CHILDREN = 50
_ADDON = "addon"
_UNSET = "unset"
# what one of these sets is mostly set in many places alike
_WORKS = frozenset({"edit", "draft", "clone", "context", "pipeline", "injection", "function", "room"})


def format_explanation(explanation: PackageExplanation) -> str:
    """Return the explanation as plain text: what the package is made of, each value's steps, and all the rest."""
    sections = [
        _heading(explanation.explained),
        *(_value(one) for one in explanation.values if _is_told_alone(one, explanation)),
        *_alike(explanation),
        *_folded(explanation),
        _for_tools(explanation),
        [*format_children(explanation.children, _CHILDREN), *format_settings_to_repeat(explanation.children)],
        _layers(explanation.layers, explanation.effective_layers),
    ]
    return "\n\n".join("\n".join(map(to_one_line, section)) for section in map(list, sections) if section) + "\n"


def build_explanation_data(explanation: PackageExplanation) -> dict[str, Any]:
    """Return the explanation as JSON data; what is empty is left out."""
    one = explanation.explained
    provenance = one.variant.provenance if one.variant else None
    return drop_empty({
        "package": one.target,
        "config": one.config,
        "at": one.commit,
        "isSure": one.is_reproduced if one.commit else None,
        "owner": one.owner.as_data() if one.owner else None,
        "upstream": one.variant.source.as_data() if one.variant else None,
        "inputs": drop_empty(_inputs(one)),
        "injected": build_injected_data(one.rendered) if one.rendered else [],
        "appliedOverrides": provenance.list_applied_overrides() if provenance else [],
        "trouble": one.blocked_reason,
        "findings": build_findings_data(one.findings),
        "layers": [{"id": layer.id, "source": layer.source, "said": layer.id in explanation.effective_layers}
                   for layer in explanation.layers],
        "values": [_value_data(each) for each in explanation.values],
        "templates": [dict(each) for each in explanation.children],
    })  # fmt: skip


def _inputs(one: ExplainedPackage) -> dict[str, Any]:
    if one.variant is None or one.rendered is None:
        return {}
    return build_inputs_data(one.variant, one.rendered, {**one.rendered.trace, **one.variant.dependencies}, one.config)


def _heading(one: ExplainedPackage) -> Iterator[str]:
    yield one.target
    if not one.commit and not one.config.startswith("tree:"):
        yield f"  config: {one.config[:_SHORT]}"
    if one.commit:
        yield f"  as it stands at {one.commit[:_SHORT]}, by the config {one.config[:_SHORT]}"
    if not one.is_reproduced:
        yield "  made again it comes out otherwise than it stands there; what is told is of what comes out"
    if one.blocked_reason:
        yield f"  {'' if one.commit else 'it stays as it is: '}{one.blocked_reason}"
    yield from (f"  {line}" for line in format_findings(one.findings))
    if one.owner:
        made_by = f", made by {one.owner.parent}" if one.owner.parent else ""
        yield f"  owner: {one.owner.key}{made_by}"
    if one.variant:
        yield f"  source: {_source(one)}"
    if named := [f"{_name(each)} ({each['file']})" for each in _inputs(one).get("objects", ()) if "file" in each]:
        yield f"  objects that it was made of: {', '.join(named)}"
    if one.variant and (addons := _addons(one.variant)):
        yield f"  addons, in the order of their work: {', '.join(addons)}"
    for each in build_injected_data(one.rendered) if one.rendered else ():
        yield f"  injected: {each['point']} of {each['file']} from {each['object']}{_in(each.get('from', ''))}"


def _source(one: ExplainedPackage) -> str:
    upstream = one.variant.source if one.variant else None
    if isinstance(upstream, UpstreamPackage):
        return f"upstream {upstream.repository}/{upstream.package} {upstream.ref} at {upstream.commit[:_SHORT]}"
    return f"generated by {one.owner.key if one.owner else 'its owner'}"


def _addons(variant: Variant) -> list[str]:
    applied = variant.provenance.list_applied_overrides() if variant.provenance else []
    return [one["name"] for one in applied if one["layer"] == _ADDON]


def _name(each: dict[str, str]) -> str:
    return "/".join(each[part] for part in ("kind", "namespace", "name") if part in each)


def _in(file: str) -> str:
    return f" ({file})" if file else ""


def _value(one: ExplainedValue) -> Iterator[str]:
    option = f" {one.option}" if one.option else ""
    yield f"{one.resource} {one.pointer}{option} in {one.file}: {_outcome(one.steps[-1])}"
    rows = [(step.instance or step.layer, _change(step), _place(step)) for step in one.steps]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for number, (step, (who, change, place)) in enumerate(zip(one.steps, rows, strict=True), 1):
        wins = "  wins" if number == len(rows) else ""
        yield f"  {number}. {who.ljust(widths[0])}  {change.ljust(widths[1])}  {place}{wins}"
        yield from _reasons(step)


def _reasons(step: ValueStep) -> Iterator[str]:
    """Yield where what an expression read was from."""
    if step.loop:
        yield f"       for each of {format_value(step.loop)}"
    for one in step.expression_inputs:
        yield f"       {one.name}: {_source_of(one)}{_also_without(one.ablation)}"
    if step.ablation:
        yield f"       without it: {_without(step.ablation)}"


def _also_without(one: AblationResult | None) -> str:
    return f"; without it: {_without(one)}" if one else ""


def _without(one: AblationResult) -> str:
    if one.blocked_reason:
        return f"the package would wait: {one.blocked_reason}"
    return "there would be none" if one.value is ABSENT else format_value(one.value)


def _source_of(one: ExpressionInput) -> str:
    if one.layer == _UNSET:
        return "nobody gives it"
    return f"{one.layer}  {_at(one.by, one.file, one.line, one.field)}"


def _outcome(last: ValueStep) -> str:
    return "removed" if last.after is ABSENT else format_value(last.after)


def _change(step: ValueStep) -> str:
    expression = "" if step.expression is ABSENT else f" by {format_value(step.expression)}"
    if step.before is ABSENT:
        added = "" if step.layer in SOURCES else "added "
        return f"{added}{format_value(step.after)}{expression}"
    if step.after is ABSENT:
        return f"removed, was {format_value(step.before)}"
    old, new = format_both_values(step.before, step.after)
    return f"{old} → {new}{expression}"


def _place(step: ValueStep) -> str:
    if step.layer == INJECTED_LAYER and not step.field:
        return f"the reconciler, for {step.by}"
    by = f"{step.by} with {step.config}" if step.config else step.by
    commit = f" at {step.commit[:_SHORT]}" if step.commit else ""
    return _at(by, step.file, step.line, step.field) + commit


def _at(by: str, file: str, line: int, field: str) -> str:
    place = f"{file}:{line}" if file and line else file
    return " ".join(part for part in (by, place, field) if part)


def _is_told_alone(one: ExplainedValue, explanation: PackageExplanation) -> bool:
    """Tell whether a value has a table of its own: it is not told with others, or the only one that is asked for."""
    is_one_of_many = one.is_plain or _alike_key(one) is not None or _is_for_tools(one, explanation)
    return not is_one_of_many or len(explanation.values) == 1


def _alike_key(one: ExplainedValue) -> tuple[str, ...] | None:
    """Return what values have in common that one step has set; None for those that have a longer story."""
    last = one.steps[-1]
    if len(one.steps) > 1 or last.layer not in _WORKS or last.ablation:
        return None
    return last.layer, last.by, last.config, last.file, last.field, last.commit


def _alike(explanation: PackageExplanation) -> Iterator[Iterable[str]]:
    """Yield the values that one function, or person, or the reconciler set, each on one line."""
    found: dict[tuple[str, ...], list[ExplainedValue]] = {}
    for one in explanation.values:
        key = _alike_key(one)
        if key and not _is_told_alone(one, explanation) and not _is_for_tools(one, explanation):
            found.setdefault(key, []).append(one)
    for values in found.values():
        step = values[0].steps[-1]
        lines = {each.steps[-1].line for each in values}
        place = _place(step if len(lines) == 1 else replace(step, line=0))
        told = (f"  {one.resource} {one.pointer}: {_outcome(one.steps[-1])}" for one in values)
        yield [f"set by {step.layer}, {place}:", *told]


def _is_for_tools(one: ExplainedValue, explanation: PackageExplanation) -> bool:
    """Tell whether a value is in a file for tools alone, which nobody asked for by name."""
    return not explanation.resource and one.file.endswith((KPTFILE, PACKAGE_CONTEXT_FILE))


def _for_tools(explanation: PackageExplanation) -> Iterator[str]:
    found = dict.fromkeys(one.resource for one in explanation.values if _is_for_tools(one, explanation))
    if found and len(explanation.values) > 1:
        yield f"and what is for tools, to be asked for by name: {', '.join(found)}"


def _folded(explanation: PackageExplanation) -> Iterator[Iterable[str]]:
    """Yield what is as the source of each resource has it."""
    by_place: dict[ResourceLocation, list[ExplainedValue]] = {}
    for one in explanation.values:
        if one.is_plain and not _is_told_alone(one, explanation):
            by_place.setdefault(one.location, []).append(one)
    for (file, resource), values in by_place.items():
        lines = dict.fromkeys(_source_line(one.steps[-1], explanation.explained) for one in values)
        told = len(values) < sum(one.location == (file, resource) for one in explanation.values)
        yield [f"{resource} in {file}, {'all else' if told else 'all of it'}:", *(f"  {line}" for line in lines)]
    if not explanation.values and explanation.explained.rendered:
        yield ["all of it is as its source has it; name a RESOURCE to see where its values are"]


def _source_line(step: ValueStep, one: ExplainedPackage) -> str:
    """Return where a value is from that no rule has set, in the words that many share."""
    if step.layer == RESOURCE:
        return f"as {step.by} has it  {step.file}"
    if step.layer in SOURCES:
        return f"as its source has it, {_source(one)}"
    who = f"{step.layer} {step.instance}" if step.instance else step.layer
    loop = f", for each of {format_value(step.loop)}" if step.loop else ""
    return f"as its template has it, {who}  {step.by} {step.file}{loop}"


def _layers(layers: Collection[OptionLayer], said: frozenset[str]) -> Iterator[str]:
    # the values of a component have layers as well, and no one ordering of them
    if not layers or not said:
        return
    yield "layers, the last one wins; those with * had a say:"
    width = max(len(layer.id) for layer in layers)
    for layer in layers:
        yield f"  {'*' if layer.id in said else ' '} {layer.id.ljust(width)}  {layer.source}"


def _value_data(one: ExplainedValue) -> dict[str, Any]:
    place = {"file": one.file, "resource": one.resource, "pointer": one.pointer, "option": one.option}
    return {**drop_empty(place), "steps": [_step_data(step) for step in one.steps]}


def _step_data(step: ValueStep) -> dict[str, Any]:
    values = {"before": step.before, "after": step.after, "expression": step.expression}
    place = drop_empty({
        "layer": step.layer, "by": step.by, "file": step.file, "where": step.field, "commit": step.commit,
        "config": step.config, "op": step.op,
    })  # fmt: skip
    line = {"line": step.line} if step.line else {}
    found = {**place, **line, **{name: value for name, value in values.items() if value is not ABSENT}}
    given = [_given_data(each) for each in step.expression_inputs]
    without = {"without": _without_data(step.ablation)} if step.ablation else {}
    return {**found, **drop_empty({"instance": step.instance, "forEach": step.loop, "values": given}), **without}


def _without_data(one: AblationResult) -> dict[str, Any]:
    if one.blocked_reason:
        return {"trouble": one.blocked_reason}
    return {} if one.value is ABSENT else {"value": one.value}


def _given_data(one: ExpressionInput) -> dict[str, Any]:
    found = {"name": one.name, "layer": one.layer, "by": one.by, "file": one.file, "where": one.field}
    without = {"without": _without_data(one.ablation)} if one.ablation else {}
    return {**drop_empty({**found, "line": one.line or None}), **without}
