"""Tests of apply-setters: setter comments and the values that they produce."""

from __future__ import annotations

import pytest

from reconciler.packages.functions.setters import apply_setters
from tests.unit.packages.builders import build_config, format_items, list_messages, run_function

HEAD = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n"


@pytest.mark.parametrize(
    ("setters", "before", "after"),
    [
        pytest.param({"n": "3"}, "n: 1 # kpt-set: ${n}\n", "n: 3 # kpt-set: ${n}\n", id="number"),
        pytest.param({"n": "3"}, 'n: "1" # kpt-set: ${n}\n', 'n: "3" # kpt-set: ${n}\n', id="quoted-stays-a-string"),
        pytest.param({"n": "3"}, "n: 'x' # kpt-set: ${n}\n", "n: '3' # kpt-set: ${n}\n", id="quoted-text"),
        pytest.param({"n": "true"}, "n: x # kpt-set: ${n}\n", "n: true # kpt-set: ${n}\n", id="type-is-derived-again"),
        pytest.param(
            {"n": "1.10"}, "n: v1 # kpt-set: ${n}\n", 'n: "1.10" # kpt-set: ${n}\n', id="version-is-no-number"
        ),
        pytest.param({"n": ""}, "n: x # kpt-set: ${n}\n", 'n: "" # kpt-set: ${n}\n', id="empty"),
        pytest.param(
            {"tier": "prod"},
            "i: web:dev-1.0 # kpt-set: web:${tier}-${ver}\n",
            "i: web:prod-1.0 # kpt-set: web:${tier}-${ver}\n",
            id="the-rest-is-derived",
        ),
        pytest.param({"x": "1"}, "n: 2 # kpt-set: ${n}\n", "n: 2 # kpt-set: ${n}\n", id="other-setters"),
        pytest.param({"n": "3"}, "n: 2 # unless ${n}\n", "n: 2 # unless ${n}\n", id="other-comments"),
        pytest.param({"l": "[a, b]"}, "l: # kpt-set: ${l}\n- z\n", "l: # kpt-set: ${l}\n- a\n- b\n", id="block-list"),
        pytest.param({"l": "[]"}, "l: # kpt-set: ${l}\n- z\n", "l: [] # kpt-set: ${l}\n", id="list-emptied"),
        pytest.param({"l": "- a"}, "l: [] # kpt-set: ${l}\n", "l: # kpt-set: ${l}\n- a\n", id="list-filled"),
        pytest.param({"n": "3"}, "l:\n- 1 # kpt-set: ${n}\n", "l:\n- 3 # kpt-set: ${n}\n", id="element"),
        pytest.param(
            {"l": "[a]", "n": "3"},
            "l: # kpt-set: ${l}\n- 1 # kpt-set: ${n}\n",
            "l: # kpt-set: ${l}\n- a # kpt-set: ${n}\n",
            id="a-replaced-list-comes-before-its-elements",
        ),
    ],
)
def test_apply_setters(setters: dict[str, str], before: str, after: str) -> None:
    output = run_function(apply_setters, HEAD + before, build_config("ConfigMap", setters))

    assert not output.has_failed
    assert format_items(output.items) == HEAD + after


@pytest.mark.parametrize(
    ("setters", "text", "message"),
    [
        pytest.param(
            {"a": "1"}, "i: x # kpt-set: ${a}-${b}\n", "values for setters [${b}] must be provided", id="missing"
        ),
        pytest.param(
            {"l": "a"}, "l: # kpt-set: ${l}\n- z\n", 'must be an array of values, but found "a"', id="no-list"
        ),
        pytest.param(
            {"l": "[a]"}, "l: # kpt-set: x-${l}\n- z\n", "invalid setter pattern for array node", id="mixed-list"
        ),
    ],
)
def test_failures(setters: dict[str, str], text: str, message: str) -> None:
    output = run_function(apply_setters, HEAD + text, build_config("ConfigMap", setters))

    assert output.has_failed
    assert [severity for severity, _ in list_messages(output)] == ["error"]
    assert message in list_messages(output)[0][1]


def test_results() -> None:
    output = run_function(
        apply_setters, HEAD + "spec:\n  l:\n  - n: 1 # kpt-set: ${n}\n", build_config("ConfigMap", {"n": "2"})
    )

    assert [(result.message, result.field, result.file) for result in output.results] == [
        ('set field value to "2"', "spec.l[0].n", "r.yaml")
    ]
    assert list_messages(run_function(apply_setters, HEAD, None)) == [("info", "no matches for input setter(s)")]
