"""Options of plugins: their declarations in plugin definitions, and their values in presets, Plugins and overrides.

Option values can be secrets. Therefore, messages about an option value do not quote the value.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

import re2
from pydantic import Field, PlainValidator, StrictBool, ValidationInfo

from reconciler.api.base import ApiModel, FieldIssue
from reconciler.api.field_types import LenientItem, NonEmptyText
from reconciler.krm.field_text import quote_value
from reconciler.krm.helm_paths import check_option_name
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached
from reconciler.redaction import MASK

OptionType = Literal["string", "secret", "bool", "int", "list", "map"]
OPTION_TYPES: tuple[OptionType, ...] = get_args(OptionType)
VAULT_PREFIX: Final = "vault+kvv2:///"
"""Prefix of a vault reference. A string that contains this prefix refers to a secret, but is not secret itself."""

_TYPE_NOUNS: Final[dict[OptionType, str]] = {
    "string": "a string",
    "bool": "a boolean",
    "int": "a whole number",
    "list": "a list",
    "map": "a map",
}
_PATTERN_BYTES: Final = 1 << 20
_SOURCES = ("value", "valueFrom", "expression")
_NAME_DESCRIPTION = "Name of the option. Dots separate the levels of nested values."
_NAME_INVALID, _ALIAS_CONFLICT, _REF_INCOMPLETE = "OptionNameInvalid", "AliasConflict", "SecretRefIncomplete"
_NO_SOURCE, _MULTIPLE_SOURCES, _UNSUPPORTED = "NoValueSource", "MultipleValueSources", "UnsupportedValueSource"
VALUE_CODES = frozenset({_NAME_INVALID, _REF_INCOMPLETE, _NO_SOURCE, _MULTIPLE_SOURCES, _UNSUPPORTED})
"""Names of finding codes. An error with such a code affects only the Plugins that use the option value."""


def check_type(option_type: OptionType, value: Any) -> str:
    """Return the reason why a value does not have the type of an option, e.g. "must be a list, not 1".

    Return "" if the value has the type. The reason never quotes the value of a secret option.
    """
    if _has_type(option_type, value):
        return ""
    if option_type == "secret":
        return f"must come from a secret, or be a string that contains {VAULT_PREFIX}, but is {MASK}"
    hint = "; put the value in quotes" if option_type == "string" and isinstance(value, bool | int | float) else ""
    return f"must be {_TYPE_NOUNS[option_type]}, but is {quote_value(value)}{hint}"


def check_default(option_type: OptionType, value: Any) -> str:
    """Return the reason why a value cannot be the default of an option. Return "" if the default is valid.

    The only valid default of a secret option is the empty string.
    """
    if option_type != "secret":
        return check_type(option_type, value)
    return "" if value == "" else f'must be "" as the default of a secret option, but is {MASK}'


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


def quote_option_name(name: str) -> str:
    """Return an option name in quotes for a message, e.g. "a=b" -> "a=…".

    The text after "=" is hidden, because it is a value in Helm's notation `name=value` and may be a secret.
    """
    return quote_value(name if "=" not in name else f"{name.partition('=')[0]}=…")


class PluginOption(ApiModel):
    """The declaration of an option."""

    is_open: ClassVar = True

    name: NonEmptyText = Field(description=_NAME_DESCRIPTION)
    type: OptionType = Field(description="Type of the option's values.")
    required: StrictBool = Field(False, description="Whether each Plugin must have a value for the option.")
    default: Any = Field(None, description="Default value of the option.")
    regex: str = Field("", description="RE2 regular expression that must match a part of the value.")
    display_name: Any = Field(None, description="Display name of the option.")
    description: Any = Field(None, description="Description of the option.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for an invalid name, for a default of the wrong type, and for an invalid `regex`."""
        name, option_type, default = data.get("name"), data.get("type"), data.get("default")
        if isinstance(name, str) and name and (error := check_option_name(name)):
            yield FieldIssue(f"{{path}} {quote_option_name(name)} {error}", ("name",))
        # Do not check the default if the type is invalid: the option may be a secret, and an error can contain the
        # default.
        if default is not None and option_type in OPTION_TYPES and (error := check_default(option_type, default)):
            yield FieldIssue(f"{{path}} {error}", ("default",))
        if isinstance(regex := data.get("regex"), str) and (error := check_pattern(regex)):
            yield FieldIssue(f"{{path}} {error}", ("regex",))


class SecretKeyReference(ApiModel):
    """The name of a Secret, and a key in this Secret."""

    name: str = Field("", description="Name of the Secret.")
    key: str = Field("", description="Key in the Secret.")


def _read_secret(value: Any, info: ValidationInfo) -> SecretKeyReference | str:
    return value if isinstance(value, str) else SecretKeyReference.model_validate(value, context=info.context)


class ValueFromSource(ApiModel):
    """A key of a Secret on the cluster. The reconciler does not read the Secret."""

    secret: (
        Annotated[
            SecretKeyReference | str, PlainValidator(_read_secret, json_schema_input_type=SecretKeyReference | str)
        ]
        | None
    ) = Field(None, description="The Secret that contains the value of the option.")
    key: str = Field(
        "", description="Key in the Secret. Set this field if the field `secret` contains only the name of the Secret."
    )
    ref: Any = Field(
        None,
        description="Reference to a value of another Plugin or preset. Such references are not supported.",
        json_schema_extra={"type": "null"},
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield issues: a `ref` to a Plugin or preset, a missing name or key, `key` not equal to `secret.key`."""
        secret, key = data.get("secret"), data.get("key")
        if data.get("ref") is not None:
            yield FieldIssue(
                "{path} must be omitted, because only references to secrets are supported", ("ref",), _UNSUPPORTED
            )
            return
        values = {"name": secret, "key": key}
        path: DataPath = ()
        if isinstance(secret, Mapping):
            values, path = {name: secret.get(name) for name in values}, ("secret",)
            if key is not None and key != values["key"]:
                yield FieldIssue("{path} must be omitted or equal to secret.key", ("key",), _ALIAS_CONFLICT)
        elif secret is not None and not isinstance(secret, str):
            return
        for name, value in values.items():
            if not value:
                yield FieldIssue(f"{{path}} must have a {name} that is not empty", path, _REF_INCOMPLETE)

    @property
    def reference(self) -> SecretKeyReference:
        """The reference to the Secret and the key, in the current notation."""
        if isinstance(self.secret, SecretKeyReference):
            return self.secret
        return SecretKeyReference(name=self.secret or "", key=self.key)


@dataclass(frozen=True)
class LiteralValue:
    """A literal value: any JSON value except null."""

    value: Any


@dataclass(frozen=True)
class OptionExpression:
    """An option value in the form of a text with CEL placeholders. The text is evaluated for each Plugin."""

    text: str


ValueSource = LiteralValue | SecretKeyReference | OptionExpression


class PluginOptionValue(ApiModel):
    """The value of an option. It has exactly one of value, valueFrom and expression."""

    is_confidential: ClassVar = True

    name: str = Field("", description=_NAME_DESCRIPTION)
    path: str = Field("", description="Alias of name.")
    value: Any = Field(None, description="The literal value.")
    value_from: ValueFromSource | None = None
    expression: str | None = Field(None, description="A CEL expression that is evaluated for each cluster.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for an invalid name. Yield an issue unless exactly one of the value fields is set.

        The value fields are `value`, `valueFrom` and `expression`.
        """
        name, path = data.get("name"), data.get("path")
        if not isinstance(name, str | None) or not isinstance(path, str | None):
            return
        if name and path and name != path:
            text = f"{{path}} must be omitted or equal to the name {quote_option_name(name)}"
            yield FieldIssue(text, ("path",), _ALIAS_CONFLICT)
        option_name = name or path or ""
        if not option_name:
            yield FieldIssue("{path} must be a string that is not empty", ("name",), _NAME_INVALID)
        elif error := check_option_name(option_name):
            field = "path" if name is None else "name"
            yield FieldIssue(f"{{path}} {quote_option_name(option_name)} {error}", (field,), _NAME_INVALID)
        sources = [source for source in _SOURCES if source in data]
        if not sources:
            subject = f" for the option {quote_option_name(option_name)}" if option_name else ""
            text = f"{{path}} must have value, valueFrom or expression{subject}; null is not a value"
            yield FieldIssue(text, code=_NO_SOURCE)
        elif len(sources) > 1:
            found = f"{', '.join(sources[:-1])} and {sources[-1]}"
            text = f"{{path}} must set the option {quote_option_name(option_name)} with only one field, but has {found}"
            yield FieldIssue(text, code=_MULTIPLE_SOURCES)

    @property
    def option_name(self) -> str:
        """The name of the option, which can also be in the field `path`."""
        return self.name or self.path

    @property
    def source(self) -> ValueSource:
        """The literal value, the reference to a Secret, or the expression."""
        if self.value_from:
            return self.value_from.reference
        return LiteralValue(self.value) if self.expression is None else OptionExpression(self.expression)


class OpenValueFromSource(ValueFromSource):
    """A key of a Secret on the cluster. The reconciler does not read the Secret."""

    is_open: ClassVar = True


class OpenPluginOptionValue(PluginOptionValue):
    """The value of an option of a Plugin. Additional fields are allowed."""

    is_open: ClassVar = True

    value_from: OpenValueFromSource | None = None


PluginOptionValues = tuple[Annotated[PluginOptionValue | None, LenientItem(PluginOptionValue)], ...]
OpenPluginOptionValues = tuple[Annotated[PluginOptionValue | None, LenientItem(OpenPluginOptionValue)], ...]
