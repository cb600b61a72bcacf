"""Trails: each resource of a package on its way through a render, as every step left it (tenet 8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.yaml import Path
from reconciler.krm.yaml.align import align
from reconciler.krm.yaml.same import same
from reconciler.packages.functions.function import Item
from reconciler.packages.kptfile import FunctionSpec
from reconciler.packages.package import Package, PackageResource
from reconciler.planning.outcome import Rendered
from reconciler.planning.stages import FilesStage, FunctionStage, Layer, PolicyStage, Stage
from reconciler.rules.edits import value_at
from reconciler.snapshot.files import FileTree

_Place = tuple[str, int]
"""A document: its file, and its index there."""


@dataclass(frozen=True)
class Cause:
    """Who changed a resource: a layer, and in it the item `where` of the policy `by`, or a function.

    A function is the mutator `number` of the Kptfile of `package`, "" for the root.
    """

    layer: Layer
    by: str = ""
    where: str = ""
    package: str = ""
    number: int = 0
    function: FunctionSpec | None = None


@dataclass(frozen=True)
class State:
    """A resource as one step left it, at its place below the root package; ABSENT where it is none any more."""

    cause: Cause
    data: Any
    place: _Place
    document: PackageResource | None = None


@dataclass(frozen=True)
class Change:
    """What one step did to a value that is at `path` afterwards; ABSENT values are none.

    `earlier` is how the step found the resource, None where none had been. What is gone is at `path` in that.
    """

    state: State
    path: Path
    before: Any
    after: Any
    earlier: State | None = None


@dataclass
class Track:
    """One resource on its way, from where it first is there: its states, each of which differs from the one before.

    `place` is where it is in the end, or was last.
    """

    states: list[State] = field(default_factory=list)
    place: _Place = ("", 0)

    @property
    def data(self) -> Any:
        """The resource as it is in the end; ABSENT for one that a step took away."""
        return self.states[-1].data

    @property
    def last(self) -> Any:
        """The resource as it was last there."""
        return next(one.data for one in reversed(self.states) if one.data is not ABSENT)

    def leave(self, state: State) -> None:
        """Note how a step left it."""
        self.place = state.place
        if not self.states or not same(self.states[-1].data, state.data):
            self.states.append(state)

    def changes(self, path: Path) -> tuple[Change, ...]:
        """Return what led to the value that is at a path in the end, first to last."""
        return self._until(len(self.states), path)

    def removals(self) -> Iterator[tuple[Change, ...]]:
        """Yield what led to each value that a step took away and that is not there in the end, that step last."""
        for index in range(1, len(self.states)):
            before, after = self.states[index - 1].data, self.states[index].data
            for path in _gone(before, after, ()):
                # what is at the place of an item that went is another
                if value_at(self.data, path) is ABSENT or value_at(after, path) is not ABSENT:
                    found = value_at(before, path)
                    last = Change(self.states[index], path, found, ABSENT, self.states[index - 1])
                    yield (*self._until(index, path), last)

    def _until(self, number: int, path: Path) -> tuple[Change, ...]:
        """Return what led to the value that is at a path after the first `number` states."""
        found: list[Change] = []
        at: Path | None = path
        for index in reversed(range(number)):
            if at is None:
                break
            earlier = self.states[index - 1] if index else None
            before = earlier.data if earlier else ABSENT
            came = came_from(before, self.states[index].data, at)
            was, now = (ABSENT if came is None else value_at(before, came)), value_at(self.states[index].data, at)
            if not same(was, now):
                found.append(Change(self.states[index], at, was, now, earlier))
            at = came
        return tuple(reversed(found))


def came_from(before: Any, after: Any, path: Path) -> Path | None:
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
        before, after = value_at(before, (step,)), value_at(after, (step,))
        found.append(step)
    return tuple(found)


def _paired(old: Sequence[Any], new: Sequence[Any]) -> Mapping[int, int]:
    pairs = align(old, new)
    return {two: one for one, two in pairs if one is not None and two is not None}


def _gone(before: Any, after: Any, path: Path) -> Iterator[Path]:
    """Yield the paths in `before` of all that is not in `after`, one for each value that went as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key not in after:
                yield (*path, key)
            else:
                yield from _gone(value, after[key], (*path, key))
    elif isinstance(before, list) and isinstance(after, list):
        for one, two in align(before, after):
            if one is not None and two is None:
                yield (*path, one)
            elif one is not None and two is not None:
                yield from _gone(before[one], after[two], (*path, one))


def trail_of(rendered: Rendered) -> tuple[Track, ...]:
    """Return the track of every resource that a render had in its hands, in the order of the package's files.

    The render must have kept its stages.
    """
    run = _Trail()
    for stage in _stages(rendered):
        run.take(stage)
    run.settle(rendered.files)
    return tuple(sorted(run.tracks, key=lambda one: (one.data is ABSENT, one.place)))


def _stages(rendered: Rendered) -> Iterator[Stage]:
    source = rendered.source
    yield FilesStage("source", source.base)
    yield FilesStage("edit", source.plain)
    yield FilesStage("draft", source.files)
    yield from rendered.stages


class _Trail:
    """The tracks of a package as far as a render has come: `open` are those of what is there, by place."""

    def __init__(self) -> None:
        self.tracks: list[Track] = []
        self._open: dict[_Place, Track] = {}
        self._by_id: dict[int, Track] = {}

    def take(self, stage: Stage) -> None:
        """Note what a stage left."""
        match stage:
            case FilesStage(layer=layer, files=files):
                self._take_files(Cause(layer), files)
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
                track.leave(State(track.states[-1].cause, resource.data, place, resource))

    def _take_files(self, cause: Cause, files: FileTree) -> None:
        left, opened = dict(self._open), {}
        resources = Package(files).resources
        for resource, known in _matched(resources, left):
            track = left.pop(known) if known else self._begin()
            opened[resource.file, resource.index] = track
            track.leave(State(cause, resource.data, (resource.file, resource.index), resource))
        self._end(cause, left.values())
        self._open = opened

    def _take_items(self, stage: FunctionStage) -> None:
        if not self._by_id:
            self._by_id = dict(enumerate(self._open[place] for place in self._open))
        cause = Cause("function", stage.spec.label, "", stage.package, stage.number, stage.spec)
        places = dict(_places(stage.items))
        known = self._by_id
        self._by_id = {one.id: known.get(one.id) or self._begin() for one in stage.items if one.id is not None}
        for item in stage.items:
            if item.id is not None:
                self._by_id[item.id].leave(State(cause, item.data, places[item.id]))
        self._end(cause, (track for number, track in known.items() if number not in self._by_id))
        self._open = {places[number]: track for number, track in self._by_id.items()}

    def _take_overridden(self, stage: PolicyStage) -> None:
        for one in stage.resources:
            place = (one.resource.file, one.resource.index)
            for turn in one.turns if not one.failed else ():
                cause = Cause("policy" if turn.by else "strip", turn.by, turn.where)
                self._open[place].leave(State(cause, turn.data, place))

    def _begin(self) -> Track:
        self.tracks.append(Track())
        return self.tracks[-1]

    def _end(self, cause: Cause, tracks: Iterable[Track]) -> None:
        for track in tracks:
            track.leave(State(cause, ABSENT, track.place))


def _places(items: Iterable[Item]) -> Iterator[tuple[int, _Place]]:
    """Yield where each item is going to be written, by its id."""
    by_file = sorted(items, key=lambda one: (one.file, one.index))
    for file, group in groupby(by_file, attrgetter("file")):
        for rank, one in enumerate(group):
            if one.id is not None:
                yield one.id, (file, rank)


def _matched(
    resources: Sequence[PackageResource], known: Mapping[_Place, Track]
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
    group = str(value_at(data, ("apiVersion",))).rpartition("/")[0]
    return (group, *(value_at(data, path) for path in (("kind",), ("metadata", "namespace"), ("metadata", "name"))))


def _kind(data: Any) -> Any:
    return value_at(data, ("kind",))
