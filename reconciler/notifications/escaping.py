"""Escaping of untrusted texts, such as names and messages from config files, for the formats of the channels.

Without escaping, these texts could mention people, or contain links.
"""

from __future__ import annotations

import re

# A zero-width space ends the syntax that a service would interpret, and is not visible.
_BREAK = "\u200b"
_SLACK_SYNTAX = re.compile(r"[*_~`@]|:(?=//)|^>", re.MULTILINE)
_SLACK_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MARKDOWN_SYNTAX = re.compile(r"[\\`*_{}\[\]()#+!|<>~&]|^(?:[-=]|\d+\.)", re.MULTILINE)
_MARKDOWN_LINK = re.compile(r"@|:(?=//)")


def escape_slack(text: str) -> str:
    """Escape text for Slack's `mrkdwn`: no formatting, no links, and no mentions such as `<!channel>`."""
    broken = _SLACK_SYNTAX.sub(lambda match: f"{_BREAK}{match[0]}{_BREAK}", text)
    return "".join(_SLACK_ENTITIES.get(character, character) for character in broken)


def escape_markdown(text: str) -> str:
    """Escape text for the Markdown of Adaptive Cards: no formatting, no links and no mentions."""
    escaped = _MARKDOWN_SYNTAX.sub(lambda match: f"{match[0][:-1]}\\{match[0][-1]}", text)
    return _MARKDOWN_LINK.sub(lambda match: f"{match[0]}{_BREAK}", escaped)
