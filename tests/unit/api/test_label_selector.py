"""Tests of label selectors: they match as in Kubernetes, and every error is reported."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.base import read_model
from reconciler.api.field_types import LabelSelectorFields
from reconciler.api.messages import DEFAULT_TEMPLATES
from reconciler.krm.selectors import LabelRequirement, LabelSelector


def read_selector(data: Any) -> tuple[LabelSelector | None, tuple[str, ...]]:
    result = read_model(LabelSelectorFields, data, DEFAULT_TEMPLATES)
    return result.model.selector if result.model else None, result.error_texts


def build_expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("data", "labels", "expected"),
    [
        pytest.param({}, {}, True, id="empty-matches-everything"),
        pytest.param({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True, id="label-present"),
        pytest.param({"matchLabels": {"a": "1"}}, {"a": "2"}, False, id="label-differs"),
        pytest.param({"matchLabels": {"a": ""}}, {}, False, id="empty-value-is-not-absence"),
        pytest.param({"matchLabels": {"a": "1", "b": "2"}}, {"a": "1"}, False, id="all-labels-needed"),
        pytest.param(build_expression("a", "In", "1", "2"), {"a": "2"}, True, id="in"),
        pytest.param(build_expression("a", "In", "1"), {}, False, id="in-needs-the-key"),
        pytest.param(build_expression("a", "NotIn", "1"), {"a": "2"}, True, id="not-in"),
        pytest.param(build_expression("a", "NotIn", "1"), {"a": "1"}, False, id="not-in-but-is"),
        pytest.param(build_expression("a", "NotIn", "1"), {}, True, id="not-in-holds-for-an-absent-key"),
        pytest.param(build_expression("a", "Exists"), {"a": ""}, True, id="exists"),
        pytest.param(build_expression("a", "Exists"), {}, False, id="exists-needs-the-key"),
        pytest.param(build_expression("a", "DoesNotExist"), {}, True, id="does-not-exist"),
        pytest.param(build_expression("a", "DoesNotExist"), {"a": "1"}, False, id="does-not-exist-but-does"),
        pytest.param(
            {"matchLabels": {"z": "1"}} | build_expression("a", "Exists"),
            {"z": "1"},
            False,
            id="labels-and-expressions",
        ),
    ],
)
def test_matches(data: Any, labels: dict[str, str], expected: bool) -> None:
    selector, faults = read_selector(data)

    assert faults == ()
    assert selector is not None
    assert selector.matches(labels) is expected


@pytest.mark.parametrize(
    ("data", "faults"),
    [
        pytest.param([], ["the object must be a mapping, but is []"], id="not-a-mapping"),
        pytest.param(
            {"matchLabel": {}},
            [
                'matchLabel is an unknown field; allowed fields: matchLabels, matchExpressions; did you mean "matchLabels"?'
            ],
            id="unknown-field",
        ),
        pytest.param({"matchLabels": []}, ["matchLabels must be a mapping, but is []"], id="labels-not-a-mapping"),
        pytest.param(
            {"matchLabels": {"a": 1}},
            ["matchLabels.a must be a string, but is 1; put the value in quotes"],
            id="number",
        ),
        pytest.param({"matchExpressions": {}}, ["matchExpressions must be a list, but is {}"], id="empty-mapping"),
        pytest.param(
            {"matchExpressions": {"a": 1}},
            ["matchExpressions must be a list, but is a mapping"],
            id="expressions-mapping",
        ),
        pytest.param(
            {"matchExpressions": ["x"]}, ['matchExpressions[0] must be a mapping, but is "x"'], id="expression-text"
        ),
        pytest.param(
            build_expression("a", "Is", "1"),
            ['matchExpressions[0].operator must be one of "In", "NotIn", "Exists", "DoesNotExist", but is "Is"'],
            id="unknown-operator",
        ),
        pytest.param(
            build_expression("a", "In"),
            ["matchExpressions[0].values must not be empty for the operator In"],
            id="in-no-values",
        ),
        pytest.param(
            build_expression("a", "Exists", "1"),
            ["matchExpressions[0].values must be empty for the operator Exists"],
            id="exists-with-values",
        ),
        pytest.param(
            {"matchExpressions": [{"key": 5, "operator": "Exists", "more": 1}]},
            [
                "matchExpressions[0].key must be a string, but is 5; put the value in quotes",
                "matchExpressions[0].more is an unknown field; allowed fields: key, operator, values",
            ],
            id="all-faults-of-an-entry",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]},
            ["matchExpressions[0].values[0] must be a string, but is 1; put the value in quotes"],
            id="value-not-a-string",
        ),
    ],
)
def test_errors(data: Any, faults: list[str]) -> None:
    selector, values = read_selector(data)

    assert list(values) == faults
    assert (selector is None) == bool(faults)


def test_selectors_in_another_order_are_equal() -> None:
    first, _ = read_selector({"matchLabels": {"b": "2", "a": "1"}} | build_expression("k", "In", "y", "x", "y"))
    second, _ = read_selector({"matchLabels": {"a": "1", "b": "2"}} | build_expression("k", "In", "x", "y"))

    assert first == second
    assert first == LabelSelector((("a", "1"), ("b", "2")), (LabelRequirement("k", "In", ("x", "y")),))


KEYS = st.sampled_from(["a", "b", "c"])
REQUIREMENTS = st.one_of(
    st.builds(
        lambda k, o, v: build_expression(k, o, *v), KEYS, st.sampled_from(["In", "NotIn"]), st.lists(KEYS, min_size=1)
    ),
    st.builds(build_expression, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
)


@given(REQUIREMENTS, st.dictionaries(KEYS, KEYS))
def test_serialized_selector_is_read_back(data: dict[str, Any], labels: dict[str, str]) -> None:
    selector, _ = read_selector(data | {"matchLabels": labels})
    assert selector is not None

    assert read_selector(selector.as_data()) == (selector, ())
