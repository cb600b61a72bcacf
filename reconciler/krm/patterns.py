"""Regular expressions that users write: RE2 with a memory limit for each pattern, and errors as one exception type."""

from __future__ import annotations

from typing import Any, Final

import re2

from reconciler.caching import cached

PATTERN_BYTES: Final = 2 << 20
"""The memory that RE2 may take for one compiled pattern; larger ones are refused."""

_REMEMBERED_PATTERNS = 256
_LONGEST_REASON = 200


class PatternError(ValueError):
    """The text is not an RE2 regular expression, or it is too large; the message gives the reason."""


@cached(_REMEMBERED_PATTERNS)
def compile_pattern(pattern: str, *, captures: bool = False) -> Any:
    """Return the compiled pattern; raises PatternError.

    Without `captures` its groups record nothing, which makes matching faster and its memory independent of the number
    of groups.
    """
    options = re2.Options()
    options.max_mem = PATTERN_BYTES
    options.log_errors = False
    options.never_capture = not captures
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        detail = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        # RE2 repeats the part of the pattern that it refuses, which may be all of it
        raise PatternError(detail if len(detail) <= _LONGEST_REASON else f"{detail[:_LONGEST_REASON]}…") from None
    except UnicodeEncodeError as error:
        raise PatternError(f"it contains half of a surrogate pair: {error.reason}") from None
