"""Writing one scalar so that every reader takes it for what it is.

A string is left plain only when YAML 1.1, YAML 1.2 and Go all read that text as a string; what is doubtful gets double
quotes, as kubectl and kpt write it.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from reconciler.caching import cached
from reconciler.krm.yaml.error import YamlError

# libyaml gives up on a key without `?` after 1,024 characters
LONGEST_SIMPLE_KEY = 1_000

_WORD = re.compile(r"(?:y|n|yes|no|on|off|true|false|null|~|<<|=|[-+]?\.inf|\.nan|)\Z", re.IGNORECASE)
_NUMBER = re.compile(
    r"""[-+]?(?:
        0[xX][0-9a-fA-F_]* | 0[oO][0-7_]* | 0[bB][01_]*
      | [0-9][0-9_]*(?::[0-9]+)+(?:\.[0-9_]*)?          # base 60
      | (?=[.0-9])[0-9_]*\.?[0-9_]*(?:[eE][-+]?[0-9_]*)?
    )\Z""",
    re.VERBOSE,
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:\Z|[Tt ])")
# may not begin a plain scalar; the second row may when no blank follows
_PLAIN_START = re.compile(r"""(?:[^\s,\[\]{}#&*!|>'"%@`?:-]|[?:-][^\s,\[\]{}])""")
_VISIBLE = "\\x20-\\x7e\\xa0-\\u2027\\u202a-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd\\U00010000-\\U0010ffff"
_NOT_PLAIN = re.compile(rf":(?=\s|\Z)|\s#|\s\Z|[^{_VISIBLE}]")
_NOT_PLAIN_IN_FLOW = re.compile(r"[,\[\]{}:?]|\A-")
_MARKER = re.compile(r"(?:---|\.\.\.)")
# in single quotes and block scalars: anything printable on one line, and tabs
_PRINTABLE = re.compile(rf"[\t{_VISIBLE}]*\Z")
_ESCAPED = re.compile('[\x00-\x1f"\\\\\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]')
# keys, kinds and names come again in every document
_REMEMBERED_TEXTS = 8_192
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def is_ambiguous(text: str) -> bool:
    """Tell whether some reader takes the plain scalar `text` for something else than a string."""
    return bool(_WORD.match(text) or _NUMBER.match(text) or _DATE.match(text))


@cached(_REMEMBERED_TEXTS)
def is_plain(text: str, *, flow: bool) -> bool:
    """Tell whether `text` can stand without quotes and be read as that very string."""
    if not _PLAIN_START.match(text) or _NOT_PLAIN.search(text) or is_ambiguous(text):
        return False
    return not (_MARKER.match(text) or (flow and _NOT_PLAIN_IN_FLOW.search(text)))


def double_quoted(text: str) -> str:
    """Return `text` in double quotes.

    Raises YamlError (YamlValue) for lone surrogates, which no YAML can hold.
    """
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if "\ud800" <= character <= "\udfff":
        raise YamlError("YamlValue", f"a string must be Unicode text, not the lone surrogate U+{ord(character):04X}")
    number = ord(character)
    return _ESCAPES.get(character) or (f"\\x{number:02X}" if number < 0x100 else f"\\u{number:04X}")


def inline_text(value: Any, *, flow: bool, style: str = "") -> str:
    """Return a scalar on one line, in `style` ("", "'", '"') where the value allows it.

    Raises YamlError (YamlValue) for what YAML of this profile has no scalar for.
    """
    if not isinstance(value, str):
        return other_text(value)
    if style == "'" and _PRINTABLE.match(value):
        return "'" + value.replace("'", "''") + "'"
    return value if style != '"' and is_plain(value, flow=flow) else double_quoted(value)


def other_text(value: Any) -> str:
    """Return a null, a boolean or a number as every reader takes it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return int.__repr__(value)
        case float():
            return _float_text(value)
        case _:
            raise YamlError("YamlValue", f"{type(value).__name__} has no place in YAML")


def _float_text(value: float) -> str:
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    mantissa, exponent, power = repr(float(value)).partition("e")
    # YAML 1.1 wants a point in every float
    return mantissa + (".0" if "." not in mantissa else "") + exponent + power


def block_scalar(text: str, style: str = "|") -> tuple[str, list[str]] | None:
    """Return (header, lines without indentation) of `text` as a block scalar.

    None where that would not be read back for sure, or be hard to see: odd characters, blanks at the end of a line or
    before the first one, nothing but line ends. A folded scalar (">") becomes literal when folding has rules for it.
    """
    body = text.rstrip("\n")
    lines = body.split("\n")
    if not body or lines[0][:1] in (" ", "\t", "") or not all(map(_fits, lines)):
        return None
    missing = len(text) - len(body)
    chomp = "-" if not missing else "" if missing == 1 else "+"
    if style == ">" and all(line and line[0] not in " \t" for line in lines):
        # a line end is folded away unless an empty line follows
        lines = [part for line in lines for part in (line, "")][:-1]
    else:
        style = "|"
    return style + chomp, lines + [""] * (missing - 1)


def _fits(line: str) -> bool:
    return bool(_PRINTABLE.match(line)) and line == line.rstrip(" \t")


def json_text(value: Any) -> str:
    """Return `value` as JSON on one line, for files that are JSON and must stay it.

    Raises YamlError (YamlValue) for what JSON cannot hold.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise YamlError("YamlValue", f"the value has no place in JSON: {error}") from error
