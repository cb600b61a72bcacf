"""Trails: each resource of a package on its way through a render, as every step left it (tenet 8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any

from reconciler.catalog.files import FileTree
from reconciler.controllers.nested_values import get_value
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.krm.yaml.compare import align_items, is_equal_data
from reconciler.packages.functions.function import Item
from reconciler.packages.kptfile import FunctionSpec
from reconciler.packages.package import Package, PackageResource
from reconciler.planning.model.outcomes import (
    FilesStage,
    FunctionStage,
    PackageRender,
    PolicyStage,
    RenderLayer,
    RenderStage,
)

_Place = tuple[str, int]
"""A document: its file, and its index there."""


@dataclass(frozen=True)
class ChangeCause:
    """Who changed a resource: a layer, and in it the item `where` of the policy `by`, or a function.

    A function is the mutator `number` of the Kptfile of `package`, "" for the root.
    """

    layer: RenderLayer
    source_name: str = ""
    policy_item: str = ""
    package: str = ""
    mutator_index: int = 0
    function: FunctionSpec | None = None


@dataclass(frozen=True)
class ResourceState:
    """A resource as one step left it, at its place below the root package; ABSENT where it is none any more."""

    cause: ChangeCause
    data: Any
    location: _Place
    document: PackageResource | None = None


@dataclass(frozen=True)
class TracedChange:
    """What one step did to a value that is at `path` afterwards; ABSENT values are none.

    `earlier` is how the step found the resource, None where none had been. What is gone is at `path` in that.
    """

    state: ResourceState
    path: DataPath
    before: Any
    after: Any
    previous_state: ResourceState | None = None


@dataclass
class ResourceTrace:
    """One resource on its way, from where it first is there: its states, each of which differs from the one before.

    `place` is where it is in the end, or was last.
    """

    states: list[ResourceState] = field(default_factory=list)
    location: _Place = ("", 0)

    @property
    def data(self) -> Any:
        """The resource as it is in the end; ABSENT for one that a step took away."""
        return self.states[-1].data

    @property
    def last_data(self) -> Any:
        """The resource as it was last there."""
        return next(one.data for one in reversed(self.states) if one.data is not ABSENT)

    def add_state(self, state: ResourceState) -> None:
        """Note how a step left it."""
        self.location = state.location
        if not self.states or not is_equal_data(self.states[-1].data, state.data):
            self.states.append(state)

    def list_changes(self, path: DataPath) -> tuple[TracedChange, ...]:
        """Return what led to the value that is at a path in the end, first to last."""
        return self._until(len(self.states), path)

    def list_removals(self) -> Iterator[tuple[TracedChange, ...]]:
        """Yield what led to each value that a step took away and that is not there in the end, that step last."""
        for index in range(1, len(self.states)):
            before, after = self.states[index - 1].data, self.states[index].data
            for path in _gone(before, after, ()):
                # what is at the place of an item that went is another
                if get_value(self.data, path) is ABSENT or get_value(after, path) is not ABSENT:
                    found = get_value(before, path)
                    last = TracedChange(self.states[index], path, found, ABSENT, self.states[index - 1])
                    yield (*self._until(index, path), last)

    def _until(self, number: int, path: DataPath) -> tuple[TracedChange, ...]:
        """Return what led to the value that is at a path after the first `number` states."""
        found: list[TracedChange] = []
        at: DataPath | None = path
        for index in reversed(range(number)):
            if at is None:
                break
            earlier = self.states[index - 1] if index else None
            before = earlier.data if earlier else ABSENT
            came = find_previous_path(before, self.states[index].data, at)
            was, now = (ABSENT if came is None else get_value(before, came)), get_value(self.states[index].data, at)
            if not is_equal_data(was, now):
                found.append(TracedChange(self.states[index], at, was, now, earlier))
            at = came
        return tuple(reversed(found))


def find_previous_path(before: Any, after: Any, path: DataPath) -> DataPath | None:
    """Return where in `before` what is at a path of `after` was; None for an item of a list that was not there.

    What is not there at all would have been where its name says.
    """
    found: list[str | int] = []
    for step in path:
        if isinstance(after, list) and isinstance(step, int):
            at = _paired(before, after).get(step) if isinstance(before, list) else None
            if at is None:
                return None
            before, after = before[at], after[step] if step < len(after) else ABSENT
            found.append(at)
            continue
        before, after = get_value(before, (step,)), get_value(after, (step,))
        found.append(step)
    return tuple(found)


def _paired(old: Sequence[Any], new: Sequence[Any]) -> Mapping[int, int]:
    pairs = align_items(old, new)
    return {two: one for one, two in pairs if one is not None and two is not None}


def _gone(before: Any, after: Any, path: DataPath) -> Iterator[DataPath]:
    """Yield the paths in `before` of all that is not in `after`, one for each value that went as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key not in after:
                yield (*path, key)
            else:
                yield from _gone(value, after[key], (*path, key))
    elif isinstance(before, list) and isinstance(after, list):
        for one, two in align_items(before, after):
            if one is not None and two is None:
                yield (*path, one)
            elif one is not None and two is not None:
                yield from _gone(before[one], after[two], (*path, one))


def trace_resources(rendered: PackageRender) -> tuple[ResourceTrace, ...]:
    """Return the track of every resource that a render had in its hands, in the order of the package's files.

    The render must have kept its stages.
    """
    run = _Trail()
    for stage in _stages(rendered):
        run.take(stage)
    run.settle(rendered.files)
    return tuple(sorted(run.tracks, key=lambda one: (one.data is ABSENT, one.location)))


def _stages(rendered: PackageRender) -> Iterator[RenderStage]:
    source = rendered.source
    yield FilesStage("source", source.base)
    yield FilesStage("edit", source.plain)
    yield FilesStage("draft", source.files)
    yield from rendered.stages


class _Trail:
    """The tracks of a package as far as a render has come: `open` are those of what is there, by place."""

    def __init__(self) -> None:
        self.tracks: list[ResourceTrace] = []
        self._open: dict[_Place, ResourceTrace] = {}
        self._by_id: dict[int, ResourceTrace] = {}

    def take(self, stage: RenderStage) -> None:
        """Note what a stage left."""
        match stage:
            case FilesStage(layer=layer, files=files):
                self._take_files(ChangeCause(layer), files)
                self._by_id = {}
            case FunctionStage():
                self._take_items(stage)
            case PolicyStage():
                self._take_overridden(stage)

    def settle(self, files: FileTree) -> None:
        """Note where everything has come to stand."""
        for resource in Package(files).resources:
            place = (resource.file, resource.index)
            if track := self._open.get(place):
                track.add_state(ResourceState(track.states[-1].cause, resource.data, place, resource))

    def _take_files(self, cause: ChangeCause, files: FileTree) -> None:
        left, opened = dict(self._open), {}
        resources = Package(files).resources
        for resource, known in _matched(resources, left):
            track = left.pop(known) if known else self._begin()
            opened[resource.file, resource.index] = track
            track.add_state(ResourceState(cause, resource.data, (resource.file, resource.index), resource))
        self._end(cause, left.values())
        self._open = opened

    def _take_items(self, stage: FunctionStage) -> None:
        if not self._by_id:
            self._by_id = dict(enumerate(self._open[place] for place in self._open))
        cause = ChangeCause(
            "function", stage.function_spec.display_name, "", stage.package, stage.mutator_index, stage.function_spec
        )
        places = dict(_places(stage.items))
        known = self._by_id
        self._by_id = {one.id: known.get(one.id) or self._begin() for one in stage.items if one.id is not None}
        for item in stage.items:
            if item.id is not None:
                self._by_id[item.id].add_state(ResourceState(cause, item.data, places[item.id]))
        self._end(cause, (track for number, track in known.items() if number not in self._by_id))
        self._open = {places[number]: track for number, track in self._by_id.items()}

    def _take_overridden(self, stage: PolicyStage) -> None:
        for one in stage.resources:
            place = (one.resource.file, one.resource.index)
            for turn in one.stages if not one.has_errors else ():
                cause = ChangeCause("policy" if turn.policy else "strip", turn.policy, turn.item_path)
                self._open[place].add_state(ResourceState(cause, turn.data, place))

    def _begin(self) -> ResourceTrace:
        self.tracks.append(ResourceTrace())
        return self.tracks[-1]

    def _end(self, cause: ChangeCause, tracks: Iterable[ResourceTrace]) -> None:
        for track in tracks:
            track.add_state(ResourceState(cause, ABSENT, track.location))


def _places(items: Iterable[Item]) -> Iterator[tuple[int, _Place]]:
    """Yield where each item is going to be written, by its id."""
    by_file = sorted(items, key=lambda one: (one.file, one.index))
    for file, group in groupby(by_file, attrgetter("file")):
        for rank, one in enumerate(group):
            if one.id is not None:
                yield one.id, (file, rank)


def _matched(
    resources: Sequence[PackageResource], known: Mapping[_Place, ResourceTrace]
) -> Iterator[tuple[PackageResource, _Place | None]]:
    """Yield each resource with the place where it was: of the same identity, then in the same place of a file."""
    left = dict(known)
    found: list[tuple[PackageResource, _Place | None]] = []
    known_at = {(one.file, one.index): _identity(one.data) for one in resources}
    # who copies a resource to another file has the first where it was
    stay = {one for one, track in left.items() if known_at.get(one) == _identity(track.data)}
    for resource in resources:
        place = (resource.file, resource.index)
        alike = [one for one, track in left.items() if _identity(track.data) == _identity(resource.data)]
        moved = [one for one in alike if one not in stay]
        at = place if place in alike else moved[0] if moved else None
        if at:
            del left[at]
        found.append((resource, at))
    for resource, at in found:
        place = (resource.file, resource.index)
        if at is None and place in left and _kind(left[place].data) == _kind(resource.data):
            at = place
            del left[place]
        yield resource, at


def _identity(data: Any) -> tuple[Any, ...]:
    group = str(get_value(data, ("apiVersion",))).rpartition("/")[0]
    return (group, *(get_value(data, path) for path in (("kind",), ("metadata", "namespace"), ("metadata", "name"))))


def _kind(data: Any) -> Any:
    return get_value(data, ("kind",))
