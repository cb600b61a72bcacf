"""Traces of resources through a render: the data of each resource after each step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from reconciler.api.kpt import FunctionSpec
from reconciler.catalog.files import FileTree
from reconciler.controllers.nested_values import get_value
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.krm.yaml.compare import align_items, is_equal_data
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.packages.functions.function import Item
from reconciler.packages.package import Package, PackageResource
from reconciler.planning.model.outcomes import (
    FilesStage,
    FunctionStage,
    PackageRender,
    PolicyStage,
    RenderLayer,
    RenderStage,
)

_Location = tuple[str, int]
"""File of a YAML document, and the index of the document in the file."""


@dataclass(frozen=True)
class ChangeCause:
    """The step of a render that changed a resource.

    Attributes:
        layer: The kind of the step.
        source_name: The name of the override policy or function.
        policy_item: The path of the override rule in the policy.
        package: The path of the subpackage whose Kptfile lists the function, or "" for the root package.
        mutator_index: The index of the function in the mutators of this Kptfile.
    """

    layer: RenderLayer
    source_name: str = ""
    policy_item: str = ""
    package: str = ""
    mutator_index: int = 0
    function: FunctionSpec | None = None


@dataclass(frozen=True)
class ResourceState:
    """A resource after one step of a render.

    Attributes:
        cause: The step.
        data: The data of the resource, or ABSENT if the step deleted the resource.
        location: The file in the root package, and the index of the document in the file.
        document: The resource with its source text, or None if the step does not have the text.
    """

    cause: ChangeCause
    data: Any
    location: _Location
    document: PackageResource | None = None


@dataclass(frozen=True)
class TracedChange:
    """The change of one value by one step of a render.

    Attributes:
        state: The resource after the step.
        path: The path of the value after the step. For a removed value, the path before the step.
        before, after: The value before and after the step, or ABSENT if the value did not exist.
        previous_state: The resource before the step, or None if the resource did not exist.
    """

    state: ResourceState
    path: DataPath
    before: Any
    after: Any
    previous_state: ResourceState | None = None


@dataclass
class ResourceTrace:
    """The states of one resource during a render.

    Attributes:
        states: The states in the order of the steps. Steps that did not change the resource are omitted.
        location: The last location of the resource.
    """

    states: list[ResourceState] = field(default_factory=list)
    location: _Location = ("", 0)

    @property
    def data(self) -> Any:
        """Data of the resource after the last step, or ABSENT if a step deleted the resource."""
        return self.states[-1].data

    @property
    def last_data(self) -> Any:
        """Data of the resource after the last step. For a deleted resource, the data before the deletion."""
        return next(state.data for state in reversed(self.states) if state.data is not ABSENT)

    def add_state(self, state: ResourceState) -> None:
        """Add the state after a step if the step changed the resource."""
        self.location = state.location
        if not self.states or not is_equal_data(self.states[-1].data, state.data):
            self.states.append(state)

    def list_changes(self, path: DataPath) -> tuple[TracedChange, ...]:
        """Return the changes of one value in the order of the steps.

        `path` is the path of the value after the last step.
        """
        return self._list_changes_until(len(self.states), path)

    def list_removals(self) -> Iterator[tuple[TracedChange, ...]]:
        """Yield all changes of each value that a step removed and no later step restored.

        The last change of such a value is its removal.
        """
        for index in range(1, len(self.states)):
            before, after = self.states[index - 1].data, self.states[index].data
            for path in _list_removed_paths(before, after, ()):
                # Include the path of a removed list item even if another list item is at this path now.
                if get_value(self.data, path) is ABSENT or get_value(after, path) is not ABSENT:
                    value = get_value(before, path)
                    removal = TracedChange(self.states[index], path, value, ABSENT, self.states[index - 1])
                    yield (*self._list_changes_until(index, path), removal)

    def _list_changes_until(self, state_count: int, path: DataPath) -> tuple[TracedChange, ...]:
        """Return the changes of one value in the first `state_count` states.

        `path` is the path of the value in the last of these states.
        """
        changes: list[TracedChange] = []
        current_path: DataPath | None = path
        for index in reversed(range(state_count)):
            if current_path is None:
                break
            previous = self.states[index - 1] if index else None
            current_data, previous_data = self.states[index].data, previous.data if previous else ABSENT
            previous_path = find_previous_path(previous_data, current_data, current_path)
            before = ABSENT if previous_path is None else get_value(previous_data, previous_path)
            after = get_value(current_data, current_path)
            if not is_equal_data(before, after):
                changes.append(TracedChange(self.states[index], current_path, before, after, previous))
            current_path = previous_path
        return tuple(reversed(changes))


def find_previous_path(before: Any, after: Any, path: DataPath) -> DataPath | None:
    """Return the path in `before` of a value in `after`. The paths differ if list items have moved.

    Returns:
        The path, even if `before` has no value at this path. None if the value is in an added list item.
    """
    previous_path: list[str | int] = []
    for step in path:
        if isinstance(after, list) and isinstance(step, int):
            index = _align_indexes(before, after).get(step) if isinstance(before, list) else None
            if index is None:
                return None
            before, after = before[index], after[step] if step < len(after) else ABSENT
            previous_path.append(index)
            continue
        before, after = get_value(before, (step,)), get_value(after, (step,))
        previous_path.append(step)
    return tuple(previous_path)


def _align_indexes(old: Sequence[Any], new: Sequence[Any]) -> Mapping[int, int]:
    pairs = align_items(old, new)
    return {new_index: old_index for old_index, new_index in pairs if old_index is not None and new_index is not None}


def _list_removed_paths(before: Any, after: Any, path: DataPath) -> Iterator[DataPath]:
    """Yield the path in `before` of each removed value. Paths inside a removed value are omitted."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key not in after:
                yield (*path, key)
            else:
                yield from _list_removed_paths(value, after[key], (*path, key))
    elif isinstance(before, list) and isinstance(after, list):
        for old_index, new_index in align_items(before, after):
            if old_index is not None and new_index is None:
                yield (*path, old_index)
            elif old_index is not None and new_index is not None:
                yield from _list_removed_paths(before[old_index], after[new_index], (*path, old_index))


def trace_resources(rendered: PackageRender) -> tuple[ResourceTrace, ...]:
    """Return the traces of all resources of a render, sorted by location. Deleted resources are last.

    `rendered.stages` must contain the package after each step (`PackageRenderer.should_keep_stages`).
    """
    tracer = _PackageTracer()
    for stage in _list_stages(rendered):
        tracer.add_stage(stage)
    tracer.set_final_files(rendered.files)
    return tuple(sorted(tracer.traces, key=lambda trace: (trace.data is ABSENT, trace.location)))


def _list_stages(rendered: PackageRender) -> Iterator[RenderStage]:
    source = rendered.source
    yield FilesStage("source", source.base)
    yield FilesStage("edit", source.plain)
    yield FilesStage("draft", source.files)
    yield from rendered.stages


class _PackageTracer:
    """Collects the traces of all resources of a package from the stages of its render.

    Attributes:
        traces: The traces of all resources, including deleted resources.
    """

    def __init__(self) -> None:
        self.traces: list[ResourceTrace] = []
        self._current: dict[_Location, ResourceTrace] = {}
        self._by_item_id: dict[int, ResourceTrace] = {}

    def add_stage(self, stage: RenderStage) -> None:
        match stage:
            case FilesStage(layer=layer, files=files):
                self._add_files(ChangeCause(layer), files)
                self._by_item_id = {}
            case FunctionStage():
                self._add_function_result(stage)
            case PolicyStage():
                self._add_policy_results(stage)

    def set_final_files(self, files: FileTree) -> None:
        for resource in Package(files).resources:
            location = (resource.file, resource.index)
            if trace := self._current.get(location):
                trace.add_state(ResourceState(trace.states[-1].cause, resource.data, location, resource))

    def _add_files(self, cause: ChangeCause, files: FileTree) -> None:
        remaining, current = dict(self._current), {}
        resources = Package(files).resources
        for resource, previous_location in _match_resources(resources, remaining):
            trace = remaining.pop(previous_location) if previous_location else self._create_trace()
            location = (resource.file, resource.index)
            current[location] = trace
            trace.add_state(ResourceState(cause, resource.data, location, resource))
        self._mark_deleted(cause, remaining.values())
        self._current = current

    def _add_function_result(self, stage: FunctionStage) -> None:
        if not self._by_item_id:
            self._by_item_id = dict(enumerate(self._current.values()))
        cause = ChangeCause(
            "function", stage.function_spec.display_name, "", stage.package, stage.mutator_index, stage.function_spec
        )
        locations = dict(_list_item_locations(stage.items))
        previous = self._by_item_id
        self._by_item_id = {
            item.id: previous.get(item.id) or self._create_trace() for item in stage.items if item.id is not None
        }
        for item in stage.items:
            if item.id is not None:
                self._by_item_id[item.id].add_state(ResourceState(cause, item.data, locations[item.id]))
        self._mark_deleted(cause, (trace for item_id, trace in previous.items() if item_id not in locations))
        self._current = {locations[item_id]: trace for item_id, trace in self._by_item_id.items()}

    def _add_policy_results(self, stage: PolicyStage) -> None:
        for overridden in stage.resources:
            location = (overridden.resource.file, overridden.resource.index)
            for rule_result in overridden.stages if not overridden.has_errors else ():
                layer: RenderLayer = "policy" if rule_result.policy else "strip"
                cause = ChangeCause(layer, rule_result.policy, rule_result.item_path)
                self._current[location].add_state(ResourceState(cause, rule_result.data, location))

    def _create_trace(self) -> ResourceTrace:
        self.traces.append(ResourceTrace())
        return self.traces[-1]

    def _mark_deleted(self, cause: ChangeCause, traces: Iterable[ResourceTrace]) -> None:
        for trace in traces:
            trace.add_state(ResourceState(cause, ABSENT, trace.location))


def _list_item_locations(items: Iterable[Item]) -> Iterator[tuple[int, _Location]]:
    sorted_items = sorted(items, key=lambda item: (item.file, item.index))
    for file, group in groupby(sorted_items, attrgetter("file")):
        for index, item in enumerate(group):
            if item.id is not None:
                yield item.id, (file, index)


def _match_resources(
    resources: Sequence[PackageResource], known: Mapping[_Location, ResourceTrace]
) -> Iterator[tuple[PackageResource, _Location | None]]:
    """Yield pairs of a resource and its previous location. For a new resource, this location is None.

    A resource matches the previous resource with the same identity. If there is none, it matches the previous resource
    at the same location.
    """
    remaining = dict(known)
    matches: list[tuple[PackageResource, _Location | None]] = []
    identities = {(resource.file, resource.index): _get_identity(resource.data) for resource in resources}
    # If a resource was copied to another file, the original resource keeps its trace, and the copy counts as a new
    # resource.
    unmoved = {
        location for location, trace in remaining.items() if identities.get(location) == _get_identity(trace.data)
    }
    for resource in resources:
        location = (resource.file, resource.index)
        identity = identities[location]
        same = [previous for previous, trace in remaining.items() if _get_identity(trace.data) == identity]
        moved = [previous for previous in same if previous not in unmoved]
        match = location if location in same else moved[0] if moved else None
        if match:
            del remaining[match]
        matches.append((resource, match))
    for resource, match in matches:
        location = (resource.file, resource.index)
        if match is None and location in remaining and _get_kind(remaining[location].data) == _get_kind(resource.data):
            match = location
            del remaining[location]
        yield resource, match


def _get_identity(data: Any) -> tuple[Any, ...]:
    group = str(get_value(data, ("apiVersion",))).rpartition("/")[0]
    return (group, *(get_value(data, path) for path in (("kind",), ("metadata", "namespace"), ("metadata", "name"))))


def _get_kind(data: Any) -> Any:
    return get_value(data, ("kind",))
