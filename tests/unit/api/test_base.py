"""Tests of the base of all models: notation, unknown fields, rules, messages, and confidential values."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field, Strict, StrictInt

from reconciler import api
from reconciler.api.base import ApiModel, Deprecation, FieldIssue, FieldMessage, ReadContext, read_field, read_model
from reconciler.api.field_types import LabelSelectorFields, LenientItem, NonEmptyText, check_text
from reconciler.api.json_schema import build_model_schema
from reconciler.api.messages import DEFAULT_TEMPLATES, MessageTemplates


class Port(ApiModel):
    """A port."""

    number: StrictInt = Field(description="Number of the port.")
    name: str = Field("", description="Name of the port.")


class Server(ApiModel):
    """A server."""

    deprecated_names: ClassVar = {
        "host": Deprecation("hostName", "Use hostName."),
        "extraPorts": Deprecation("ports", "Use ports.", is_merged=True),
    }
    deprecated_lists: ClassVar = ("ports", "extraPorts")
    deprecated_values: ClassVar = {"mode": {"quick": "fast"}}
    blank_fields: ClassVar = ("mode",)

    host_name: NonEmptyText = Field(description="Name of the host.")
    mode: Literal["fast", "safe"] = Field("safe", description="Mode.")
    ports: tuple[Port, ...] = Field((), description="Ports.")
    labels: dict[str, str] = Field({}, description="Labels.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for the reserved host."""
        if data.get("hostName") == "reserved":
            yield FieldIssue("{path} must not be reserved", ("hostName",), "HostReserved")


class Login(ApiModel):
    """A login."""

    is_confidential: ClassVar = True

    user: str = Field("", description="User.")
    port: Port | None = Field(None, description="Port.")


class Token(ApiModel):
    """A token."""

    is_confidential: ClassVar = True

    name: Annotated[NonEmptyText, check_text(lambda value: value.partition(" ")[2], "{path} has spaces", "Spaces")]
    kind: Literal["api", "web"] = Field("api", description="Kind.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for the reserved name."""
        if data.get("name") == "reserved":
            yield FieldIssue("{path} must not be reserved", ("name",), "TokenReserved")


class Account(ApiModel):
    """An account."""

    confidential_fields: ClassVar = frozenset({"tokens", "login"})
    subtree_codes: ClassVar = {"login": "LoginInvalid"}

    tokens: tuple[Annotated[Token | None, LenientItem(Token)], ...] = Field((), description="Tokens.")
    login: Server | None = Field(None, description="Login.")


def read(data: Any) -> list[str]:
    return list(read_model(Server, data, DEFAULT_TEMPLATES, ("spec",)).error_texts)


@pytest.mark.parametrize(
    ("data", "errors"),
    [
        pytest.param({"hostName": "a"}, [], id="valid"),
        pytest.param({"hostName": "a", "mode": None, "ports": None, "labels": None}, [], id="null-is-absent"),
        pytest.param({"hostName": "a", "mode": ""}, [], id="blank-is-absent"),
        pytest.param({}, ["spec.hostName must be set"], id="missing"),
        pytest.param({"hostName": None}, ["spec.hostName must be set"], id="null-is-missing"),
        pytest.param({"hostName": ""}, ["spec.hostName must be a string that is not empty"], id="empty"),
        pytest.param([], ["spec must be a mapping, but is []"], id="list-instead-of-a-mapping"),
        pytest.param({"hostName": 5}, ["spec.hostName must be a string, but is 5; put the value in quotes"], id="number"),
        pytest.param({"hostName": {"a": 1}}, ["spec.hostName must be a string, but is a mapping"], id="mapping"),
        pytest.param(
            {"hostName": "a", "mode": "slow"}, ['spec.mode must be "fast" or "safe", but is "slow"'], id="choice"
        ),
        pytest.param({"hostName": "a", "ports": "80"}, ['spec.ports must be a list, but is "80"'], id="text-as-a-list"),
        pytest.param(
            {"hostName": "a", "ports": [{"number": True}, {"number": "80"}]},
            ["spec.ports[0].number must be a whole number, but is true",
             'spec.ports[1].number must be a whole number, but is "80"'],
            id="items",
        ),
        pytest.param(
            {"hostName": "a", "labels": {"x": 1}}, ["spec.labels.x must be a string, but is 1; put the value in quotes"], id="map-value"
        ),
        pytest.param(
            {"hostNmae": "a", "labels": 3},
            ["spec.hostName must be set", "spec.labels must be a mapping, but is 3",
             "spec.hostNmae is an unknown field; allowed fields: hostName, mode, ports, labels; did you mean \"hostName\"?"],
            id="unknown-field-is-last",
        ),
        pytest.param(
            {"hostName": "a", "host_name": "b"},
            ["spec.host_name is an unknown field; allowed fields: hostName, mode, ports, labels; did you mean \"hostName\"?"],
            id="name-of-the-attribute",
        ),
        pytest.param({"hostName": "reserved"}, ["spec.hostName must not be reserved"], id="rule"),
        pytest.param(
            {"hostName": "reserved", "mode": "x", "ports": [{}]},
            ["spec.hostName must not be reserved", 'spec.mode must be "fast" or "safe", but is "x"',
             "spec.ports[0].number must be set"],
            id="rules-and-fields-in-the-order-of-the-declaration",
        ),
        pytest.param({"hostName": "a", "host": "b"}, ["spec may specify only one of `hostName` and `host`"], id="alias"),
    ],
)  # fmt: skip
def test_all_errors_are_reported(data: Any, errors: list[str]) -> None:
    assert read(data) == errors


@pytest.mark.parametrize(
    ("data", "warning", "expected"),
    [
        pytest.param({"host": "a"}, "spec.host is read as spec.hostName", {"hostName": "a"}, id="name"),
        pytest.param(
            {"hostName": "a", "mode": "quick"}, 'spec.mode "quick" is read as "fast"', {"hostName": "a", "mode": "fast"},
            id="value",
        ),
        pytest.param(
            {"hostName": "a", "ports": {"number": 1}}, "spec.ports is a mapping and is read as a list with one item",
            {"hostName": "a", "ports": [{"number": 1}]}, id="list",
        ),
        pytest.param(
            {"hostName": "a", "ports": [{"number": 1}], "extraPorts": [{"number": 2}]},
            "the items of spec.extraPorts are read as items of spec.ports",
            {"hostName": "a", "ports": [{"number": 1}, {"number": 2}]}, id="merged-list",
        ),
    ],
)  # fmt: skip
def test_deprecated_notation_is_read_with_a_warning(data: Any, warning: str, expected: Any) -> None:
    result = read_model(Server, data, DEFAULT_TEMPLATES, ("spec",))

    assert result.warning_texts == (warning,)
    assert result.model == read_model(Server, expected, DEFAULT_TEMPLATES).model


def test_model_is_written_without_empty_values() -> None:
    model = read_model(Server, {"hostName": "a", "ports": [{"number": 0, "name": ""}], "labels": {}}, DEFAULT_TEMPLATES)

    assert model.model is not None
    assert model.model.as_data() == {"hostName": "a", "mode": "safe", "ports": [{"number": 0}]}


@pytest.mark.parametrize(
    ("data", "error"),
    [
        pytest.param({"user": 4711}, "user must be a string; put the value in quotes", id="value"),
        pytest.param(
            {"s3cret": 1}, "the object contains an unknown field; allowed fields: user, port", id="unknown-name"
        ),
        pytest.param(
            {"usr": 1}, 'usr is an unknown field; allowed fields: user, port; did you mean "user"?', id="similar-name"
        ),
        pytest.param({"port": {"number": "4711"}}, "port.number must be a whole number", id="nested-value"),
        pytest.param({"port": 4711}, "port must be a mapping", id="wrong-type"),
    ],
)
def test_confidential_values_are_not_quoted(data: Any, error: str) -> None:
    result = read_model(Login, data, DEFAULT_TEMPLATES)

    assert result.error_texts == (error,)
    assert "s3cret" not in repr(result)


@pytest.mark.parametrize(
    ("data", "error", "code"),
    [
        pytest.param({"tokens": "s3cret"}, "tokens must be a list", "", id="value"),
        pytest.param({"tokens": ["s3cret"]}, "tokens[0] must have a name", "", id="list-item-with-its-own-text"),
        pytest.param({"tokens": [{"name": "a", "kind": "b"}]}, "tokens[0].kind must be \"api\" or \"web\"", "", id="item"),
        pytest.param({"tokens": [{"name": "a b"}]}, "tokens[0].name has spaces: b", "Spaces", id="code-of-a-text"),
        pytest.param({"login": "s3cret"}, "login must be a mapping", "LoginInvalid", id="code-of-the-subtree"),
        pytest.param(
            {"login": {"hostName": 5}}, "login.hostName must be a string, but is 5; put the value in quotes", "LoginInvalid",
            id="nested-mapping-is-quoted",
        ),
        pytest.param(
            {"login": {"hostName": "reserved"}}, "login.hostName must not be reserved", "HostReserved",
            id="code-of-the-rule",
        ),
    ],
)  # fmt: skip
def test_fields_can_have_confidential_values_and_codes(data: Any, error: str, code: str) -> None:
    templates = MessageTemplates(by_field={("model_type", "tokens[]"): "{path} must have a name"})

    result = read_model(Account, data, templates)

    assert [(message.text, message.code) for message in result.errors] == [(error, code)]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        pytest.param([{"name": "reserved"}, {"name": "a"}], [None, "a"], id="invalid-item-is-none"),
        pytest.param([{"name": "reserved"}, {"name": 5}], None, id="item-with-another-error"),
        pytest.param([{"name": "a"}, {"name": "b"}], ["a", "b"], id="valid-items"),
    ],
)
def test_object_with_errors_in_single_list_items_is_read_leniently(tokens: Any, expected: Any) -> None:
    result = read_model(Account, {"tokens": tokens}, DEFAULT_TEMPLATES, lenient_codes=["TokenReserved"])
    strict_result = read_model(Account, {"tokens": tokens}, DEFAULT_TEMPLATES)

    assert (result.model and [token and token.name for token in result.model.tokens]) == expected
    assert result.errors == strict_result.errors
    assert (strict_result.model is None) == bool(strict_result.errors)


def test_lenient_code_of_another_field_does_not_make_the_object_valid() -> None:
    data = {"login": {"hostName": "reserved"}}

    assert read_model(Account, data, DEFAULT_TEMPLATES, lenient_codes=["HostReserved"]).model is None


def test_error_has_the_path_and_the_code_of_its_rule() -> None:
    (error,) = read_model(Server, {"hostName": "reserved"}, DEFAULT_TEMPLATES, ("spec", "servers", 2)).errors

    assert error == FieldMessage(
        ("spec", "servers", 2, "hostName"), "spec.servers[2].hostName must not be reserved", "HostReserved"
    )


def test_kinds_can_have_their_own_texts() -> None:
    templates = MessageTemplates({"missing": "no {name} in {parent}"}, {("literal_error", "mode"): "{path}: {value}?"})

    assert read_model(Server, {"mode": "x"}, templates, ("spec",)).error_texts == (
        "no hostName in spec",
        'spec.mode: "x"?',
    )


def test_schema_contains_every_notation() -> None:
    schema = build_model_schema(Server)
    properties = schema["properties"]

    # A required field can have its current or its deprecated name.
    assert [option["required"] for option in schema["anyOf"]] == [["hostName"], ["host"]]
    assert schema["additionalProperties"] is False
    assert properties["mode"] == {
        "anyOf": [{"enum": ["fast", "safe", "quick"]}, {"type": ["string", "null"], "maxLength": 0}],
        "default": "safe",
        "description": "Mode.",
    }
    assert properties["host"]["deprecationMessage"] == "Use hostName."
    assert [option["type"] for option in properties["ports"]["anyOf"]] == ["array", "object", "null"]
    assert properties["labels"]["type"] == ["object", "null"]


def iterate_models(model: type[ApiModel]) -> Iterator[type[ApiModel]]:
    for child in model.__subclasses__():
        yield child
        yield from iterate_models(child)


def test_no_field_converts_values() -> None:
    """pydantic reads "80" and true as the integer of a plain `int`, and "yes" as the value of a plain `bool`."""
    for module in pkgutil.walk_packages(api.__path__, f"{api.__name__}."):
        importlib.import_module(module.name)
    models = [model for model in iterate_models(ApiModel) if model.__module__.startswith("reconciler.")]
    converting = [
        f"{model.__name__}.{name}"
        for model in models
        for name, info in model.model_fields.items()
        if info.annotation in (int, bool, float) and not any(isinstance(entry, Strict) for entry in info.metadata)
    ]

    assert len(models) > 100
    assert converting == []


class Extended(ApiModel):
    """A mapping with extensions."""

    extension_prefix: ClassVar = "x-"
    unknown_field_code: ClassVar = "Unknown"
    unsupported_fields: ClassVar = {"outputs": "remove the field"}

    name: str = Field("", description="Name.")
    ports: tuple[Port, ...] = Field((), description="Ports.")


def test_fields_with_the_prefix_of_extensions_are_ignored() -> None:
    result = read_model(Extended, {"name": "a", "x-owner": {"any": 1}}, DEFAULT_TEMPLATES)

    assert (result.model, result.errors) == (Extended(name="a"), ())


def test_unknown_and_unsupported_fields_have_codes() -> None:
    result = read_model(Extended, {"nam": "a", "outputs": []}, DEFAULT_TEMPLATES)

    assert [(error.code, error.text) for error in result.errors] == [
        ("FeatureNotSupported", "outputs is not supported; remove the field"),
        ("Unknown", 'nam is an unknown field; allowed fields: name, ports; did you mean "name"?'),
    ]


@pytest.mark.parametrize(
    ("attribute", "data", "value"),
    [
        pytest.param("ports", {"ports": [{"number": 1}], "name": 3}, (Port(number=1),), id="valid-field"),
        pytest.param("ports", {"ports": [{"number": "a"}]}, None, id="invalid-field"),
        pytest.param("name", {"ports": 3}, "", id="default-of-an-absent-field"),
    ],
)
def test_single_fields_of_invalid_data_can_be_read(attribute: str, data: Any, value: Any) -> None:
    assert read_field(Extended, attribute, data) == value


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        pytest.param({"name": "a", "ports": [{"number": 1}]}, {"name", "ports"}, id="valid"),
        pytest.param({"name": "a", "ports": None}, {"name"}, id="null"),
        pytest.param({"name": "a", "x-owner": 1}, {"name"}, id="extension"),
        pytest.param({"name": "a", "x-owner": 1, "ports": [{"number": 1, "name": None}]}, {"name", "ports"}, id="item"),
    ],
)
def test_fast_and_complete_validation_have_the_same_result(data: Any, fields: set[str]) -> None:
    model = read_model(Extended, data, DEFAULT_TEMPLATES).model

    assert model == Extended.model_validate(data, context=ReadContext(), by_alias=True, by_name=False)
    assert model.model_fields_set == fields
    assert [port.model_fields_set for port in model.ports] == [{"number"} for _ in model.ports]


def test_name_of_an_attribute_is_unknown() -> None:
    assert read_model(Server, {"host_name": "a"}, DEFAULT_TEMPLATES).error_texts == (
        "hostName must be set",
        'host_name is an unknown field; allowed fields: hostName, mode, ports, labels; did you mean "hostName"?',
    )


def test_labels_outside_of_match_labels_have_a_next_step() -> None:
    read = read_model(LabelSelectorFields, {"environment": "production"}, DEFAULT_TEMPLATES, ("spec", "selector"))

    assert read.error_texts == (
        "spec.selector.environment is an unknown field; allowed fields: matchLabels, matchExpressions; write labels below matchLabels",
    )


class Inner(ApiModel):
    """A mapping."""

    value: str = Field("", description="Value.")


class Outer(ApiModel):
    """A mapping whose values can be quoted."""

    name: str = Field("", description="Name.")
    inner: Inner = Inner()
    items: tuple[Inner, ...] = Field((), description="Items.")


class Confidential(Outer):
    """A mapping whose values must not be quoted."""

    is_confidential: ClassVar = True


SECRET = "hunter2"
WRONG: list[Any] = [
    {"name": {"token": SECRET}}, {"name": [SECRET]}, {"inner": [SECRET]}, {"items": {"token": SECRET}},
    {"items": [[SECRET]]}, {"inner": {"value": [SECRET]}}, {"inner": {"token": {"x": SECRET}}}, [SECRET],
]  # fmt: skip


@pytest.mark.parametrize("data", WRONG)
def test_content_of_lists_and_mappings_is_not_quoted(data: Any) -> None:
    texts = read_model(Outer, data, DEFAULT_TEMPLATES).error_texts

    assert texts
    assert SECRET not in str(texts)


@pytest.mark.parametrize("data", [*WRONG, {"inner": SECRET}, {"items": SECRET}, {"items": [SECRET]}, SECRET,
                                  {"inner": {SECRET: 1}}, {SECRET: 1}, {"items": [{SECRET: 1}]}])  # fmt: skip
def test_no_confidential_value_is_quoted(data: Any) -> None:
    texts = read_model(Confidential, data, DEFAULT_TEMPLATES).error_texts

    assert texts
    assert SECRET not in str(texts)
