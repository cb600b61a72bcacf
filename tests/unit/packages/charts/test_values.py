"""Tests of the merge of chart values with Helm's rules, and of the history of each value."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.helm_paths import parse_option_name
from reconciler.krm.merge3.rules import ABSENT
from reconciler.packages.charts.value_history import trace_values
from reconciler.packages.charts.values import (
    LayerKind,
    MergedValues,
    ValuesLayer,
    find_imprecise_integers,
    find_layer,
    format_values_path,
    merge_layers,
)


def build_layer(values: Any, target: str = "", kind: LayerKind = "values", source: str = "a") -> ValuesLayer:
    return ValuesLayer(kind, source, values, parse_option_name(target) if target else ())


def build_parameter(name: str, value: Any) -> ValuesLayer:
    return build_layer(value, name, "parameter", f"parameter {name}")


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        pytest.param([], {}, id="no-layers"),
        pytest.param([build_layer({"a": {"b": 1}}), build_layer({"a": {"c": 2}})], {"a": {"b": 1, "c": 2}}, id="maps"),
        pytest.param([build_layer({"a": [1, 2]}), build_layer({"a": [3]})], {"a": [3]}, id="lists-are-replaced"),
        pytest.param([build_layer({"a": {"b": 1}}), build_layer({"a": None})], {"a": None}, id="null-stays"),
        pytest.param([build_layer({"a": None}), build_layer({"a": {"b": 1}})], {"a": {"b": 1}}, id="map-over-null"),
        pytest.param([build_layer({"a": {"b": 1}}), build_layer({"a": 2})], {"a": 2}, id="scalar-over-map"),
        pytest.param([build_layer({"a": {"b": 1}}), build_layer({"a": {}})], {"a": {"b": 1}}, id="empty-map-over-map"),
        pytest.param(
            [build_layer({"a": {"b": 1}}), build_parameter("a", {"c": 2})],
            {"a": {"c": 2}},
            id="parameter-replaces-a-map",
        ),
        pytest.param(
            [build_layer({"a": {"b": 1}}), build_layer({"c": 2}, "a", "values-from")],
            {"a": {"b": 1, "c": 2}},
            id="values-from-merges-a-map",
        ),
        pytest.param(
            [build_layer({"a": [{"b": 1}]}), build_layer({"c": 2}, "a[0]", "values-from")],
            {"a": [{"b": 1, "c": 2}]},
            id="values-from-merges-a-map-in-a-list",
        ),
        pytest.param([build_layer(3, "a.b", "values-from")], {"a": {"b": 3}}, id="values-from-with-a-target"),
        pytest.param(
            [build_layer({"a": [{"b": 1}]}), build_parameter("a[0].b", 2), build_parameter("a[2]", None)],
            {"a": [{"b": 2}, None, None]},
            id="items-of-a-list",
        ),
        pytest.param(
            [build_parameter("a", {"b": 1}), build_layer({"a": {"c": 2}}), build_parameter("a.d", 3)],
            {"a": {"b": 1, "c": 2, "d": 3}},
            id="layers-after-a-parameter",
        ),
        pytest.param([build_parameter(r"a\.b.c", "x")], {"a.b": {"c": "x"}}, id="escaped-dot"),
    ],
)
def test_merge(layers: list[ValuesLayer], expected: dict[str, Any]) -> None:
    """Maps are merged, lists are replaced, and null stays in the document."""
    assert merge_layers(layers) == MergedValues(expected)


def test_merge_does_not_change_the_layers() -> None:
    """The layers share data with the config. A parameter changes a copy."""
    data = {"a": [{"b": 1}], "c": {"d": [1]}}
    merge_layers([build_layer(data), build_parameter("a[0].b", 2), build_parameter("c.d[0]", 3)])
    assert data == {"a": [{"b": 1}], "c": {"d": [1]}}


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        pytest.param(
            [build_layer({"a": None}), build_parameter("a.b", 1)],
            "requires a map at a, where a lower layer sets null",
            id="null-on-the-path",
        ),
        pytest.param(
            [build_parameter("a", 1), build_parameter("a.b", 1)],
            "requires a map at a, where parameter a sets a number",
            id="number-of-another-parameter",
        ),
        pytest.param(
            [build_layer({"a": [1]}), build_parameter("a[0].b", 1)],
            "requires a map at a[0], where a lower layer sets a number",
            id="number-in-a-list",
        ),
        pytest.param(
            [build_layer({"a": {}}), build_parameter("a[0]", 1)],
            "requires a list at a, where a lower layer sets a map",
            id="map-instead-of-a-list",
        ),
        pytest.param(
            [build_parameter("a[65536]", 1), build_parameter("b[65536]", 1)],
            "would increase the number of list items in all values to more than 100000",
            id="too-many-items",
        ),
    ],
)
def test_layer_that_cannot_be_merged(layers: list[ValuesLayer], message: str) -> None:
    """A parameter whose path continues below a scalar is an error, and the other layers are merged."""
    merged = merge_layers([*layers, build_layer({"z": 1})])
    assert [problem.message for problem in merged.problems] == [message]
    assert merged.values["z"] == 1


def test_text_is_canonical() -> None:
    """Equal values have equal texts, whatever the order of their keys."""
    texts = {merge_layers([build_layer(values)]).text for values in ({"b": 1, "a": None}, {"a": None, "b": 1})}
    assert texts == {'{"a":null,"b":1}'}


def test_imprecise_integers() -> None:
    """Integers above 2^53 lose digits in Helm. Booleans and floating point numbers are exact."""
    values = {"a": [2**53, 2**53 + 1], "b": {"c": -(2**60)}, "d": True, "e": 1e300, "f": str(2**60)}
    assert list(find_imprecise_integers(build_layer(values))) == [(("a", 1), 2**53 + 1), (("b", "c"), -(2**60))]


@pytest.mark.parametrize(
    ("path", "source", "inner"),
    [
        pytest.param(("a", "b"), "two", ("a", "b"), id="highest-layer"),
        pytest.param(("a", "c"), "one", ("a", "c"), id="lower-layer"),
        pytest.param(("a", "missing"), "two", ("a",), id="nearest-parent"),
        pytest.param(("list", "1"), "one", ("list", 1), id="list-item"),
        pytest.param(("x", "y"), "three", (), id="target"),
        pytest.param(("x", "y", "z"), "three", (), id="below-a-target"),
    ],
)
def test_find_layer(path: tuple[str, ...], source: str, inner: tuple[str | int, ...]) -> None:
    """The layer of a value is the highest layer that sets the value or its nearest parent."""
    layers = [
        build_layer({"a": {"b": 1, "c": 2}, "list": [1, 2]}, source="one"),
        build_layer({"a": {"b": 3}}, source="two"),
        build_layer(5, "x.y", source="three"),
    ]
    found = find_layer(layers, path)
    assert found is not None
    assert (found[0].source, found[1]) == (source, inner)


def test_find_layer_of_an_unknown_value() -> None:
    """A value that no layer sets has no layer."""
    assert find_layer([build_layer({"a": 1})], ("b",)) is None


def list_histories(layers: list[ValuesLayer]) -> dict[str, list[tuple[Any, ...]]]:
    return {
        format_values_path(history.path): [
            (step.layer.source, format_values_path(step.path), step.before, step.after) for step in history.steps
        ]
        for history in trace_values(layers)
    }


DEFAULTS = build_layer({"a": 1, "m": {"x": 1, "y": 2}, "list": [{"h": 1}]}, kind="chart-default", source="chart")


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        pytest.param(
            [build_layer({"a": 1}), build_layer({"a": 1, "b": {}}, source="b")],
            {"a": [("a", "a", ABSENT, 1), ("b", "a", 1, 1)], "b": [("b", "b", ABSENT, {})]},
            id="equal-value",
        ),
        pytest.param(
            [DEFAULTS, build_layer({"m": None})],
            {
                "a": [("chart", "a", ABSENT, 1)],
                "list": [("chart", "list", ABSENT, [{"h": 1}])],
                "m": [("chart", "m", ABSENT, {"x": 1, "y": 2}), ("a", "m", {"x": 1, "y": 2}, ABSENT)],
                "m.x": [("chart", "m.x", ABSENT, 1), ("a", "m", 1, ABSENT)],
                "m.y": [("chart", "m.y", ABSENT, 2), ("a", "m", 2, ABSENT)],
            },
            id="null-removes-defaults",
        ),
        pytest.param(
            [build_layer({"m": 1}), build_layer({"m": {"x": 2}}, source="b")],
            {"m.x": [("b", "m.x", ABSENT, 2)]},
            id="map-replaces-a-scalar",
        ),
        pytest.param(
            [build_layer({"m": {"x": 1, "y": 2}}), build_parameter("m", {"x": 3})],
            {
                "m.x": [("a", "m.x", ABSENT, 1), ("parameter m", "m.x", 1, 3)],
                "m.y": [("a", "m.y", ABSENT, 2), ("parameter m", "m", 2, ABSENT)],
            },
            id="parameter-replaces-a-map",
        ),
        pytest.param(
            [build_layer({"l": [{"h": 1}, 2]}), build_parameter("l[0].h", 5)],
            {"l": [("a", "l", ABSENT, [{"h": 1}, 2]), ("parameter l[0].h", "l[0].h", [{"h": 1}, 2], [{"h": 5}, 2])]},
            id="item-of-a-list",
        ),
    ],
)
def test_history(layers: list[ValuesLayer], expected: dict[str, list[tuple[Any, ...]]]) -> None:
    """The history of a value contains each layer that sets, replaces or removes the value."""
    assert list_histories(layers) == expected


def test_line_of_a_step() -> None:
    """The line of a step is the line of its path in the values of the layer."""
    layer = ValuesLayer("parameter", "a", {"x": 1}, ("m",), find_line=lambda path: 10 + len(path))
    (history,) = trace_values([layer])
    assert [step.line for step in history.steps] == [11]
