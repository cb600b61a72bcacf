"""Validation of the settings group `notifications`."""

from __future__ import annotations

from datetime import time
from typing import Any

import pytest
from pydantic import ValidationError

from reconciler.notifications.routes import QuietHours, parse_quiet_hours
from reconciler.settings.notifications import NotificationSettings

SLACK = {"name": "ops", "kind": "slack", "url_file": "/run/slack"}
EMAIL = {
    "name": "mail",
    "kind": "email",
    "host": "smtp.example.com",
    "sender": "a@example.com",
    "recipients": ["b@example.com"],
}


def channel(**fields: Any) -> dict[str, Any]:
    return {"channels": [{"name": "ops", **fields}]}


def route(**fields: Any) -> dict[str, Any]:
    return {"channels": [SLACK], "routes": [{"channel": "ops", **fields}]}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({}, id="empty"),
        pytest.param({"channels": [SLACK]}, id="slack"),
        pytest.param(channel(kind="slack", token_file="/t", channel="C1"), id="slack-bot"),
        pytest.param(channel(kind="teams", url_file="/t"), id="teams"),
        pytest.param(channel(kind="webhook", url="https://a.example/x?y=1", secret_file="/t"), id="webhook"),
        pytest.param({"channels": [EMAIL]}, id="email"),
        pytest.param(
            route(
                events=["drafts_waiting"], severity="warning", targets="stage in (prod, test)", packages=["web/*"],
                quiet_hours="22:00-06:00 Europe/Berlin", digest_minutes=60,
            ),
            id="route",
        ),
    ],
)  # fmt: skip
def test_valid_settings(data: dict[str, Any]) -> None:
    NotificationSettings.model_validate(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(channel(kind="pager"), "'slack', 'teams', 'webhook' or 'email'", id="kind"),
        pytest.param(channel(kind="slack"), "must contain either `url_file`, or `token_file` and `channel`", id="slack"),
        pytest.param(
            channel(kind="slack", url_file="/u", token_file="/t", channel="C1"), "must contain either", id="slack-both"
        ),
        pytest.param(channel(kind="slack", token_file="/t"), "must contain either", id="slack-no-channel"),
        pytest.param(channel(kind="teams"), "must contain `url_file`, because the kind is \"teams", id="teams"),
        pytest.param(
            channel(kind="teams", url_file="/u", secret_file="/s"),
            "must not contain `secret_file`: a channel of the kind \"teams\" has the fields `url_file`",
            id="foreign-field",
        ),
        pytest.param(
            channel(kind="webhook", url="https://user:pass@a.example", secret_file="/s"), "CredentialInUrl", id="url"
        ),
        pytest.param(channel(kind="webhook", url="ftp://a.example", secret_file="/s"), "must be a URL", id="scheme"),
        pytest.param({"channels": [{**SLACK, "name": "Ops Team"}]}, "lower-case letters", id="name"),
        pytest.param({"channels": [SLACK, SLACK]}, "only once: \"op", id="duplicate"),
        pytest.param({"channels": [{**EMAIL, "recipients": ["b@example.com\nBcc: c@example.com"]}]}, "mail addresses", id="recipient"),
        pytest.param({"channels": [{**EMAIL, "sender": "nobody"}]}, "mail addresses", id="sender"),
        pytest.param({"channels": [{**EMAIL, "username": "u"}]}, "`password_file` together", id="password"),
        pytest.param(
            {"channels": [{**EMAIL, "username": "u", "password_file": "/p", "security": "none"}]}, "`security: starttls`",
            id="login-without-tls",
        ),
        pytest.param({"routes": [{"channel": "ops"}]}, "(there are no channels); there is no channel \"ops\" [type=value_error, input_value=[{'channel': 'ops'", id="channel"),
        pytest.param(route(events=["drafts"]), "must contain only these events: \"drafts_waiting\",", id="event"),
        pytest.param(route(events=["page_viewed"]), "unknown events: \"page_viewed\"", id="unknown-event"),
        pytest.param(route(targets="a b c"), "must be a label requirement", id="targets"),
        pytest.param(route(quiet_hours="22-6"), "must be a period with an optional time zone", id="quiet-hours"),
        pytest.param(route(quiet_hours="22:00-06:00 Mars/One"), "must be the name of a time zone", id="zone"),
        pytest.param(route(quiet_hours="22:00-06:00 ../x"), "must be the name of a time zone", id="zone-path"),
        pytest.param(route(digest_minutes=-1), "greater than or equal to 0", id="digest"),
        pytest.param({"proxy": "http://u:p@proxy.example:1"}, "CredentialInUrl", id="proxy"),
        pytest.param({"allowed_hosts": ["https://a.example"]}, "host names in lower case", id="hosts"),
    ],
)  # fmt: skip
def test_invalid_settings(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as error:
        NotificationSettings.model_validate(data)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("security", "port", "expected"), [("starttls", 0, 587), ("tls", 0, 465), ("none", 0, 25), ("tls", 2465, 2465)]
)
def test_the_port_of_a_mail_server(security: str, port: int, expected: int) -> None:
    settings = NotificationSettings.model_validate({"channels": [{**EMAIL, "security": security, "port": port}]})

    assert settings.channels[0].effective_port == expected


@pytest.mark.parametrize(
    ("text", "seconds", "expected"),
    [
        ("22:00-06:00", 22 * 3600, True),
        ("22:00-06:00", 6 * 3600, False),
        ("22:00-06:00", 3 * 3600, True),
        ("08:00-09:00", 8.5 * 3600, True),
        ("08:00-09:00", 9 * 3600, False),
        # Berlin was one hour ahead of UTC in January 1970.
        ("22:00-06:00 Europe/Berlin", 21 * 3600, True),
        ("22:00-06:00 Europe/Berlin", 5 * 3600, False),
    ],
)
def test_quiet_hours(text: str, seconds: float, expected: bool) -> None:
    hours = parse_quiet_hours(text)

    assert hours is not None
    assert hours.contains(seconds) is expected


def test_no_quiet_hours() -> None:
    assert parse_quiet_hours("") is None
    assert parse_quiet_hours("07:30-08:00") == QuietHours(time(7, 30), time(8))
