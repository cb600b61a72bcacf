"""Reading components, and the environments that they are bound to (openchoreo 1.4, 1.5, 13.2)."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.krm.findings import Finding
from reconciler.krm.names import segment_fault
from reconciler.rules.composition.codes import COMPONENT_INVALID, ENV_BINDING_INVALID
from reconciler.rules.composition.model import (
    API_VERSION,
    COMPONENT,
    Component,
    EnvBinding,
    Instance,
    ListedAddon,
    Overrides,
)
from reconciler.rules.composition.reading import Spec, check_namespace, instance_id, opened
from reconciler.rules.guards import ACK_DELETIONS
from reconciler.snapshot.catalog import ConfigObject

_COMPONENT = ("componentDefinition", "parameters", "addons")
_BINDING = ("owner", "environment", "overrides", "platformAddonOverrides", "addonOverrides", "endpoints")


def read_component(one: ConfigObject) -> tuple[Component | None, tuple[Finding, ...]]:
    """Return a component, None where it cannot be read, and what is wrong with it.

    The fields of one of a generated kind are those of its type, which is not known here.
    """
    if one.key.kind != COMPONENT:
        spec, told = opened(one, COMPONENT_INVALID, API_VERSION, None, segment_fault)
        check_namespace(one, told)
        return (None if told.findings else Component(one, spec.data)), told.all
    spec, told = opened(one, COMPONENT_INVALID, API_VERSION, _COMPONENT, segment_fault)
    check_namespace(one, told)
    definition, addons = spec.text("componentDefinition", required=True), tuple(_listed(spec))
    read = Component(one, spec.values("parameters"), definition, addons)
    return (None if told.findings else read), told.all


def _listed(spec: Spec) -> Iterator[ListedAddon]:
    for one in spec.mappings("addons", ("name", "instanceId", "config")):
        addon, (instance, is_named) = one.text("name", required=True), instance_id(one)
        yield ListedAddon(Instance(addon, instance), one.values("config"), one.path, is_named)


def read_binding(one: ConfigObject) -> tuple[EnvBinding | None, tuple[Finding, ...]]:
    """Return an EnvBinding, None where it cannot be read, and what is wrong with it."""
    spec, told = opened(one, ENV_BINDING_INVALID, API_VERSION, _BINDING)
    check_namespace(one, told)
    owner = spec.mapping("owner", ("componentName", "namespace"))
    environment = spec.text("environment", required=True)
    if environment and (fault := segment_fault(environment)):
        spec.fault("environment", f"must be a name that environments can have: {fault}")
    overrides = Overrides(
        spec.values("overrides"), _by_addon(spec, "platformAddonOverrides"), _by_addon(spec, "addonOverrides")
    )
    endpoints = list(_endpoints(spec))
    acknowledged = one.annotations.get(ACK_DELETIONS, "").split(",")
    read = EnvBinding(
        one, owner.text("componentName"), owner.text("namespace") or one.key.namespace, environment, overrides,
        endpoints, frozenset(text.strip() for text in acknowledged),
    )  # fmt: skip
    return (None if told.findings else read), told.all


def _endpoints(spec: Spec) -> Iterator[dict[str, object]]:
    for one in spec.mappings("endpoints", ("name", "host")):
        for name in ("name", "host"):
            one.text(name)
        yield dict(one.data)


def _by_addon(spec: Spec, name: str) -> dict[str, object]:
    """Return overrides by the key of their addon; each must be a mapping of fields."""
    found = spec.mapping(name, None)
    return {str(key): dict(found.mapping(str(key), None).data) for key in found.data}
