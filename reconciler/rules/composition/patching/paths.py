"""Paths of patches: pointers with filters and wildcards, a language of their own (openchoreo 8.1).

Only the form is read here; where a path leads the data tells, in `locate`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.krm.findings import Code
from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import PATH_FILTER_UNSUPPORTED, PATH_ROOT, PATH_SYNTAX
from reconciler.rules.composition.faults import Fault, FaultError, fault_of
from reconciler.rules.fields import shown

Scalar = str | int | float | bool | None
MAX_LENGTH = 4_096
MAX_STEPS = 100
FORMS = "[0], [*], [-], ['a key'] or [?(@.field=='value')]"

_KEY = re.compile(r"[^/\[\]]+")
_BAD_ESCAPE = re.compile(r"~(?![01])")
_INDEX = re.compile(r"(?:0|[1-9][0-9]*)\Z", re.ASCII)
_NUMERIC = re.compile(r"[+-]?[0-9]+\Z", re.ASCII)
_BLANKS = re.compile(r" *")
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_NAME = re.compile(r"\. *([A-Za-z_][A-Za-z0-9_-]*)", re.ASCII)
# bounded, so that every one of them is a number that can be had
_LITERAL = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?(?:[eE][+-]?[0-9]{1,2})?|true|false|null", re.ASCII)


@dataclass(frozen=True)
class Key:
    """A key of a map: `['8080']`, or a name that cannot be an index."""

    name: str


@dataclass(frozen=True)
class Numeric:
    """`8080` without brackets: an index of a list, a key of a map."""

    name: str
    number: int


@dataclass(frozen=True)
class Index:
    """`[0]`: an item of a list."""

    number: int


@dataclass(frozen=True)
class Every:
    """`[*]`: all items of a list."""


@dataclass(frozen=True)
class End:
    """`-`: behind the last item of a list."""


@dataclass(frozen=True)
class Filter:
    """`[?(@.name=='web')]`: the items of a list whose field has a value; a quoted one is compared as text."""

    fields: tuple[str, ...]
    literal: Scalar
    is_quoted: bool


Step = Key | Numeric | Index | Every | End | Filter


@dataclass(frozen=True)
class PatchPath:
    """A path that can be read, and how it is written."""

    text: str
    steps: tuple[Step, ...]

    @property
    def ends_open(self) -> bool:
        """Whether its last step chooses among items, and so may lead to many places."""
        return isinstance(self.steps[-1], Every | Filter)

    @property
    def ends_behind(self) -> bool:
        """Whether its last step is `-`."""
        return isinstance(self.steps[-1], End)


def parse_path(text: str, at: Path = ()) -> PatchPath | Fault:
    """Return the path that `text` spells, or what is wrong with it; `at` is where it is written (openchoreo 8.1)."""
    try:
        return PatchPath(text, _Reader(text, at).steps())
    except FaultError as error:
        return error.fault


class _Reader:
    """Reads one path from its first character to its last."""

    def __init__(self, text: str, at: Path) -> None:
        self._text = text
        self._at = at
        self._next = 0

    def steps(self) -> tuple[Step, ...]:
        if self._text in ("", "/"):
            raise self._refused("must lead into the object: no operation is for a whole one", PATH_ROOT)
        if not self._text.startswith("/"):
            raise self._refused("must begin with /")
        if len(self._text) > MAX_LENGTH:
            raise self._refused(f"must have at most {MAX_LENGTH:,} characters, and has {len(self._text):,}")
        found = tuple(self._all())
        if len(found) > MAX_STEPS:
            raise self._refused(f"must have at most {MAX_STEPS} steps, and has {len(found):,}")
        if any(isinstance(step, End) for step in found[:-1]):
            raise self._refused("must end with -, which is the place behind the last item of a list, where it has one")
        return found

    def _all(self) -> Iterator[Step]:
        while self._next < len(self._text):
            # what is in front is the slash: everything else of a segment has been read
            self._next += 1
            start = self._next
            if key := self._take(_KEY):
                yield self._key(key[0])
            while self._peek("["):
                yield self._selector()
            if self._next == start:
                raise self._refused("must have something behind every /; a key without a name is written ['']")
            if self._next < len(self._text) and not self._peek("/"):
                raise self._refused(f'must have "/", "[" or nothing at {self._rest()}')

    def _key(self, text: str) -> Step:
        if text == "-":
            return End()
        if _INDEX.match(text):
            return Numeric(text, int(text))
        if _NUMERIC.match(text):
            raise self._refused(f"must have no sign and no leading zero in {shown(text)}; a key is quoted: ['…']")
        if _BAD_ESCAPE.search(text):
            raise self._refused(f"must spell ~ as ~0 and / as ~1 in {shown(text)}")
        return Key(_unescaped(text))

    def _selector(self) -> Step:
        self._next += 1
        if self._peek("?("):
            return self._filter()
        quoted = self._take(_QUOTED)
        step = Key(_unquoted(quoted)) if quoted else self._unquoted_selector()
        if not self._passed("]"):
            raise self._refused(f'must have "]" behind a quoted key, at {self._rest()}')
        return step

    def _unquoted_selector(self) -> Step:
        end = self._text.find("]", self._next)
        if end < 0:
            raise self._refused(f"must close the bracket at {self._rest(1)}")
        inside, self._next = self._text[self._next : end], end
        if inside in ("*", "-"):
            return Every() if inside == "*" else End()
        if not _INDEX.match(inside):
            raise self._refused(f"must have {FORMS} as brackets, not {shown(f'[{inside}]')}")
        return Index(int(inside))

    def _filter(self) -> Filter:
        start = self._next
        self._next += 2
        found = self._comparison()
        if found:
            return found
        self._next = start
        if not _closes(self._text, start):
            raise self._refused(f"must close the filter at {self._rest(1)}")
        allowed = "@.field==literal, with a quoted text, a number, true, false or null"
        raise self._refused(f"must have filters of the form {allowed}, at {self._rest(1)}", PATH_FILTER_UNSUPPORTED)

    def _comparison(self) -> Filter | None:
        """Return the filter that stands here, None where it is another than those that there are."""
        self._take(_BLANKS)
        if not self._passed("@"):
            return None
        fields = tuple(self._fields())
        if not fields or not self._passed("=="):
            return None
        self._take(_BLANKS)
        quoted = self._take(_QUOTED)
        bare = None if quoted else self._take(_LITERAL)
        if not (quoted or bare) or not (self._passed(")") and self._passed("]")):
            return None
        literal = _unquoted(quoted) if quoted else json.loads(bare[0] if bare else "null")
        return Filter(fields, literal, quoted is not None)

    def _fields(self) -> Iterator[str]:
        self._take(_BLANKS)
        while True:
            if name := self._take(_NAME):
                yield name[1]
            elif self._peek("[") and (quoted := _QUOTED.match(self._text, self._next + 1)):
                self._next = quoted.end()
                if not self._passed("]"):
                    return
                yield _unquoted(quoted)
            else:
                return
            self._take(_BLANKS)

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._next)
        if found:
            self._next = found.end()
        return found

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._next)

    def _passed(self, text: str) -> bool:
        """Tell whether `text` comes next, blanks aside, and go behind it."""
        start = self._next
        self._take(_BLANKS)
        if self._peek(text):
            self._next += len(text)
            return True
        self._next = start
        return False

    def _rest(self, back: int = 0) -> str:
        return shown(self._text[self._next - back :])

    def _refused(self, message: str, code: Code = PATH_SYNTAX) -> FaultError:
        return FaultError(fault_of(code, self._at, f"{message}: {shown(self._text)}"))


def _closes(text: str, start: int) -> bool:
    """Tell whether a bracket closes behind `start`, what is quoted aside."""
    while start < len(text) and text[start] != "]":
        quoted = _QUOTED.match(text, start)
        if not quoted and text[start] in "'\"":
            return False
        start = quoted.end() if quoted else start + 1
    return start < len(text)


def _unquoted(quoted: re.Match[str]) -> str:
    # people need no escapes here, and may have written them nevertheless
    return _unescaped(quoted[1] if quoted[1] is not None else quoted[2])


def _unescaped(text: str) -> str:
    return text.replace("~1", "/").replace("~0", "~")
