"""set-enforcement-action: what happens to objects that break a policy constraint (kpt.md 16)."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    Result,
    config_strings,
    failure,
    reports_faults,
    value_at,
)

_CONSTRAINTS = "constraints.gatekeeper.sh/v1beta1"
_FIELD = ("spec", "enforcementAction")
_ACTIONS = ("deny", "warn", "dryrun")


@reports_faults
def set_enforcement_action(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items with the action on every constraint."""
    data = config_strings((config or {}).get("data"), "data")
    if list(data) != ["enforcementAction"]:
        return failure(items, _failed("expecting exactly 1 enforcementAction as part of the ConfigMap"))
    action = data["enforcementAction"]
    if action not in _ACTIONS:
        expected = f"{', '.join(f'[{known}]' for known in _ACTIONS[:-1])} or [{_ACTIONS[-1]}]"
        return failure(items, _failed(f'expected values for enforcementAction are {expected}, not "{action}"'))
    set_on = {item: None for item in items if item.api_version == _CONSTRAINTS and _takes_action(item)}
    if not set_on:
        return Output(tuple(items), (Result(f"Found no policy to set to [{action}]", "warning"),))
    said = [Result(f"Policy name: [{item.name}]", file=item.file) for item in set_on]
    changed = tuple(item.with_values([(_FIELD, action)]) if item in set_on else item for item in items)
    return Output(changed, (Result(f"Number of policies set to [{action}]: {len(set_on)}"), *said))


def _takes_action(item: Item) -> bool:
    spec = value_at(item.data, ("spec",))
    return spec is None or isinstance(spec, dict)


def _failed(reason: str) -> str:
    return f"failed to process policies: {reason}"
