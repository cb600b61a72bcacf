"""Parser for patch paths, which are JSON pointers with filters and wildcards.

This module checks only the syntax. The module `locations` finds the values in a resource.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFinding, FieldFindingError, build_field_finding
from reconciler.krm.field_text import quote_value
from reconciler.krm.findings import FindingCode
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass

FilterLiteral = str | int | float | bool | None
MAX_LENGTH = 4_096
MAX_STEPS = 100
BRACKET_FORMS = "[0], [*], [-], ['a key'] or [?(@.field=='value')]"

_KEY = re.compile(r"[^/\[\]]+")
_BAD_ESCAPE = re.compile(r"~(?![01])")
_INDEX = re.compile(r"(?:0|[1-9][0-9]*)\Z", re.ASCII)
_NUMERIC = re.compile(r"[+-]?[0-9]+\Z", re.ASCII)
_BLANKS = re.compile(r" *")
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_NAME = re.compile(r"\. *([A-Za-z_][A-Za-z0-9_-]*)", re.ASCII)
# Limit the number of digits, so that every number fits into an int or a float.
_LITERAL = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?(?:[eE][+-]?[0-9]{1,2})?|true|false|null", re.ASCII)


@dataclass(frozen=True)
class KeyStep:
    """Path step for a key of a map, e.g. `replicas` or `['8080']`. A number without brackets is a NumericStep."""

    name: str


@dataclass(frozen=True)
class NumericStep:
    """Path step that is a number without brackets, e.g. `8080`: an index in a list, or a key in a map."""

    name: str
    number: int


@dataclass(frozen=True)
class IndexStep:
    """Path step for one item of a list, e.g. `[0]`."""

    number: int


@dataclass(frozen=True)
class WildcardStep:
    """Path step `[*]` for all items of a list."""


@dataclass(frozen=True)
class AppendStep:
    """Path step `-` for the position after the last item of a list."""


@dataclass(frozen=True)
class FilterStep:
    """Path step for the list items whose field has a given value, e.g. `[?(@.name=='web')]`.

    `fields` is the path of the field in a list item. If `is_quoted` is true, `literal` is compared with the text of the
    field value, e.g. `'80'` matches the number 80.
    """

    fields: tuple[str, ...]
    literal: FilterLiteral
    is_quoted: bool


PathStep = KeyStep | NumericStep | IndexStep | WildcardStep | AppendStep | FilterStep


@dataclass(frozen=True)
class PatchPath:
    """Parsed patch path. `text` is the path before parsing."""

    text: str
    steps: tuple[PathStep, ...]

    @property
    def can_match_many(self) -> bool:
        """Whether the last step of the path is a filter or wildcard, which can match several items."""
        return isinstance(self.steps[-1], WildcardStep | FilterStep)

    @property
    def is_append(self) -> bool:
        """Whether the last step of the path is `-`, the position after the last list item."""
        return isinstance(self.steps[-1], AppendStep)


def parse_patch_path(text: str, field_path: DataPath = ()) -> PatchPath | FieldFinding:
    """Parse a patch path. Return a finding with the location `field_path` if the syntax is not valid."""
    try:
        return PatchPath(text, _PathParser(text, field_path).parse())
    except FieldFindingError as error:
        return error.field_finding


class _PathParser:
    """Parses one patch path from left to right."""

    def __init__(self, text: str, field_path: DataPath) -> None:
        self._text = text
        self._field_path = field_path
        self._position = 0

    def parse(self) -> tuple[PathStep, ...]:
        if self._text in ("", "/"):
            raise self._build_error(
                "must address a field, because an operation cannot change the whole resource", ComponentCodes.PATH_ROOT
            )
        if not self._text.startswith("/"):
            raise self._build_error("must begin with /")
        if len(self._text) > MAX_LENGTH:
            raise self._build_error(f"must have at most {MAX_LENGTH:,} characters, but has {len(self._text):,}")
        steps = tuple(self._parse_steps())
        if len(steps) > MAX_STEPS:
            raise self._build_error(f"must have at most {MAX_STEPS} steps, but has {len(steps):,}")
        if any(isinstance(step, AppendStep) for step in steps[:-1]):
            raise self._build_error(
                "must use - only as the last step, because it is the position after the last list item"
            )
        return steps

    def _parse_steps(self) -> Iterator[PathStep]:
        while self._position < len(self._text):
            # Skip the slash, because the previous iteration stopped before the slash.
            self._position += 1
            start = self._position
            if key := self._match(_KEY):
                yield self._parse_key(key[0])
            while self._peek("["):
                yield self._parse_selector()
            if self._position == start:
                raise self._build_error("must have a step after every /; an empty key is written ['']")
            if self._position < len(self._text) and not self._peek("/"):
                raise self._build_error(
                    f'must not continue with {self._quote_rest()}; allowed are "/", "[" and the end of the path'
                )

    def _parse_key(self, text: str) -> PathStep:
        if text == "-":
            return AppendStep()
        if _INDEX.match(text):
            return NumericStep(text, int(text))
        if _NUMERIC.match(text):
            raise self._build_error(
                f"must not have a sign or leading zero in the index {quote_value(text)}; write ['{text}'] for a map key"
            )
        if _BAD_ESCAPE.search(text):
            raise self._build_error(f"must write ~ as ~0 and / as ~1 in {quote_value(text)}")
        return KeyStep(_unescape(text))

    def _parse_selector(self) -> PathStep:
        self._position += 1
        if self._peek("?("):
            return self._parse_filter()
        quoted = self._match(_QUOTED)
        step = KeyStep(_unquote(quoted)) if quoted else self._parse_unquoted_selector()
        if not self._skip("]"):
            raise self._build_error(f'must have "]" after the quoted key at {self._quote_rest()}')
        return step

    def _parse_unquoted_selector(self) -> PathStep:
        end = self._text.find("]", self._position)
        if end < 0:
            raise self._build_error(f"must close the bracket at {self._quote_rest(1)}")
        inside, self._position = self._text[self._position : end], end
        if inside in ("*", "-"):
            return WildcardStep() if inside == "*" else AppendStep()
        if not _INDEX.match(inside):
            raise self._build_error(
                f"must have brackets of the form {BRACKET_FORMS}, but has {quote_value(f'[{inside}]')}"
            )
        return IndexStep(int(inside))

    def _parse_filter(self) -> FilterStep:
        start = self._position
        self._position += 2
        step = self._parse_comparison()
        if step:
            return step
        self._position = start
        if not _is_closed(self._text, start):
            raise self._build_error(f"must close the filter at {self._quote_rest(1)}")
        allowed = "[?(@.field==literal)], where the literal is a quoted text, a number, true, false or null"
        raise self._build_error(
            f"must only have filters of the form {allowed}, but has {self._quote_rest(1)}",
            ComponentCodes.PATH_FILTER_UNSUPPORTED,
        )

    def _parse_comparison(self) -> FilterStep | None:
        """Parse the comparison in a filter, e.g. `@.name=='web'`. Return None if its form is not supported."""
        self._match(_BLANKS)
        if not self._skip("@"):
            return None
        fields = tuple(self._parse_fields())
        if not fields or not self._skip("=="):
            return None
        self._match(_BLANKS)
        quoted = self._match(_QUOTED)
        bare = None if quoted else self._match(_LITERAL)
        if not (quoted or bare) or not (self._skip(")") and self._skip("]")):
            return None
        literal = _unquote(quoted) if quoted else json.loads(bare[0] if bare else "null")
        return FilterStep(fields, literal, quoted is not None)

    def _parse_fields(self) -> Iterator[str]:
        self._match(_BLANKS)
        while True:
            if name := self._match(_NAME):
                yield name[1]
            elif self._peek("[") and (quoted := _QUOTED.match(self._text, self._position + 1)):
                self._position = quoted.end()
                if not self._skip("]"):
                    return
                yield _unquote(quoted)
            else:
                return
            self._match(_BLANKS)

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._position)
        if match:
            self._position = match.end()
        return match

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._position)

    def _skip(self, text: str) -> bool:
        """Skip `text` and the spaces before it. Return whether `text` was found."""
        start = self._position
        self._match(_BLANKS)
        if self._peek(text):
            self._position += len(text)
            return True
        self._position = start
        return False

    def _quote_rest(self, lookback: int = 0) -> str:
        return quote_value(self._text[self._position - lookback :])

    def _build_error(self, message: str, code: FindingCode = ComponentCodes.PATH_SYNTAX) -> FieldFindingError:
        return FieldFindingError(
            build_field_finding(code, self._field_path, f"{message}; the path is {quote_value(self._text)}")
        )


def _is_closed(text: str, start: int) -> bool:
    """Return whether the text after `start` contains a closing bracket outside of quotes."""
    while start < len(text) and text[start] != "]":
        quoted = _QUOTED.match(text, start)
        if not quoted and text[start] in "'\"":
            return False
        start = quoted.end() if quoted else start + 1
    return start < len(text)


def _unquote(quoted: re.Match[str]) -> str:
    # Resolve escapes such as `~1` in quotes too. In quotes, "/" can be written with or without the escape.
    return _unescape(quoted[1] if quoted[1] is not None else quoted[2])


def _unescape(text: str) -> str:
    return text.replace("~1", "/").replace("~0", "~")
