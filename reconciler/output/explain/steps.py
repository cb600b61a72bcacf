"""The steps of a value in the words of what made them: the source, people, context, injection, functions, rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from reconciler.controllers.nested_values import get_value
from reconciler.controllers.package_variants.mutation import is_variant_function
from reconciler.controllers.provenance import get_operation, redact_both_values
from reconciler.controllers.results import ConfigInjection, UpstreamPackage, Variant
from reconciler.controllers.validation import format_path
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.output.config_fields import (
    ConfigFieldLocator,
    FieldLocation,
    VariantFieldLocator,
    get_line,
    parse_field_path,
)
from reconciler.output.explain.model import GENERATED, RESOURCE, UPSTREAM, ExplainedPackage, ExpressionInput, ValueStep
from reconciler.output.text import format_value
from reconciler.packages.kptfile import KPTFILE, FunctionSpec
from reconciler.packages.package import join_path
from reconciler.packages.package_context import PACKAGE_CONTEXT_FILE
from reconciler.planning.attribution.provenance_trace import ResourceState, ResourceTrace, TracedChange
from reconciler.planning.attribution.re_render import ConfigField, FunctionCall, LocalEdit, SourceField
from reconciler.planning.model.outcomes import PackageRender

_SHOWN_CONFIG = 200
_MADE: Mapping[str, Literal["branch", "draft", "since"]] = {"edit": "branch", "draft": "draft", "since": "since"}


@dataclass(frozen=True)
class StepBuilder:
    """Tells who changed a value at each step of its way, by the config and the sources of one package.

    `tracks` are those of its resources, by `Kind/namespace/name`; of its Kptfiles by folder, "" for the root.
    """

    explained: ExplainedPackage
    variant: Variant
    rendered: PackageRender
    kptfiles: Mapping[str, ResourceTrace]
    tracks: Mapping[str, ResourceTrace] = field(default_factory=dict)

    @cached_property
    def lines(self) -> ConfigFieldLocator:
        """Where fields of the config are."""
        return ConfigFieldLocator(self.explained.objects.values())

    @cached_property
    def _fields(self) -> VariantFieldLocator:
        return VariantFieldLocator(self.explained.objects, self.variant.owner)

    def build_step(self, change: TracedChange) -> ValueStep:
        """Return one change as a step: who made it and where that is said, and the values as they may be shown."""
        told = self._told(change)
        before, after = redact_both_values(change.before, change.after, change.path, (change.state.data,))
        return replace(told, op=get_operation(change.before, change.after), before=before, after=after)

    def _told(self, change: TracedChange) -> ValueStep:
        match change.state.cause.layer:
            case "source":
                return self._source(change)
            case "edit" | "draft" | "since":
                return self._edit(change)
            case "function":
                return self._function(change)
            case "policy":
                return self.build_config_step(change.state.cause.source_name, change.state.cause.policy_item, "policy")
            case "context":
                return self._context(change)
            case "pipeline":
                return self._own_function(change)
            case "injection":
                return self._injection(change)
            case layer:
                return self._by_us(layer, change)

    def build_config_step(self, by: str, field: str, layer: str, file: str = "") -> ValueStep:
        """Return a step that an object of the config makes by one of its fields."""
        found = self.lines.find_field(by, field, file)
        at, line = get_line(found) if found else (file, 0)
        removable = ConfigField(found[0].key, found[1]) if found else None
        return ValueStep(by, "", layer=layer, file=at, line=line, field=field, removable_layer=removable)

    def _said_at(self, place: FieldLocation | None, layer: str, otherwise: str, field: str = "") -> ValueStep:
        if place is None:
            return ValueStep(otherwise, "", layer=layer, field=field)
        one, path = place
        return ValueStep(
            str(one.key), "", layer=layer, file=one.file, line=one.location_of(path).line, field=format_path(path),
            removable_layer=ConfigField(one.key, path),
        )  # fmt: skip

    def _source(self, change: TracedChange) -> ValueStep:
        upstream, path = self.variant.source, change.path
        file, index = change.state.location
        if isinstance(upstream, UpstreamPackage):
            whole = join_path(upstream.directory, file)
            removable = SourceField(file, index, path)
            # what was taken over as it stood is no upstream's
            who = (
                f"{upstream.repository}/{upstream.package} {upstream.ref}"
                if self.rendered.source.follows_upstream
                else ""
            )
            by, commit = (who, upstream.commit) if who else ("the package as it was adopted", "")
            return ValueStep(
                by, "", layer=UPSTREAM, file=whole, line=_line(change.state, path), field=format_path(path), commit=commit,  # noqa: E501
                removable_layer=removable,
            )  # fmt: skip
        return self._placed(change) or self._generated(change)

    def _placed(self, change: TracedChange) -> ValueStep | None:
        """Return that a resource of the config has it, where it is there as it is written (design 3)."""
        document = change.state.document
        one = self.explained.objects.get(document.key) if document else None
        if one is None or self.variant.provenance is not None:
            return None
        path = change.path
        if get_value(one.data, path) is ABSENT:
            return None
        return self._said_at((one, path), RESOURCE, str(one.key))

    def _generated(self, change: TracedChange) -> ValueStep:
        """Return that a room makes it, of a field of what asks for the package, or of that as a whole."""
        owner = self.variant.owner
        one = self.explained.objects.get(owner.parent or owner.key)
        if one is None:
            return ValueStep(str(owner.parent or owner.key), "", layer=GENERATED)
        said = (path for path in _told_at(change.path) if is_equal_data(get_value(one.data, path), change.after))
        path = next(said, None)
        step = self._said_at((one, path or ()), GENERATED, str(one.key))
        return step if path else replace(step, removable_layer=None)

    def _edit(self, change: TracedChange) -> ValueStep:
        made = _MADE[change.state.cause.layer]
        layer, where = ("draft", "the draft") if made == "draft" else ("edit", "the cluster branch")
        file, index = change.state.location
        before, gone = change.previous_state.data if change.previous_state else ABSENT, change.after is ABSENT
        removable = LocalEdit(file, index, change.path, before, change.state.data, gone, made)
        line = _line(change.state, change.path) if change.after is not ABSENT else 0
        at = join_path(self.explained.folder, file)
        return ValueStep(f"a person, on {where}", "", layer=layer, file=at, line=line, removable_layer=removable)

    def _context(self, change: TracedChange) -> ValueStep:
        name = str(change.path[-1]) if change.path[:1] == ("data",) else ""
        is_context = change.state.location[0] == PACKAGE_CONTEXT_FILE
        place = self._fields.find_context(name) if is_context and name else None
        otherwise = "the reconciler, for what the package is called" if name in ("", "name", "package-path") else ""
        return self._said_at(place, "context", otherwise or "an earlier context, which is kept until it is removed")

    def _own_function(self, change: TracedChange) -> ValueStep:
        stage, number = (change.path[1], change.path[2]) if len(change.path) > 2 else ("", 0)
        place = self._fields.find_function(str(stage), number) if isinstance(number, int) and stage else None
        return self._said_at(place, "pipeline", str(self.variant.owner.key), "spec.pipeline")

    def _injection(self, change: TracedChange) -> ValueStep:
        injected = {one.file: one for one in self.rendered.injections}
        one = injected.get(change.state.location[0])
        key = next((key for key in self.explained.objects if one and _is_named(key, one)), None)
        if one is None or key is None:
            return ValueStep(f"injection into {self.explained.target}", "", layer="injection")
        found = self.explained.objects[key]
        path = change.path if get_value(found.data, change.path) is not ABSENT else ()
        step = self._said_at((found, path), "injection", str(key))
        # of another object that could be injected, all of it would be
        return replace(step, removable_layer=ConfigField(key, ()))

    def _function(self, change: TracedChange) -> ValueStep:
        cause = change.state.cause
        spec = cause.function
        assert spec is not None, "functions have specs"
        kptfile, path = join_path(cause.package, KPTFILE), ("pipeline", "mutators", cause.mutator_index)
        said = self._entry(cause.package, path, spec)
        return replace(
            said, by=spec.display_name, layer="function", config=_config(spec, kptfile), op="",
            removable_layer=FunctionCall(cause.package, cause.mutator_index),
        )  # fmt: skip

    def _entry(self, package: str, path: DataPath, spec: FunctionSpec) -> ValueStep:
        """Return who has put a function into the pipeline: its upstream, a person, or the variant."""
        if is_variant_function(spec.name, self.variant.owner.key.name):
            number = int(spec.name.rpartition(".")[2])
            return self._said_at(self._fields.find_function("mutators", number), "", str(self.variant.owner.key))
        track = self.kptfiles.get(package)
        changes = track.list_changes(path) if track else ()
        return self._told(changes[0]) if changes else ValueStep("", "", field=format_path(path))

    def _by_us(self, layer: str, change: TracedChange) -> ValueStep:
        words = {
            "clone": "the reconciler, for what the package follows",
            "room": f"the reconciler, for {self.variant.owner.key}",
            "template": "the template of its parent",
            "strip": "the reconciler: what names policies and clusters goes no further",
        }
        return ValueStep(words[layer], "", layer=layer)

    def build_recorded_steps(self, steps: Sequence[Mapping[str, Any]]) -> tuple[ValueStep, ...]:
        """Return the steps that a room has told of a value."""
        return tuple(map(self._recorded, steps))

    def _recorded(self, one: Mapping[str, Any]) -> ValueStep:
        said = self.build_config_step(one["by"], one.get("where", ""), one.get("layer", ""), one.get("file", ""))
        return replace(
            said, op=one["op"], before=one.get("before", ABSENT), after=one.get("after", ABSENT),
            expression=one.get("expression", ABSENT), instance=one.get("instance", ""), loop=one.get("forEach", ""),
            expression_inputs=tuple(map(self._given, one.get("values", ()))),
        )  # fmt: skip

    def build_inherited_step(self, step: ValueStep, path: DataPath) -> ValueStep:
        """Return the step by which a child has a value of its parent, with whoever set it there to what it is.

        What the parent's own text says is that step's place; a parent in another package is not looked at.
        """
        track, name = self.tracks.get(step.by), step.field.rpartition(".")[2]
        at = parse_field_path(track.last_data, step.field) if track else None
        if name not in path:
            return step
        below = path[path.index(name) + 1 :]
        step = self.narrow_step(step, below)
        if track is None or at is None:
            return step
        place = (*at, *below)
        changes = track.list_changes(place)
        if not changes or not is_equal_data(changes[-1].after, step.after):
            return step
        later = (self.build_step(one) for one in changes if one.state.cause.layer != "source")
        told = (
            ExpressionInput(format_path(place), one.layer, one.by, one.file, one.line, one.field, one.removable_layer)
            for one in later
        )
        return replace(step, expression_inputs=tuple(told))

    def narrow_step(self, step: ValueStep, below: DataPath) -> ValueStep:
        """Return a step for what is at a path below the value that it is about, and where that is said."""
        found = self.lines.find_field(step.by, step.field, step.file)
        if found is None or get_value(found[0].data, (*found[1], *below)) is ABSENT:
            return step
        one, path = found[0], (*found[1], *below)
        line = one.location_of(path).line
        return replace(step, field=format_path(path), line=line, removable_layer=ConfigField(one.key, path))

    def _given(self, one: Mapping[str, str]) -> ExpressionInput:
        by, field = one.get("by", ""), one.get("where", "")
        if not by:
            return ExpressionInput(one["name"], one["layer"])
        said = self.build_config_step(by, field, one["layer"], one.get("file", ""))
        return ExpressionInput(one["name"], one["layer"], by, said.file, said.line, field, said.removable_layer)


def _is_named(key: ObjectKey, one: ConfigInjection) -> bool:
    return (key.kind, key.namespace or "default", key.name) == (one.kind, one.namespace or "default", one.name)


def _told_at(path: DataPath) -> Iterator[DataPath]:
    """Yield where the author of a generated object may have written one of its fields (greenhouse 11)."""
    if path[:1] == ("spec",):
        yield ("spec", "plugin", *path[1:])
    yield path


def _line(state: ResourceState, path: DataPath) -> int:
    return state.document.document.find_line(path) if state.document else 0


def _config(spec: FunctionSpec, kptfile: str) -> str:
    if spec.config_path:
        return spec.config_path
    return format_value(dict(spec.config_map), _SHOWN_CONFIG) if spec.config_map else ""
