"""Replaces function calls in a chart if their results change with each render, such as `now` and `randAlphaNum`.

Two copies of the chart with different placeholders (variants `a` and `b`) show which fields of the output depend on
such calls. A third copy (variant `fixed`) has fixed values that depend only on the inputs of the render.

A placeholder contains no double quotes, because the text of a template can also be a string in a values file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, Final, Literal

from reconciler.catalog.files import FileTree
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.json_text import format_canonical_json
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.packages.charts.template_calls import TemplateCall, find_calls
from reconciler.packages.source_kinds import CHART_FILE

Variant = Literal["a", "b", "fixed"]

CERTIFICATE_FUNCTIONS: Final = frozenset(
    {"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey"}
)
KEY_FUNCTIONS: Final = CERTIFICATE_FUNCTIONS | {"genPrivateKey", "htpasswd", "bcrypt", "encryptAES"}
"""Functions whose results are keys, certificates or encrypted values. They never get fixed values."""
MAP_ORDER_FUNCTIONS: Final = frozenset({"keys", "values"})

_ALPHABETS: Final = {
    "randAlphaNum": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
    "randAlpha": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    "randNumeric": "0123456789",
    "randAscii": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
    "randBytes": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
}
_FUNCTIONS: Final = (
    KEY_FUNCTIONS | MAP_ORDER_FUNCTIONS | {*_ALPHABETS, "now", "randInt", "shuffle", "uuidv4", "ago", "lookup"}
)
_WORD = re.compile(rf"\b(?:{'|'.join(sorted(_FUNCTIONS))})\b")
_WORD_IN_BYTES = re.compile(_WORD.pattern.encode())
# Files that helm reads as data. The other files can contain templates that the function `tpl` evaluates.
_DATA_FILES = frozenset({CHART_FILE, "Chart.lock", "requirements.yaml", "requirements.lock", "values.schema.json"})
_DATES: dict[Variant, str] = {"a": "2001-02-03", "b": "2011-12-13", "fixed": "2000-01-01"}
# Placeholders for numbers and for orders cannot contain a marker text. Instead, they use an unusual notation, e.g. two
# spaces around "|", so that `restore` can distinguish them from the texts of the chart.
_SORT, _REVERSE, _ENCODE, _TO_INTEGER = "  |  sortAlpha", "  |  reverse", "  |  b64enc", "  |  int  |  int"
_LOWEST, _HIGHEST = "min 9007199254740993", "max -9007199254740993"
# The maximum length of the fixed value for a call such as `randAlphaNum`. The placeholder contains a text of this
# length, and truncates it to the length that the call requests.
_FIXED_CHARACTERS = 1_024
_MARKER = re.compile(r"[ab]qz([0-9]{4,})zq", re.IGNORECASE)
_VALUE = r"print `[^`]*`|printf `[^`]*` `[^`]*`|dict `Cert` `[^`]*` `Key` `[^`]*`|\(toDate `[^`]*` `[^`]*`\)"
_ARGUMENT = rf"\( (?:{_VALUE}|keys  \|  sortAlpha(?:  \|  reverse)?) \)"
_PLACEHOLDER = re.compile(rf"{_ARGUMENT}|{_VALUE}|{_LOWEST}|{_HIGHEST}|  \|  \w+")
# Limit the calls and the searched text, because a chart is untrusted input. Usual charts stay far below these limits.
_MAX_CALLS = 10_000
_MAX_SEARCHED_CHARACTERS = 32 * 1024 * 1024


@dataclass(frozen=True)
class CallPlace:
    """A call in a file of the chart or in a value of the request.

    Attributes:
        function: The name of the function.
        file: Path of the file relative to the folder of the chart. "values" for the values of the request.
        line: Line number in the file from 1, or 0 in the values of the request.
        pointer: JSON pointer of the value in the values of the request.
    """

    function: str
    file: str
    line: int
    pointer: str = ""

    def __str__(self) -> str:
        """Return the function and its place, e.g. "now (templates/a.yaml:3)"."""
        return f"{self.function} ({self.file}{self.pointer}{f':{self.line}' if self.line else ''})"


@dataclass(frozen=True)
class _Call:
    """A call that can be replaced by a placeholder. `number` identifies the call in the chart."""

    number: int
    place: CallPlace
    call: TemplateCall


@dataclass(frozen=True)
class ChartCalls:
    """Calls of functions whose results can change with each render, in a chart and in the values of a request.

    Attributes:
        by_file: Maps file paths to the calls in these files. These calls can be replaced by placeholders.
        by_value: Maps the paths of values to the calls in these values. These calls can be replaced by placeholders.
        other_places: The calls that cannot be replaced by placeholders.
        lookups: The calls of `lookup`.
    """

    by_file: dict[str, list[_Call]] = field(default_factory=dict)
    by_value: dict[DataPath, list[_Call]] = field(default_factory=dict)
    other_places: list[CallPlace] = field(default_factory=list)
    lookups: list[CallPlace] = field(default_factory=list)

    @property
    def places(self) -> dict[int, CallPlace]:
        """Maps the number of each call that a placeholder can replace to the location of the call."""
        groups = (*self.by_file.values(), *self.by_value.values())
        return {entry.number: entry.place for calls in groups for entry in calls}


@dataclass(frozen=True)
class InstrumentedChart:
    """A copy of a chart and of the values of its request, with placeholders instead of function calls.

    `original_texts` maps each placeholder to the text that it replaces.
    """

    files: FileTree
    values: str
    original_texts: dict[str, str]

    def restore(self, text: str) -> str:
        """Return a text in which placeholders that helm did not evaluate are replaced with the original text."""
        if not self.original_texts:
            return text
        return _PLACEHOLDER.sub(lambda match: self.original_texts.get(match[0], match[0]), text)


class TooManyCallsError(Exception):
    """The search for function calls in a chart exceeds a limit. The message contains the limit."""


def find_chart_calls(chart: FileTree, values: str) -> ChartCalls:
    """Return the function calls in the files of a chart and in its string values.

    String values can contain calls, because the function `tpl` can evaluate a string as a template.

    Raises:
        TooManyCallsError: A limit is exceeded.
    """
    search = _CallSearch()
    for path, text in _iterate_texts(chart):
        search.search(text, CallPlace("", path, 1), search.calls.by_file.setdefault(path, []))
    for value_path, text in _iterate_strings(json.loads(values), ()) if _WORD.search(values) else ():
        place = CallPlace("", "values", 0, format_pointer(value_path))
        search.search(text, place, search.calls.by_value.setdefault(value_path, []))
    return search.calls


class _CallSearch:
    """Collects the calls of a chart, with limits for the number of calls and for the size of the searched text."""

    def __init__(self) -> None:
        self.calls = ChartCalls()
        self._count = 0
        self._characters = 0

    def search(self, text: str, start: CallPlace, entries: list[_Call]) -> None:
        """Find the calls in a text. Add calls that can be replaced to `entries`, and all other calls to `calls`.

        `start` is the location of the first line of the text.
        """
        self._characters += len(text)
        if self._characters > _MAX_SEARCHED_CHARACTERS:
            raise TooManyCallsError(f"more than {_MAX_SEARCHED_CHARACTERS} characters in its templates and values")
        line, position = start.line, 0
        for call in find_calls(text, _FUNCTIONS):
            self._count += 1
            if self._count > _MAX_CALLS:
                raise TooManyCallsError(f"more than {_MAX_CALLS} calls of functions such as now, randAlphaNum and keys")
            line += text.count("\n", position, call.start) if start.line else 0
            position = call.start
            place = CallPlace(call.function, start.file, line, start.pointer)
            if call.function == "lookup":
                self.calls.lookups.append(place)
            elif call.is_quoted or call.function == "values":
                self.calls.other_places.append(place)
            else:
                entries.append(_Call(self._count, place, call))


def instrument(chart: FileTree, values: str, calls: ChartCalls, variant: Variant, identity: str) -> InstrumentedChart:
    """Return a copy of the chart and its values, with a placeholder instead of each call in `calls`.

    Args:
        calls: The calls of functions whose results change with each render, for example `now`.
        variant: The kind of the placeholders. The kind "fixed" is used for outputs that are written to a draft.
        identity: The identity of the package. The fixed placeholders depend on it.
    """
    originals: dict[str, str] = {}

    def replace_calls(text: str, entries: list[_Call]) -> str:
        return _replace_calls(text, entries, variant, identity, originals)

    files = {
        path: replace_calls(chart[path].data.decode(), entries).encode() for path, entries in calls.by_file.items()
    }
    data: Any = json.loads(values) if any(calls.by_value.values()) else {}
    for path, entries in calls.by_value.items() if data else ():
        parent = data
        for segment in path[:-1]:
            parent = parent[segment]
        parent[path[-1]] = replace_calls(parent[path[-1]], entries)
    new_values = format_canonical_json(data) if data else values
    return InstrumentedChart(chart.with_files(files), new_values, originals)


def find_markers(text: str) -> frozenset[int]:
    """Return the numbers of the calls whose placeholders are in a text."""
    return frozenset(int(number) for number in _MARKER.findall(text))


def _iterate_texts(chart: FileTree) -> Iterator[tuple[str, str]]:
    for path, file in chart.items():
        name = path.rpartition("/")[2]
        if name in _DATA_FILES or name.endswith(".md") or not _WORD_IN_BYTES.search(file.data):
            continue
        try:
            yield path, file.data.decode()
        except UnicodeDecodeError:
            continue  # The file is not text, so that it contains no template.


def _iterate_strings(value: Any, path: DataPath) -> Iterator[tuple[DataPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from _iterate_strings(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _iterate_strings(child, (*path, index))


def _replace_calls(text: str, entries: list[_Call], variant: Variant, identity: str, originals: dict[str, str]) -> str:
    edits: list[tuple[int, int, str]] = []
    for entry in entries:
        call = entry.call
        replacement, suffix = _build_placeholder(entry, variant, identity)
        if call.is_argument:
            # Add spaces to distinguish these parentheses from those of the chart.
            replacement, suffix = f"( {replacement}{suffix} )", ""
        edits += [(call.start, call.end, replacement), (call.command_end, call.command_end, suffix)]
        originals[replacement] = call.function
        originals |= dict.fromkeys(re.findall(r"  \|  \w+", suffix), "")
    parts: list[str] = []
    position = 0
    for start, end, replacement in sorted(edits):
        parts += (text[position:start], replacement)
        position = end
    return "".join(parts) + text[position:]


def _build_placeholder(entry: _Call, variant: Variant, identity: str) -> tuple[str, str]:
    """Return the text that replaces the name of the function, and the text to insert after its last argument."""
    function = entry.call.function
    match function:
        case "now":
            return f"(toDate `2006-01-02` `{_DATES[variant]}`)", ""
        case "keys":
            return function, _SORT if variant != "b" else _SORT + _REVERSE
        case "randInt":
            return _HIGHEST if variant == "b" else _LOWEST, _TO_INTEGER
        case _ if variant == "fixed":
            return _build_fixed_value(entry, identity)
    marker = f"{variant}qz{entry.number:04d}zq"
    if function in CERTIFICATE_FUNCTIONS:
        return f"dict `Cert` `{marker}` `Key` `{marker}`", ""
    return f"print `{marker}`", ""


def _build_fixed_value(entry: _Call, identity: str) -> tuple[str, str]:
    place = entry.place
    match place.function:
        case "uuidv4":
            digits = _compute_digits(place, identity, "0123456789abcdef", 32)
            version_and_variant = f"4{digits[13:16]}-8{digits[17:20]}"
            return f"print `{digits[:8]}-{digits[8:12]}-{version_and_variant}-{digits[20:]}`", ""
        case "shuffle":
            return "print ``", ""
        case "ago":
            return "printf `%[1]s` `0s`", ""
        case function if function in _ALPHABETS:
            text = _compute_digits(place, identity, _ALPHABETS[function], _FIXED_CHARACTERS)
            # Truncate the text to the requested length. The template passes the length as an argument, e.g.
            # `randAlpha 5`, or through a pipe, e.g. `5 | randAlpha`.
            return f"printf `%.[2]*[1]s` `{text}`", _ENCODE if function == "randBytes" else ""
        case function:
            return function, ""


def _compute_digits(place: CallPlace, identity: str, alphabet: str, length: int) -> str:
    """Return a text of `length` characters from `alphabet`. It depends only on the package and the call."""
    seed = json.dumps([identity, place.file, place.pointer, place.line, place.function])
    blocks = (hashlib.sha256(f"{seed}{index}".encode()).digest() for index in range(length // 32 + 1))
    return "".join(alphabet[byte % len(alphabet)] for block in blocks for byte in block)[:length]
