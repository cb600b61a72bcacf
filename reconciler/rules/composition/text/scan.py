"""Finding expressions: text taken apart at `${…}`, with an eye on what CEL writes in quotes (openchoreo 5.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import TEMPLATE_NESTED, TEMPLATE_UNTERMINATED
from reconciler.rules.composition.faults import Fault, FaultError
from reconciler.rules.composition.marks import OPEN
from reconciler.rules.fields import dotted, shown


@dataclass(frozen=True, slots=True)
class Expression:
    """What stands between `${` and `}`."""

    text: str


Piece = str | Expression

# r in front of quotes makes a backslash an ordinary character, unless it is the end of a name
_MARK = re.compile(r"\$\{|[{}]|//|(?<![A-Za-z0-9_])[bB]?[rR](?:'''|\"\"\"|['\"])|'''|\"\"\"|['\"]")
_MARK_IN_COMMENT = re.compile(r"\$\{|[{}]|\n")
_CLOSING = {
    "'": re.compile(r"[^'\\]*(?:\\.[^'\\]*)*'", re.DOTALL),
    '"': re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL),
    "'''": re.compile(r"(?:[^'\\]|\\.|'(?!''))*'''", re.DOTALL),
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*"""', re.DOTALL),
}


def scan(text: str, path: Path) -> tuple[Piece, ...]:
    """Return the text and the expressions of it in their order, no text that is empty.

    Raises FaultError, at `path`, for an expression in an expression and for one without an end.
    """
    pieces: list[Piece] = []
    done = 0
    while (start := text.find(OPEN, done)) >= 0:
        end = _end(text, start, path)
        pieces += (text[done:start], Expression(text[start + len(OPEN) : end]))
        done = end + 1
    return tuple(piece for piece in (*pieces, text[done:]) if piece != "")


def _end(text: str, start: int, path: Path) -> int:
    """Return where the brace stands that closes the expression which begins at `start`."""
    depth, at, marks = 1, start + len(OPEN), _MARK
    while mark := marks.search(text, at):
        found, at = mark[0], mark.end()
        if found == OPEN:
            raise FaultError(_nested(text[start:], path))
        if found in "{}":
            depth += 1 if found == "{" else -1
            if not depth:
                return mark.start()
        elif found in ("//", "\n"):
            # a comment may have an apostrophe in it, which opens nothing
            marks = _MARK_IN_COMMENT if found == "//" else _MARK
        elif (at := _end_of_string(text, found, at)) < 0:
            break
    raise FaultError(_unterminated(text[start:], path))


def _end_of_string(text: str, opening: str, at: int) -> int:
    """Return the place behind the string literal whose content begins at `at`, -1 when it has no end."""
    quotes = opening.lstrip("bBrR")
    if quotes != opening:
        end = text.find(quotes, at)
        return -1 if end < 0 else end + len(quotes)
    closing = _CLOSING[quotes].match(text, at)
    return closing.end() if closing else -1


def _nested(text: str, path: Path) -> Fault:
    message = f"{dotted(path)} must not have ${{ inside of an expression, which needs none there: {shown(text)}"
    return Fault(TEMPLATE_NESTED, path, message)


def _unterminated(text: str, path: Path) -> Fault:
    message = f"{dotted(path)} must have a }} for every ${{; braces in quotes do not count: {shown(text)}"
    return Fault(TEMPLATE_UNTERMINATED, path, message)
