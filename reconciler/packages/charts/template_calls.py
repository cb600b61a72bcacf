"""Finds calls of functions in the text of Go templates.

The text is split into tokens, and is not parsed. An invalid template causes no error here, because helm reports the
error.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from reconciler.lazy_dataclasses import dataclass, replace

_ACTION_START = re.compile(r"\{\{(?:-(?=\s))?\s*")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
# Match one token. The first alternative that matches is the type of the token. The form `\"…\"` is a string in a
# template that is itself a double-quoted string in a values file.
_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<end>-?\}\})
    | (?P<nested>\{\{)
    | (?P<string>"(?:[^"\\\n]|\\.)*" | `[^`]*` | \\"[^"\n]*\\" | '(?:[^'\\\n]|\\.)*')
    | (?P<field>[.$][A-Za-z0-9_]*)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>[-+]?[0-9][A-Za-z0-9_.]*)
    | (?P<open>\()
    | (?P<close>\))
    | (?P<pipe>\|)
    | (?P<assignment>:?=|,)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS: Final = frozenset({"if", "else", "with", "range", "return"})
_KEYWORDS_BEFORE_A_NAME: Final = frozenset({"template", "block", "define"})


@dataclass(frozen=True)
class TemplateCall:
    """A call of a function in a template text.

    Attributes:
        function: The name of the function.
        start: Offset of the name of the function.
        command_end: Offset after the last argument of the call.
        is_argument: Whether the call is an argument of another function, without parentheses.
        is_quoted: Whether the call is inside a string literal. Such a call is evaluated only if a function such as
            `tpl` evaluates the string as a template.
    """

    function: str
    start: int
    command_end: int
    is_argument: bool
    is_quoted: bool

    @property
    def end(self) -> int:
        """Offset after the name of the function."""
        return self.start + len(self.function)


def find_calls(text: str, functions: Collection[str]) -> tuple[TemplateCall, ...]:
    """Return the calls of `functions` in the actions of a template text, in the order of the text."""
    calls: list[TemplateCall] = []
    position = 0
    while match := _ACTION_START.search(text, position):
        action = _Action(text, functions)
        position = action.read(match.end())
        calls += action.calls if action.is_complete else ()
    return tuple(sorted(calls, key=lambda call: call.start))


class _Action:
    """State of the search in one action, which is the text between `{{` and `}}`."""

    def __init__(self, text: str, functions: Collection[str]) -> None:
        self._text = text
        self._functions = functions
        self._open: list[tuple[int, TemplateCall]] = []
        self._depth = 0
        self._is_command_start = True
        self._is_template_name = False
        self._last_end = 0
        self.calls: list[TemplateCall] = []
        self.is_complete = False

    def read(self, position: int) -> int:
        """Read the action from `position`. Return the offset at which the search continues."""
        self._last_end = position
        if self._text.startswith("/*", position):
            comment = _COMMENT.match(self._text, position)
            if comment is None:
                return len(self._text)
            position = comment.end()
        while match := _TOKEN.match(self._text, position):
            kind = match.lastgroup
            if kind == "nested":
                return match.start()
            if kind == "end":
                self._close_calls(0)
                self.is_complete = True
                return match.end()
            if kind != "space":
                self._read_token(kind or "", match)
                self._last_end = match.end()
            position = match.end()
        return len(self._text)

    def _read_token(self, kind: str, match: re.Match[str]) -> None:
        is_command_start, self._is_command_start = self._is_command_start, False
        match kind:
            case "open":
                self._depth += 1
                self._is_command_start = True
            case "close":
                self._close_calls(self._depth)
                self._depth -= 1
            case "pipe":
                self._close_calls(self._depth)
                self._is_command_start = True
            case "assignment":
                self._is_command_start = True
            case "string":
                self._read_string(match)
            case "name":
                self._read_name(match, is_command_start=is_command_start)

    def _read_string(self, match: re.Match[str]) -> None:
        self._is_command_start, self._is_template_name = self._is_template_name, False
        if "{{" in match[0]:
            for call in find_calls(match[0], self._functions):
                offset = match.start()
                self.calls.append(
                    replace(call, start=call.start + offset, command_end=call.command_end + offset, is_quoted=True)
                )

    def _read_name(self, match: re.Match[str], *, is_command_start: bool) -> None:
        name = match[0]
        if name in _KEYWORDS:
            self._is_command_start = True
        elif name in _KEYWORDS_BEFORE_A_NAME:
            self._is_template_name = True
        elif name in self._functions:
            call = TemplateCall(name, match.start(), match.end(), not is_command_start, is_quoted=False)
            if is_command_start:
                self._open.append((self._depth, call))
            else:
                self.calls.append(call)

    def _close_calls(self, depth: int) -> None:
        """Set the end of the open calls at this nesting depth and at deeper levels, because their command has ended."""
        while self._open and self._open[-1][0] >= depth:
            _, call = self._open.pop()
            self.calls.append(replace(call, command_end=self._last_end))
