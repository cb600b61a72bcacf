"""Conversion of pydantic errors about fields to messages with the field path, the value and the allowed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reconciler.krm.field_text import describe_choice, describe_value, format_path, suggest_name
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

ISSUE = "issue"
"""The pydantic error type of a violated rule of a model. The error context contains message and finding code."""
UNKNOWN_FIELD = "unknown_field"
"""The pydantic error type of an unknown field. The error context contains the allowed field names."""
_TEMPLATES = {
    "api_version": "apiVersion must be {choice}, but is {value}",
    "missing": "{path} must be set",
    "string_too_short": "{path} must be a string that is not empty",
    "string_type": "{path} must be a string{found}{quotes_hint}",
    "bool_type": "{path} must be true or false{found}",
    "int_type": "{path} must be a whole number{found}",
    "greater_than_equal": "{path} must be at least {limit}{found}",
    "less_than_equal": "{path} must be at most {limit}{found}",
    "model_type": "{path} must be a mapping{found}",
    "dict_type": "{path} must be a mapping{found}",
    "tuple_type": "{path} must be a list{found}",
    "literal_error": "{path} must be {choice}{found}{suggestion}",
    UNKNOWN_FIELD: "{path} is an unknown field; allowed fields: {allowed}{suggestion}",
    "hidden_unknown_field": "{path} contains an unknown field; allowed fields: {allowed}",
    "too_short": "{path} must not be empty",
}


@dataclass(frozen=True)
class MessageTemplates:
    """The message templates of a family of kinds.

    A template can contain `{path}`, `{parent}`, `{lower_parent}`, `{found}`, `{value}`, `{allowed}`, `{choice}`,
    `{name}`, `{limit}`, `{quotes_hint}` and `{suggestion}`. `{parent}` is the path of the mapping that contains the
    field. `{found}` is ", but is " and the value. `{choice}` is the quoted allowed values.

    Attributes:
        by_type: Templates by pydantic's error type. They replace the default templates.
        by_field: Templates by error type and field name. The name of a list item is e.g. "targets[]".
    """

    by_type: Mapping[str, str] = field(default_factory=dict)
    by_field: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def find(self, error_type: str, name: str) -> str:
        """Return the template of an error about the field `name`."""
        default = _TEMPLATES.get(error_type, "{path} is invalid: {error}")
        return self.by_field.get((error_type, name)) or self.by_type.get(error_type, default)


DEFAULT_TEMPLATES = MessageTemplates()


def format_error_message(
    error: ErrorDetails, path: DataPath, templates: MessageTemplates, *, is_hidden: bool = False
) -> str:
    """Return the message of one error. If `is_hidden` is true, the message does not quote the invalid value."""
    context = error.get("ctx", {})
    text_path = format_path(path) or "the object"
    if "text" in context:
        return (
            templates.by_type.get(error["type"], str(context["text"]))
            .replace("{path}", text_path)
            .replace("{parent}", format_path(path[:-1]))
        )
    name = _get_field_name(path)
    allowed = _list_allowed(error["type"], context)
    suggestion = suggest_name(name, allowed) if error["type"] == UNKNOWN_FIELD else ""
    if error["type"] == "literal_error" and isinstance(error["input"], str) and not is_hidden:
        suggestion = suggest_name(error["input"], allowed)
    suggestion = suggestion or context.get("hint", "")
    values = {
        "path": text_path,
        "parent": format_path(path[:-1]) or "the object",
        "lower_parent": format_path(path[:-1]).lower(),
        "name": name,
        "found": "" if is_hidden else f", but is {describe_value(error['input'])}",
        # Suggest no quotes for a list or mapping, because only a scalar can be a string without quotes.
        "quotes_hint": "" if isinstance(error["input"], list | Mapping) else "; put the value in quotes",
        "value": "" if is_hidden else describe_value(error["input"]),
        "allowed": ", ".join(allowed),
        "choice": describe_choice(allowed),
        "suggestion": suggestion,
        "limit": context.get("ge", context.get("le", context.get("max_length", ""))),
        "error": error["msg"],
    }
    return templates.find(error["type"], name).format_map(values)


def _get_field_name(path: DataPath) -> str:
    """Return the last field name in a path. For a list item, add "[]", e.g. "targets[]". Return "" for ()."""
    if not path:
        return ""
    return f"{path[-2]}[]" if isinstance(path[-1], int) and len(path) > 1 else str(path[-1])


def _list_allowed(error_type: str, context: Mapping[str, Any]) -> Sequence[str]:
    if error_type == "literal_error":
        # pydantic lists the values as "'a', 'b' or 'c'".
        return [part.strip("'") for part in str(context["expected"]).replace(" or ", ", ").split(", ")]
    return [*context.get("allowed", ())]
