"""Option values and the types that plugin definitions declare."""

from __future__ import annotations

import math
from typing import Any, Final

import re2

from reconciler.controllers.plugin_presets.model import OptionType
from reconciler.controllers.validation import quote_value
from reconciler.memory import cached
from reconciler.redaction import MASK

VAULT_PREFIX: Final = "vault+kvv2:///"
"""Prefix of a vault reference. A string with this prefix is a reference and does not contain the secret."""

_TYPE_NOUNS: Final[dict[OptionType, str]] = {
    "string": "a string",
    "bool": "a boolean",
    "int": "a whole number",
    "list": "a list",
    "map": "a map",
}
_PATTERN_BYTES: Final = 1 << 20


def check_type(option_type: OptionType, value: Any) -> str:
    """Return why a value does not have an option's type, or "".

    The text completes a sentence that starts with the option. It never quotes the value of a secret option.
    """
    if _has_type(option_type, value):
        return ""
    if option_type == "secret":
        return f"must come from a secret, or be a string with {VAULT_PREFIX}, not {MASK}"
    hint = ": quote it" if option_type == "string" and isinstance(value, bool | int | float) else ""
    return f"must be {_TYPE_NOUNS[option_type]}, not {quote_value(value)}{hint}"


def check_default(option_type: OptionType, value: Any) -> str:
    """Return why a value cannot be a default, or "". The only default of a secret option is the empty string."""
    if option_type != "secret":
        return check_type(option_type, value)
    return "" if value == "" else f'must be "" as the default of a secret option, not {MASK}'


def check_pattern(pattern: str) -> str:
    """Return why a text is not a regular expression of RE2, or ""."""
    compiled = _compile(pattern)
    return compiled if isinstance(compiled, str) else ""


def check_regex(pattern: str, value: Any) -> str:
    """Return why a string does not match a definition's pattern, or "". The pattern may match any part of it.

    Values that are not strings and invalid patterns return "", because they have their own errors. Vault references
    return "", because their value is unknown, and values of secret options must not be quoted.
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
    # JSON has only one number type: 1.0 and 1e3 are integers.
    if isinstance(value, float):
        return math.isfinite(value) and value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


@cached(1_024)
def _compile(pattern: str) -> Any:
    """Return the compiled pattern, or the error message."""
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
    # JSON escapes can produce lone surrogates. RE2 accepts them as characters.
    return text.encode("utf-8", "surrogatepass")
