"""Formats sections of a PackageStatus file as text lines: task, owner, conflicts, gates, overrides and templates.

Functions for recorded sections accept any data and skip invalid entries, because anyone can edit the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.controllers.kafka_templates.effective_templates import TemplateChange, TemplateEffect
from reconciler.controllers.results import read_upstream_status
from reconciler.krm.merge3.rules import Conflict
from reconciler.krm.numbers import format_count
from reconciler.output.changes.package_changes import limit_lines, shorten_ref
from reconciler.output.json_data import mask_secrets, read_mappings
from reconciler.output.text import (
    format_both_values,
    format_folded_block,
    format_object_reference,
    format_pointer_path,
    format_value,
    list_first_lines,
    shorten,
    to_one_line,
)
from reconciler.planning.model.outcomes import Draft, PackageRender
from reconciler.planning.model.sources import filter_recorded_conflicts, serialize_conflict

_MAX_TASK_CHARACTERS = 100
_MAX_GATE_CHARACTERS = 400
_NO_VALUE = "(none)"
_RESULTS_OF_TASKS = {"clone": "install", "adopt": "adopt", "update": "update", "upgrade": "update"}
_OVERRIDE_FIELDS = ("resource", "pointer", "steps")
_TEMPLATE_MODES = {"materialise": "template is written", "report": "template is only reported"}
TEMPLATES_TITLE = "Templates:"
"""The title of the section about template changes in the commit message of a draft."""


def format_task(status: Mapping[str, Any]) -> str:
    """Return the task of a draft with its upstream revision, such as `install v1`, `update v1 → v2` or `re-render`.

    Return "" if the status file has no task.
    """
    task = read_text(status, "task")
    if not task:
        return ""
    refs = [ref for side in ("from", "to") if (ref := _get_short_ref(read_upstream(status, side)))]
    result = _RESULTS_OF_TASKS.get(
        task, "re-render" if "from" in _to_mapping(status.get("upstream")) or not refs else "install"
    )
    version = refs[0] if len(set(refs)) == 1 else " → ".join(refs)
    return shorten(to_one_line(" ".join(filter(None, (result, version)))), _MAX_TASK_CHARACTERS)


def format_recorded_owner(status: Mapping[str, Any]) -> str:
    """Return the owner as `Kind namespace/name`, or "" if the status file has no owner."""
    owner = _to_mapping(status.get("owner"))
    name = "/".join(filter(None, (read_text(owner, "namespace"), read_text(owner, "name"))))
    return to_one_line(" ".join(filter(None, (read_text(owner, "kind"), name))))


def read_upstream(status: Mapping[str, Any], side: str) -> Mapping[str, Any]:
    """Return the upstream before or after the change, or {} if the status file has no such upstream.

    The fields are `repo`, `directory`, `ref`, `commit` and `tree`. The commit of a chart is its digest.

    Args:
        side: "from" for the upstream before the change, or "to" for the upstream after the change.
    """
    return read_upstream_status(_to_mapping(_to_mapping(status.get("upstream")).get(side)))


def read_inputs(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the inputs of the render, or {} if the status file has no inputs."""
    return _to_mapping(status.get("inputs"))


def read_text(data: Mapping[str, Any], name: str) -> str:
    """Return a field of type string, or "" if the field is absent or has a different type."""
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _to_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _get_short_ref(upstream: Mapping[str, Any]) -> str:
    return shorten_ref(read_text(upstream, "ref"), read_text(upstream, "directory"))


def format_conflicts(conflicts: Iterable[Conflict], limit: int | None = None) -> tuple[str, ...]:
    """Return one line per conflict. If there are more than `limit` conflicts, the last line counts the rest."""
    return list_first_lines([_format_conflict(serialize_conflict(conflict)) for conflict in conflicts], limit)


def format_recorded_conflicts(recorded: object, limit: int | None = None) -> tuple[str, ...]:
    """Return the lines of `format_conflicts` for the field `conflicts` of a status file. Skip invalid entries."""
    lines = [to_one_line(_format_conflict(conflict)) for conflict in filter_recorded_conflicts(recorded)]
    return list_first_lines(lines, limit)


def format_conflict_summary(chosen_sides: Iterable[str]) -> str:
    """Return the number of conflicts, such as `1 upstream change not applied, 2 conflicts`. Return "" for no conflicts.

    A conflict with the chosen side "local" means that an upstream change was not applied.
    """
    sides = list(chosen_sides)
    local = sides.count("local")
    parts = [f"{format_count(local, 'upstream change')} not applied"] if local else []
    parts += [format_count(len(sides) - local, "conflict")] if len(sides) > local else []
    return ", ".join(parts)


def format_conflict_location(conflict: Mapping[str, Any]) -> str:
    """Return the location of a conflict, such as `deployment.yaml: Deployment shop/web: spec.replicas`."""
    file, resource, pointer = (str(conflict.get(field, "")) for field in ("file", "resource", "pointer"))
    parts = (file, format_object_reference(resource), format_pointer_path(pointer))
    return ": ".join(part for part in parts if part)


def _format_conflict(conflict: Mapping[str, Any]) -> str:
    location = format_conflict_location(conflict)
    if conflict["kind"] == "package" and not location:
        return "whole package: deleted on the target branch, and this draft adds the package again"
    if conflict["kind"] not in ("field", "element"):
        return f"{location}: {_format_whole_conflict(conflict)}"
    local, new = (format_value(conflict[side]) if side in conflict else _NO_VALUE for side in ("local", "upstream"))
    if conflict["chosen"] == "rule":
        return f"{location}: {conflict['rule']} sets {new} and replaces local {local}"
    if conflict["chosen"] == "upstream":
        return f"{location}: upstream {new} replaces local {local}"
    return f"{location}: local {local} is kept, upstream {new} is not applied"


def _format_whole_conflict(conflict: Mapping[str, Any]) -> str:
    local = "changed locally" if "local" in conflict else "removed locally"
    upstream = "changed upstream" if "upstream" in conflict else "removed upstream"
    results = {
        "upstream": "the upstream version is used",
        "local": "the local version is kept",
        "rule": f"{conflict['rule']} decides",
    }
    return f"{local} and {upstream}: {results[conflict['chosen']]}"


def format_unmet_gates(rendered: PackageRender) -> tuple[str, ...]:
    """Return one line for each reason that blocks publication: a failed render, and unmet readiness gates."""
    conditions = {condition.type: condition for condition in rendered.conditions}
    unmet = dict.fromkeys(rendered.unmet_gates)
    if (render := conditions.get("Rendered")) and render.status == "False":
        unmet = {"Rendered": None, **unmet}
    return tuple(
        _format_gate(name, conditions[name].status, conditions[name].message)
        if name in conditions
        else f"{name} is not reported"
        for name in unmet
    )


def _format_gate(name: str, status: str, message: str) -> str:
    text = f"{name} is {status}: {message}" if message else f"{name} is {status}"
    return shorten(to_one_line(text), _MAX_GATE_CHARACTERS)


def format_overrides(recorded: object, limit: int) -> tuple[str, ...]:
    """Return one line for each field that override policies changed, from the field `overrides` of a status file.

    Invalid entries are skipped. If there are more than `limit` fields, the last line has the number of the rest.
    """
    overrides = read_overrides(recorded)
    lines = [to_one_line(_format_override(override)) for override in overrides[:limit]]
    return (*lines, f"and {len(overrides) - limit} more") if len(overrides) > limit else tuple(lines)


def read_overrides(recorded: object) -> tuple[Mapping[str, Any], ...]:
    """Return the valid entries of the field `overrides` of a status file."""
    entries = recorded if isinstance(recorded, list | tuple) else ()
    return tuple(entry for entry in entries if _is_override(entry))


def list_new_overrides(draft: Draft) -> tuple[Mapping[str, Any], ...]:
    """Return the overridden fields of a new package. Return () for other packages.

    The list of changes already contains the overridden fields of other packages.
    """
    return () if draft.previous_files else draft.rendered.overrides


def _is_override(entry: object) -> bool:
    if not isinstance(entry, Mapping) or not all(field in entry for field in _OVERRIDE_FIELDS):
        return False
    steps = entry["steps"]
    return isinstance(steps, list) and bool(steps) and all(isinstance(step, Mapping) for step in steps)


def _format_override(override: Mapping[str, Any]) -> str:
    steps = override["steps"]
    policies = dict.fromkeys(format_object_reference(str(step.get("by", "a policy"))) for step in steps)
    resource = format_object_reference(str(override["resource"]))
    path = format_pointer_path(str(override["pointer"]))
    return f"{resource}: {path}: {_format_override_change(steps[0], steps[-1])} by {', '.join(policies)}"


def _format_override_change(first: Mapping[str, Any], last: Mapping[str, Any]) -> str:
    old, new = format_both_values(first.get("before"), last.get("after"))
    if "before" not in first:
        return f"added, {new}" if "after" in last else "added and removed"
    return f"{old} → {new}" if "after" in last else f"removed, was {old}"


def format_template_changes(template_changes: Iterable[TemplateChange], limit: int) -> tuple[str, ...]:
    """Return at most `limit` lines about changed templates of child resources. Changes that restart pods come first."""
    changes = sorted(template_changes, key=lambda change: (_is_harmless(change), change.child))
    return limit_lines([to_one_line(_format_template_change(change)) for change in changes], limit)


def format_children(recorded: object, limit: int) -> tuple[str, ...]:
    """Return at most `limit` lines about child resources, from the field `templates` of a status file.

    Each line contains the child, its parent, and the name and source of each template property. If a property hides
    inherited fields, the line also lists the hidden fields.
    """
    return limit_lines([to_one_line(_format_child(child)) for child in _read_children(recorded)], limit)


def format_settings_to_repeat(recorded: object) -> Iterator[str]:
    """Yield YAML lines for each child resource whose own template hides inherited settings.

    The YAML contains the settings of the child and the hidden settings. A child must repeat the hidden settings to use
    these settings.
    """
    for child in _read_children(recorded):
        if settings := read_text(child, "toRepeat"):
            name = format_object_reference(read_text(child, "resource"))
            yield to_one_line(f"# {name}: template that repeats the inherited settings")
            yield from (f"  {to_one_line(line)}" for line in settings.splitlines())


def format_folded_settings(recorded: object) -> list[str]:
    """Return the lines of `format_settings_to_repeat` as a collapsed Markdown block."""
    text = "".join(f"{line}\n" for line in format_settings_to_repeat(recorded))
    return format_folded_block("Templates that repeat the inherited settings", text, "yaml") if text else []


def build_children_data(effects: Iterable[TemplateEffect]) -> list[dict[str, Any]]:
    """Return the field `templates` of a status file, with masked Secrets."""
    return [mask_secrets(effect.as_data()) for effect in effects]


def build_changed_children(draft: Draft) -> list[dict[str, Any]]:
    """Return the data of the children whose templates the draft changes. For a new package, include all children."""
    rendered = draft.rendered
    changed = {change.child for change in rendered.template_changes}
    effects = rendered.templates.effects if rendered.templates else ()
    return build_children_data(effect for effect in effects if effect.child.key in changed or not draft.previous_files)


def _is_harmless(change: TemplateChange) -> bool:
    return change.restarts_pods is False and change.previous_parent is None


def _format_template_change(change: TemplateChange) -> str:
    child = str(change.child)
    properties = f"{', '.join(change.properties)} changed{_format_affected(change)}" if change.properties else ""
    if change.previous_parent:
        previous = str(change.previous_parent)
        moved = f"{child}: the parent changed from {previous}, so the operator creates new pods"
        return f"{moved}; {properties}" if properties else moved
    restarts = {True: "pods restart", False: "pods do not restart", None: "pods may restart (unknown kind)"}
    return f"{child}: {restarts[change.restarts_pods]}: {properties}"


def _format_affected(change: TemplateChange) -> str:
    if change.affected_kinds:
        return f" (affects {', '.join(change.affected_kinds)})"
    return "" if change.restarts_pods is None else " (affects no existing resource)"


def _read_children(recorded: object) -> list[Mapping[str, Any]]:
    entries = list(recorded) if isinstance(recorded, list | tuple) else ()
    children = read_mappings({"templates": entries}, "templates")
    return [child for child in children if read_text(child, "resource") and read_text(child, "parent")]


def _format_child(child: Mapping[str, Any]) -> str:
    resource, parent = (format_object_reference(read_text(child, field)) for field in ("resource", "parent"))
    mode = _TEMPLATE_MODES.get(read_text(child, "mode"), "")
    properties = "; ".join(_format_properties(read_mappings(child, "properties"))) or "no template"
    return f"{resource} (parent {parent}{f', {mode}' if mode else ''}): {properties}"


def _format_properties(properties: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the properties that hide inherited fields, then all other properties grouped by source."""
    by_source: dict[str, list[str]] = {}
    hiding: list[str] = []
    for template_property in properties:
        source, name = read_text(template_property, "source"), read_text(template_property, "name")
        hidden = template_property.get("shadowed")
        if isinstance(hidden, list) and hidden:
            hiding.append(f"{name} from {source} hides {', '.join(map(str, hidden))}")
        else:
            by_source.setdefault(source, []).append(name)
    yield from hiding
    yield from (f"{', '.join(names)} from {source}" for source, names in by_source.items())
