from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.output.changes.fields import ABSENT_FIELD, FieldChange, find_field_changes
from tests.support.examples import examples

WEB = {"name": "web", "image": "web:1"}
LOG = {"name": "log", "image": "log:1"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="equal-data"),
        pytest.param({"a": 1}, {"a": 2}, ["a 1 → 2"], id="a-value"),
        pytest.param({"a": 1}, {"a": True}, ["a 1 → true"], id="one-is-not-true"),
        pytest.param({"a": 1}, {"a": 1.0}, ["a 1 → 1.0"], id="an-integer-is-no-float"),
        pytest.param({}, {"a": None}, ["a added (null)"], id="null-is-not-absent"),
        pytest.param({"a": {"b": "c"}}, {}, ['a removed (was {"b": "c"})'], id="a-whole-section-gone"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 2}}, ["a.b 1 → 2"], id="paths-have-dots"),
        pytest.param({"a\nb": 1}, {"a\nb": 2}, ["[a⏎b] 1 → 2"], id="no-key-breaks-the-line"),
        pytest.param({"a": {"x.io/y": 1}}, {"a": {"x.io/y": 2}}, ["a[x.io/y] 1 → 2"], id="keys-with-dots-in-brackets"),
        pytest.param(
            {"c": [WEB, LOG]},
            {"c": [{**WEB, "image": "web:2"}, LOG]},
            ["c[web].image web:1 → web:2"],
            id="items-by-name",
        ),
        pytest.param(
            {"c": [WEB]}, {"c": [LOG, WEB]}, ['c[log] added ({"name": "log", "image": "log:1"})'], id="a-new-item"
        ),
        pytest.param(
            {"c": [WEB, LOG]},
            {"c": [LOG, WEB]},
            ['c ["web", "log"] → ["log", "web"]'],
            id="another-order-of-named-items",
        ),
        pytest.param(
            {"c": [{"x": 1}, {"x": 2}]}, {"c": [{"x": 1}, {"x": 3}]}, ["c[1].x 2 → 3"], id="nameless-by-index"
        ),
        pytest.param(
            {"c": [WEB, WEB]}, {"c": [WEB, LOG]}, ["c[1].name web → log", "c[1].image web:1 → log:1"], id="twins"
        ),
        pytest.param(
            {"c": [1, 2]}, {"c": [1, 2, 3]}, ["c [1, 2] → [1, 2, 3]"], id="a-longer-list-of-values-as-a-whole"
        ),
        pytest.param({"c": []}, {"c": {}}, ["c [] → {}"], id="a-list-is-no-mapping"),
        pytest.param(
            {"g": [{"conditionType": "a"}]},
            {"g": []},
            ['g[a] removed (was {"conditionType": "a"})'],
            id="a-gate-by-its-type",
        ),
    ],
)
def test_field_changes(before: dict[str, Any], after: dict[str, Any], expected: list[str]) -> None:
    assert [change.format_line() for change in find_field_changes(before, after)] == expected


def test_changed_fields_come_before_new_fields() -> None:
    changes = find_field_changes({"b": 1, "a": 1}, {"z": 1, "a": 2, "b": 2})

    assert [change.path_text for change in changes] == ["b", "a", "z"]


def test_null_and_absent_fields_are_distinguished() -> None:
    assert list(find_field_changes({"a": None}, {})) == [FieldChange(("a",), None, ABSENT_FIELD)]


DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from(["name", "a", "b"]), inside, max_size=3)
    ),
    max_leaves=12,
)


@given(DATA)
def test_data_does_not_differ_from_its_copy(data: Any) -> None:
    assert list(find_field_changes(data, copy.deepcopy(data))) == []


def convert_to_typed_values(data: Any) -> Any:
    """Return the data with the type of each scalar, so that equality has the meaning of YAML."""
    if isinstance(data, dict):
        return {key: convert_to_typed_values(value) for key, value in data.items()}
    return [convert_to_typed_values(item) for item in data] if isinstance(data, list) else (type(data), data)


@settings(max_examples=examples(200))
@given(DATA, DATA)
def test_changes_are_found_only_for_different_data(before: Any, after: Any) -> None:
    assert bool(list(find_field_changes(before, after))) == (
        convert_to_typed_values(before) != convert_to_typed_values(after)
    )
