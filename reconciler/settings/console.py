"""Settings of the web console."""

from __future__ import annotations

import re
from operator import attrgetter
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from reconciler.krm import field_text, selectors
from reconciler.krm.names import TENANT_PLACEHOLDER
from reconciler.server import address
from reconciler.settings.declaration import SettingList, SettingsGroup, UrlWithoutCredentials, declare

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
# The settings that each mode of authentication requires.
_REQUIRED_SETTINGS = {
    "oidc": ("oidc.issuer", "oidc.client_id"),
    "proxy": ("proxy.secret_file",),
    "tokens": ("token_file",),
}


def _check_header_name(value: str) -> str:
    if not _HEADER_NAME.fullmatch(value):
        raise ValueError("must be the name of a header, for example X-Forwarded-User")
    return value


def _check_label_query(value: str) -> str:
    selectors.parse_label_query(value)
    return value


HeaderName = Annotated[str, AfterValidator(_check_header_name)]
LabelQuery = Annotated[str, AfterValidator(_check_label_query)]

# Maps each role to the fields that can limit a rule with this role.
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
    targets: LabelQuery = ""
    packages: SettingList[str] = ()
    tenants: SettingList[str] = ()
    max_risk: Literal["low", "medium", "high"] = "high"
    removals: bool = False

    @model_validator(mode="after")
    def _check_fields(self) -> ConsoleRole:
        if not (self.users or self.groups):
            raise ValueError("must contain `users` or `groups`, for example groups: [platform]")
        self._check_tenant_placeholder()
        if foreign := self.model_fields_set - {"role", "users", "groups", *_LIMITS[self.role]}:
            names = ", ".join(f"`{name}`" for name in sorted(foreign))
            limits = ", ".join(f"`{name}`" for name in _LIMITS[self.role])
            raise ValueError(
                f"must not contain {names}: a rule of the role {self.role}"
                + (f" has only the limits {limits}" if limits else " has no limits")
            )
        return self

    def _check_tenant_placeholder(self) -> None:
        has_placeholder = any(TENANT_PLACEHOLDER in name for name in (*self.users, *self.groups, *self.tenants))
        is_valid = (
            self.tenants == (TENANT_PLACEHOLDER,)
            and len(self.groups) == 1
            and self.groups[0].count(TENANT_PLACEHOLDER) == 1
            and not self.users
        )
        if has_placeholder and not is_valid:
            raise ValueError(
                f"must contain `{TENANT_PLACEHOLDER}` in exactly one group and as the only tenant, and no users, for"
                f' example groups: ["team-{TENANT_PLACEHOLDER}"], tenants: ["{TENANT_PLACEHOLDER}"]'
            )


class ConsoleStage(SettingsGroup):
    """A stage: targets on which people publish a change before they publish it on the targets of the next stage."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    targets: LabelQuery


class ConsoleProxySettings(SettingsGroup):
    """The mode `proxy`: a reverse proxy in `server.trusted_proxies` identifies people and sends headers."""

    secret_file: str = declare(
        "",
        "The file with the secrets that the proxy shares with the service, one per line. The proxy sends one of them "
        "with each request. The service reads the file again after a change.",
    )
    secret_header: HeaderName = declare("X-Proxy-Secret", "The header with the secret.")
    user_header: HeaderName = declare("X-Forwarded-User", "The header with the stable ID of the person.")
    name_header: HeaderName = declare(
        "X-Forwarded-Preferred-Username", "The header with the name of the person. Without it, the name is the ID."
    )
    email_header: HeaderName = declare(
        "X-Forwarded-Email", "The header with the mail address of the person. The proxy must have verified it."
    )
    groups_header: HeaderName = declare(
        "X-Forwarded-Groups", "The header with the groups of the person, separated by commas."
    )


class ConsoleOidcSettings(SettingsGroup):
    """The mode `oidc`: people sign in at an OpenID Connect provider. This mode requires the Python extra `oidc`."""

    issuer: UrlWithoutCredentials = declare(
        "", "The URL of the provider, exactly as in its ID tokens, for example https://id.example.com/realms/main."
    )
    client_id: str = declare(
        "",
        "The ID of the client that is registered at the provider, with the redirect URL "
        "<server.external_url>/sign-in/callback.",
    )
    client_secret_file: str = declare(
        "",
        "The file with the secret of the client. The service reads the file again after a change. If this setting is "
        "empty, the client is public.",
    )
    scopes: SettingList[str] = declare(
        ("openid", "profile", "email"),
        "The scopes that the console requests. Some providers require a further scope for groups.",
    )
    name_claim: str = declare("name", "The claim with the name of the person, for commits.")
    email_claim: str = declare("email", "The claim with the mail address. The claim `email_verified` must be true.")
    groups_claim: str = declare("groups", "The claim with the list of the groups of the person.")

    @field_validator("issuer")
    @classmethod
    def _check_issuer(cls, value: str) -> str:
        parts = urlsplit(value)
        is_secure = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in address.LOOPBACK_NAMES)
        if value and not (is_secure and parts.hostname and not parts.query and not parts.fragment):
            raise ValueError("must be a URL that starts with https://")
        return value

    @field_validator("scopes")
    @classmethod
    def _check_scopes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if "openid" not in value:
            raise ValueError("must contain openid, for example [openid, profile, email, groups]")
        return value


class ConsoleSessionSettings(SettingsGroup):
    """The sessions of people who sign in at a provider."""

    key_file: str = declare(
        "",
        "The file with the encryption keys, one per line. The service encrypts the file of the sessions in the folder "
        "`cache` with the first key, and decrypts the file with any of the keys. To replace a key, add the new key as "
        "the first line. Each key has at least 32 random characters. If this setting is empty, people sign in again"
        " after a restart of the service.",
    )


class ConsoleSettings(SettingsGroup):
    """The web console, which the HTTP server of the service serves. People review drafts with it."""

    enabled: bool = declare(
        False,
        "Whether the service serves the console. Without authentication, the console requires a listen address of "
        "this machine, such as 127.0.0.1:8080.",
    )
    auth: SettingList[Literal["none", "oidc", "proxy", "tokens"]] = declare(
        ("none",),
        "How people and programs are identified. none: no authentication; every request is a request of one admin. "
        "oidc: people sign in at an OpenID Connect provider (`console.oidc`). proxy: headers of a reverse proxy "
        "(`console.proxy`). tokens: access tokens of programs (`console.token_file`). Several modes can be combined, "
        "except none.",
    )
    token_file: str = declare(
        "",
        "The file with the access tokens, one line name:role:selector:sha256(token):expiry per token. `reconciler "
        "token create` creates tokens and their lines. The service reads the file again after a change.",
    )
    oidc: ConsoleOidcSettings = ConsoleOidcSettings()
    proxy: ConsoleProxySettings = ConsoleProxySettings()
    session: ConsoleSessionSettings = ConsoleSessionSettings()
    roles: SettingList[ConsoleRole] = declare(
        (),
        "The roles of people, for example [{role: reviewer, groups: [payments], targets: stage=prod}]. A rule applies "
        "to users (mail addresses, or subject@issuer) and members of groups. viewer: read. reviewer: also propose, "
        "approve and reject drafts. admin: everything. A rule can be limited to targets (a label query), packages "
        "(globs of package paths) and tenants (names of Tenants). A rule with groups: [team-{tenant}] and tenants: "
        "[{tenant}], both with quotation marks in YAML, applies once for each Tenant. A reviewer can have max_risk "
        "(low, medium or high, the default) and removals, which allows the approval of removals. Each person has the "
        "permissions of all rules that apply. Without authentication, the person has the role admin.",
    )
    confirm_above: int = declare(
        50,
        "If a person approves, proposes or rejects drafts of more targets than this number at once, the person must "
        "type the number of targets. If the risk is high, the person must always type this number.",
        ge=0,
    )
    undo_seconds: int = declare(
        0,
        "How long the service waits before it applies an action that a person has confirmed in the console. The person "
        "can undo the action during this time. Actions of programs start at once.",
        ge=0,
        le=600,
    )
    stages: SettingList[ConsoleStage] = declare(
        (),
        "The stages of targets, in order, for example [{name: canary, targets: stage=canary}, {name: production, "
        "targets: stage=prod}]. A target belongs to the first stage whose label query matches. People can apply an "
        "action to the targets of one stage. The console shows a warning if an earlier stage is not published.",
    )
    link_template: str = declare(
        "",
        "The URL of the page of a file, for repositories on hosts that are not recognized as GitHub, GitLab, Gitea, "
        "Forgejo or Bitbucket, for example https://{host}/cgit/{path}/tree/{file}?id={commit}#n{line}.",
    )
    commit_link_template: str = declare(
        "",
        "The URL of the page of a commit, for the same repositories, for example "
        "https://{host}/cgit/{path}/commit/?id={commit}.",
    )
    contact: str = declare(
        "",
        "How people can ask for a role, for example a mail address. The console shows this text to people who have no "
        "role.",
    )

    @field_validator("auth")
    @classmethod
    def _check_modes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or ("none" in value and len(value) > 1):
            raise ValueError("must contain at least one mode; `none` must be the only mode, for example [oidc, tokens]")
        return value

    @model_validator(mode="after")
    def _check_required_settings(self) -> ConsoleSettings:
        for mode, names in _REQUIRED_SETTINGS.items():
            missing = [name for name in names if mode in self.auth and not attrgetter(name)(self)]
            if missing:
                raise ValueError(f"must contain `{missing[0]}`, because `auth` contains `{mode}`")
        return self

    @field_validator("stages")
    @classmethod
    def _check_stages(cls, value: tuple[ConsoleStage, ...]) -> tuple[ConsoleStage, ...]:
        names = [stage.name for stage in value]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise ValueError(
                f"must contain each name once, but contains {field_text.quote_value(repeated[0])} several times"
            )
        return value

    @field_validator("link_template", "commit_link_template")
    @classmethod
    def _check_template(cls, value: str, info: ValidationInfo) -> str:
        if value:
            from reconciler.server.console.page_links import find_template_error

            if error := find_template_error(value, has_file=info.field_name == "link_template"):
                raise ValueError(error)
        return value
