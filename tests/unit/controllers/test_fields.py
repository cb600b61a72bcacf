"""Tests of the field reader: messages quote invalid values, except values that may be secrets."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.plugin_presets.codes import PluginCodes
from reconciler.controllers.validation import FieldFindings, FieldReader
from reconciler.krm.field_text import format_list, suggest_name
from reconciler.krm.findings import SourceLocation

SECRET = "hunter2"


def list_messages(data: Any, *, quotes: bool) -> list[str]:
    """Return the messages for a mapping, with each field read as each type."""
    findings = FieldFindings(lambda path: SourceLocation("a.yaml"), PluginCodes.PLUGIN_INVALID)
    fields = FieldReader(data, ("spec",), findings, ("name", "inner", "items"), quotes=quotes)
    fields.read_text("name")
    fields.read_choice("name", ("a", "b"), "a")
    fields.read_mapping("inner", ("value",)).read_text("value")
    for field_reader in fields.iterate_mappings("items", ("value",)):
        field_reader.read_text("value")
    fields.read_texts("items")
    fields.read_string_map("inner")
    return [finding.message for finding in findings.findings]


@pytest.mark.parametrize(
    ("data", "quoted", "unquoted"),
    [
        pytest.param(5, "spec must be a mapping, not 5", "spec must be a mapping", id="no-mapping"),
        pytest.param({"name": 5}, "spec.name must be a string, not 5: quote it", "spec.name must be a string: quote it",
                     id="no-string"),
        pytest.param({"name": "c"}, 'spec.name must be one of a, b, not "c"', "spec.name must be one of a, b",
                     id="no-such-word"),
        pytest.param({"items": 5}, "spec.items must be a list, not 5", "spec.items must be a list", id="no-list"),
        pytest.param({"items": []}, "", "", id="an-empty-list-is-one"),
        pytest.param({"name": []}, "spec.name must be a string, not []: quote it",
                     "spec.name must be a string: quote it", id="an-empty-list-is-quoted"),
        pytest.param({"nam": 1}, "spec.nam is unknown; allowed are name, inner, items; did you mean name?",
                     "spec.nam is unknown; allowed are name, inner, items; did you mean name?", id="a-slip"),
        pytest.param({"xyz": 1}, "spec.xyz is unknown; allowed are name, inner, items",
                     "spec must have no other fields than name, inner, items", id="an-unknown-field"),
        pytest.param({"inner": {"xyz": 1}}, "spec.inner.xyz is unknown; allowed are value",
                     "spec.inner must have no other fields than value", id="an-unknown-field-below"),
    ],
)  # fmt: skip
def test_message_quotes_the_value(data: Any, quoted: str, unquoted: str) -> None:
    assert (list_messages(data, quotes=True) or [""])[0] == quoted
    assert (list_messages(data, quotes=False) or [""])[0] == unquoted


WRONG = [
    {"name": {"token": SECRET}}, {"name": [SECRET]}, {"inner": [SECRET]}, {"items": {"token": SECRET}},
    {"items": [[SECRET]]}, {"inner": {"value": [SECRET]}}, {"inner": {"token": {"x": SECRET}}}, [SECRET],
]  # fmt: skip


@pytest.mark.parametrize("data", WRONG)
def test_content_of_lists_and_mappings_is_not_quoted(data: Any) -> None:
    result = list_messages(data, quotes=True)

    assert result
    assert SECRET not in str(result)


@pytest.mark.parametrize("data", [*WRONG, {"inner": SECRET}, {"items": SECRET}, {"items": [SECRET]}, SECRET,
                                  {"inner": {SECRET: None}}, {SECRET: 1}, {"items": [{SECRET: 1}]}])  # fmt: skip
def test_no_value_is_quoted_without_quotes(data: Any) -> None:
    result = list_messages(data, quotes=False)

    assert result
    assert SECRET not in str(result)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        pytest.param(0, "", id="nobody"),
        pytest.param(2, "n0 and n1", id="two"),
        pytest.param(53, f"{' and '.join(f'n{number}' for number in range(50))}, and 3 more", id="too-many"),
    ],
)
def test_list_is_formatted(count: int, text: str) -> None:
    assert format_list([f"n{number}" for number in range(count)], " and ") == text


@pytest.mark.parametrize(("count", "text"), [(0, "; did you mean replicas?"), (500, "")])
def test_suggestion_is_limited_to_short_lists(count: int, text: str) -> None:
    assert suggest_name("replica", ["replicas", *(f"n{number}" for number in range(count))]) == text


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        pytest.param("regoin", "; did you mean region?", id="similar"),
        pytest.param("REGION", "; did you mean region?", id="another-case"),
        pytest.param("prod", "; did you mean production?", id="beginning"),
        pytest.param("pr", "", id="short-beginning"),
        pytest.param("zone", "", id="not-similar"),
    ],
)
def test_similar_name_is_suggested(name: str, suggestion: str) -> None:
    assert suggest_name(name, ["environment", "production", "region"]) == suggestion
