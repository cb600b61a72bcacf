"""Builds the explanation of a package: the steps that set each value, from the first to the last.

The module combines the changes in a render trace with the provenance that controllers and templates recorded. The
module `formats` formats the explanation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from posixpath import basename, dirname
from typing import Any

from reconciler.api.greenhouse import GROUP
from reconciler.catalog.files import FileTree
from reconciler.controllers.nested_values import get_value
from reconciler.controllers.provenance import get_operation
from reconciler.controllers.results import Variant
from reconciler.krm.json_pointer import PointerError, format_pointer, parse_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey, split_api_version
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.explain.model import (
    SOURCE_LAYERS,
    ExplainedValue,
    PackageExplanation,
    ValueNotFoundError,
    ValueStep,
)
from reconciler.output.explain.steps import StepBuilder
from reconciler.output.status.package_sections import build_children_data
from reconciler.packages.kptfile import KPTFILE
from reconciler.planning.attribution.provenance_trace import ResourceTrace, TracedChange, trace_resources
from reconciler.planning.attribution.re_render import ReRenderedPackage
from reconciler.planning.model.outcomes import PackageRender
from reconciler.planning.render.templates import TEMPLATE_DEPENDENCY
from reconciler.redaction import MASK, hide_ciphertexts

ProvenanceEntry = Mapping[str, Any]
"""A value with its steps, in the form of controller results and status files."""
# Mask all options of Plugins, because the pointer of an option does not show whether the option is a secret.
_OPTIONS: DataPath = ("spec", "optionValues")
_MAX_NAMES = 20


def list_provenance_entries(variant: Variant | None) -> list[dict[str, Any]]:
    """Return the provenance that the controller recorded for the values of a package.

    The values of a chart belong to no resource. Their file and resource are "".
    """
    layers = variant.provenance.list_layers() if variant and variant.provenance else []
    return [{"file": "", "resource": "", **layer} for layer in layers]


def build_recorded_value(entry: ProvenanceEntry, step_builder: StepBuilder) -> ExplainedValue:
    """Return the explained value for an entry of the recorded provenance."""
    steps = step_builder.build_recorded_steps(entry["steps"])
    return ExplainedValue(entry["file"], entry["resource"], entry["pointer"], steps, entry.get("option", ""))


@dataclass(frozen=True)
class UnrenderedResource:
    """The explanation of one resource in a package whose render failed."""

    resource: str
    values: tuple[ExplainedValue, ...]


def build_unrendered_resources(step_builder: StepBuilder) -> tuple[UnrenderedResource, ...]:
    """Return the explanations of all resources in the recorded provenance."""
    values = [build_recorded_value(entry, step_builder) for entry in list_provenance_entries(step_builder.variant)]
    names = dict.fromkeys(value.resource for value in values)
    return tuple(UnrenderedResource(name, tuple(value for value in values if value.resource == name)) for name in names)


class ResourceExplanation:
    """The explanation of one rendered resource.

    Attributes:
        resource: The name of the resource, as `Kind/namespace/name`.
    """

    def __init__(self, trace: ResourceTrace, step_builder: StepBuilder) -> None:
        self._trace = trace
        self._step_builder = step_builder
        self._file = trace.location[0]
        self.resource = format_resource_name(trace)

    @cached_property
    def values(self) -> tuple[ExplainedValue, ...]:
        """All values: the values in the order of the resource, then removed values, then values in embedded texts."""
        return tuple(self._list_values())

    def _list_values(self) -> Iterator[ExplainedValue]:
        paths = list(list_leaf_paths(self._trace.last_data, (), frozenset(self._controller_entries)))
        yield from (self._build_value(path, self._trace.list_changes(path)) for path in paths)
        yield from self._list_removed_values()
        yield from (build_recorded_value(entry, self._step_builder) for entry in self._list_missing_entries(paths))
        yield from (build_recorded_value(entry, self._step_builder) for entry in self._embedded_entries)

    def _build_value(self, path: DataPath, changes: Sequence[TracedChange]) -> ExplainedValue:
        entry = self._find_entry(changes[0].path) if changes and changes[0].state.cause.layer == "source" else None
        option = entry.get("option", "") if entry else ""
        steps = tuple(self._list_steps(path, changes, entry))
        if option:
            steps = tuple(_extract_option_value(step) for step in steps)
        elif self._is_hidden(path):
            steps = tuple(_mask_step(step) for step in steps)
        is_whole_resource = entry is not None and not entry["pointer"]
        is_unchanged = len(steps) == 1 and (is_whole_resource or steps[0].layer in SOURCE_LAYERS)
        last = changes[-1] if changes else None
        removed_from = last.previous_state.data if last and last.previous_state and last.after is ABSENT else ABSENT
        return ExplainedValue(
            self._file, self.resource, format_pointer(path), _mask_all_or_none(steps), option, is_unchanged,
            removed_from,
        )  # fmt: skip

    def _list_steps(
        self, path: DataPath, changes: Sequence[TracedChange], entry: ProvenanceEntry | None
    ) -> Iterator[ValueStep]:
        template_steps = self._list_template_steps(path)
        is_template_written = any(change.state.cause.layer == TEMPLATE_DEPENDENCY for change in changes)
        # Put the steps of the parent resource first, because the child resource replaces inherited values.
        inherited = [step for step in template_steps if step.set_by != self.resource] if not is_template_written else []
        yield from inherited
        if inherited and changes:
            changes = [replace(changes[0], before=inherited[-1].after), *changes[1:]]
        for change in changes:
            if change.state.cause.layer == "source" and entry:
                yield from self._list_entry_steps(change, entry)
            elif change.state.cause.layer == TEMPLATE_DEPENDENCY and template_steps:
                yield from template_steps
            elif not self._is_inside_text(change, path):
                yield self._step_builder.build_step(change)

    def _list_template_steps(self, path: DataPath) -> list[ValueStep]:
        """Return the recorded template steps of the value at `path`, and of the values that contain this value."""
        steps: list[ValueStep] = []
        for end in range(len(path) + 1):
            entry = self._template_entries.get(path[:end])
            for recorded in self._step_builder.build_recorded_steps(entry["steps"]) if entry else ():
                before, after = (_get_nested(value, path[end:]) for value in (recorded.before, recorded.after))
                if before is ABSENT and after is ABSENT:
                    continue
                step = replace(recorded, operation=get_operation(before, after), before=before, after=after)
                is_inherited = recorded.set_by != self.resource
                steps.append(self._step_builder.build_inherited_step(step, path) if is_inherited else step)
        return steps

    def _list_entry_steps(self, change: TracedChange, entry: ProvenanceEntry) -> Iterator[ValueStep]:
        """Yield the steps that the controller recorded for a value, or for a value that contains it."""
        entry_path = parse_data_path(entry["pointer"], change.state.data)
        nested_path = change.path[len(entry_path) :]
        for step in self._step_builder.build_recorded_steps(entry["steps"]):
            if not nested_path or entry.get("option"):
                yield step
                continue
            before, after = (_get_nested(value, nested_path) for value in (step.before, step.after))
            if not entry_path:
                after = self._step_builder.build_step(change).after
            if not (before is ABSENT and after is ABSENT):
                narrowed = self._step_builder.narrow_step(step, nested_path)
                yield replace(narrowed, operation=get_operation(before, after), before=before, after=after)

    def _find_entry(self, path: DataPath) -> ProvenanceEntry | None:
        """Return the recorded provenance of a value, or of the smallest value that contains it."""
        entries = self._controller_entries
        return next((entries[path[:end]] for end in range(len(path), -1, -1) if path[:end] in entries), None)

    @cached_property
    def _controller_entries(self) -> dict[DataPath, ProvenanceEntry]:
        data = self._trace.states[0].data
        entries = self._filter_entries(list_provenance_entries(self._step_builder.variant))
        return {parse_data_path(entry["pointer"], data): entry for entry in entries}

    @cached_property
    def _template_entries(self) -> dict[DataPath, ProvenanceEntry]:
        templates = self._step_builder.rendered.templates
        entries = (
            {**entry, "steps": [{"layer": TEMPLATE_DEPENDENCY, **step} for step in entry["steps"]]}
            for entry in self._filter_entries(templates.as_data() if templates else ())
        )
        return {parse_data_path(entry["pointer"], self._trace.last_data): entry for entry in entries}

    @cached_property
    def _embedded_entries(self) -> list[ProvenanceEntry]:
        """The values that policies changed inside embedded texts, such as YAML in a ConfigMap."""
        return [
            {**entry, "steps": [{"layer": "policy", **step} for step in entry["steps"]]}
            for entry in self._filter_entries(self._step_builder.rendered.overrides)
            if "!/" in entry["pointer"]
        ]

    def _filter_entries(self, entries: Iterable[ProvenanceEntry]) -> Iterator[ProvenanceEntry]:
        return (entry for entry in entries if (entry["file"], entry["resource"]) == (self._file, self.resource))

    def _is_inside_text(self, change: TracedChange, path: DataPath) -> bool:
        """Return whether a policy changed a value inside the text at `path`. The changed value has a separate entry."""
        pointer, cause = format_pointer(path), change.state.cause
        return cause.layer == "policy" and any(
            entry["pointer"].startswith(f"{pointer}!/")
            and any((step["by"], step["where"]) == (cause.source_name, cause.policy_item) for step in entry["steps"])
            for entry in self._embedded_entries
        )

    def _list_removed_values(self) -> Iterator[ExplainedValue]:
        if self._trace.data is ABSENT:
            # Yield nothing if the whole resource was removed. The last step of each value is then the removal.
            return
        for changes in self._trace.list_removals():
            path = changes[-1].path
            if not any(template_path[: len(path)] == path for template_path in self._template_entries):
                yield self._build_value(path, changes)

    def _list_missing_entries(self, paths: Sequence[DataPath]) -> Iterator[ProvenanceEntry]:
        """Yield the entry of each value that is not in the resource, although no traced step removed the value."""
        existing = {path[:end] for path in paths for end in range(len(path) + 1)}
        for path, entry in (*self._controller_entries.items(), *self._template_entries.items()):
            if path and path not in existing:
                yield entry

    def _is_hidden(self, path: DataPath) -> bool:
        group = split_api_version(str(get_value(self._trace.last_data, ("apiVersion",))))[0]
        return group == GROUP and path[: len(_OPTIONS)] == _OPTIONS


def format_resource_name(trace: ResourceTrace) -> str:
    """Return the name of a resource after the render, as `Kind/namespace/name`."""
    data = trace.last_data
    group = split_api_version(_get_text(data, "apiVersion"))[0]
    namespace, name = _get_text(data, "metadata", "namespace"), _get_text(data, "metadata", "name")
    return str(hide_ciphertexts(ObjectKey(group, _get_text(data, "kind"), namespace, name).reference))


def _get_text(data: Any, *path: str) -> str:
    value = get_value(data, path)
    return value if isinstance(value, str) else ""


def list_leaf_paths(
    data: Any, path: DataPath = (), whole_values: frozenset[DataPath] = frozenset()
) -> Iterator[DataPath]:
    """Yield the paths of all values without nested values. A value at a path in `whole_values` is not divided."""
    items = list(data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ())
    if not items or (path and path in whole_values):
        yield path
        return
    for key, value in items:
        yield from list_leaf_paths(value, (*path, key), whole_values)


def parse_data_path(pointer: str, data: Any) -> DataPath:
    """Return a JSON pointer as a path in the data. Convert the indexes of list items to integers."""
    path: list[str | int] = []
    for segment in parse_pointer(pointer.partition("!/")[0]):
        key = int(segment) if isinstance(data, list) and segment.isdecimal() else segment
        path.append(key)
        data = get_value(data, (key,))
    return tuple(path)


def _get_nested(value: Any, path: DataPath) -> Any:
    return value if value == MASK else get_value(value, path)


def _extract_option_value(step: ValueStep) -> ValueStep:
    """Replace the option entries in a step, e.g. `{name: replicas, value: 3}`, by the values that they contain."""
    return replace(step, before=_get_option_value(step.before), after=_get_option_value(step.after))


def _get_option_value(entry: Any) -> Any:
    if not isinstance(entry, dict) or "name" not in entry:
        return entry
    content = {name: value for name, value in entry.items() if name != "name"}
    return content["value"] if [*content] == ["value"] else content


def _mask_step(step: ValueStep) -> ValueStep:
    return replace(step, before=_mask_value(step.before), after=_mask_value(step.after))


def _mask_all_or_none(steps: tuple[ValueStep, ...]) -> tuple[ValueStep, ...]:
    """Mask the values of all steps if the value of at least one step is masked."""
    if any(value is MASK or value == MASK for step in steps for value in (step.before, step.after)):
        return tuple(map(_mask_step, steps))
    return steps


def _mask_value(value: Any) -> Any:
    return value if value is ABSENT else MASK


def explain(explained: ReRenderedPackage, resource: str = "", location: str = "") -> PackageExplanation:
    """Return the explanation of a package, of one resource, or of the values at one location.

    The explanation of a whole package omits values that are equal to their value in the source of the package.

    Args:
        resource: `Kind/name` or `Kind/namespace/name`. "" selects the whole package.
        location: A JSON pointer, or the name of an option of a Plugin.

    Raises:
        ValueNotFoundError: The package has no such resource, or the resource has no such value.
    """
    resources, templates = _list_resources(explained), explained.rendered.templates if explained.rendered else None
    template_children = tuple(build_children_data(templates.effects if templates else ()))
    if not resource or not resources:
        changed = (value for entry in resources for value in entry.values if not value.is_unchanged)
        return PackageExplanation(explained, tuple(changed), template_children)
    requested = [entry for entry in resources if resource in (entry.resource, _remove_namespace(entry.resource))]
    if not requested:
        names = format_closest_names(resource, (entry.resource for entry in resources))
        message = f"{explained.target} has no resource {resource}; existing resources, closest match first: {names}"
        raise ValueNotFoundError(message)
    values = tuple(value for entry in requested for value in entry.values)
    if not location:
        requested_names = {entry.resource for entry in requested}
        children = tuple(child for child in template_children if child["resource"] in requested_names)
        return PackageExplanation(explained, values, children, resource)
    explanation = PackageExplanation(explained, values, requested_resource=resource)
    return replace(explanation, values=_find_values_at(explanation, location))


def find_setter(resource: str, pointer: str, package: ReRenderedPackage) -> str:
    """Return the object, function or person that set a value last. Return "" if the value does not exist."""
    try:
        values = explain(package, resource, pointer).values
    except ValueNotFoundError:
        return ""
    last = values[0].steps[-1] if values else None
    return " at commit ".join(filter(None, (last.set_by, last.commit))) if last else ""


def _find_values_at(explanation: PackageExplanation, location: str) -> tuple[ExplainedValue, ...]:
    """Return the values at a location and below it. If there are no such values, return the value that contains the
    location.

    Args:
        location: A JSON pointer, or the name of an option.
    """
    values, target = explanation.values, explanation.package.target
    pointer = next((value.pointer for value in values if value.option == location), location)
    if pointer.startswith("/") or not explanation.option_layers:
        try:
            parse_pointer(pointer.partition("!")[0])
        except PointerError as error:
            raise ValueNotFoundError(f"{target}: {error}") from error
    matching = tuple(value for value in values if _is_at_or_below(value.pointer, pointer))
    containers = (value for value in values if _is_at_or_below(pointer, value.pointer) and value.has_nested_values)
    if found_values := matching or tuple(containers)[-1:]:
        return found_values
    options = [value.option for value in values if value.option]
    is_pointer = location.startswith("/") or not options
    names = format_closest_names(location, [value.pointer for value in values] if is_pointer else options)
    raise ValueNotFoundError(
        f"{target}: {explanation.requested_resource} has no value at {location}; "
        f"existing {'values' if is_pointer else 'options'}, closest match first: {names}"
    )


def _is_at_or_below(pointer: str, other: str) -> bool:
    """Return whether `pointer` is equal to `other`, or selects a value inside the value at `other`."""
    return pointer == other or pointer.startswith((f"{other}/", f"{other}!/"))


def format_closest_names(name: str, names: Iterable[str]) -> str:
    """Return the existing names, with the best match for `name` first. Return "none" if there are no names."""
    ranked = sorted(set(names), key=lambda other: (-SequenceMatcher(None, name, other).ratio(), other))
    more = f" and {len(ranked) - _MAX_NAMES} more" if len(ranked) > _MAX_NAMES else ""
    return f"{', '.join(ranked[:_MAX_NAMES])}{more}" if ranked else "none"


def _list_resources(package: ReRenderedPackage) -> tuple[ResourceExplanation | UnrenderedResource, ...]:
    """Return the explanations of all resources, including removed resources, in the order of the files."""
    if package.variant is None:
        return ()
    if package.rendered is None:
        # Use only the provenance that the controller recorded, because the render failed.
        return build_unrendered_resources(StepBuilder(package, package.variant, PackageRender(FileTree()), {}))
    traces = trace_resources(package.rendered)
    kptfile_traces = {dirname(trace.location[0]): trace for trace in traces if basename(trace.location[0]) == KPTFILE}
    resource_traces = {format_resource_name(trace): trace for trace in traces}
    step_builder = StepBuilder(package, package.variant, package.rendered, kptfile_traces, resource_traces)
    return tuple(ResourceExplanation(trace, step_builder) for trace in traces)


def _remove_namespace(resource: str) -> str:
    kind, _, name = resource.split("/", 2)
    return f"{kind}/{name}"
