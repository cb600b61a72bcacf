"""Values and the types that plugin definitions want them to have (greenhouse 2.4, 6, 7.2)."""

from __future__ import annotations

import math
from typing import Any, Final

import re2

from reconciler.caching import cached
from reconciler.krm.secrets import MASK
from reconciler.rules.fields import shown
from reconciler.rules.presets.model import OptionType

VAULT: Final = "vault+kvv2:///"
"""What a string for a secret option must contain: then it is a reference that a vault resolves, and no secret."""

_WANTED: Final[dict[OptionType, str]] = {
    "string": "a string",
    "bool": "a boolean",
    "int": "a whole number",
    "list": "a list",
    "map": "a map",
}
_PATTERN_BYTES: Final = 1 << 20


def type_fault(wanted: OptionType, value: Any) -> str:
    """Return why a value cannot be given to an option of this type, "" when it can (greenhouse 6, 7.2).

    The text completes a sentence on the option; the value given to a secret option is not in it.
    """
    if _has_type(wanted, value):
        return ""
    if wanted == "secret":
        return f"must come from a secret, or be a string with {VAULT}, not {MASK}"
    hint = ": quote it" if wanted == "string" and isinstance(value, bool | int | float) else ""
    return f"must be {_WANTED[wanted]}, not {shown(value)}{hint}"


def default_fault(wanted: OptionType, value: Any) -> str:
    """Return why a definition cannot have a value as a default, "" when it can: of secrets only the empty string."""
    if wanted != "secret":
        return type_fault(wanted, value)
    return "" if value == "" else f'must be "" as the default of a secret option, not {MASK}'


def pattern_fault(pattern: str) -> str:
    """Return why a text is no regular expression of RE2, "" when it is one."""
    compiled = _compiled(pattern)
    return compiled if isinstance(compiled, str) else ""


def regex_fault(pattern: str, value: Any) -> str:
    """Return why a string does not match a definition's pattern, which may match anywhere in it, else "".

    "" also for values that are no strings and patterns that are none, which have faults of their own, and for what a
    vault resolves: nobody knows here what it will be, and what is given to secret options is not quoted.
    """
    compiled = _compiled(pattern)
    if not isinstance(value, str) or VAULT in value or isinstance(compiled, str) or compiled.search(_utf8(value)):
        return ""
    return f"must match {shown(pattern)}, and {shown(value)} does not"


def _has_type(wanted: OptionType, value: Any) -> bool:
    match wanted:
        case "string":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "int":
            return _is_whole(value)
        case "list":
            return isinstance(value, list)
        case "map":
            return isinstance(value, dict)
        case "secret":
            return isinstance(value, str) and VAULT in value


def _is_whole(value: Any) -> bool:
    # JSON has one kind of number: 1.0 and 1e3 are whole
    if isinstance(value, float):
        return math.isfinite(value) and value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


@cached(1_024)
def _compiled(pattern: str) -> Any:
    """Return the compiled pattern, or why there is none."""
    options = re2.Options()
    options.max_mem = _PATTERN_BYTES
    options.log_errors = False
    try:
        return re2.compile(_utf8(pattern), options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        detail = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        return f"is no RE2 regular expression: {detail}"


def _utf8(text: str) -> bytes:
    # lone surrogates can come out of JSON escapes; RE2 takes them for characters
    return text.encode("utf-8", "surrogatepass")
