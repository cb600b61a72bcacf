"""Base of the models of manifests: reading, deprecated notation, rules about several fields, errors with field paths.

A model declares each field once: its type, default, constraints, description and example. Reading, validation errors
and the JSON Schema come from this declaration. This module contains no code for specific kinds, and reads no files.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, ValidationInfo, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError

from reconciler.api.fast_validation import (
    FastValidatorBuilder,
    FieldPreparation,
    InvalidMappingError,
    accepts_null_as_value,
)
from reconciler.api.messages import ISSUE, UNKNOWN_FIELD, MessageTemplates, format_error_message
from reconciler.krm.field_text import suggest_name
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field


@dataclass(frozen=True)
class FieldIssue:
    """A violated rule about a field.

    Attributes:
        text: The message. `{path}` stands for the path of the field, and `{parent}` for the path of the mapping that
            contains the field.
        path: Path of the field, relative to the model that reports the issue.
        code: Name of the finding code. "" means the default code of the kind.
        rule: Error type of the issue. `MessageTemplates` of a family of kinds can replace the message for this type.
    """

    text: str
    path: DataPath = ()
    code: str = ""
    rule: str = ISSUE

    def to_error(self, data: object = None) -> InitErrorDetails:
        """Return the issue in the form that pydantic raises."""
        return InitErrorDetails(type=issue(self.text, self.code, self.rule), loc=self.path, input=data)


def find_either_issues(data: Mapping[str, Any], name: str, *, is_required: bool) -> Iterator[FieldIssue]:
    """Yield an issue if the field `name` and the field `<name>Expr` are both set.

    If `is_required` is true, also yield an issue if both are absent or empty.
    """
    has_literal, has_expression = bool(data.get(name)), bool(data.get(f"{name}Expr"))
    if has_literal and has_expression:
        yield FieldIssue(f"{{path}} may specify only one of `{name}` and `{name}Expr`")
    if is_required and not has_literal and not has_expression:
        yield FieldIssue(f"{{path}} must specify `{name}` or `{name}Expr`")


def issue(text: str, code: str = "", rule: str = ISSUE) -> PydanticCustomError:
    """Return the error that a field validator raises. `{path}` in the text stands for the path of the field."""
    return PydanticCustomError(rule, "invalid", {"text": text, "code": code})


@dataclass(frozen=True)
class FieldMessage:
    """A message about one field: an error or a notice about deprecated notation.

    Attributes:
        path: Path of the field from the root of the object.
        text: A complete sentence that names the path.
        code: Name of the finding code. "" means the default code of the kind.
    """

    path: DataPath
    text: str
    code: str = ""


@dataclass
class ReadContext:
    """The mode in which one object is read, and the notices that reading reports.

    Attributes:
        is_lenient: Whether an invalid list item with the annotation `LenientItem` is read as None.
        notices: Notices about deprecated notation. Each notice contains the mapping, the field name and the message.
    """

    is_lenient: bool = False
    notices: list[tuple[object, str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class _Notifier:
    """Function that adds notices about one mapping to the `ReadContext`."""

    context: ReadContext
    parent: object

    def __call__(self, name: str, text: str) -> None:
        self.context.notices.append((self.parent, name, text))


@dataclass(frozen=True)
class Deprecation:
    """A deprecated name of a field.

    Attributes:
        field: The current name. "" if `convert` moves the value.
        advice: What users should write instead. Editors show this text.
        type: Type of the value for the JSON Schema. It is required if `field` is "".
        is_merged: Whether both fields are lists that can be set together. The deprecated list is then appended to the
            current list.
    """

    field: str
    advice: str
    is_merged: bool = False
    type: Any = None


UNSUPPORTED_CODE = "FeatureNotSupported"
"""Name of the finding code for fields and values of features that the reconciler does not support."""


class ApiModel(BaseModel):
    """A mapping in a manifest. A null value reads as an absent field, and an unknown field is an error.

    Subclasses can override three hooks: `convert` for deprecated notation, `find_issues` for rules about several
    fields, and the class variables.
    """

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True, defer_build=True
    )
    deprecated_names: ClassVar[Mapping[str, Deprecation]] = {}
    """The deprecated field names, each with its replacement."""
    deprecated_lists: ClassVar[tuple[str, ...]] = ()
    """Names of lists that can also be written as one mapping. This notation is deprecated."""
    deprecated_values: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """By field name: the deprecated values of the field, each with its current value."""
    blank_fields: ClassVar[tuple[str, ...]] = ()
    """Names of fields for which "" means the same as an absent field."""
    field_names: ClassVar[tuple[str, ...]] = ()
    """Names of the fields in manifests, without deprecated names."""
    _attributes: ClassVar[tuple[str, ...]] = ()
    _known: ClassVar[frozenset[str]] = frozenset()
    _positions: ClassVar[Mapping[str, int]] = {}
    _has_rules: ClassVar[bool] = False
    field_codes: ClassVar[Mapping[str, str]] = {}
    """By field name: the finding code for a field that is absent or empty, or that has a value that is not allowed."""
    subtree_codes: ClassVar[Mapping[str, str]] = {}
    """By field name: the finding code for all errors in the field and in its subfields."""
    unknown_field_code: ClassVar[str] = ""
    """Name of the finding code for unknown fields. "" means the default code of the kind."""
    unknown_field_hint: ClassVar[str] = ""
    """The next step for an unknown field that is not similar to a known field."""
    unsupported_fields: ClassVar[Mapping[str, str]] = {}
    """API fields for features that the reconciler does not support, each with the next step for the user. Such a field
    in a manifest is an error.
    """
    extension_prefix: ClassVar[str] = ""
    """Prefix of the unknown fields that are allowed and ignored. "" means that all unknown fields are errors."""
    nullable_fields: ClassVar[frozenset[str]] = frozenset()
    """Names of fields in which null is a value and does not mean an absent field."""
    is_open: ClassVar[bool] = False
    """Whether unknown fields are allowed and ignored."""
    is_confidential: ClassVar[bool] = False
    """Whether messages must not quote values and unknown field names of this mapping."""
    confidential_fields: ClassVar[frozenset[str]] = frozenset()
    """Names of fields with a scalar or a list that messages must not quote. A mapping has `is_confidential` instead."""

    @classmethod
    def convert(cls, data: dict[str, Any], notify: Callable[[str, str], None]) -> dict[str, Any]:
        """Return the fields in current notation.

        Args:
            data: The fields that are not null.
            notify: Function that reports deprecated notation. Arguments: field name, and message with `{path}`.
        """
        return data

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for each violated rule about several fields. The values in `data` are not validated yet."""
        return iter(())

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Store the names of the fields in manifests."""
        super().__pydantic_init_subclass__(**kwargs)
        cls.field_names = tuple(info.alias or name for name, info in cls.model_fields.items())
        cls._attributes = tuple(cls.model_fields)
        cls._known = frozenset((*cls.field_names, *cls.deprecated_names))
        cls._positions = {name: position for position, name in enumerate(cls.field_names)}
        cls._has_rules = cls.find_issues.__func__ is not ApiModel.find_issues.__func__  # type: ignore[attr-defined]

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, data: Any, handler: Callable[[Any], Self], info: ValidationInfo) -> Self:
        # If there is no `ReadContext`, the caller is Python code that passes attribute names, and not a manifest.
        if not isinstance(info.context, ReadContext):
            return handler(data)
        if not isinstance(data, Mapping):
            try:
                return handler(data)
            except ValidationError as error:
                raise cls._build_error(cls._list_raised_errors(error)) from None
        fields = {name: value for name, value in data.items() if value is not None or name in cls.nullable_fields}
        errors = [entry.to_error(data) for entry in cls._find_alias_issues(fields)]
        fields = cls._convert_notation(fields, _Notifier(info.context, data))
        errors += [entry.to_error(data) for entry in cls.find_issues(fields)]
        errors += [] if cls.is_open else cls._list_unknown_fields(fields)
        try:
            model = handler(fields)
        except ValidationError as error:
            errors = [*cls._list_raised_errors(error), *errors]
        if errors:
            raise cls._build_error(errors)
        return model

    @classmethod
    def _build_error(cls, errors: list[InitErrorDetails]) -> ValidationError:
        """Return an exception with all errors, in the order of the fields. Errors of the whole mapping are last."""
        last = len(cls._positions)
        ordered = sorted(errors, key=lambda error: cls._positions.get(str(next(iter(error.get("loc", ())), "")), last))
        return ValidationError.from_exception_data(
            cls.__name__, [_redact(error) for error in ordered] if cls.is_confidential else ordered
        )

    @classmethod
    def _create_preparation(cls) -> FieldPreparation | None:
        """Return the function that prepares the fields of a mapping. Return None if no preparation is necessary."""
        # Bind the hooks to local variables, because access to the attributes of a model is slow.
        nullable, blank = cls.nullable_fields, cls.blank_fields
        has_conversion = cls.convert.__func__ is not ApiModel.convert.__func__  # type: ignore[attr-defined]
        has_notation = bool(has_conversion or cls.deprecated_names or cls.deprecated_lists or cls.deprecated_values)
        find_issues = cls.find_issues if cls._has_rules else None
        known = cls._known if cls.extension_prefix else None

        def prepare(data: Any, info: ValidationInfo) -> Any:
            if not isinstance(data, Mapping):
                return data
            fields: Any = data
            if None in data.values():
                fields = {name: value for name, value in data.items() if value is not None or name in nullable}
            if has_notation or (blank and "" in [fields.get(name) for name in blank]):
                for _ in cls._find_alias_issues(fields):
                    raise InvalidMappingError
                fields = cls._convert_notation({**fields}, _Notifier(cast("ReadContext", info.context), data))
            if known and not known.issuperset(fields) and cls._list_unknown_fields(fields):
                raise InvalidMappingError
            if find_issues:
                for _ in find_issues(fields):
                    raise InvalidMappingError
            return fields

        has_hooks = blank or has_notation or find_issues or known
        return prepare if has_hooks or accepts_null_as_value(cls) else None

    @classmethod
    def _list_raised_errors(cls, error: ValidationError) -> list[InitErrorDetails]:
        """Convert the errors in a pydantic exception to a form that can be raised again. Add their finding codes."""
        errors = []
        for details in error.errors(include_url=False):
            path = details["loc"]
            context = {**details.get("ctx", {})}
            if not context.get("code") and (code := cls._find_code(path, details["type"])):
                context["code"] = code
            errors.append(
                InitErrorDetails(
                    type=PydanticCustomError(details["type"], "invalid", context),
                    loc=path,
                    input=_HIDDEN if cls._is_confidential_path(path) else details["input"],
                )
            )
        return errors

    @classmethod
    def _find_code(cls, path: tuple[str | int, ...], error_type: str) -> str:
        name = str(path[0]) if path else ""
        subtree_code = cls.subtree_codes.get(name, "")
        if len(path) == 1 and error_type in ("missing", "literal_error", "string_too_short"):
            return cls.field_codes.get(name, subtree_code)
        return subtree_code

    @classmethod
    def _is_confidential_path(cls, path: tuple[str | int, ...]) -> bool:
        return bool(path) and path[0] in cls.confidential_fields and all(isinstance(step, int) for step in path[1:])

    @classmethod
    def _find_alias_issues(cls, fields: Mapping[str, Any]) -> Iterator[FieldIssue]:
        for name, deprecation in cls.deprecated_names.items():
            if name in fields and deprecation.field in fields and not deprecation.is_merged:
                yield FieldIssue(f"{{path}} may specify only one of `{deprecation.field}` and `{name}`")

    @classmethod
    def _convert_notation(cls, fields: dict[str, Any], notify: Callable[[str, str], None]) -> dict[str, Any]:
        for name in cls.deprecated_lists:
            if isinstance(fields.get(name), Mapping):
                notify(name, "{path} is a mapping and is read as a list with one item")
                fields[name] = [fields[name]]
        for name, values in cls.deprecated_values.items():
            value = fields.get(name)
            if isinstance(value, str) and value in values:
                notify(name, f'{{path}} "{value}" is read as "{values[value]}"')
                fields[name] = values[value]
        fields = cls.convert(fields, notify)
        for name, deprecation in cls.deprecated_names.items():
            if name in fields and deprecation.field:
                fields = _move_field(fields, name, deprecation, notify)
        for name in cls.blank_fields:
            if fields.get(name) == "":
                del fields[name]
        return fields

    @classmethod
    def _list_unknown_fields(cls, fields: Mapping[Any, Any]) -> list[InitErrorDetails]:
        context = {
            "allowed": cls.field_names, "is_last": True, "code": cls.unknown_field_code, "hint": cls.unknown_field_hint,
        }  # fmt: skip
        unknown = PydanticCustomError(UNKNOWN_FIELD, "unknown", context)
        unsupported = {
            name: issue(f"{{path}} is not supported; {next_step}", UNSUPPORTED_CODE)
            for name, next_step in cls.unsupported_fields.items()
        }
        return [
            InitErrorDetails(type=unsupported.get(name, unknown), loc=(str(name),), input=value)
            for name, value in fields.items()
            if name not in cls._known and not (cls.extension_prefix and str(name).startswith(cls.extension_prefix))
        ]

    def as_data(self) -> dict[str, Any]:
        """Return the fields in the notation of the API, without empty values. Equivalent models have equal data."""
        values = self.__dict__
        return omit_empty({
            alias: to_data(values[name]) for name, alias in zip(self._attributes, self.field_names, strict=True)
        })  # fmt: skip

    @cached_property
    def shared_data(self) -> Mapping[str, Any]:
        """The result of `as_data`, which is computed once. Callers must not change it."""
        return self.as_data()

    def share_equal_values(self, other: Self) -> None:
        """Replace the values of fields by equal values of `other`, so that both models need less memory.

        Call this method only for a new model that no other code uses.
        """
        values, other_values = self.__dict__, other.__dict__
        for name in self._attributes:
            if values[name] == other_values[name]:
                values[name] = other_values[name]


def omit_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields without None, empty strings, empty lists or tuples, and empty mappings."""
    return {name: value for name, value in fields.items() if value not in (None, "", (), [], {})}


def _move_field(
    fields: Mapping[str, Any], name: str, deprecation: Deprecation, notify: Callable[[str, str], None]
) -> dict[str, Any]:
    """Return a copy of the fields in which the deprecated field `name` is replaced by the current field."""
    current, value = fields.get(deprecation.field), fields[name]
    if deprecation.is_merged:
        notify(name, f"the items of {{path}} are read as items of {{parent}}{deprecation.field}")
        if isinstance(current, list) and isinstance(value, list):
            value = [*current, *value]
    else:
        notify(name, f"{{path}} is read as {{parent}}{deprecation.field}")
        value = value if current is None else current
    return {key: item for key, item in fields.items() if key != name} | {deprecation.field: value}


def to_data(value: object) -> Any:
    """Return a value of a field as data for YAML."""
    # Check the most frequent types first, because the check for `Mapping` is slow.
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, ApiModel):
        return value.as_data()
    if isinstance(value, dict | Mapping):
        return {key: to_data(item) for key, item in value.items()}
    return [to_data(item) for item in value] if isinstance(value, list | tuple) else value


_HIDDEN = object()


def _redact(error: InitErrorDetails) -> InitErrorDetails:
    """Return a copy of an error without the invalid value.

    For an unknown field, remove the field name too, unless the name is similar to an allowed field name.
    """
    error_type, path = error["type"], error.get("loc", ())
    if isinstance(error_type, PydanticCustomError) and error_type.type == UNKNOWN_FIELD:
        context = error_type.context or {}
        if not suggest_name(str(path[-1]), context["allowed"]):
            error_type, path = PydanticCustomError("hidden_unknown_field", "unknown", context), path[:-1]
    return InitErrorDetails(type=error_type, loc=path, input=_HIDDEN)


Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class ReadResult(Generic[Model]):
    """The result of reading an object: the model, or all errors. Warnings are about deprecated notation.

    If the object was read leniently, the result can contain a model and errors. The invalid list items are then None.
    """

    model: Model | None
    errors: tuple[FieldMessage, ...] = ()
    warnings: tuple[FieldMessage, ...] = ()

    @property
    def error_texts(self) -> tuple[str, ...]:
        """The texts of the errors."""
        return tuple(error.text for error in self.errors)

    @property
    def warning_texts(self) -> tuple[str, ...]:
        """The texts of the warnings."""
        return tuple(warning.text for warning in self.warnings)


def read_model(
    model: type[Model],
    data: object,
    templates: MessageTemplates,
    path: DataPath = (),
    lenient_codes: Collection[str] = (),
) -> ReadResult[Model]:
    """Read data of an object, and return the model or all errors.

    The errors have the order of the fields in the model. Errors about unknown fields are last.

    Args:
        data: The whole object, or the part of the object at `path`.
        lenient_codes: Names of finding codes. If each error has one of these codes, the data is read again. In the
            second read, an invalid item of a list with `LenientItem` causes no error, and becomes None.
    """
    if valid_result := read_valid(model, data, path):
        return valid_result
    context = ReadContext()
    try:
        value: Model | None = model.model_validate(data, context=context, by_alias=True, by_name=False)
        errors: tuple[FieldMessage, ...] = ()
    except ValidationError as error:
        errors = tuple(_convert_errors(error, templates, path))
        value = _read_leniently(model, data) if all(message.code in lenient_codes for message in errors) else None
    warnings = tuple(_locate_notices(context, data, path)) if context.notices else ()
    return ReadResult(value, errors, warnings)


def read_valid(model: type[Model], data: object, path: DataPath = ()) -> ReadResult[Model] | None:
    """Return the model of valid data, and the warnings. Return None if the data may have errors."""
    context = ReadContext()
    try:
        value: Model = _get_fast_validator(model).validate_python(data, context=context, by_alias=True, by_name=False)
    except (ValidationError, InvalidMappingError):
        return None
    return ReadResult(value, (), tuple(_locate_notices(context, data, path)) if context.notices else ())


_FAST_VALIDATORS = FastValidatorBuilder("_read", lambda model: model._create_preparation())
_get_fast_validator = cache(_FAST_VALIDATORS.build)


def _read_leniently(model: type[Model], data: object) -> Model | None:
    """Return the model with None for each invalid item of a lenient list. Return None if there are other errors."""
    try:
        return model.model_validate(data, context=ReadContext(is_lenient=True), by_alias=True, by_name=False)
    except ValidationError:
        return None


@cache
def _get_field_adapter(model: type[ApiModel], attribute: str) -> TypeAdapter[Any]:
    return TypeAdapter(model.model_fields[attribute].rebuild_annotation())


def read_field(model: type[ApiModel], attribute: str, data: Mapping[str, Any]) -> Any:
    """Return the value of one field, even if other fields in `data` are invalid.

    Return the default if the field is absent. Return None if the field itself is invalid.
    """
    info = model.model_fields[attribute]
    value = data.get(info.alias or attribute)
    if value is None:
        return info.get_default(call_default_factory=True)
    try:
        return _get_field_adapter(model, attribute).validate_python(value, context=ReadContext())
    except ValidationError:
        return None


def _convert_errors(error: ValidationError, templates: MessageTemplates, path: DataPath) -> Iterator[FieldMessage]:
    details = sorted(error.errors(include_url=False), key=lambda entry: entry.get("ctx", {}).get("is_last", False))
    for entry in details:
        field_path = (*path, *entry["loc"])
        text = format_error_message(entry, field_path, templates, is_hidden=entry["input"] is _HIDDEN)
        yield FieldMessage(field_path, text, entry.get("ctx", {}).get("code", ""))


def _locate_notices(context: ReadContext, data: object, path: DataPath) -> Iterator[FieldMessage]:
    for parent, name, text in context.notices:
        parent_path = _find_path(data, parent, path)
        prefix = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in parent_path)
        full = f"{prefix}.{name}".removeprefix(".")
        yield FieldMessage(
            (*parent_path, name), text.replace("{path}", full).replace("{parent}", f"{prefix}.".removeprefix("."))
        )


def _find_path(data: object, part: object, path: DataPath) -> DataPath:
    """Return the full path of `part`, which is a value in `data`. `path` is the full path of `data`.

    Return `path` if `data` does not contain `part`. Values are compared by identity (`is`).
    """
    return next(_iterate_paths(data, part, path), path)


def _iterate_paths(data: object, part: object, path: DataPath) -> Iterator[DataPath]:
    if data is part:
        yield path
    entries: Iterable[tuple[Any, Any]] = ()
    if isinstance(data, Mapping):
        entries = data.items()
    elif isinstance(data, list | tuple):
        entries = enumerate(data)
    for step, value in entries:
        yield from _iterate_paths(value, part, (*path, step))
