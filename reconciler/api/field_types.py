"""Types of fields that several kinds use: texts, names, labels, durations, and label selectors."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, ValidationError, core_schema

from reconciler.api.base import ApiModel, FieldIssue, ReadContext, issue
from reconciler.api.fast_validation import ErrorHandling
from reconciler.krm.field_text import quote_value
from reconciler.krm.names import (
    validate_annotation_key,
    validate_label_key,
    validate_label_value,
    validate_package_path,
)
from reconciler.krm.selectors import LabelRequirement, LabelSelector
from reconciler.krm.times import parse_duration_seconds

NonEmptyText = Annotated[str, Field(min_length=1)]
FreeMapping = dict[Any, Any]
"""A mapping that the model does not check."""


EXTENSION_PREFIX = "x-"


class ExtensibleModel(ApiModel):
    """A mapping in which users can add fields whose names begin with `x-`."""

    unknown_field_code: ClassVar = "UnknownField"
    extension_prefix: ClassVar = EXTENSION_PREFIX


def check_text(validate: Callable[[str], str | None], text: str, code: str = "") -> AfterValidator:
    """Return a validator for a string that is not empty.

    Args:
        validate: Returns the reason why a string is invalid. Returns None or "" for a valid string.
        text: The message before the reason, with `{path}`.
        code: Name of the finding code. "" means the default code of the kind.
    """

    def check(value: str) -> str:
        if value and (reason := validate(value)):
            raise issue(f"{text}: {reason}", code)
        return value

    return AfterValidator(check)


def _check_not_empty(value: object) -> object:
    # Do not use pydantic's `min_length`, because it also reports a list whose items are all invalid.
    if isinstance(value, list | tuple) and not value:
        raise PydanticCustomError("too_short", "empty")
    return value


NOT_EMPTY = (BeforeValidator(_check_not_empty), Field(json_schema_extra={"minItems": 1}))
"""Annotations of a list that must have at least one item."""


def _check_duration(value: str) -> str:
    if value and parse_duration_seconds(value) is None:
        raise issue(f'{{path}} must be a duration such as "10m" or "1h30m", but is {quote_value(value)}')
    return value


_UNITS = "ns|us|µs|μs|ms|s|m|h"
Duration = Annotated[
    str,
    AfterValidator(_check_duration),
    Field(
        examples=["10m", "1h30m"],
        json_schema_extra={"pattern": rf"^$|^([0-9]+(\.[0-9]*)?|\.[0-9]+)({_UNITS})([0-9.]|{_UNITS})*$|^0$"},
    ),
]
"""A Go duration. "" means that the field is absent."""

PackagePath = Annotated[
    str,
    Field(
        min_length=1,
        json_schema_extra={"pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(/[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"},
    ),
    check_text(validate_package_path, "{path} is not a valid package path"),
]


def raise_issues(issues: Iterator[FieldIssue], value: object) -> None:
    """Raise one exception that contains all issues of a field."""
    errors: list[InitErrorDetails] = [entry.to_error(value) for entry in issues]
    if errors:
        raise ValidationError.from_exception_data("field", errors)


class Unparsed:
    """Annotation of a field that a model only validates. The field contains the mapping from the manifest unchanged."""

    def __init__(self, model: type[ApiModel]) -> None:
        self.model = model

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return a schema that validates with the model and returns the input."""

        def validate(value: Any, parse: Callable[[Any], Any]) -> Any:
            parse(value)
            return value

        return core_schema.no_info_wrap_validator_function(validate, handler.generate_schema(self.model))


class LenientItem(ErrorHandling):
    """Annotation of a list item that a model validates. In lenient mode, an invalid item becomes None."""

    def __init__(self, model: type[ApiModel]) -> None:
        self.model = model

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return a schema that validates with the model."""
        return core_schema.with_info_wrap_validator_function(self.validate, handler.generate_schema(self.model))

    def validate(self, value: Any, parse: Callable[[Any], Any], info: core_schema.ValidationInfo) -> Any:
        """Return the valid item. Return None for an invalid item of an object that is read leniently."""
        try:
            return parse(value)
        except ValidationError:
            if isinstance(info.context, ReadContext) and info.context.is_lenient:
                return None
            raise


def _check_labels(labels: dict[str, str]) -> dict[str, str]:
    reasons = (
        reason for key, value in labels.items() for reason in (validate_label_key(key), validate_label_value(value))
    )
    raise_issues((FieldIssue(f"{{path}}: {reason}") for reason in reasons if reason), labels)
    return labels


def _check_annotations(annotations: dict[str, str]) -> dict[str, str]:
    reasons = filter(None, map(validate_annotation_key, annotations))
    raise_issues((FieldIssue(f"{{path}}: {reason}") for reason in reasons), annotations)
    return annotations


Labels = Annotated[dict[str, str], AfterValidator(_check_labels)]
Annotations = Annotated[dict[str, str], AfterValidator(_check_annotations)]


class LabelRequirementEntry(ApiModel):
    """One requirement on a label."""

    key: NonEmptyText = Field(description="Key of the label.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(description="Operator of the comparison.")
    values: tuple[str, ...] = Field(
        (), description="Values for the operators In and NotIn. The operators Exists and DoesNotExist take no values."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for an invalid key or value, and for values that the operator does not allow."""
        if isinstance(key := data.get("key"), str) and key and (reason := validate_label_key(key)):
            yield FieldIssue(f"{{path}}: {reason}", ("key",))
        operator, values = data.get("operator"), data.get("values") or ()
        if not isinstance(values, list | tuple) or operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            return
        if operator in ("In", "NotIn") and not values:
            yield FieldIssue(f"{{path}} must not be empty for the operator {operator}", ("values",))
        if operator in ("Exists", "DoesNotExist") and values:
            yield FieldIssue(f"{{path}} must be empty for the operator {operator}", ("values",))
        for value in values:
            if isinstance(value, str) and (reason := validate_label_value(value)):
                yield FieldIssue(f"{{path}}: {reason}", ("values",))


class LabelSelectorFields(ApiModel):
    """A label selector of Kubernetes. All requirements must match."""

    unknown_field_hint: ClassVar = "; write labels below matchLabels"

    match_labels: Labels = Field({}, description="Labels that a selected object must have, with their values.")
    match_expressions: tuple[LabelRequirementEntry, ...] = Field(
        (), description="Requirements on labels. A selected object must meet all of them."
    )

    @property
    def selector(self) -> LabelSelector:
        """The selector in canonical order."""
        requirements = {
            LabelRequirement(entry.key, entry.operator, tuple(sorted(set(entry.values))))
            for entry in self.match_expressions
        }
        return LabelSelector(tuple(sorted(self.match_labels.items())), tuple(sorted(requirements)))
