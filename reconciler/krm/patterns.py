"""Regular expressions in user input: RE2 with a memory limit per pattern and one exception type."""

from __future__ import annotations

from typing import Any, Final

import re2

from reconciler.memory import cached

MAX_PATTERN_BYTES: Final = 2 << 20
"""The maximum memory of one compiled RE2 pattern. A larger pattern is rejected."""

_MAX_CACHED_PATTERNS = 256
_MAX_REASON_CHARACTERS = 200


class PatternError(ValueError):
    """The text is not a valid RE2 regular expression, or it is too large. The message contains the reason."""


@cached(_MAX_CACHED_PATTERNS)
def compile_pattern(pattern: str, *, captures: bool = False) -> Any:
    """Compile a pattern.

    Args:
        pattern: RE2 syntax.
        captures: Whether groups capture text. Without captures, matching is faster and needs less memory.

    Raises:
        PatternError: The pattern is invalid or too large.
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
        # RE2 repeats the rejected part of the pattern, which can be the whole pattern.
        raise PatternError(
            detail if len(detail) <= _MAX_REASON_CHARACTERS else f"{detail[:_MAX_REASON_CHARACTERS]}…"
        ) from None
    except UnicodeEncodeError as error:
        raise PatternError(f"it contains a lone surrogate: {error.reason}") from None
