"""The examples in the documentation of notifications work as they are written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.bootstrap.notifications import build_channels
from reconciler.krm.yaml import parse_yaml
from reconciler.notifications.channel_findings import ChannelFindings
from reconciler.notifications.events import DEFAULT_EVENTS, Event
from reconciler.notifications.messages import DIGEST_EVENT
from reconciler.notifications.samples import build_sample
from reconciler.settings import Settings
from tests.support.notification_servers import http_server, mail_server

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = (DOCS / "how-to/send-notifications.md").read_text()
REFERENCE = (DOCS / "reference/notifications.md").read_text()
MESSAGE = build_sample("ops", "drafts_waiting", "1/1", 1_700_000_000, "https://reconciler.example.com")


def list_examples() -> Iterator[object]:
    for match in re.finditer(r"^```yaml\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE):
        data = parse_yaml(match[1].encode()).documents[0].data
        yield pytest.param(data, id=data["notifications"]["channels"][0]["name"])


def test_the_guide_has_an_example_of_each_kind_of_channel() -> None:
    kinds = {example.values[0]["notifications"]["channels"][0]["kind"] for example in list_examples()}  # type: ignore[attr-defined]
    assert kinds == {"slack", "teams", "webhook", "email"}


@pytest.mark.parametrize("example", [*list_examples()])
def test_a_channel_of_the_guide_sends_a_message(example: dict[str, Any], tmp_path: Path) -> None:
    """Send a message with the settings of the guide. Only addresses and the paths of secrets are replaced."""
    Settings.model_validate(example)
    with http_server() as http, mail_server() as mail:
        channel = dict(example["notifications"]["channels"][0])
        for field in (name for name in channel if name.endswith("_file")):
            file = tmp_path / Path(channel[field]).name
            assert channel[field] == f"/run/secrets/{file.name}"
            file.write_text(f"{http.url}/hook")
            channel[field] = str(file)
        http.responses = [(200, {}, b'{"ok": true, "channel": "C024BE91L", "ts": "1"}')]
        match channel["kind"]:
            case "webhook":
                channel["url"] = re.sub(r"https?://[^/]+", http.url, channel["url"])
            case "slack" if "token_file" in channel:
                channel["api"] = http.url
            case "email":
                # The local server has no certificate.
                del channel["username"], channel["password_file"]
                channel |= {"host": "127.0.0.1", "port": mail.port, "security": "none"}
        settings = {"notifications": {"channels": [channel], "allowed_hosts": ["127.0.0.1"]}}
        channels = build_channels(Settings.model_validate(settings), ChannelFindings())
        channels[channel["name"]].send(MESSAGE)

    assert len(http.requests) + len(mail.mails) == 1


def test_the_template_of_the_guide_renders(tmp_path: Path) -> None:
    (template,) = re.findall(r"<!-- template: (\S+) -->\n```text\n(.*?)```", GUIDE, re.DOTALL)
    (tmp_path / template[0]).write_text(template[1])
    (tmp_path / "url").write_text("https://hooks.example.com/x")
    channel = {"name": "ops", "kind": "slack", "url_file": str(tmp_path / "url")}
    settings = {"notifications": {"channels": [channel], "templates_dir": str(tmp_path)}}
    findings = ChannelFindings()
    data = json.loads(build_channels(Settings.model_validate(settings), findings)["ops"].format(MESSAGE))

    assert findings.list_findings() == ()
    assert data["blocks"][1]["text"]["text"] == ("*Review update web v1 → v2 on 2 targets*\n• berlin/web\n• lisbon/web")


def read_events() -> Mapping[str, str]:
    """Return the default of each event in the table of the reference."""
    table = REFERENCE.partition("## Events")[2].partition("## Payload")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (on|off) \|", table, re.MULTILINE))


def test_the_reference_lists_each_event_with_its_default() -> None:
    assert read_events() == {event.value: "on" if event in DEFAULT_EVENTS else "off" for event in Event}


def test_the_reference_lists_the_details_of_each_event() -> None:
    table = REFERENCE.partition("| event | keys of")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", table, re.MULTILINE)

    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == {event.value for event in Event}


def test_the_payload_of_the_reference_is_the_payload_of_a_sample() -> None:
    (text,) = re.findall(r"<!-- payload -->\n```json\n(.*?)```", REFERENCE, re.DOTALL)

    assert json.loads(text) == MESSAGE.payload


def test_the_reference_describes_each_field_of_the_payload() -> None:
    described = set(re.findall(r"^\| `([\w.]+)` \| (?:string|integer|list|object)", REFERENCE, re.MULTILINE))
    payload = MESSAGE.payload

    assert described == {name for name in payload if name != "data"} | {f"data.{name}" for name in payload["data"]}
    assert f"`{DIGEST_EVENT}`" in REFERENCE
