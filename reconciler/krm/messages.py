"""Messages of bounded length: several messages about one object in one text."""

from __future__ import annotations

from collections.abc import Iterable

MAX_EXAMPLES = 5
"""How many equal or similar messages are shown; more of them do not help anyone."""
MAX_CHARACTERS = 4_000
"""The length of one message. A longer one is cut, so that no output has lines without a limit."""


def join_messages(messages: Iterable[str]) -> str:
    """Return the first five different messages as one text, with the number of the others: `a; b; … and 95 more`."""
    found = tuple(dict.fromkeys(messages))
    rest = len(found) - MAX_EXAMPLES
    return "; ".join([*found[:MAX_EXAMPLES], *([f"… and {rest} more"] if rest > 0 else [])])


def bounded(message: str) -> str:
    """Return a message, cut to `MAX_CHARACTERS` with a note about the length of the rest."""
    if len(message) <= MAX_CHARACTERS:
        return message
    rest = f"… ({len(message)} characters)"
    return message[: MAX_CHARACTERS - len(rest)] + rest
