"""What a function says beside its output, made fit for files that must not depend on when and where it ran."""

from __future__ import annotations

import re2

_LONGEST = 4_000
_COLOURS = re2.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CONTROL = re2.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# how Go's log, klog and most others begin a line
_CLOCK = re2.compile(
    r"(?m)^(?:\d{4}[/-]\d\d[/-]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+)[ \t]*"
)


def clean_words(text: str, folder: str = "") -> str:
    """Return words without control characters, times at the beginning of lines, and the folder of the call.

    Equal inputs must give equal bytes (tenet 2), and these words stand in status files.
    """
    text = _CONTROL.sub("", _COLOURS.sub("", text.replace("\r\n", "\n")))
    text = _CLOCK.sub("", text.replace(folder, ".") if folder else text).strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
