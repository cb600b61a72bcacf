"""Builds the steps that set a value, from the changes in a render trace and from recorded provenance.

Each step names the source, person, object or function that made the change, and its location in a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from reconciler.api.kpt import FunctionSpec
from reconciler.controllers.nested_values import get_value
from reconciler.controllers.package_variants.mutation import is_variant_function
from reconciler.controllers.provenance import get_operation, redact_both_values
from reconciler.controllers.results import ConfigInjection, UpstreamPackage, Variant
from reconciler.krm.field_text import format_path
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.output.config_fields import (
    ConfigFieldLocator,
    FieldLocation,
    VariantFieldLocator,
    get_line,
    parse_field_path,
)
from reconciler.output.explain.model import GENERATED_LAYER, RESOURCE_LAYER, UPSTREAM_LAYER, ValueStep
from reconciler.output.text import format_value
from reconciler.packages.package import join_path
from reconciler.packages.package_context import PACKAGE_CONTEXT_FILE
from reconciler.planning.attribution.provenance_trace import ResourceState, ResourceTrace, TracedChange
from reconciler.planning.attribution.re_render import ReRenderedPackage
from reconciler.planning.attribution.removable_layers import (
    ConfigField,
    EditOrigin,
    FunctionCall,
    LocalEdit,
    SourceField,
)
from reconciler.planning.model.outcomes import PackageRender

_MAX_CONFIG_CHARACTERS = 200
_EDIT_ORIGINS: Mapping[str, EditOrigin] = {
    "edit": "branch",
    "draft": "draft",
    "since": "since",
}


@dataclass(frozen=True)
class StepBuilder:
    """Builds the steps that set the values of one package.

    Attributes:
        kptfile_traces: The traces of the Kptfiles by folder. The root package has the folder "".
        resource_traces: The traces of the resources by `Kind/namespace/name`.
    """

    explained: ReRenderedPackage
    variant: Variant
    rendered: PackageRender
    kptfile_traces: Mapping[str, ResourceTrace]
    resource_traces: Mapping[str, ResourceTrace] = field(default_factory=dict)

    @cached_property
    def config_fields(self) -> ConfigFieldLocator:
        """The locator that finds the file and line of fields in the config."""
        return ConfigFieldLocator(self.explained.objects.values())

    @cached_property
    def _variant_fields(self) -> VariantFieldLocator:
        return VariantFieldLocator(self.explained.objects, self.variant.owner)

    def build_step(self, change: TracedChange) -> ValueStep:
        """Return the step for one change. Secret values are redacted."""
        step = self._build_origin(change)
        before, after = redact_both_values(change.before, change.after, change.path, (change.state.data,))
        operation = get_operation(change.before, change.after)
        return replace(step, operation=operation, before=before, after=after)

    def _build_origin(self, change: TracedChange) -> ValueStep:
        """Return a step with the origin of a change. The step has no values yet."""
        match change.state.cause.layer:
            case "source":
                return self._build_source_step(change)
            case "edit" | "draft" | "since":
                return self._build_edit_step(change)
            case "function":
                return self._build_function_step(change)
            case "policy":
                return self.build_config_step(change.state.cause.source_name, change.state.cause.policy_item, "policy")
            case "context":
                return self._build_context_step(change)
            case "pipeline":
                return self._build_pipeline_step(change)
            case "injection":
                return self._build_injection_step(change)
            case layer:
                return self._build_reconciler_step(layer)

    def build_config_step(self, name: str, field: str, layer: str, file: str = "") -> ValueStep:
        """Return a step for a field of a config object.

        Args:
            name: The object, as `Kind/namespace/name`.
            field: The field path, such as `spec.items[2].name`.
            layer: The ID of the layer.
            file: The file of the object. This is required if several objects have the same name.
        """
        location = self.config_fields.find_field(name, field, file)
        found_file, line = get_line(location) if location else (file, 0)
        removable = ConfigField(location[0].key, location[1]) if location else None
        return ValueStep(name, "", layer=layer, file=found_file, line=line, field=field, removable_layer=removable)

    def _build_located_step(
        self, location: FieldLocation | None, layer: str, default_origin: str, field: str = ""
    ) -> ValueStep:
        """Return a step for a config field. If the location is unknown, the step names `default_origin`."""
        if location is None:
            return ValueStep(default_origin, "", layer=layer, field=field)
        manifest, path = location
        return ValueStep(
            manifest.key.reference, "", layer=layer, file=manifest.file, line=manifest.location_of(path).line,
            field=format_path(path), removable_layer=ConfigField(manifest.key, path),
        )  # fmt: skip

    def _build_source_step(self, change: TracedChange) -> ValueStep:
        upstream, path = self.variant.source, change.path
        file, index = change.state.location
        if not isinstance(upstream, UpstreamPackage):
            return self._build_resource_step(change) or self._build_generated_step(change)
        line = _find_line(change.state, path)
        step = ValueStep(
            upstream.title, layer=UPSTREAM_LAYER, field=format_path(path),
            removable_layer=SourceField(file, index, path),
        )  # fmt: skip
        if not self.rendered.source.follows_upstream:
            # Do not name the upstream, because the content of an adopted package does not come from an upstream commit.
            return replace(step, set_by="the adopted package", file=join_path(upstream.directory, file), line=line)
        origin = self.explained.sources.find_origin(file) if self.explained.sources else None
        if origin is None:
            return step
        return replace(
            step, set_by=origin.title, file=origin.file, line=line if origin.is_copied else 0,
            commit=origin.source.upstream.commit,
        )  # fmt: skip

    def _build_resource_step(self, change: TracedChange) -> ValueStep | None:
        """Return a step for a config resource that was copied into the package. Return None for other resources."""
        document = change.state.document
        manifest = self.explained.objects.get(document.key) if document else None
        if manifest is None or self.variant.provenance is not None:
            return None
        if get_value(manifest.data, change.path) is ABSENT:
            return None
        return self._build_located_step((manifest, change.path), RESOURCE_LAYER, manifest.key.reference)

    def _build_generated_step(self, change: TracedChange) -> ValueStep:
        """Return a step for a value that a controller generated from a field of the owner, or from the whole owner."""
        owner = self.variant.owner
        manifest = self.explained.objects.get(owner.parent or owner.key)
        if manifest is None:
            return ValueStep((owner.parent or owner.key).reference, "", layer=GENERATED_LAYER)
        candidates = _list_author_paths(change.path)
        equal = (path for path in candidates if is_equal_data(get_value(manifest.data, path), change.after))
        path = next(equal, None)
        step = self._build_located_step((manifest, path or ()), GENERATED_LAYER, manifest.key.reference)
        return step if path else replace(step, removable_layer=None)

    def _build_edit_step(self, change: TracedChange) -> ValueStep:
        origin = _EDIT_ORIGINS[change.state.cause.layer]
        layer, branch = ("draft", "the draft branch") if origin == "draft" else ("edit", "the target branch")
        file, index = change.state.location
        before = change.previous_state.data if change.previous_state else ABSENT
        is_removed = change.after is ABSENT
        removable = LocalEdit(file, index, change.path, before, change.state.data, is_removed, origin)
        line = 0 if is_removed else _find_line(change.state, change.path)
        return ValueStep(
            f"a person, on {branch}", "", layer=layer, file=join_path(self.explained.folder, file), line=line,
            removable_layer=removable,
        )  # fmt: skip

    def _build_context_step(self, change: TracedChange) -> ValueStep:
        name = str(change.path[-1]) if change.path[:1] == ("data",) else ""
        is_context = change.state.location[0] == PACKAGE_CONTEXT_FILE
        location = self._variant_fields.find_context(name) if is_context and name else None
        is_package_name = name in ("", "name", "package-path")
        default = (
            "the reconciler, for the package name"
            if is_package_name
            else "an earlier package context (keys stay until they are removed)"
        )
        return self._build_located_step(location, "context", default)

    def _build_pipeline_step(self, change: TracedChange) -> ValueStep:
        stage, number = (change.path[1], change.path[2]) if len(change.path) > 2 else ("", 0)
        location = self._variant_fields.find_function(str(stage), number) if isinstance(number, int) and stage else None
        return self._build_located_step(location, "pipeline", self.variant.owner.key.reference, "spec.pipeline")

    def _build_injection_step(self, change: TracedChange) -> ValueStep:
        injections = {injection.file: injection for injection in self.rendered.injections}
        injection = injections.get(change.state.location[0])
        keys = (key for key in self.explained.objects if injection and _is_injected_object(key, injection))
        key = next(keys, None)
        if injection is None or key is None:
            return ValueStep(f"the reconciler, for the injection into {self.explained.target}", "", layer="injection")
        manifest = self.explained.objects[key]
        path = change.path if get_value(manifest.data, change.path) is not ABSENT else ()
        step = self._build_located_step((manifest, path), "injection", key.reference)
        # To compute the value without this layer, remove the whole object from the config, because all injected content
        # comes from this object.
        return replace(step, removable_layer=ConfigField(key, ()))

    def _build_function_step(self, change: TracedChange) -> ValueStep:
        cause = change.state.cause
        spec = cause.function
        assert spec is not None, "functions have specs"
        path = ("pipeline", "mutators", cause.mutator_index)
        entry = self._build_function_entry_step(cause.package, path, spec)
        return replace(
            entry, set_by=spec.display_name, layer="function", function_config=_format_config(spec),
            operation="", removable_layer=FunctionCall(cause.package, cause.mutator_index),
        )  # fmt: skip

    def _build_function_entry_step(self, package: str, path: DataPath, spec: FunctionSpec) -> ValueStep:
        """Return the step in which the package variant, the upstream or a person added a function to the pipeline."""
        if is_variant_function(spec.name, self.variant.owner.key.name):
            number = int(spec.name.rpartition(".")[2])
            location = self._variant_fields.find_function("mutators", number)
            return self._build_located_step(location, "", self.variant.owner.key.reference)
        trace = self.kptfile_traces.get(package)
        changes = trace.list_changes(path) if trace else ()
        return self._build_origin(changes[0]) if changes else ValueStep("", "", field=format_path(path))

    def _build_reconciler_step(self, layer: str) -> ValueStep:
        origins = {
            "clone": "the reconciler, for the upstream of the package",
            "controller": f"the reconciler, for {self.variant.owner.key}",
            "template": "the template of the parent",
            "strip": "the reconciler, which removes fields that name policies and clusters",
        }
        return ValueStep(origins[layer], "", layer=layer)

    def build_recorded_steps(self, steps: Sequence[Mapping[str, Any]]) -> tuple[ValueStep, ...]:
        """Return the steps for the field `steps` of recorded provenance."""
        return tuple(map(self._build_recorded_step, steps))

    def _build_recorded_step(self, data: Mapping[str, Any]) -> ValueStep:
        step = self.build_config_step(data["by"], data.get("where", ""), data.get("layer", ""), data.get("file", ""))
        return replace(
            step, operation=data["op"], before=data.get("before", ABSENT), after=data.get("after", ABSENT),
            expression=data.get("expression", ABSENT), instance=data.get("instance", ""), loop=data.get("forEach", ""),
            expression_inputs=tuple(map(self._build_expression_input, data.get("values", ()))),
        )  # fmt: skip

    def build_inherited_step(self, step: ValueStep, path: DataPath) -> ValueStep:
        """Return the step in which a child resource inherits a value from the template of its parent.

        The step contains the location of the value in the manifest of the parent. If the render then changed the value
        in the parent, the step also contains these changes. They are unknown if the parent is in another package.
        """
        trace, name = self.resource_traces.get(step.set_by), step.field.rpartition(".")[2]
        parent_path = parse_field_path(trace.last_data, step.field) if trace else None
        if name not in path:
            return step
        nested_path = path[path.index(name) + 1 :]
        step = self.narrow_step(step, nested_path)
        if trace is None or parent_path is None:
            return step
        full_path = (*parent_path, *nested_path)
        changes = trace.list_changes(full_path)
        if not changes or not is_equal_data(changes[-1].after, step.after):
            return step
        later = (self.build_step(change) for change in changes if change.state.cause.layer != "source")
        inputs = tuple(replace(change, input_name=format_path(full_path)) for change in later)
        return replace(step, expression_inputs=inputs)

    def narrow_step(self, step: ValueStep, nested_path: DataPath) -> ValueStep:
        """Return a copy of a step with the location of a nested value. If the location is unknown, return the step."""
        location = self.config_fields.find_field(step.set_by, step.field, step.file)
        if location is None or get_value(location[0].data, (*location[1], *nested_path)) is ABSENT:
            return step
        manifest, path = location[0], (*location[1], *nested_path)
        line = manifest.location_of(path).line
        return replace(step, field=format_path(path), line=line, removable_layer=ConfigField(manifest.key, path))

    def _build_expression_input(self, data: Mapping[str, str]) -> ValueStep:
        name, layer = data.get("by", ""), data["layer"]
        if not name:
            return ValueStep("", "", layer=layer, input_name=data["name"])
        step = self.build_config_step(name, data.get("where", ""), layer, data.get("file", ""))
        return replace(step, input_name=data["name"])


def _is_injected_object(key: ObjectKey, injection: ConfigInjection) -> bool:
    injected = (injection.kind, injection.namespace or "default", injection.name)
    return (key.kind, key.namespace or "default", key.name) == injected


def _list_author_paths(path: DataPath) -> Iterator[DataPath]:
    """Yield the paths at which the manifest of a parent object can set the field `path` of a generated object.

    For example, a Greenhouse PluginPreset contains the spec of its generated Plugins in `spec.plugin`.
    """
    if path[:1] == ("spec",):
        yield ("spec", "plugin", *path[1:])
    yield path


def _find_line(state: ResourceState, path: DataPath) -> int:
    return state.document.document.find_line(path) if state.document else 0


def _format_config(spec: FunctionSpec) -> str:
    if spec.config_path:
        return spec.config_path
    return format_value(dict(spec.config_map), _MAX_CONFIG_CHARACTERS) if spec.config_map else ""
