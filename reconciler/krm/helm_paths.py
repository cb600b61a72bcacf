"""Paths in Helm values, in the notation of `helm --set-json`, e.g. `a.b[0]`. The name of an option is such a path.

Helm silently drops a value whose path has an empty step. In this module, an empty step is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from reconciler.memory import cached

PathStep: TypeAlias = str | int
"""One step of a path in Helm values: a key of a map, or an index of a list."""

MAX_LEVELS: Final = 30
"""Maximum number of dots directly between two keys, as in `a.b`, in one option name. Helm has the same limit."""

MAX_INDEX: Final = 65_536
"""Maximum list index in an option name. Helm has the same limit."""

MAX_INDEXES: Final = 30
"""Maximum number of list indexes in one option name. This limits the YAML depth. Helm has no such limit."""

_KEY = re.compile(r"(?:[^\\.\[=,]|\\.)*", re.DOTALL)
_INDEX = re.compile(r"\[([0-9]{1,20})\]", re.ASCII)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SPECIAL = re.compile(r"[\\.\[=,]")


def check_option_name(name: str) -> str:
    """Return the reason why an option name is not a valid path, e.g. "must not be empty".

    Return "" if the name is valid.
    """
    return _parse_name(name)[1]


def parse_option_name(name: str) -> tuple[PathStep, ...]:
    """Return the path of an option name, e.g. "a.b[0]" -> ("a", "b", 0). Return () if the name is invalid."""
    return _parse_name(name)[0]


def format_option_name(steps: Sequence[PathStep]) -> str:
    """Return the option name of a path, e.g. ("a", "b", 0) -> "a.b[0]". Special characters get a backslash."""
    parts = (f"[{step}]" if isinstance(step, int) else "." + _SPECIAL.sub(r"\\\g<0>", step) for step in steps)
    return "".join(parts).removeprefix(".")


@cached(8_192)
def _parse_name(name: str) -> tuple[tuple[PathStep, ...], str]:
    try:
        steps = tuple(_iterate_steps(name))
    except _NameError as error:
        return (), str(error)
    message = _check_depth(steps)
    return ((), message) if message else (steps, "")


def _check_depth(steps: tuple[PathStep, ...]) -> str:
    if sum(isinstance(step, str) and isinstance(next_step, str) for step, next_step in pairwise(steps)) > MAX_LEVELS:
        return f"must not have more than {MAX_LEVELS} dots"
    if sum(isinstance(step, int) for step in steps) > MAX_INDEXES:
        return f"must not have more than {MAX_INDEXES} list indexes"
    return ""


class _NameError(ValueError):
    """Raised if an option name is not a valid path."""


def _iterate_steps(name: str) -> Iterator[PathStep]:
    position, end = 0, len(name)
    while True:
        key = _KEY.match(name, position)
        if key is None or not key[0]:
            raise _NameError(_explain_empty_step(name, position))
        yield _ESCAPED.sub(r"\1", key[0])
        position = key.end()
        while name.startswith("[", position):
            index = _match_index(name, position)
            yield int(index[1])
            position = index.end()
        if position == end:
            return
        if name[position] != ".":
            raise _NameError(_explain_stray_character(name, position))
        position += 1


def _match_index(name: str, position: int) -> re.Match[str]:
    index = _INDEX.match(name, position)
    if index is None or int(index[1]) > MAX_INDEX:
        raise _NameError(f"must have a number up to {MAX_INDEX} in brackets, like [0], or a \\ before the bracket")
    return index


def _explain_empty_step(name: str, position: int) -> str:
    if not name:
        return "must not be empty"
    if name.startswith("\\", position):
        return "must not end in a backslash"
    return f"must have a key between dots and before brackets; the key at character {position + 1} is empty"


def _explain_stray_character(name: str, position: int) -> str:
    if name[position] == "\\":
        return "must not end in a backslash"
    if name[position - 1] == "]":
        return f'must have a dot or nothing after "]", but is "{name[position]}"'
    return f'must have a \\ before "{name[position]}", because "{name[position]}" ends a name'
