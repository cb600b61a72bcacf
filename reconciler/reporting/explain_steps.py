"""The steps of a value in the words of what made them: the source, people, context, injection, functions, rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import Path
from reconciler.krm.yaml.same import same
from reconciler.packages.context import CONTEXT_FILE
from reconciler.packages.kptfile import KPTFILE, FunctionSpec
from reconciler.packages.package import join
from reconciler.planning.outcome import Rendered
from reconciler.planning.trail import Change, State, Track
from reconciler.planning.without import ConfigField, Edit, FunctionCall, SourceField
from reconciler.reporting.explanation import GENERATED, RESOURCE, UPSTREAM, Explained, Given, Step
from reconciler.reporting.field_lines import FieldLines, line_of, path_of
from reconciler.reporting.values import show
from reconciler.reporting.variant_fields import Field, VariantFields
from reconciler.rules.edits import value_at
from reconciler.rules.fields import dotted
from reconciler.rules.provenance import as_both_shown, op_of
from reconciler.rules.variant import Injected, Upstream, Variant
from reconciler.rules.variants.pipeline import is_owned

_SHOWN_CONFIG = 200
_MADE: Mapping[str, Literal["branch", "draft", "since"]] = {"edit": "branch", "draft": "draft", "since": "since"}


@dataclass(frozen=True)
class Teller:
    """Tells who changed a value at each step of its way, by the config and the sources of one package.

    `tracks` are those of its resources, by `Kind/namespace/name`; of its Kptfiles by folder, "" for the root.
    """

    explained: Explained
    variant: Variant
    rendered: Rendered
    kptfiles: Mapping[str, Track]
    tracks: Mapping[str, Track] = field(default_factory=dict)

    @cached_property
    def lines(self) -> FieldLines:
        """Where fields of the config are."""
        return FieldLines(self.explained.objects.values())

    @cached_property
    def _fields(self) -> VariantFields:
        return VariantFields(self.explained.objects, self.variant.owner)

    def step(self, change: Change) -> Step:
        """Return one change as a step: who made it and where that is said, and the values as they may be shown."""
        told = self._told(change)
        before, after = as_both_shown(change.before, change.after, change.path, (change.state.data,))
        return replace(told, op=op_of(change.before, change.after), before=before, after=after)

    def _told(self, change: Change) -> Step:
        match change.state.cause.layer:
            case "source":
                return self._source(change)
            case "edit" | "draft" | "since":
                return self._edit(change)
            case "function":
                return self._function(change)
            case "policy":
                return self.said(change.state.cause.by, change.state.cause.where, "policy")
            case "context":
                return self._context(change)
            case "pipeline":
                return self._own_function(change)
            case "injection":
                return self._injection(change)
            case layer:
                return self._by_us(layer, change)

    def said(self, by: str, field: str, layer: str, file: str = "") -> Step:
        """Return a step that an object of the config makes by one of its fields."""
        found = self.lines.place(by, field, file)
        at, line = line_of(found) if found else (file, 0)
        removable = ConfigField(found[0].key, found[1]) if found else None
        return Step(by, "", layer=layer, file=at, line=line, field=field, removable=removable)

    def _said_at(self, place: Field | None, layer: str, otherwise: str, field: str = "") -> Step:
        if place is None:
            return Step(otherwise, "", layer=layer, field=field)
        one, path = place
        return Step(
            str(one.key), "", layer=layer, file=one.file, line=one.where_at(path).line, field=dotted(path),
            removable=ConfigField(one.key, path),
        )  # fmt: skip

    def _source(self, change: Change) -> Step:
        upstream, path = self.variant.source, change.path
        file, index = change.state.place
        if isinstance(upstream, Upstream):
            whole = join(upstream.directory, file)
            removable = SourceField(file, index, path)
            # what was taken over as it stood is no upstream's
            who = f"{upstream.repository}/{upstream.package} {upstream.ref}" if self.rendered.source.follows else ""
            by, commit = (who, upstream.commit) if who else ("the package as it was adopted", "")
            return Step(
                by, "", layer=UPSTREAM, file=whole, line=_line(change.state, path), field=dotted(path), commit=commit,
                removable=removable,
            )  # fmt: skip
        return self._placed(change) or self._generated(change)

    def _placed(self, change: Change) -> Step | None:
        """Return that a resource of the config has it, where it is there as it is written (design 3)."""
        document = change.state.document
        one = self.explained.objects.get(document.key) if document else None
        if one is None or self.variant.provenance is not None:
            return None
        path = change.path
        if value_at(one.data, path) is ABSENT:
            return None
        return self._said_at((one, path), RESOURCE, str(one.key))

    def _generated(self, change: Change) -> Step:
        """Return that a room makes it, of a field of what asks for the package, or of that as a whole."""
        owner = self.variant.owner
        one = self.explained.objects.get(owner.set or owner.key)
        if one is None:
            return Step(str(owner.set or owner.key), "", layer=GENERATED)
        said = (path for path in _told_at(change.path) if same(value_at(one.data, path), change.after))
        path = next(said, None)
        step = self._said_at((one, path or ()), GENERATED, str(one.key))
        return step if path else replace(step, removable=None)

    def _edit(self, change: Change) -> Step:
        made = _MADE[change.state.cause.layer]
        layer, where = ("draft", "the draft") if made == "draft" else ("edit", "the cluster branch")
        file, index = change.state.place
        before, gone = change.earlier.data if change.earlier else ABSENT, change.after is ABSENT
        removable = Edit(file, index, change.path, before, change.state.data, gone, made)
        line = _line(change.state, change.path) if change.after is not ABSENT else 0
        at = join(self.explained.folder, file)
        return Step(f"a person, on {where}", "", layer=layer, file=at, line=line, removable=removable)

    def _context(self, change: Change) -> Step:
        name = str(change.path[-1]) if change.path[:1] == ("data",) else ""
        is_context = change.state.place[0] == CONTEXT_FILE
        place = self._fields.context(name) if is_context and name else None
        otherwise = "the reconciler, for what the package is called" if name in ("", "name", "package-path") else ""
        return self._said_at(place, "context", otherwise or "an earlier context, which is kept until it is removed")

    def _own_function(self, change: Change) -> Step:
        stage, number = (change.path[1], change.path[2]) if len(change.path) > 2 else ("", 0)
        place = self._fields.function(str(stage), number) if isinstance(number, int) and stage else None
        return self._said_at(place, "pipeline", str(self.variant.owner.key), "spec.pipeline")

    def _injection(self, change: Change) -> Step:
        injected = {one.file: one for one in self.rendered.injected}
        one = injected.get(change.state.place[0])
        key = next((key for key in self.explained.objects if one and _is_named(key, one)), None)
        if one is None or key is None:
            return Step(f"injection into {self.explained.place}", "", layer="injection")
        found = self.explained.objects[key]
        path = change.path if value_at(found.data, change.path) is not ABSENT else ()
        step = self._said_at((found, path), "injection", str(key))
        # of another object that could be injected, all of it would be
        return replace(step, removable=ConfigField(key, ()))

    def _function(self, change: Change) -> Step:
        cause = change.state.cause
        spec = cause.function
        assert spec is not None, "functions have specs"
        kptfile, path = join(cause.package, KPTFILE), ("pipeline", "mutators", cause.number)
        said = self._entry(cause.package, path, spec)
        return replace(
            said, by=spec.label, layer="function", config=_config(spec, kptfile), op="",
            removable=FunctionCall(cause.package, cause.number),
        )  # fmt: skip

    def _entry(self, package: str, path: Path, spec: FunctionSpec) -> Step:
        """Return who has put a function into the pipeline: its upstream, a person, or the variant."""
        if is_owned(spec.name, self.variant.owner.key.name):
            number = int(spec.name.rpartition(".")[2])
            return self._said_at(self._fields.function("mutators", number), "", str(self.variant.owner.key))
        track = self.kptfiles.get(package)
        changes = track.changes(path) if track else ()
        return self._told(changes[0]) if changes else Step("", "", field=dotted(path))

    def _by_us(self, layer: str, change: Change) -> Step:
        words = {
            "clone": "the reconciler, for what the package follows",
            "room": f"the reconciler, for {self.variant.owner.key}",
            "template": "the template of its parent",
            "strip": "the reconciler: what names policies and clusters goes no further",
        }
        return Step(words[layer], "", layer=layer)

    def recorded(self, steps: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
        """Return the steps that a room has told of a value."""
        return tuple(map(self._recorded, steps))

    def _recorded(self, one: Mapping[str, Any]) -> Step:
        said = self.said(one["by"], one.get("where", ""), one.get("layer", ""), one.get("file", ""))
        return replace(
            said, op=one["op"], before=one.get("before", ABSENT), after=one.get("after", ABSENT),
            expression=one.get("expression", ABSENT), instance=one.get("instance", ""), loop=one.get("forEach", ""),
            given=tuple(map(self._given, one.get("values", ()))),
        )  # fmt: skip

    def inherited(self, step: Step, path: Path) -> Step:
        """Return the step by which a child has a value of its parent, with whoever set it there to what it is.

        What the parent's own text says is that step's place; a parent in another package is not looked at.
        """
        track, name = self.tracks.get(step.by), step.field.rpartition(".")[2]
        at = path_of(track.last, step.field) if track else None
        if name not in path:
            return step
        below = path[path.index(name) + 1 :]
        step = self.within(step, below)
        if track is None or at is None:
            return step
        place = (*at, *below)
        changes = track.changes(place)
        if not changes or not same(changes[-1].after, step.after):
            return step
        later = (self.step(one) for one in changes if one.state.cause.layer != "source")
        told = (Given(dotted(place), one.layer, one.by, one.file, one.line, one.field, one.removable) for one in later)
        return replace(step, given=tuple(told))

    def within(self, step: Step, below: Path) -> Step:
        """Return a step for what is at a path below the value that it is about, and where that is said."""
        found = self.lines.place(step.by, step.field, step.file)
        if found is None or value_at(found[0].data, (*found[1], *below)) is ABSENT:
            return step
        one, path = found[0], (*found[1], *below)
        line = one.where_at(path).line
        return replace(step, field=dotted(path), line=line, removable=ConfigField(one.key, path))

    def _given(self, one: Mapping[str, str]) -> Given:
        by, field = one.get("by", ""), one.get("where", "")
        if not by:
            return Given(one["name"], one["layer"])
        said = self.said(by, field, one["layer"], one.get("file", ""))
        return Given(one["name"], one["layer"], by, said.file, said.line, field, said.removable)


def _is_named(key: ObjectKey, one: Injected) -> bool:
    return (key.kind, key.namespace or "default", key.name) == (one.kind, one.namespace or "default", one.name)


def _told_at(path: Path) -> Iterator[Path]:
    """Yield where the author of a generated object may have written one of its fields (greenhouse 11)."""
    if path[:1] == ("spec",):
        yield ("spec", "plugin", *path[1:])
    yield path


def _line(state: State, path: Path) -> int:
    return state.document.document.line_of(path) if state.document else 0


def _config(spec: FunctionSpec, kptfile: str) -> str:
    if spec.config_path:
        return spec.config_path
    return show(dict(spec.config_map), _SHOWN_CONFIG) if spec.config_map else ""
