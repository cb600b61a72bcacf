"""Compilation of regular expressions from user input, with RE2 and a memory limit."""

from __future__ import annotations

from typing import Any, Final

import re2

from reconciler.memory import cached

MAX_PATTERN_BYTES: Final = 2 << 20
"""The maximum memory of one compiled RE2 pattern. A larger pattern is rejected."""

_MAX_CACHED_PATTERNS = 256
_MAX_REASON_CHARACTERS = 200


class PatternError(ValueError):
    """An invalid RE2 regular expression, or a regular expression that needs too much memory.

    The message contains the reason.
    """


@cached(_MAX_CACHED_PATTERNS)
def compile_pattern(pattern: str, *, captures: bool = False) -> Any:
    """Compile a regular expression in RE2 syntax.

    Args:
        captures: Whether groups capture text. Matching without captures is faster and needs less memory.

    Raises:
        PatternError: The regular expression is invalid, or it needs more memory than `MAX_PATTERN_BYTES`.
    """
    options = re2.Options()
    options.max_mem = MAX_PATTERN_BYTES
    options.log_errors = False
    options.never_capture = not captures
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        detail = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        # Truncate the message of RE2, because it contains the rejected part of the pattern, which can be very long.
        raise PatternError(
            detail if len(detail) <= _MAX_REASON_CHARACTERS else f"{detail[:_MAX_REASON_CHARACTERS]}…"
        ) from None
    except UnicodeEncodeError as error:
        raise PatternError(f"the pattern contains a lone surrogate: {error.reason}") from None
