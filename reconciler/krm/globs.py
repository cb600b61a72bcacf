"""Patterns with wildcards for paths, such as `teams/payments/**`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reconciler.memory import cached

_MAX_CACHED_PATTERNS = 1_024
_WILDCARDS = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
_TOKEN = re.compile(r"\*\*|\*|\?")


@cached(_MAX_CACHED_PATTERNS)
def _compile(pattern: str) -> re.Pattern[str]:
    position, expression = 0, ""
    for token in _TOKEN.finditer(pattern):
        expression += re.escape(pattern[position : token.start()]) + _WILDCARDS[token.group()]
        position = token.end()
    return re.compile(expression + re.escape(pattern[position:]), re.DOTALL)


def matches_glob(text: str, pattern: str) -> bool:
    """Return whether a pattern matches the whole text.

    In a pattern, `**` matches any characters, `*` any characters except `/`, and `?` one character except `/`.
    """
    return _compile(pattern).fullmatch(text) is not None


def matches_all_with_prefix(prefix: str, pattern: str) -> bool:
    """Return whether a pattern certainly matches every text that starts with `prefix`.

    The function detects this only for a pattern that ends with `**`.
    """
    return pattern.endswith("**") and matches_glob(prefix, pattern)


def can_match_with_prefix(prefix: str, pattern: str) -> bool:
    """Return whether a pattern may match a text that starts with `prefix`. False means that no such text matches."""
    fixed_text = _TOKEN.split(pattern, maxsplit=1)[0]
    return fixed_text.startswith(prefix) or prefix.startswith(fixed_text)


def matches_any_glob(text: str, patterns: Iterable[str]) -> bool:
    """Return whether one of the patterns matches the whole text."""
    return any(matches_glob(text, pattern) for pattern in patterns)
