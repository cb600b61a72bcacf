"""Microsoft Teams: a webhook of Power Automate Workflows, with an Adaptive Card 1.4.

URLs of Office 365 connectors are refused, because Microsoft has retired these connectors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from reconciler.krm.findings import Severity
from reconciler.lazy_dataclasses import dataclass
from reconciler.notifications.channel import ChannelError
from reconciler.notifications.http import HttpClient
from reconciler.notifications.messages import Message
from reconciler.notifications.secrets import read_secret
from reconciler.notifications.text_writer import TextWriter
from reconciler.reconcile.codes import PassCodes

_COLORS = {Severity.INFO: "Default", Severity.WARNING: "Warning", Severity.ERROR: "Attention"}
_CONNECTOR_HOSTS = ("outlook.office.com", "outlook.office365.com", "webhook.office.com")
_MAX_TEXT = 5000


@dataclass(frozen=True)
class TeamsChannel:
    """A webhook of Power Automate Workflows. Its URL is a secret."""

    name: str
    url_file: str
    http: HttpClient
    texts: TextWriter

    def send(self, message: Message) -> Mapping[str, str]:
        """Send a message."""
        url = read_secret(self.url_file)
        host = urlsplit(url).hostname or ""
        if host in _CONNECTOR_HOSTS or host.endswith(".webhook.office.com"):
            text = (
                f"channel {self.name}: {self.url_file} contains the URL of an Office 365 connector ({host})."
                " Microsoft has retired these connectors. Next step: create a webhook with Power"
                " Automate Workflows, and use its URL"
            )
            raise ChannelError(text, finding=PassCodes.NOTIFICATION_URL_REFUSED.finding(text))
        self.http.post(url, self.format(message).encode(), {})
        return {}

    def format(self, message: Message) -> str:
        """Return the body of the request."""
        return json.dumps(_build_card_message(message, self.texts))


def _build_card_message(message: Message, texts: TextWriter) -> dict[str, Any]:
    custom = texts.render(message, "teams")
    if custom is not None:
        body: list[dict[str, Any]] = [{"type": "TextBlock", "text": custom[:_MAX_TEXT], "wrap": True}]
    else:
        body = [_build_text(line) for line in message.lines]
    title = _build_text(message.title, weight="Bolder", size="Medium", color=_COLORS[message.severity])
    context = _build_text(f"{message.severity.value} · shard {message.shard}", isSubtle=True, size="Small")
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [title, *body, context],
    }
    if message.link:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open the console", "url": message.link}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _build_text(text: str, **style: object) -> dict[str, Any]:
    """Return a text block. A TextRun shows its text unchanged, and a TextBlock would interpret Markdown."""
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text[:_MAX_TEXT], **style}]}
