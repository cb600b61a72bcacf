"""Message templates of the kinds of Porch, and values in the notation of messages.

An error that Porch reports too has the same message as in Porch.
"""

import json
from collections.abc import Mapping

from reconciler.api.messages import MessageTemplates

_NOT_SET = ("missing", "string_too_short")
_EMPTY_LIST = ("missing", "too_short")


def _repeat(template: str, error_types: tuple[str, ...], *names: str) -> dict[tuple[str, str], str]:
    """Map each pair of an error type and a field name to the same message template."""
    return {(error_type, name): template for error_type in error_types for name in names}


PORCH_TEMPLATES = MessageTemplates(
    {
        "api_version": "unsupported {kind} apiVersion {found}; use {versions}",
        "missing": "missing required field {path}",
        "string_too_short": "missing required field {path}",
        "unknown_field": 'unknown field "{path}" (allowed: {allowed}{suggestion})',
        "literal_error": "{path} must be {choice}{found}{suggestion}",
    },
    {
        **_repeat("{path} must not be empty", _NOT_SET, "name"),
        ("literal_error", "adoptionPolicy"): '{path} field can only be "adoptNone" or "adoptExisting"',
        ("literal_error", "deletionPolicy"): '{path} can only be "orphan" or "delete"',
    },
)

SET_TEMPLATES = MessageTemplates(
    {
        **PORCH_TEMPLATES.by_type,
        "missing": "{path} is a required field",
        "string_too_short": "{path} is a required field",
        "no_reference": "either {path}.revision or {path}.workspaceName or {path}.tag must be specified",
    },
    {
        ("literal_error", "adoptionPolicy"): '{path} can only be "adoptNone" or "adoptExisting"',
        ("literal_error", "deletionPolicy"): '{path} can only be "orphan" or "delete"',
        **_repeat("{path} cannot be empty", _NOT_SET, "name"),
        **_repeat("{lower_parent}.{name} cannot be empty", _NOT_SET, "apiVersion", "kind"),
        **_repeat("must specify at least one item in {path}", _EMPTY_LIST, "targets", "upstreams"),
        ("too_short", "repositories"): "{path} must not be an empty list if specified",
    },
)


def format_compact_json(value: object) -> str:
    """Return a value as compact JSON with sorted keys, as Porch quotes values."""
    return json.dumps(
        _convert_keys_to_text(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
    )


def _convert_keys_to_text(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _convert_keys_to_text(item) for key, item in value.items()}
    return [_convert_keys_to_text(item) for item in value] if isinstance(value, list | tuple) else value
