"""Settings of notifications: channels, routes and limits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from reconciler.krm import field_text, selectors
from reconciler.notifications import routes as notification_routes
from reconciler.notifications.events import Event
from reconciler.settings.declaration import SettingList, SettingsGroup, UrlWithoutCredentials, declare

# The allowed fields of each kind of channel, besides `name` and `kind`. The fields in the first tuple are required.
_CHANNEL_FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "slack": ((), ("url_file", "token_file", "channel", "api")),
    "teams": (("url_file",), ()),
    "webhook": (("url", "secret_file"), ()),
    "email": (("host", "sender", "recipients"), ("port", "security", "username", "password_file")),
}
_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_ADDRESS = re.compile(r"[^<>\s@,]+@[^<>\s@,]+|[^<>\n,\"]+ <[^<>\s@,]+@[^<>\s@,]+>")


class NotificationChannel(SettingsGroup):
    """A service that receives messages. The fields depend on `kind`."""

    name: str
    kind: Literal["slack", "teams", "webhook", "email"]
    url: UrlWithoutCredentials = ""
    url_file: str = ""
    secret_file: str = ""
    token_file: str = ""
    channel: str = ""
    api: UrlWithoutCredentials = "https://slack.com/api"
    host: str = ""
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    security: Literal["starttls", "tls", "none"] = "starttls"
    username: str = ""
    password_file: str = ""
    sender: str = ""
    recipients: SettingList[str] = ()

    @field_validator("name")
    @classmethod
    def _check_name(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", value):
            raise ValueError("must contain only lower-case letters, digits and hyphens, for example ops")
        return value

    @field_validator("url", "api")
    @classmethod
    def _check_url(cls, value: str) -> str:
        if value and not re.fullmatch(r"https?://[^\s@?#]+(\?[^\s@#]*)?", value):
            raise ValueError("must be a URL without credentials, for example https://events.example.com/reconciler")
        return value

    @model_validator(mode="after")
    def _check_fields(self) -> NotificationChannel:
        required, optional = _CHANNEL_FIELDS[self.kind]
        if missing := [name for name in required if not getattr(self, name)]:
            raise ValueError(f'must contain {_join(missing)}, because the kind is "{self.kind}"')
        if foreign := self.model_fields_set - {"name", "kind", *required, *optional}:
            raise ValueError(
                f'must not contain {_join(sorted(foreign))}: a channel of the kind "{self.kind}" has the fields'
                f" {_join([*required, *optional])}"
            )
        credentials = (bool(self.url_file), bool(self.token_file), bool(self.channel))
        if self.kind == "slack" and credentials not in ((True, False, False), (False, True, True)):
            raise ValueError("must contain either `url_file`, or `token_file` and `channel`")
        if self.kind == "email":
            self._check_email()
        return self

    def _check_email(self) -> None:
        for address in (self.sender, *self.recipients):
            if not _ADDRESS.fullmatch(address):
                raise ValueError(
                    'must contain mail addresses, for example "ops@example.com", but contains'
                    f" {field_text.quote_value(address)}"
                )
        if bool(self.username) != bool(self.password_file):
            raise ValueError("must contain `username` and `password_file` together")
        if self.username and self.security == "none":
            raise ValueError("must contain `security: starttls` or `security: tls` if it contains `username`")

    @property
    def effective_port(self) -> int:
        """The port of the mail server. The default depends on `security`."""
        return self.port or _PORTS[self.security]


def _join(names: Iterable[object]) -> str:
    return ", ".join(f"`{name}`" for name in names)


class NotificationRoute(SettingsGroup):
    """A selection of messages for one channel."""

    channel: str
    events: SettingList[Event] = ()
    severity: Literal["info", "warning", "error"] = "info"
    targets: str = ""
    packages: SettingList[str] = ()
    tenants: SettingList[str] = ()
    quiet_hours: str = ""
    digest_minutes: Annotated[int, Field(ge=0, le=1440)] = 0

    @field_validator("events", mode="before")
    @classmethod
    def _check_events(cls, value: Any) -> Any:
        known = [event.value for event in Event]
        if isinstance(value, list | tuple):
            if unknown := [name for name in value if name not in known]:
                raise ValueError(
                    f"must contain only these events: {field_text.quote_list(known)}; unknown events:"
                    f" {field_text.quote_list(unknown)}"
                )
            return tuple(Event(name) for name in value)
        return value

    @field_validator("targets")
    @classmethod
    def _check_targets(cls, value: str) -> str:
        selectors.matches_label_query(value, {})
        return value

    @field_validator("quiet_hours")
    @classmethod
    def _check_quiet_hours(cls, value: str) -> str:
        notification_routes.parse_quiet_hours(value)
        return value


class NotificationSettings(SettingsGroup):
    """Settings of notifications to people."""

    channels: SettingList[NotificationChannel] = declare(
        (),
        "The services that receive messages. Each channel has a name, a kind (slack, teams, webhook or "
        "email), and the fields of its kind. slack: url_file, or token_file and channel. teams: url_file. "
        "webhook: url and secret_file. email: host, port, security (starttls, tls or none), username, "
        "password_file, sender and recipients. The files contain secrets, and the service reads them for "
        "each message.",
    )
    routes: SettingList[NotificationRoute] = declare(
        (),
        "The messages of each channel, for example [{channel: ops, severity: warning, targets: stage=prod}]. "
        "A route selects messages by events, severity (info, warning or error), targets (a label query for "
        "targets), tenants (names of Tenants) and packages (globs of package paths). A route can have quiet_hours, "
        "such as 22:00-06:00 Europe/Berlin, and digest_minutes, the time for which messages are collected. All "
        "routes that match a message apply.",
    )
    review_overdue_hours: float = declare(
        48.0, "The time after which the review of a draft is overdue, in hours.", gt=0, le=8760
    )
    gather_seconds: float = declare(
        30.0,
        "The time that a condition must hold before a message is sent, in seconds. The messages of several "
        "passes in this time are combined, and no message is sent about a condition that ends within this "
        "time.",
        ge=0,
        le=3600,
    )
    allowed_hosts: SettingList[str] = declare(
        (),
        "The hosts that channels can contact. An empty list allows the hosts of all channels that have public "
        "addresses. Hosts with private addresses and hosts with http URLs must be in this list.",
    )
    proxy: UrlWithoutCredentials = declare(
        "",
        "The URL of the HTTP proxy for channels, for example http://proxy.example.com:3128. Empty means no proxy. "
        "Environment variables with proxies have no effect.",
    )
    templates_dir: str = declare(
        "",
        "The folder with templates of messages. The file <event>.<format>.j2 replaces the text of an event; the "
        "formats are slack, teams, txt and html. Empty means no templates.",
    )

    @field_validator("proxy")
    @classmethod
    def _check_proxy(cls, value: str) -> str:
        if value and not re.fullmatch(r"https?://[^\s@/?#]+/?", value):
            raise ValueError("must be a URL without credentials, for example http://proxy.example.com:3128")
        return value

    @field_validator("allowed_hosts")
    @classmethod
    def _check_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for host in value:
            if not re.fullmatch(r"[a-z0-9.:-]+", host):
                raise ValueError(
                    f"must contain host names in lower case without a port, but contains {field_text.quote_value(host)}"
                )
        return value

    @field_validator("channels")
    @classmethod
    def _check_names(cls, value: tuple[NotificationChannel, ...]) -> tuple[NotificationChannel, ...]:
        names = [channel.name for channel in value]
        if duplicates := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"must contain each channel name only once: {field_text.quote_list(duplicates)}")
        return value

    @field_validator("routes")
    @classmethod
    def _check_routes(cls, value: tuple[NotificationRoute, ...], info: ValidationInfo) -> tuple[NotificationRoute, ...]:
        # If the channels are invalid, `data` does not contain them. Do not check the routes then, because pydantic
        # already reports the errors of the channels.
        names = [channel.name for channel in info.data.get("channels", ())]
        for route in value:
            if "channels" in info.data and route.channel not in names:
                raise ValueError(
                    "must name only channels of `notifications.channels` "
                    f"({field_text.quote_list(names) or 'there are no channels'}); there is no channel"
                    f" {field_text.quote_value(route.channel)}"
                )
        return value
