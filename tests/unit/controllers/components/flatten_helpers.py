"""Helpers for tests of flattening: a component type whose component is rendered with addons and flattened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeVar

from reconciler.api.openchoreo import API_VERSION
from reconciler.catalog.catalog import ConfigObject
from reconciler.cel import ExpressionLimits
from reconciler.controllers.components.compilation import compile_component_type
from reconciler.controllers.components.component_plan import ComponentPlan
from reconciler.controllers.components.component_renderer import InjectedValues, render_component
from reconciler.controllers.components.definition_index import DefinitionIndex, NameIndex
from reconciler.controllers.components.definitions import read_addon, read_component_definition
from reconciler.controllers.components.flatten.definition import flatten_component_type
from reconciler.controllers.components.model import read_binding, read_component, read_component_type
from reconciler.controllers.components.names import GROUP
from reconciler.controllers.components.schema.openapi import is_declared
from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import Document, emit

LIMITS = ExpressionLimits()
FLATTENED_NAME = "mill-with-everything"
FACTS: InjectedValues = {
    "env": {"name": "live", "endpoints": []},
    "build": {"image": "registry.example.org/mill:2.0"},
    "workload": {"zones": ["north", "south"]},
}
Read = TypeVar("Read")
Outcome = str | tuple[str, ...]


def config_object(kind: str, name: str, spec: Mapping[str, Any], namespace: str = "", **metadata: Any) -> ConfigObject:
    """Return a config object of the component group."""
    own = {"name": name, **({"namespace": namespace} if namespace else {}), **metadata}
    data = {"apiVersion": API_VERSION, "kind": kind, "metadata": own, "spec": deepcopy(dict(spec))}
    return ConfigObject(ObjectKey(GROUP, kind, namespace, name), API_VERSION, f"{name}.yaml", Document.from_data(data))


def _read(read: tuple[Read | None, Sequence[Finding]]) -> Read:
    value, findings = read
    assert value is not None, [finding.message for finding in findings]
    return value


@dataclass(frozen=True)
class FlattenSetup:
    """A component type: the spec of its definition, the specs of its addons by name, and the uses of the addons."""

    definition: Mapping[str, Any]
    addons: Mapping[str, Mapping[str, Any]]
    uses: Sequence[Mapping[str, Any]] = ()

    def build_plan(
        self, definition: ConfigObject | None = None, uses: Sequence[Mapping[str, Any]] | None = None
    ) -> ComponentPlan:
        """Return the plan of the component type, or of a type with another definition or other addon uses."""
        used = definition or config_object("ComponentDefinition", "mill", self.definition)
        mapping = {used.key.name: _read(read_component_definition(used, LIMITS))}
        addons = {
            name: _read(read_addon(config_object("Addon", name, spec), LIMITS)) for name, spec in self.addons.items()
        }
        library = DefinitionIndex(NameIndex("ComponentDefinition", mapping, {}), NameIndex("Addon", addons, {}))
        ref = {"componentDefinitionRef": {"name": used.key.name}}
        spec = {**ref, "platformAddons": list(self.uses if uses is None else uses)}
        compiled = compile_component_type(
            _read(read_component_type(config_object("ComponentType", "river-mill", spec))), "RiverMill", library, LIMITS
        )
        assert compiled.plan is not None, [finding.message for finding in select_errors(compiled.findings)]
        return compiled.plan

    def flatten(self) -> dict[str, Any]:
        """Return the flattened definition of the component type."""
        result = flatten_component_type(self.build_plan(), FLATTENED_NAME, LIMITS)
        assert isinstance(result, dict), [finding.message for finding in result]
        return result

    def list_refusals(self) -> list[tuple[str, str]]:
        """Return codes and messages of the findings that prevent flattening."""
        output = flatten_component_type(self.build_plan(), FLATTENED_NAME, LIMITS)
        assert isinstance(output, tuple), emit(output)
        return [(finding.code, finding.message) for finding in output]

    def render_with_addons(
        self, spec: Mapping[str, Any], overrides: Mapping[str, Any], addons: Mapping[str, Any]
    ) -> Outcome:
        """Render a component with the addons and with the overrides of an environment."""
        return render_objects(self.build_plan(), spec, {"overrides": overrides, "platformAddonOverrides": addons})

    def render_flattened(
        self, spec: Mapping[str, Any], overrides: Mapping[str, Any], flattened: Mapping[str, Any]
    ) -> Outcome:
        """Render a component with the flattened definition. The overrides contain the values of addons by key."""
        one = ConfigObject(
            ObjectKey(GROUP, "ComponentDefinition", "", FLATTENED_NAME),
            API_VERSION,
            "",
            Document.from_data(deepcopy(dict(flattened))),
        )
        return render_objects(self.build_plan(one, ()), spec, {"overrides": overrides})

    def read_addon_keys(self) -> dict[str, str]:
        """Return the keys of the addon uses in the flattened definition, by addon instance."""
        return {
            str(use.instance): _to_camel_case(
                f"{use.instance.addon}-{use.instance.id}" if use.has_instance_id else use.instance.addon
            )
            for use in self.build_plan().platform_uses
        }


def _to_camel_case(name: str) -> str:
    first, *more = name.split("-")
    return first + "".join(part.capitalize() for part in more)


def render_objects(plan: ComponentPlan, spec: Mapping[str, Any], mapping: Mapping[str, Any]) -> Outcome:
    """Return the objects of a component as text, or its errors."""
    component = _read(read_component(config_object("RiverMill", "wheel", spec, "river", labels={"team": "water"})))
    binding = {"owner": {"componentName": "wheel"}, "environment": "live", **mapping}
    bound = _read(read_binding(config_object("EnvBinding", "wheel-live", binding, "river")))
    composed = render_component(plan, component, bound, FACTS, LIMITS)
    if composed.errors:
        return tuple(f"{finding.code}: {finding.message}" for finding in composed.errors)
    return "---\n".join(emit(rendered_resource.data) for rendered_resource in composed.resources)


def select_open_values(flattened: Mapping[str, Any], key: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of an addon that environments can still override."""
    schema = _read(
        read_component_definition(
            ConfigObject(
                ObjectKey(GROUP, "ComponentDefinition", "", FLATTENED_NAME),
                API_VERSION,
                "",
                Document.from_data(flattened),
            ),
            LIMITS,
        )
    ).schema.env_overrides

    def select_declared(
        mapping: Mapping[str, Any], at: tuple[str, ...], declared: Callable[[tuple[str, ...]], bool]
    ) -> Any:
        return {
            name: select_declared(value, (*at, name), declared) if isinstance(value, dict) else value
            for name, value in mapping.items()
            if declared((*at, name))
        }

    result: dict[str, Any] = select_declared(values, (key,), lambda path: is_declared(schema, path))
    return result
