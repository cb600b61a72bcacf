"""Explanations in a report: the inputs and the provenance of each package, from its status file.

The functions in this module skip invalid entries, because anyone can edit a status file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from shlex import quote
from typing import Any

from reconciler.krm.json_text import compute_digest
from reconciler.output.fleet.target_names import TargetNames
from reconciler.output.json_data import mask_secrets, read_mappings
from reconciler.output.report.model import ReportedExplanation, ReportedStep, ReportedValue, ReportTarget
from reconciler.output.status.package_sections import (
    format_children,
    format_recorded_conflicts,
    format_recorded_owner,
    read_inputs,
    read_text,
    read_upstream,
)
from reconciler.output.text import format_both_values, format_value, to_one_line
from reconciler.planning.lifecycle.open_drafts import parse_package_status

_MAX_VALUES_PER_PACKAGE = 60
# Limit the number of values in the report of a large fleet. `reconciler explain` prints omitted values.
_MAX_VALUES = 60_000
_MAX_LIST_ENTRIES = 20
_COMMIT_CHARACTERS = 12
# Ignore tree IDs, digests and hashes when comparing status files. These values differ between clusters, and the report
# does not contain them.
_IGNORED_FIELDS = re.compile(
    r"^  trees:\n(?:    .*\n)+|(?<=^  inputs:\n)(?:    (?:config|digest): .*\n)+|^ {4,6}hash: .*\n", re.MULTILINE
)


class ExplanationGroups:
    """Groups packages with equal explanations."""

    def __init__(self) -> None:
        self._explanations: dict[str, ReportedExplanation] = {}
        self._targets: dict[str, list[ReportTarget]] = {}
        self._texts: dict[str, str] = {}
        self._files: dict[tuple[str, str], tuple[str, str]] = {}
        self._remaining_values = _MAX_VALUES

    def add_file(self, target: ReportTarget, content: bytes, target_names: TargetNames, *, is_unmodified: bool) -> str:
        """Add a status file to its group, and return the key of the group.

        Args:
            target_names: The names that identify the target. Files that differ only in these names count as equal.
            is_unmodified: Whether the reconciler wrote the file and no person changed it.
        """
        if not is_unmodified:
            return self.add(target, parse_package_status(content) or {}, target_names)
        # Parse equal files once. Most status files of a fleet are equal, and YAML parsing is the slowest step.
        text = _IGNORED_FIELDS.sub("", content.decode(errors="replace"))
        file_key = (target.package, target_names.mask_names(text))
        first_text, key = self._files.get(file_key, ("", ""))
        if not key:
            key = self.add(target, parse_package_status(content) or {}, target_names)
            self._files[file_key] = text, key
            return key
        self._add_target(key, target, has_target_names=first_text != text)
        return key

    def add(self, target: ReportTarget, status: Mapping[str, Any], target_names: TargetNames) -> str:
        """Add a parsed status to its group, and return the key of the group. Return "" if the status is empty."""
        if not status:
            return ""
        explanation = build_explanation(target, status)
        text = _format_explanation(explanation)
        key = compute_digest([target.package, target_names.mask_names(text)])
        if key not in self._explanations:
            self._texts[key] = text
            self._explanations[key] = self._limit_values(replace(explanation, key=key))
        self._add_target(key, target, has_target_names=self._texts[key] != text)
        return key

    def _add_target(self, key: str, target: ReportTarget, *, has_target_names: bool) -> None:
        self._targets.setdefault(key, []).append(target)
        explanation = self._explanations[key]
        if has_target_names and not explanation.has_target_names:
            self._explanations[key] = replace(explanation, has_target_names=True)

    def _limit_values(self, explanation: ReportedExplanation) -> ReportedExplanation:
        values = explanation.values[: max(min(_MAX_VALUES_PER_PACKAGE, self._remaining_values), 0)]
        self._remaining_values -= len(values)
        return replace(explanation, values=values, omitted_value_count=len(explanation.values) - len(values))

    def list_explanations(self) -> tuple[ReportedExplanation, ...]:
        """Return all explanations, sorted by package. In a package, explanations with the most targets come first."""
        explanations = [
            replace(explanation, targets=tuple(self._targets[key])) for key, explanation in self._explanations.items()
        ]
        return tuple(sorted(explanations, key=lambda item: (item.package, -len(item.targets), item.targets)))


def _format_explanation(explanation: ReportedExplanation) -> str:
    """Return a text to compare explanations. Equal explanations have equal texts."""
    values = [
        [value.resource, value.pointer, [list(vars(step).values()) for step in value.steps]]
        for value in explanation.values
    ]
    return "\n".join([repr(explanation.facts), repr(values), *explanation.conflicts, *explanation.children])


def build_explanation(target: ReportTarget, status: Mapping[str, Any]) -> ReportedExplanation:
    """Return the explanation of a package. `status` is the content of the field `status` in its status file.

    The field `key` of the result is empty.
    """
    conflicts = format_recorded_conflicts(status.get("conflicts"), _MAX_LIST_ENTRIES)
    children = format_children(status.get("templates"), _MAX_LIST_ENTRIES)
    return ReportedExplanation(
        "", target.package, (), tuple(_list_facts(status)), tuple(_read_values(status)), 0, conflicts, children,
        f"reconciler explain {quote(str(target))}",
    )  # fmt: skip


def _list_facts(status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the facts about a package, each as a label and a text."""
    if owner := format_recorded_owner(status):
        yield "owner", owner
    if source := _format_source(read_upstream(status, "to")):
        yield "source", source
    for entry in read_mappings(read_inputs(status), "objects")[:_MAX_LIST_ENTRIES]:
        name = _join_texts(entry, ("kind", "namespace", "name"), "/")
        file = read_text(entry, "file")
        yield "input", to_one_line(f"{name} ({file})" if file else name)
    for entry in read_mappings(status, "injected")[:_MAX_LIST_ENTRIES]:
        origin = f"{read_text(entry, 'object')} ({read_text(entry, 'from')})"
        yield "injected", to_one_line(f"{read_text(entry, 'point')} from {origin}")
    for entry in read_mappings(status, "appliedOverrides")[:_MAX_LIST_ENTRIES]:
        name = f"{read_text(entry, 'kind')}/{read_text(entry, 'name')}"
        yield "override", to_one_line(f"{read_text(entry, 'layer')} {name}")


def _join_texts(data: Mapping[str, Any], names: tuple[str, ...], separator: str = " ") -> str:
    return separator.join(filter(None, (read_text(data, name) for name in names)))


def _format_source(lock: Mapping[str, Any]) -> str:
    commit = read_text(lock, "commit")
    parts = (_join_texts(lock, ("repo", "ref")), f"at {commit[:_COMMIT_CHARACTERS]}" if commit else "")
    return to_one_line(" ".join(filter(None, parts)))


def _read_values(status: Mapping[str, Any]) -> Iterator[ReportedValue]:
    for entry in (*read_mappings(status, "layers"), *read_mappings(status, "overrides")):
        steps = tuple(map(_read_step, read_mappings(entry, "steps")))
        if steps:
            resource = read_text(entry, "resource") or read_text(entry, "file")
            yield ReportedValue(to_one_line(resource), to_one_line(_join_texts(entry, ("option", "pointer"))), steps)


def _read_step(step: Mapping[str, Any]) -> ReportedStep:
    source, location = _join_texts(step, ("layer", "by")), _join_texts(step, ("file", "where"))
    return ReportedStep(to_one_line(source), to_one_line(location), _format_step_change(mask_secrets(dict(step))))


def _format_step_change(step: Mapping[str, Any]) -> str:
    expression = f" by expression {format_value(step['expression'])}" if "expression" in step else ""
    if "before" in step and "after" in step:
        before, after = format_both_values(step["before"], step["after"])
        return f"{before} → {after}{expression}"
    if "after" in step:
        return f"{format_value(step['after'])}{expression}"
    if "before" in step:
        return f"removed, was {format_value(step['before'])}"
    return f"{format_value(step.get('op', 'set'))}{expression}"
