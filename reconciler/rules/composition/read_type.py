"""Reading component types (openchoreo 1.3)."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.krm.findings import Finding
from reconciler.krm.names import dns_subdomain_fault
from reconciler.rules.composition.codes import COMPONENT_TYPE_INVALID
from reconciler.rules.composition.model import API_VERSION, AllowedAddon, ComponentType, Instance, PlatformAddon
from reconciler.rules.composition.reading import Spec, instance_id, opened, read_rules
from reconciler.rules.fields import shown
from reconciler.snapshot.catalog import ConfigObject

BAKE = "reconciler.dev/bake"
_FIELDS = ("componentDefinitionRef", "platformAddons", "developerAddons", "validation")
_PLATFORM = ("name", "instanceId", "config", "condition")
_ALLOWED = ("name", "description", "defaults", "presets")


def read_type(one: ConfigObject) -> tuple[ComponentType | None, tuple[Finding, ...]]:
    """Return a component type, None where anything is wrong with what it says of itself, and what that is."""
    spec, told = opened(one, COMPONENT_TYPE_INVALID, API_VERSION, _FIELDS)
    ref = spec.mapping("componentDefinitionRef", ("name", "version"))
    definition = ref.text("name", required=True)
    platform = tuple(_platform(spec))
    allowed = tuple(_allowed(spec.mapping("developerAddons", ("allowed",))))
    bake = one.annotations.get(BAKE, "")
    if bake and (fault := dns_subdomain_fault(bake)):
        told.add(("metadata", "annotations", BAKE), f"must be a name that objects can have: {fault}")
    read = ComponentType(one, definition, ref.text("version"), platform, allowed, read_rules(spec), bake)
    return (None if told.findings else read), told.all


def _platform(spec: Spec) -> Iterator[PlatformAddon]:
    for one in spec.mappings("platformAddons", _PLATFORM):
        addon, (instance, is_named) = one.text("name", required=True), instance_id(one)
        yield PlatformAddon(
            Instance(addon, instance), one.values("config"), one.path, is_named, one.data.get("condition")
        )


def _allowed(spec: Spec) -> Iterator[AllowedAddon]:
    seen: set[str] = set()
    for one in spec.mappings("allowed", _ALLOWED):
        name = one.text("name", required=True)
        if name in seen:
            one.fault("name", f"must not be there twice: {shown(name)}")
        seen.add(name)
        one.unsupported("presets")
        yield AllowedAddon(name, one.values("defaults"), one.path, one.text("description"))
