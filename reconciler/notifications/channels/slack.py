"""Slack: an incoming webhook, or `chat.postMessage` with a bot token. Messages use Block Kit.

With a bot token, all messages about one group are in one thread, and the first message always shows the current state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reconciler.lazy_dataclasses import dataclass
from reconciler.notifications.channel import ChannelError
from reconciler.notifications.escaping import escape_slack
from reconciler.notifications.http import HttpClient
from reconciler.notifications.messages import Message
from reconciler.notifications.secrets import read_secret
from reconciler.notifications.text_writer import TextWriter

_MAX_HEADER, _MAX_TEXT = 150, 3000
# Slack interprets no formatting, links or mentions in a text of the type `plain_text`.
_PLAIN = "plain_text"


@dataclass(frozen=True)
class SlackWebhookChannel:
    """An incoming webhook of Slack. Its URL is a secret, which also determines the Slack channel."""

    url_file: str
    http: HttpClient
    texts: TextWriter

    def send(self, message: Message) -> Mapping[str, str]:
        """Send a message."""
        self.http.post(read_secret(self.url_file), self.format(message).encode(), {})
        return {}

    def format(self, message: Message) -> str:
        """Return the body of the request."""
        return json.dumps(build_slack_message(message, self.texts))


@dataclass(frozen=True)
class SlackBotChannel:
    """A Slack channel to which a bot posts messages.

    Attributes:
        channel: The ID of the Slack channel, such as `C024BE91L`.
        api: The URL of Slack's Web API.
    """

    token_file: str
    channel: str
    api: str
    http: HttpClient
    texts: TextWriter

    def send(self, message: Message) -> Mapping[str, str]:
        """Post a message. Return the channel and the timestamp of the first message of the thread.

        If the thread already exists, post the message to the thread, and replace the text of its first message.
        """
        content = build_slack_message(message, self.texts)
        first = {name: message.posted[name] for name in ("channel", "ts") if name in message.posted}
        if len(first) < 2:
            posted = self._call("chat.postMessage", {**content, "channel": self.channel})
            return {"channel": str(posted.get("channel", "")), "ts": str(posted.get("ts", ""))}
        self._call("chat.update", {**content, **first})
        self._call("chat.postMessage", {**content, "channel": first["channel"], "thread_ts": first["ts"]})
        return first

    def format(self, message: Message) -> str:
        """Return the body of the request that posts a message."""
        return json.dumps({**build_slack_message(message, self.texts), "channel": self.channel})

    def _call(self, method: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
        headers = {"Authorization": f"Bearer {read_secret(self.token_file)}"}
        answer = self.http.post(f"{self.api}/{method}", json.dumps(data).encode(), headers)
        if answer.get("ok") is not True:
            reason = str(answer.get("error", "no JSON"))[:100]
            raise ChannelError(f"Slack refused {method}: {reason}")
        return answer


def build_slack_message(message: Message, texts: TextWriter) -> dict[str, Any]:
    """Return a message with Block Kit. The field `text` is shown in notifications of a device."""
    context = escape_slack(f"{message.severity.value} · shard {message.shard}")
    if message.link:
        context += f" · <{message.link}|Open the console>"
    custom = texts.render(message, "slack")
    if custom is not None:
        section: dict[str, Any] = {"type": "mrkdwn", "text": custom[:_MAX_TEXT], "verbatim": True}
    else:
        section = {"type": _PLAIN, "text": "\n".join(message.lines)[:_MAX_TEXT], "emoji": False}
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": _PLAIN, "text": message.title[:_MAX_HEADER], "emoji": False}},
        {"type": "section", "text": section},
        {"type": "context", "elements": [{"type": "mrkdwn", "text": context, "verbatim": True}]},
    ]
    if not section["text"]:
        # Remove the block with the text, because Slack refuses an empty text.
        del blocks[1]
    return {
        "text": escape_slack(message.title)[:_MAX_TEXT], "blocks": blocks, "parse": "none", "link_names": False,
        "unfurl_links": False, "unfurl_media": False,
    }  # fmt: skip
