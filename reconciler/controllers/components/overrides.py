"""Assignment of the addon overrides in an EnvBinding to the addon instances that they change."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.component_plan import AddonUse, ComponentPlan
from reconciler.controllers.components.effective_values import ValueLayer
from reconciler.controllers.components.model import AddonInstance, EnvBinding
from reconciler.krm.field_text import describe_value, quote_list, quote_value, suggest_name
from reconciler.krm.findings import Finding, FindingCode
from reconciler.lazy_dataclasses import dataclass, field

ENVIRONMENT_LAYER = "environment"
_PLATFORM_FIELD, _DEVELOPER_FIELD = "platformAddonOverrides", "addonOverrides"


@dataclass
class AddonOverrides:
    """Value layers with the overrides of an EnvBinding, by addon instance, and findings about the overrides."""

    binding: EnvBinding
    layers: dict[AddonInstance, ValueLayer] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def add_layer(self, instance: AddonInstance, path: tuple[str, ...], values: Mapping[str, Any]) -> None:
        """Add the values at a path of the spec as overrides of an addon instance."""
        self.layers[instance] = ValueLayer(ENVIRONMENT_LAYER, self.binding.manifest, ("spec", *path), values)

    def add_finding(self, code: FindingCode, path: tuple[str, ...], message: str) -> None:
        """Add a finding. Its message is the path of the field, followed by `message`."""
        location = self.binding.manifest.location_of(("spec", *path))
        self.findings.append(code.finding(f"spec.{'.'.join(path)} {message}", location))

    def add_unknown_key(self, path: tuple[str, ...], known: Sequence[str]) -> None:
        """Add a finding about a key that matches no addon."""
        names = f"{quote_list(known) or 'none'}{suggest_name(path[-1], known)}"
        message = f"is not the key of an addon that the component uses; allowed keys: {names}"
        self.add_finding(ComponentCodes.OVERRIDE_TARGET_UNKNOWN, path, message)


def resolve_addon_overrides(
    binding: EnvBinding, plan: ComponentPlan, active: Collection[AddonInstance]
) -> AddonOverrides:
    """Find the addon instance of each override in an EnvBinding.

    `active` contains the addon instances that the component uses.
    """
    overrides = AddonOverrides(binding)
    _resolve_platform_overrides(binding, plan, overrides)
    for key, values in binding.spec.addon_overrides.items():
        uses, path = _find_uses(key, plan), (_DEVELOPER_FIELD, key)
        if not uses:
            overrides.add_unknown_key(path, [*plan.allowed_uses, *(use.override_key for use in plan.listed_uses)])
        elif len(uses) > 1:
            names, keys = [str(use.instance) for use in uses], [use.override_key for use in uses]
            is_unique = len({*keys}) == len(keys)
            step = (
                f"use one of the keys {quote_list(keys)}" if is_unique else "set a different instanceId for each addon"
            )
            message = f"matches several addons: {quote_list(names, ' and ')}; {step}"
            overrides.add_finding(ComponentCodes.OVERRIDE_KEY_AMBIGUOUS, path, message)
        elif uses[0].instance not in active:
            message = (
                f"has no effect, because the component {quote_value(binding.component)} does not use the addon"
                f" {quote_value(uses[0].instance.addon)}"
            )
            overrides.add_finding(ControllerCodes.OVERRIDE_UNUSED, path, message)
        else:
            overrides.add_layer(uses[0].instance, path, values)
    return overrides


def _find_uses(key: str, plan: ComponentPlan) -> list[AddonUse]:
    """Return the developer addons to which the override `key` applies. A key is an addon key or an instance id."""
    if key in plan.allowed_uses:
        return [plan.allowed_uses[key]]
    matches = [use for use in plan.listed_uses if key == use.override_key]
    return matches or [use for use in plan.listed_uses if key == use.instance.id]


def _resolve_platform_overrides(binding: EnvBinding, plan: ComponentPlan, overrides: AddonOverrides) -> None:
    uses_by_addon: dict[str, list[AddonUse]] = {}
    addons_by_key: dict[str, set[str]] = {}
    for use in plan.platform_uses:
        uses_by_addon.setdefault(use.instance.addon, []).append(use)
        for key in (use.key, use.instance.addon):
            addons_by_key.setdefault(key, set()).add(use.instance.addon)
    keys_by_addon: dict[str, list[str]] = {}
    for key in binding.spec.platform_addon_overrides:
        addons = sorted(addons_by_key.get(key, ()))
        if len(addons) == 1:
            keys_by_addon.setdefault(addons[0], []).append(key)
        elif addons:
            message = f"matches several addons; use one of the names {quote_list(addons)}"
            overrides.add_finding(ComponentCodes.OVERRIDE_KEY_AMBIGUOUS, (_PLATFORM_FIELD, key), message)
        else:
            overrides.add_unknown_key((_PLATFORM_FIELD, key), [*dict.fromkeys(use.key for use in plan.platform_uses)])
    for addon, (key, *others) in keys_by_addon.items():
        if others:
            message = " and ".join(f"spec.{_PLATFORM_FIELD}.{other}" for other in others)
            location = binding.manifest.location_of(("spec", _PLATFORM_FIELD, others[0]))
            overrides.findings.append(
                ComponentCodes.OVERRIDE_KEY_AMBIGUOUS.finding(
                    f"spec.{_PLATFORM_FIELD}.{key} and {message} both override the addon"
                    f" {quote_value(addon)}; use only one of the keys",
                    location,
                )
            )
            continue
        for use, path, values in _split_by_instance(uses_by_addon[addon], key, overrides):
            overrides.add_layer(use.instance, (_PLATFORM_FIELD, *path), values)


def _split_by_instance(
    uses: Sequence[AddonUse], key: str, overrides: AddonOverrides
) -> Iterator[tuple[AddonUse, tuple[str, ...], Mapping[str, Any]]]:
    """Yield each addon instance with the path and the values of its overrides.

    The overrides of an addon have the form `{<instance id>: {<field>: <value>}}`. If there is only one instance, its id
    can be omitted: `{<field>: <value>}`.
    """
    data = overrides.binding.spec.platform_addon_overrides[key]
    by_id = {use.instance.id: use for use in uses}
    if len(uses) == 1 and not _is_mapping_of_instances(data, uses[0]):
        yield uses[0], (key,), data
        return
    for name, values in data.items():
        path, ids = (_PLATFORM_FIELD, key, str(name)), sorted(by_id)
        if name not in by_id:
            allowed = f"{quote_list(ids)}{suggest_name(str(name), ids)}"
            message = f"is not an instance of the addon {quote_value(uses[0].instance.addon)}; instances: {allowed}"
            overrides.add_finding(ComponentCodes.OVERRIDE_TARGET_UNKNOWN, path, message)
        elif values is not None and not isinstance(values, Mapping):
            message = f"must be a mapping of fields, but is {describe_value(values)}"
            overrides.add_finding(ComponentCodes.SCHEMA_VALIDATION, path, message)
        else:
            yield by_id[name], (key, name), values or {}


def _is_mapping_of_instances(data: Mapping[str, Any], use: AddonUse) -> bool:
    """Return whether the only key of `data` is the id of the addon instance, and is not also the name of a field."""
    fields = use.addon.schema.env_overrides.get("properties", {})
    return list(data) == [use.instance.id] and use.instance.id not in fields
