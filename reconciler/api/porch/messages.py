"""Message templates of the kinds of Porch, and values in the notation of messages.

An error that Porch reports too has the same message as in Porch.
"""

import json
from collections.abc import Mapping

from reconciler.api.messages import MessageTemplates

PORCH_TEMPLATES = MessageTemplates(
    {
        "api_version": "unsupported {kind} apiVersion {found}; use {versions}",
        "missing": "missing required field {path}",
        "string_too_short": "missing required field {path}",
        "unknown_field": 'unknown field "{path}" (allowed: {allowed}{suggestion})',
        "literal_error": "{path} can only be one of {allowed}{found}{suggestion}",
    },
    {
        ("missing", "name"): "{path} must not be empty",
        ("string_too_short", "name"): "{path} must not be empty",
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
        ("missing", "name"): "{path} cannot be empty",
        ("string_too_short", "name"): "{path} cannot be empty",
        ("missing", "apiVersion"): "{lower_parent}.{name} cannot be empty",
        ("missing", "kind"): "{lower_parent}.{name} cannot be empty",
        ("string_too_short", "apiVersion"): "{lower_parent}.{name} cannot be empty",
        ("string_too_short", "kind"): "{lower_parent}.{name} cannot be empty",
        ("too_short", "targets"): "must specify at least one item in {path}",
        ("missing", "targets"): "must specify at least one item in {path}",
        ("too_short", "upstreams"): "must specify at least one item in {path}",
        ("missing", "upstreams"): "must specify at least one item in {path}",
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
