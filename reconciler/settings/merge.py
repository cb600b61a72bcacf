"""Settings of merges: the merge behavior and the policy for conflicts."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import field_validator

from reconciler.api.profile import Profile
from reconciler.settings.declaration import SettingsGroup, declare


class MergeSettings(SettingsGroup):
    """Merge behavior when a package is updated to another upstream revision, and the handling of conflicts."""

    profile: Profile = declare(
        "safe", "The merge behavior: safe fixes known defects of kpt, and compat reproduces kpt exactly."
    )
    conflict_policy: Literal["", "upstream", "local", "block"] = declare(
        "",
        "The value that the draft contains after a conflict between a local change and an upstream change. "
        "`upstream`: the value of the upstream. `local`: the value of the local change. `block`: no draft is "
        "created. Empty means `local` in the profile `safe`, and `upstream` in the profile `compat`. The field "
        "conflictPolicy of a PackageVariant overrides this setting.",
    )
    deviations: dict[str, bool] = declare(
        {}, "Switches single deviations from kpt on or off, independently of the profile, for example {D5: false}."
    )
    list_keys: dict[str, dict[str, list[str] | None]] = declare(
        {},
        "The fields that identify the elements of a list if no schema defines them, for example "
        "{example.org/Gateway: {spec/ports: [name]}}.",
    )

    @field_validator("deviations")
    @classmethod
    def _check_deviations(cls, value: dict[str, bool]) -> dict[str, bool]:
        # Import here, so that commands that do not merge packages do not load this code.
        from reconciler.packages.update.options import DEVIATIONS

        if any(number not in DEVIATIONS for number in value):
            allowed = sorted(DEVIATIONS, key=lambda number: int(number[1:]))
            raise ValueError(f"must contain only the deviations {', '.join(allowed)}")
        return value

    @field_validator("list_keys")
    @classmethod
    def _check_list_keys(cls, value: dict[str, Any]) -> dict[str, Any]:
        from reconciler.krm.schema import read_list_key_table

        if problems := read_list_key_table(value)[1]:
            raise ValueError("; ".join(problems))
        return value
