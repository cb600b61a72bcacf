"""Checks of option values against the types and patterns that plugin definitions declare."""

from __future__ import annotations

import math
from typing import Any, Final

import re2

from reconciler.controllers.plugin_presets.model import OptionType
from reconciler.krm.field_text import quote_value
from reconciler.memory import cached
from reconciler.redaction import MASK

VAULT_PREFIX: Final = "vault+kvv2:///"
"""Prefix of a vault reference. A string that contains the prefix refers to a secret, and is not the secret itself."""

_TYPE_NOUNS: Final[dict[OptionType, str]] = {
    "string": "a string",
    "bool": "a boolean",
    "int": "a whole number",
    "list": "a list",
    "map": "a map",
}
_PATTERN_BYTES: Final = 1 << 20


def check_type(option_type: OptionType, value: Any) -> str:
    """Return the reason why a value does not have the type of an option, e.g. "must be a list, not 1".

    Return "" if the value has the type. The reason never quotes the value of a secret option.
    """
    if _has_type(option_type, value):
        return ""
    if option_type == "secret":
        return f"must come from a secret, or be a string that contains {VAULT_PREFIX}, not {MASK}"
    hint = ": quote it" if option_type == "string" and isinstance(value, bool | int | float) else ""
    return f"must be {_TYPE_NOUNS[option_type]}, not {quote_value(value)}{hint}"


def check_default(option_type: OptionType, value: Any) -> str:
    """Return the reason why a value cannot be the default of an option. Return "" if the default is valid.

    The only valid default of a secret option is the empty string.
    """
    if option_type != "secret":
        return check_type(option_type, value)
    return "" if value == "" else f'must be "" as the default of a secret option, not {MASK}'


def check_pattern(pattern: str) -> str:
    """Return the reason why a text is not a regular expression of RE2. Return "" if the text is valid."""
    compiled = _compile(pattern)
    return compiled if isinstance(compiled, str) else ""


def check_regex(pattern: str, value: Any) -> str:
    """Return an error if no part of a string matches a pattern. Return "" if a part matches.

    Return "" also for a value that is not a string and for an invalid pattern, because other checks report these
    errors. Return "" for a vault reference, because the referenced value is unknown.
    """
    compiled = _compile(pattern)
    if (
        not isinstance(value, str)
        or VAULT_PREFIX in value
        or isinstance(compiled, str)
        or compiled.search(_encode(value))
    ):
        return ""
    return f"must match {quote_value(pattern)}, and {quote_value(value)} does not"


def _has_type(option_type: OptionType, value: Any) -> bool:
    match option_type:
        case "string":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "int":
            return _is_integer(value)
        case "list":
            return isinstance(value, list)
        case "map":
            return isinstance(value, dict)
        case "secret":
            return isinstance(value, str) and VAULT_PREFIX in value


def _is_integer(value: Any) -> bool:
    # Accept 1.0 and 1e3 as integers, because JSON has only one number type.
    if isinstance(value, float):
        return math.isfinite(value) and value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


@cached(1_024)
def _compile(pattern: str) -> Any:
    """Return the compiled pattern. Return an error message if the pattern is invalid."""
    options = re2.Options()
    options.max_mem = _PATTERN_BYTES
    options.log_errors = False
    try:
        return re2.compile(_encode(pattern), options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        detail = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        return f"is not a valid RE2 regular expression: {detail}"


def _encode(text: str) -> bytes:
    # Encode lone surrogates too, because JSON escapes can produce them and RE2 accepts them as characters.
    return text.encode("utf-8", "surrogatepass")
