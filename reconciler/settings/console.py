"""Settings of the web console."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator, model_validator

from reconciler.krm import selectors
from reconciler.settings.declaration import SettingList, SettingsGroup, declare

# The fields that limit a rule of each role.
_LIMITS = {
    "viewer": ("targets", "packages", "tenants"),
    "reviewer": ("targets", "packages", "tenants", "max_risk", "removals"),
    "admin": (),
}


class ConsoleRole(SettingsGroup):
    """A rule that gives a role to people."""

    role: Literal["viewer", "reviewer", "admin"]
    users: SettingList[str] = ()
    groups: SettingList[str] = ()
    targets: str = ""
    packages: SettingList[str] = ()
    tenants: SettingList[str] = ()
    max_risk: Literal["low", "medium", "high"] = "high"
    removals: bool = False

    @field_validator("targets")
    @classmethod
    def _check_targets(cls, value: str) -> str:
        selectors.parse_label_query(value)
        return value

    @model_validator(mode="after")
    def _check_fields(self) -> ConsoleRole:
        if not (self.users or self.groups):
            raise ValueError("must contain `users` or `groups`, for example groups: [platform]")
        if foreign := self.model_fields_set - {"role", "users", "groups", *_LIMITS[self.role]}:
            names = ", ".join(f"`{name}`" for name in sorted(foreign))
            limits = ", ".join(f"`{name}`" for name in _LIMITS[self.role])
            raise ValueError(
                f"must not contain {names}: a rule of the role {self.role}"
                + (f" has only the limits {limits}" if limits else " has no limits")
            )
        return self


class ConsoleSettings(SettingsGroup):
    """The web console, which the HTTP server of the service serves. People review drafts with it."""

    enabled: bool = declare(
        False,
        "Whether the service serves the console. Without authentication, the console requires a listen address of "
        "this machine, such as 127.0.0.1:8080.",
    )
    roles: SettingList[ConsoleRole] = declare(
        (),
        "The roles of people, for example [{role: reviewer, groups: [payments], targets: stage=prod}]. A rule "
        "applies to users (mail addresses, or subject@issuer) and members of groups. viewer: read. reviewer: also "
        "propose, approve and reject drafts. admin: everything. A rule can be limited to targets (a label query), "
        "packages (globs of package paths) and tenants (names of Tenants). A reviewer can have max_risk (low, medium "
        "or high, the default) and removals, which allows the approval of removals. Each person has the permissions "
        "of all rules that apply. Without authentication, the person has the role admin.",
    )
    confirm_above: int = declare(
        50,
        "If a person approves, proposes or rejects drafts of more targets at once, the person must type the number of "
        "targets. It is also required if the risk is high.",
        ge=0,
    )
    contact: str = declare(
        "",
        "How people can ask for a role, for example a mail address. The console shows this text to people who have no "
        "role.",
    )
