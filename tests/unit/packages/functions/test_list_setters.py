"""Tests of list-setters: the setters of a package."""

from __future__ import annotations

import pytest

from reconciler.packages.functions.function import FunctionContext, Item
from reconciler.packages.functions.setters import list_setters
from tests.unit.packages.builders import list_messages, parse_items, run_function

HEAD = "apiVersion: v1\nkind: K\nmetadata:\n  name: me\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("r: 3 # kpt-set: ${n}\n", ["Name: n, Value: 3, Type: int, Count: 1"], id="number"),
        pytest.param('r: "3" # kpt-set: ${n}\n', ["Name: n, Value: 3, Type: str, Count: 1"], id="text"),
        pytest.param("r: true # kpt-set: ${n}\n", ["Name: n, Value: true, Type: bool, Count: 1"], id="boolean"),
        pytest.param(
            "i: a:1 # kpt-set: ${n}:${t}\nj: 2 # kpt-set: ${t}\n",
            ["Name: n, Value: a, Type: str, Count: 1", "Name: t, Value: 1, Type: int, Count: 2"],
            id="the-more-exact-type-and-the-first-value",
        ),
        pytest.param("l: # kpt-set: ${l}\n- b\n- a\n", ["Name: l, Value: [a, b], Type: array, Count: 1"], id="list"),
        pytest.param("l: [] # kpt-set: ${l}\n", ["Name: l, Value: [], Type: array, Count: 1"], id="empty-list"),
        pytest.param("i: b # kpt-set: a-${n}\n", ["no setters found"], id="the-value-does-not-show-it"),
        pytest.param("i: b # set\n", ["no setters found"], id="none"),
    ],
)
def test_setters_in_comments(text: str, expected: list[str]) -> None:
    output = run_function(list_setters, HEAD + text, None)

    assert [message for _, message in list_messages(output)] == expected


def build_kptfile(*functions: str) -> Item:
    """Return a Kptfile with these functions."""
    mutators = "".join(f"  - {function}\n" for function in functions)
    text = f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: p\npipeline:\n  mutators:\n{mutators}"
    return parse_items(text, "Kptfile")[0]


@pytest.mark.parametrize(
    ("functions", "expected"),
    [
        pytest.param(
            ["{image: apply-setters, configMap: {n: x, l: '[b, a]'}}"],
            ["Name: l, Value: [b, a], Type: array, Count: 0", "Name: n, Value: x, Type: int, Count: 1"],
            id="values-of-the-pipeline",
        ),
        pytest.param(
            ["{image: apply-setters, configMap: {n: x}}", "{image: apply-setters, configPath: ./s.yaml}"],
            ["Name: n, Value: y, Type: int, Count: 1"],
            id="the-last-function-counts",
        ),
        pytest.param(["{image: other, configMap: {n: x}}"], ["Name: n, Value: 3, Type: int, Count: 1"], id="others"),
        pytest.param(
            ["{image: apply-setters, configPath: gone.yaml}"], ["Name: n, Value: 3, Type: int, Count: 1"], id="no-file"
        ),
    ],
)
def test_setters_in_the_pipeline(functions: list[str], expected: list[str]) -> None:
    resources = parse_items(f"{HEAD}r: 3 # kpt-set: ${{n}}\n")
    setters = parse_items("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: s\ndata:\n  n: y\n", "s.yaml")
    output = list_setters([build_kptfile(*functions), *resources, *setters], None, FunctionContext())

    assert [message for _, message in list_messages(output)] == expected
