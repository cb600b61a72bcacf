"""Excerpts of config files: the line of a finding, and the lines around it."""

from __future__ import annotations

from reconciler.lazy_dataclasses import dataclass
from reconciler.redaction import hide_ciphertexts, is_secret_manifest_text, redact_urls

_CONTEXT_LINES = 5
_MAX_LINE_CHARACTERS = 500


@dataclass(frozen=True)
class ExcerptLine:
    """A line of a file. `is_marked` is true for the line of the finding."""

    number: int
    text: str
    is_marked: bool = False


@dataclass(frozen=True)
class Excerpt:
    """Some lines of a file. `reason` is the reason why there are no lines. "" if there are lines."""

    lines: tuple[ExcerptLine, ...] = ()
    reason: str = ""


def build_excerpt(content: bytes, line: int) -> Excerpt:
    """Return the line with this number, and 5 lines before and after it.

    A file that contains Secrets is not shown. Credentials in URLs and ciphertexts are hidden.
    """
    text = content.decode(errors="replace")
    if is_secret_manifest_text(text):
        return Excerpt(reason="The lines are not shown, because the file contains a Secret.")
    lines = text.splitlines()
    if not 0 < line <= len(lines):
        return Excerpt(reason=f"The file does not contain line {line} any more.")
    first = max(line - _CONTEXT_LINES, 1)
    shown = lines[first - 1 : line + _CONTEXT_LINES]
    return Excerpt(tuple(ExcerptLine(number, _clean(text), number == line) for number, text in enumerate(shown, first)))


def _clean(text: str) -> str:
    return str(redact_urls(hide_ciphertexts(text)))[:_MAX_LINE_CHARACTERS]
