"""Provenance of the values of a component: the template, addon, parameter and override that set each value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.components.bindings import ResolvedBinding
from reconciler.controllers.components.component_plan import AddonUse, ComponentPlan
from reconciler.controllers.components.component_renderer import RenderedComponent
from reconciler.controllers.components.effective_values import EffectiveValues
from reconciler.controllers.components.model import AddonInstance, Build, Values
from reconciler.controllers.components.patching.operations import Write
from reconciler.controllers.components.resource_renderer import RenderedResource, ResourceChange
from reconciler.controllers.components.schema.openapi import Schema, is_declared
from reconciler.controllers.components.templates.nodes import ValueOrigin
from reconciler.controllers.nested_values import get_value
from reconciler.controllers.provenance import describe_objects, get_operation, redact_both_values, redact_value
from reconciler.krm.field_text import format_path
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.redaction import MASK, is_secret, is_secret_value

ValueChange = tuple[DataPath, Any, Any]
REMOVED_ITEM = "-"
"""Last step of the path of a removed list item, which has no index any more."""


@dataclass(eq=False)
class ValueHistory:
    """Provenance steps of the value at one path, and the histories of its fields or items."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    fields: dict[str, ValueHistory] = field(default_factory=dict)
    items: list[ValueHistory | None] = field(default_factory=list)

    def get_or_create(self, path: DataPath) -> ValueHistory:
        """Return the history at `path`, which is relative to this value. Create the history if it does not exist."""
        history = self
        for step in path:
            history = history._get_or_create_child(step)
        return history

    def _get_or_create_child(self, step: str | int) -> ValueHistory:
        if isinstance(step, str):
            return self.fields.setdefault(step, ValueHistory())
        self.items.extend([None] * (step + 1 - len(self.items)))
        child = self.items[step] or ValueHistory()
        self.items[step] = child
        return child

    def shift_items(self, write: Write) -> None:
        """After a list item was inserted or removed, move the histories of the items behind it to their new indexes."""
        *parent, step = write.location
        if isinstance(step, str) or write.op == "replace" or write.is_appended:
            return
        items = self.get_or_create(tuple(parent)).items
        if write.op == "add":
            items.insert(step, None) if step < len(items) else None
        else:
            del items[step : step + 1]

    def clear_items(self) -> None:
        """Delete the histories of the list items, because the list was replaced."""
        self.items.clear()

    def iter_steps(self, path: DataPath = ()) -> Iterator[tuple[DataPath, list[dict[str, Any]]]]:
        """Yield each path that has provenance steps, with these steps."""
        if self.steps:
            yield path, self.steps
        for key, child in self.fields.items():
            yield from child.iter_steps((*path, key))
        for index, item in enumerate(self.items):
            if item:
                yield from item.iter_steps((*path, index))


def iter_changes(write: Write) -> Iterator[ValueChange]:
    """Yield the path, old value and new value of each scalar or list that a write changed.

    The items of two lists are not compared, because the items at the same index can be unrelated.
    """
    *parent, step = write.location
    if write.op == "remove" and isinstance(step, int):
        yield (*parent, REMOVED_ITEM), write.before, ABSENT
    else:
        yield from _compare_values(write.before, write.after, write.location)


def _compare_values(before: Any, after: Any, path: DataPath) -> Iterator[ValueChange]:
    maps = [value if isinstance(value, dict) else {} for value in (before, after)]
    keys = dict.fromkeys((*maps[0], *maps[1]))
    if keys and all(value is ABSENT or isinstance(value, dict) for value in (before, after)):
        for key in keys:
            yield from _compare_values(maps[0].get(key, ABSENT), maps[1].get(key, ABSENT), (*path, key))
    elif before is ABSENT or after is ABSENT or not is_equal_data(before, after):
        yield path, before, after


ValueSource = dict[str, Any]
_VALUE_VARIABLES = ("spec", "parameters", "envOverrides")
_BINDING_FIELDS = {"name": "environment", "endpoints": "endpoints"}


@dataclass(frozen=True, eq=False)
class ValueSources:
    """Finds the objects that set the values of a component in one environment."""

    resolved_binding: ResolvedBinding
    plan: ComponentPlan
    build: Build | None
    rendered: RenderedComponent

    def find_sources(self, reads: Iterable[tuple[str, ...]], instance: AddonInstance | None) -> list[ValueSource]:
        """Return the origin of each value that an expression reads.

        Args:
            reads: The paths of these values, e.g. `("spec", "size")`.
            instance: The addon instance that contains the expression. None for an expression of the
                component definition.
        """
        return [source for read in sorted(reads) for source in self._find_sources(read[0], read[1:], instance)]

    def _find_sources(self, variable: str, path: DataPath, instance: AddonInstance | None) -> Iterator[ValueSource]:
        name = ".".join(map(str, (variable, *path)))
        if variable in _VALUE_VARIABLES:
            yield from self._find_parameter_sources(variable, path, instance)
        elif variable in ("build", "workload"):
            yield from self._find_build_source(name, (variable, *path))
        elif variable == "env":
            yield self._find_environment_source(name, path)
        elif variable == "metadata":
            yield _build_source(name, "component", self.resolved_binding.component.manifest, ("metadata", *path))
        elif variable in ("instanceId", "addon"):
            yield from self._find_instance_source(name, instance)

    def _find_parameter_sources(
        self, variable: str, path: DataPath, instance: AddonInstance | None
    ) -> Iterator[ValueSource]:
        use = next((use for use in self.plan.uses if use.instance == instance), None)
        values = self.rendered.values[instance]
        yield from _ParameterScope(variable, values, self.plan, use).find_sources(
            path, _get_schema(values.schema.full, path)
        )

    def _find_build_source(self, name: str, path: DataPath) -> Iterator[ValueSource]:
        if self.build:
            field_path = path[1:] if path[0] == "build" else path
            yield _build_source(name, "build", self.build.manifest, ("spec", *field_path))

    def _find_environment_source(self, name: str, path: DataPath) -> ValueSource:
        if path and path[0] in _BINDING_FIELDS:
            return _build_source(
                name, "environment", self.resolved_binding.binding.manifest, ("spec", _BINDING_FIELDS[str(path[0])])
            )
        return _build_source(
            name, "environment", self.resolved_binding.environment.manifest, ("spec", "context", *path)
        )

    def _find_instance_source(self, name: str, instance: AddonInstance | None) -> Iterator[ValueSource]:
        for use in self.plan.uses:
            if use.instance == instance:
                field_name = "instanceId" if use.has_instance_id and name != "addon.name" else "name"
                yield _build_source(name, use.role, use.declared_by, (*use.path, field_name))


@dataclass(frozen=True, eq=False)
class _ParameterScope:
    """Finds the objects that set the parameters of the component, or of one addon instance."""

    variable: str
    values: EffectiveValues
    plan: ComponentPlan
    use: AddonUse | None

    def find_sources(self, path: DataPath, schema: Schema) -> list[ValueSource]:
        """Return the origin of a parameter, or one origin per field if its fields have several origins.

        The origin of a value is the layer with the highest precedence that sets the value. If no layer sets the value,
        the origin is the default in the schema.
        """
        value, fields = get_value(self.values.data, path), schema.get("properties", {})
        if not isinstance(value, Mapping) or not fields:
            return [self._find_source(path, value)]
        field_sources = [source for key in value for source in self.find_sources((*path, key), fields.get(key, {}))]
        has_one_source = len({(source["layer"], source.get("by")) for source in field_sources}) < 2
        return [self._find_source(path, value)] if path and has_one_source else field_sources

    def _find_source(self, path: DataPath, value: Any) -> ValueSource:
        name = ".".join(map(str, (self.variable, *path)))
        if value is ABSENT:
            return {"name": name, "layer": "unset"}
        layer = self.values.find_origin(path)
        # Ignore a layer that sets null, because null removes the value, and the default applies.
        if layer and (value is None or get_value(layer.data, path) is not None):
            return _build_source(name, layer.name, layer.manifest, (*layer.path, *path))
        return self._find_default(name, path)

    def _find_default(self, name: str, path: DataPath) -> ValueSource:
        use = self.use
        if use and get_value(_get_type_defaults(use), path) not in (ABSENT, None):
            return _build_source(name, "defaults", use.declared_by, (*use.path, "defaults", *path))
        manifest, schema = (
            (use.addon.manifest, use.addon.schema) if use else (self.plan.definition.manifest, self.values.schema)
        )
        section = "parameters" if is_declared(schema.parameters, path) else "envOverrides"
        return _build_source(
            name, "default", manifest, ("spec", "schema", section, *self._find_default_path(manifest, section, path))
        )

    def _find_default_path(self, manifest: ConfigObject, section: str, path: DataPath) -> DataPath:
        """Return the path of a field's default in the schema.

        This is the path of the field itself, or the path of `$default` of a parent if the parent is not set.
        """
        node: Any = manifest.data["spec"]["schema"].get(section)
        for depth, step in enumerate(path):
            if depth and not self._is_set(path[:depth]) and _has_default(node.get("$default"), path[depth:]):
                return (*path[:depth], "$default")
            node = node.get(step)
            if not isinstance(node, Mapping):
                return path[: depth + 1]
        return path

    def _is_set(self, path: DataPath) -> bool:
        return self.values.find_origin(path) is not None


def _get_schema(schema: Schema, path: DataPath) -> Schema:
    """Return the schema of the field at `path`. Return {} if the schema does not declare the field."""
    for step in path:
        schema = schema.get("properties", {}).get(step, {})
    return schema


def _get_type_defaults(use: AddonUse) -> Values:
    """Return the defaults that a component type sets for a developer addon."""
    defaults = get_value(use.declared_by.data, (*use.path, "defaults"))
    return defaults if isinstance(defaults, Mapping) else {}


def _has_default(default: Any, path: DataPath) -> bool:
    """Return whether `default` has a value at `path`. `default` is a mapping or a JSON text."""
    return get_value(json.loads(default) if isinstance(default, str) else default, path) is not ABSENT


def _build_source(name: str, layer: str, manifest: ConfigObject, path: DataPath) -> ValueSource:
    return {
        "name": name,
        "layer": layer,
        "by": manifest.key.reference,
        "file": manifest.file,
        "where": format_path(path),
    }


ProvenanceStep = dict[str, Any]


@dataclass(frozen=True, eq=False)
class ComponentProvenance:
    """Provenance of all values of a component in one environment. The methods compute it only when they are called.

    `input_digests` contains the digest of each config object that the component was rendered from.
    """

    value_sources: ValueSources
    files: Mapping[str, RenderedResource]
    input_digests: Mapping[ConfigObject, str]

    def list_layers(self) -> list[dict[str, Any]]:
        """Return the content of the field `layers` in a status file.

        The result contains the template of each resource, and the provenance steps of each value that an expression or
        a patch set.
        """
        return [
            {"file": name, "resource": resource.key.reference, "pointer": pointer, "steps": steps}
            for name, resource in sorted(self.files.items())
            for pointer, steps in sorted(
                (format_pointer(path), steps) for path, steps in self._build_history(resource).iter_steps()
            )
        ]

    def list_applied_overrides(self) -> list[dict[str, str]]:
        """Return the addons that were applied, in execution order."""
        return [
            {"layer": "addon", "kind": "Addon", "name": str(instance)}
            for instance in self.value_sources.rendered.active_instances
        ]

    def list_objects(self) -> list[dict[str, str]]:
        """Return the config objects that the component was rendered from."""
        return describe_objects(self.input_digests)

    def _build_history(self, resource: RenderedResource) -> ValueHistory:
        """Return the provenance steps of each value in a resource. Each value has its path after all patches."""
        history, is_hidden = ValueHistory(), is_secret(resource.data)
        for change in resource.changes:
            if change.write is None:
                history.steps.append(
                    {
                        **_describe_location(change, change.path),
                        "op": "added",
                        **self._describe_loop(change, hides=is_hidden),
                    }
                )
                self._add_created_values(change, resource, history)
            else:
                history.shift_items(change.write)
                self._add_written_values(change, change.write, resource.data, history)
        return history

    def _describe_loop(self, change: ResourceChange, *, hides: bool) -> ProvenanceStep:
        """Return the `forEach` expression that created the resource. Return {} if no loop created the resource."""
        origin = change.loop.origin if change.loop else None
        return {"forEach": MASK if hides else origin.text, **self._describe_sources(origin, change)} if origin else {}

    def _add_created_values(self, change: ResourceChange, resource: RenderedResource, history: ValueHistory) -> None:
        """Add a step for each value that an expression set when the resource was created."""
        data = resource.original or resource.data
        for path, origin in change.origins.items():
            after = get_value(data, path)
            if after is not ABSENT:
                history.get_or_create(path).steps.append(
                    self._build_created_step(change, path, after, origin, hides=is_secret_value(data, path))
                )

    def _build_created_step(
        self, change: ResourceChange, path: DataPath, after: Any, origin: ValueOrigin, *, hides: bool
    ) -> ProvenanceStep:
        path_in_manifest = change.path if change.write else origin.path
        redacted = redact_value(after, hides=hides)
        return {
            **_describe_location(change, path_in_manifest),
            "op": "added",
            "after": redacted,
            **self._describe_expression(origin, change, redacted),
        }

    def _add_written_values(self, change: ResourceChange, write: Write, data: Any, history: ValueHistory) -> None:
        for path, before, after in iter_changes(write):
            child, origin = history.get_or_create(path), _find_origin(change.origins, write, path)
            redacted_before, redacted_after = redact_both_values(before, after, path, (data,))
            values = {
                name: value
                for name, value in (("before", redacted_before), ("after", redacted_after))
                if value is not ABSENT
            }
            expression = self._describe_expression(origin, change, redacted_after) if origin else {}
            child.clear_items()
            child.steps.append(
                {**_describe_location(change, change.path), "op": get_operation(before, after), **values, **expression}
            )
            for inner, value, nested_origin in (
                _iter_nested_origins(after, path, change.origins, write) if not origin else ()
            ):
                history.get_or_create(inner).steps.append(
                    self._build_created_step(change, inner, value, nested_origin, hides=is_secret_value(data, inner))
                )

    def _describe_expression(self, origin: ValueOrigin, change: ResourceChange, redacted: Any) -> ProvenanceStep:
        """Return the expression of a value. The expression of a secret is masked, because it can contain the secret."""
        expression = MASK if redacted == MASK else origin.text
        return {"expression": expression, **self._describe_sources(origin, change)}

    def _describe_sources(self, origin: ValueOrigin, change: ResourceChange) -> ProvenanceStep:
        """Return the sources of the values that the expression in `origin` reads.

        If the expression reads a loop item, include the sources of the values that the `forEach` expression reads.
        """
        reads, loop = set(origin.reads), change.loop.origin if change.loop else None
        if loop and change.loop and any(read[0] == change.loop.variable for read in reads):
            reads |= loop.reads
        sources = self.value_sources.find_sources(reads, change.instance)
        return {"values": sources} if sources else {}


def _describe_location(change: ResourceChange, path: DataPath) -> ProvenanceStep:
    layer = "addon" if change.instance else "definition"
    instance = {"instance": str(change.instance)} if change.instance else {}
    return {
        "layer": layer,
        **instance,
        "by": change.manifest.key.reference,
        "file": change.manifest.file,
        "where": format_path(path),
    }


def _get_path_in_value(write: Write, path: DataPath) -> DataPath | None:
    """Convert `path` in the resource to a path in the value of the patch operation.

    Return None if the value does not contain `path`, because the write created `path` as a parent of the value.
    """
    steps, prefix = path[len(write.location) :], write.path_in_after
    return (*write.path_in_value, *steps[len(prefix) :]) if steps[: len(prefix)] == prefix else None


def _find_origin(origins: Mapping[DataPath, ValueOrigin], write: Write, path: DataPath) -> ValueOrigin | None:
    """Return the expression that set the value at `path` or a parent value. Return None if no expression set it."""
    value_path = _get_path_in_value(write, path)
    if value_path is None or not origins:
        return None
    return next(
        (origins[value_path[:end]] for end in range(len(value_path), -1, -1) if value_path[:end] in origins), None
    )


def _iter_nested_origins(
    value: Any, path: DataPath, origins: Mapping[DataPath, ValueOrigin], write: Write
) -> Iterator[tuple[DataPath, Any, ValueOrigin]]:
    """Yield the nested values that expressions set, each with its path and its expression."""
    if not origins:
        return
    below = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for step, child in below:
        child_path = (*path, step)
        value_path = _get_path_in_value(write, child_path)
        if value_path is not None and value_path in origins:
            yield child_path, child, origins[value_path]
        else:
            yield from _iter_nested_origins(child, child_path, origins, write)
