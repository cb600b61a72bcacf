"""Which addon each override of an environment is for (openchoreo 4.4)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.krm.findings import Finding
from reconciler.rules.codes import OVERRIDE_UNUSED
from reconciler.rules.composition.codes import OVERRIDE_KEY_AMBIGUOUS, OVERRIDE_TARGET_UNKNOWN, SCHEMA_VALIDATION
from reconciler.rules.composition.effective import Layer
from reconciler.rules.composition.model import EnvBinding, Instance
from reconciler.rules.composition.plan import Plan, Use
from reconciler.rules.fields import listed, meant, named

PLATFORM, DEVELOPER, ENVIRONMENT = "platformAddonOverrides", "addonOverrides", "environment"


@dataclass
class AddonOverrides:
    """What an environment says of addons, by instance, and what is wrong with how it says it."""

    layers: dict[Instance, Layer] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def addon_overrides(binding: EnvBinding, plan: Plan, active: Collection[Instance]) -> AddonOverrides:
    """Return what an environment says of addons; `active` are those of developers that the component has opted into."""
    found = AddonOverrides()
    _platform(binding, plan, found)
    for key, data in binding.overrides.developer.items():
        uses = _by_key(key, plan)
        if len(uses) != 1:
            found.findings.append(_unknown(binding, key, uses, plan))
        elif uses[0].instance not in active:
            message = (
                f"spec.{DEVELOPER}.{key} is of no use: {binding.component} has not opted into {uses[0].instance.addon}"
            )
            found.findings.append(OVERRIDE_UNUSED.finding(message, binding.one.where_at(("spec", DEVELOPER, key))))
        else:
            found.layers[uses[0].instance] = Layer(ENVIRONMENT, binding.one, ("spec", DEVELOPER, key), data)
    return found


def _by_key(key: str, plan: Plan) -> list[Use]:
    """Return the uses of developers' addons that a key may mean: its own, or that of an instance (openchoreo 13.2)."""
    if key in plan.allowed:
        return [plan.allowed[key]]
    named = [use for use in plan.listed if key == use.override_key]
    return named or [use for use in plan.listed if key == use.instance.id]


def _unknown(binding: EnvBinding, key: str, uses: Sequence[Use], plan: Plan) -> Finding:
    where = binding.one.where_at(("spec", DEVELOPER, key))
    if uses:
        both = " and ".join(str(use.instance) for use in uses)
        return OVERRIDE_KEY_AMBIGUOUS.finding(f"spec.{DEVELOPER}.{key} may mean {both}", where)
    known = [*plan.allowed, *(use.override_key for use in plan.listed)]
    return OVERRIDE_TARGET_UNKNOWN.finding(_no_such(f"spec.{DEVELOPER}.{key}", key, known), where)


def _no_such(field: str, key: str, known: Sequence[str]) -> str:
    return f"{field} names no addon that can be overridden; there are {listed(known) or 'none'}{meant(key, known)}"


def _platform(binding: EnvBinding, plan: Plan, found: AddonOverrides) -> None:
    by_addon: dict[str, list[str]] = {}
    by_key: dict[str, set[str]] = {}
    for use in plan.platform:
        for key in (use.key, use.instance.addon):
            by_key.setdefault(key, set()).add(use.instance.addon)
    for key in binding.overrides.platform:
        addons = sorted(by_key.get(key, ()))
        if len(addons) == 1:
            by_addon.setdefault(addons[0], []).append(key)
        else:
            found.findings.append(_not_one(binding, key, addons, plan))
    instances: dict[str, list[Use]] = {}
    for use in plan.platform:
        instances.setdefault(use.instance.addon, []).append(use)
    for addon, keys in by_addon.items():
        if len(keys) > 1:
            both = " and ".join(f"spec.{PLATFORM}.{key}" for key in keys)
            where = binding.one.where_at(("spec", PLATFORM, keys[1]))
            found.findings.append(OVERRIDE_KEY_AMBIGUOUS.finding(f"{both} are both for {addon}: write one", where))
            continue
        for use, path, data in _by_instance(instances[addon], keys[0], binding, found):
            found.layers[use.instance] = Layer(ENVIRONMENT, binding.one, ("spec", PLATFORM, *path), data)


def _not_one(binding: EnvBinding, key: str, addons: Sequence[str], plan: Plan) -> Finding:
    where, field_name = binding.one.where_at(("spec", PLATFORM, key)), f"spec.{PLATFORM}.{key}"
    if addons:
        return OVERRIDE_KEY_AMBIGUOUS.finding(f"{field_name} may mean {' and '.join(addons)}: write the name", where)
    known = list(dict.fromkeys(use.key for use in plan.platform))
    return OVERRIDE_TARGET_UNKNOWN.finding(_no_such(field_name, key, known), where)


def _by_instance(
    uses: Sequence[Use], key: str, binding: EnvBinding, found: AddonOverrides
) -> Iterator[tuple[Use, tuple[str, ...], Mapping[str, Any]]]:
    """Yield the fields of each instance; where there is one alone, its id may be left out."""
    data = binding.overrides.platform[key]
    by_id = {use.instance.id: use for use in uses}
    if len(uses) == 1 and not _names_instance(data, uses[0]):
        yield uses[0], (key,), data
        return
    for name, fields in data.items():
        path = ("spec", PLATFORM, key, name)
        if name not in by_id:
            message = f"spec.{PLATFORM}.{key}.{name} names no instance of {uses[0].instance.addon}"
            there = f"; there are {listed(sorted(by_id))}{meant(name, sorted(by_id))}"
            found.findings.append(OVERRIDE_TARGET_UNKNOWN.finding(message + there, binding.one.where_at(path)))
        elif fields is not None and not isinstance(fields, Mapping):
            message = f"spec.{PLATFORM}.{key}.{name} must be a mapping of fields, not {named(fields)}"
            found.findings.append(SCHEMA_VALIDATION.finding(message, binding.one.where_at(path)))
        else:
            yield by_id[name], (key, name), fields or {}


def _names_instance(data: Mapping[str, Any], use: Use) -> bool:
    """Tell whether a mapping is one of instances: its only key is that of the only one, and no field of its."""
    fields = use.addon.schema.env_overrides.get("properties", {})
    return list(data) == [use.instance.id] and use.instance.id not in fields
