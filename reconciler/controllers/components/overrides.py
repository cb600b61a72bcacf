"""Search for the addon instance that each addon override in an EnvBinding changes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.component_plan import AddonUse, ComponentPlan
from reconciler.controllers.components.effective_values import ValueLayer
from reconciler.controllers.components.model import AddonInstance, EnvBinding
from reconciler.krm.field_text import describe_value, format_list, suggest_name
from reconciler.krm.findings import Finding
from reconciler.lazy_dataclasses import dataclass, field

PLATFORM_OVERRIDES_FIELD, DEVELOPER_OVERRIDES_FIELD, ENVIRONMENT_LAYER = (
    "platformAddonOverrides",
    "addonOverrides",
    "environment",
)


@dataclass
class AddonOverrides:
    """Value layers with the overrides of an EnvBinding, by addon instance, and findings about the overrides."""

    layers: dict[AddonInstance, ValueLayer] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def resolve_addon_overrides(
    binding: EnvBinding, plan: ComponentPlan, active: Collection[AddonInstance]
) -> AddonOverrides:
    """Find the addon instance of each override in an EnvBinding.

    `active` contains the addon instances that the component uses.
    """
    overrides = AddonOverrides()
    _resolve_platform_overrides(binding, plan, overrides)
    for key, data in binding.spec.addon_overrides.items():
        uses = _find_uses(key, plan)
        if len(uses) != 1:
            overrides.findings.append(_build_key_finding(binding, key, uses, plan))
        elif uses[0].instance not in active:
            field_name = f"spec.{DEVELOPER_OVERRIDES_FIELD}.{key}"
            message = f"{field_name} has no effect: {binding.component} does not use {uses[0].instance.addon}"
            overrides.findings.append(
                ControllerCodes.OVERRIDE_UNUSED.finding(
                    message, binding.manifest.location_of(("spec", DEVELOPER_OVERRIDES_FIELD, key))
                )
            )
        else:
            overrides.layers[uses[0].instance] = ValueLayer(
                ENVIRONMENT_LAYER, binding.manifest, ("spec", DEVELOPER_OVERRIDES_FIELD, key), data
            )
    return overrides


def _find_uses(key: str, plan: ComponentPlan) -> list[AddonUse]:
    """Return the developer addons that match the key of an override, by addon key or by instance id."""
    if key in plan.allowed_uses:
        return [plan.allowed_uses[key]]
    matches = [use for use in plan.listed_uses if key == use.override_key]
    return matches or [use for use in plan.listed_uses if key == use.instance.id]


def _build_key_finding(binding: EnvBinding, key: str, uses: Sequence[AddonUse], plan: ComponentPlan) -> Finding:
    location = binding.manifest.location_of(("spec", DEVELOPER_OVERRIDES_FIELD, key))
    if uses:
        both = " and ".join(str(use.instance) for use in uses)
        return ComponentCodes.OVERRIDE_KEY_AMBIGUOUS.finding(
            f"spec.{DEVELOPER_OVERRIDES_FIELD}.{key} matches several addons: {both}", location
        )
    known = [*plan.allowed_uses, *(use.override_key for use in plan.listed_uses)]
    return ComponentCodes.OVERRIDE_TARGET_UNKNOWN.finding(
        _describe_unknown(f"spec.{DEVELOPER_OVERRIDES_FIELD}.{key}", key, known), location
    )


def _describe_unknown(field: str, key: str, known: Sequence[str]) -> str:
    return (
        f"{field} is not the key of an addon in use; allowed: {format_list(known) or 'none'}{suggest_name(key, known)}"
    )


def _resolve_platform_overrides(binding: EnvBinding, plan: ComponentPlan, overrides: AddonOverrides) -> None:
    keys_by_addon: dict[str, list[str]] = {}
    addons_by_key: dict[str, set[str]] = {}
    for use in plan.platform_uses:
        for key in (use.key, use.instance.addon):
            addons_by_key.setdefault(key, set()).add(use.instance.addon)
    for key in binding.spec.platform_addon_overrides:
        addons = sorted(addons_by_key.get(key, ()))
        if len(addons) == 1:
            keys_by_addon.setdefault(addons[0], []).append(key)
        else:
            overrides.findings.append(_build_platform_key_finding(binding, key, addons, plan))
    instances: dict[str, list[AddonUse]] = {}
    for use in plan.platform_uses:
        instances.setdefault(use.instance.addon, []).append(use)
    for addon, keys in keys_by_addon.items():
        if len(keys) > 1:
            both = " and ".join(f"spec.{PLATFORM_OVERRIDES_FIELD}.{key}" for key in keys)
            location = binding.manifest.location_of(("spec", PLATFORM_OVERRIDES_FIELD, keys[1]))
            overrides.findings.append(
                ComponentCodes.OVERRIDE_KEY_AMBIGUOUS.finding(f"{both} both override {addon}; use one key", location)
            )
            continue
        for use, path, data in _split_by_instance(instances[addon], keys[0], binding, overrides):
            overrides.layers[use.instance] = ValueLayer(
                ENVIRONMENT_LAYER, binding.manifest, ("spec", PLATFORM_OVERRIDES_FIELD, *path), data
            )


def _build_platform_key_finding(binding: EnvBinding, key: str, addons: Sequence[str], plan: ComponentPlan) -> Finding:
    location, field_name = (
        binding.manifest.location_of(("spec", PLATFORM_OVERRIDES_FIELD, key)),
        f"spec.{PLATFORM_OVERRIDES_FIELD}.{key}",
    )
    if addons:
        return ComponentCodes.OVERRIDE_KEY_AMBIGUOUS.finding(
            f"{field_name} matches several addons: {' and '.join(addons)}; use the name of the addon", location
        )
    known = list(dict.fromkeys(use.key for use in plan.platform_uses))
    return ComponentCodes.OVERRIDE_TARGET_UNKNOWN.finding(_describe_unknown(field_name, key, known), location)


def _split_by_instance(
    uses: Sequence[AddonUse], key: str, binding: EnvBinding, overrides: AddonOverrides
) -> Iterator[tuple[AddonUse, tuple[str, ...], Mapping[str, Any]]]:
    """Yield the overrides of each addon instance from the form `{<instance id>: {<field>: <value>}}`.

    If there is only one instance, its id can be omitted: `{<field>: <value>}`.
    """
    data = binding.spec.platform_addon_overrides[key]
    by_id = {use.instance.id: use for use in uses}
    if len(uses) == 1 and not _is_mapping_of_instances(data, uses[0]):
        yield uses[0], (key,), data
        return
    for name, fields in data.items():
        path = ("spec", PLATFORM_OVERRIDES_FIELD, key, name)
        if name not in by_id:
            message = f"spec.{PLATFORM_OVERRIDES_FIELD}.{key}.{name} is not an instance of {uses[0].instance.addon}"
            allowed = f"; allowed: {format_list(sorted(by_id))}{suggest_name(name, sorted(by_id))}"
            overrides.findings.append(
                ComponentCodes.OVERRIDE_TARGET_UNKNOWN.finding(message + allowed, binding.manifest.location_of(path))
            )
        elif fields is not None and not isinstance(fields, Mapping):
            field_name = f"spec.{PLATFORM_OVERRIDES_FIELD}.{key}.{name}"
            message = f"{field_name} must be a mapping of fields, not {describe_value(fields)}"
            overrides.findings.append(
                ComponentCodes.SCHEMA_VALIDATION.finding(message, binding.manifest.location_of(path))
            )
        else:
            yield by_id[name], (key, name), fields or {}


def _is_mapping_of_instances(data: Mapping[str, Any], use: AddonUse) -> bool:
    """Return whether the only key of `data` is the id of the addon instance, and no field has this name."""
    fields = use.addon.schema.env_overrides.get("properties", {})
    return list(data) == [use.instance.id] and use.instance.id not in fields
