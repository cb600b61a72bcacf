"""Tests of create-setters: which fields receive a setter comment."""

from __future__ import annotations

import pytest

from reconciler.packages.functions.setters import create_setters
from tests.unit.packages.builders import build_config, format_items, list_messages, run_function

HEAD = "apiVersion: v1\nkind: K\nmetadata:\n  name: me\n"


@pytest.mark.parametrize(
    ("setters", "before", "after"),
    [
        pytest.param({"n": "nginx"}, "i: nginx\n", "i: nginx # kpt-set: ${n}\n", id="whole-value"),
        pytest.param(
            {"n": "nginx", "t": "1.2"}, "i: nginx:1.2\n", "i: nginx:1.2 # kpt-set: ${n}:${t}\n", id="parts-of-a-value"
        ),
        pytest.param({"n": "3"}, "r: 3\n", "r: 3 # kpt-set: ${n}\n", id="number"),
        pytest.param({"n": "x"}, "i: x # old\n", "i: x # kpt-set: ${n}\n", id="another-comment-is-replaced"),
        pytest.param(
            {"s": "dev", "l": "dev-1"}, "i: dev-1-dev\n", "i: dev-1-dev # kpt-set: ${l}-${s}\n", id="longest-first"
        ),
        pytest.param({"b": "x", "a": "x"}, "i: x\n", "i: x # kpt-set: ${a}\n", id="equal-values"),
        pytest.param({"n": "x"}, "i: x\nt: |\n  x\n  y\n", "i: x # kpt-set: ${n}\nt: |\n  x\n  y\n", id="lines"),
        pytest.param({"e": "[b, a]"}, "l:\n- a\n- b\n", "l: # kpt-set: ${e}\n- a\n- b\n", id="list"),
        pytest.param({"e": "[a, b]"}, "l: [a, b]\n", "l: # kpt-set: ${e}\n- a\n- b\n", id="flow-list"),
        pytest.param({"e": "[]"}, "l: []\n", "l: [] # kpt-set: ${e}\n", id="empty-list"),
        pytest.param({"n": "b"}, "l: [c, b]\n", "l:\n- c\n- b # kpt-set: ${n}\n", id="element-of-a-flow-list"),
        pytest.param(
            {"n": "b", "e": "[b]"}, "l: [b]\n", "l: # kpt-set: ${e}\n- b # kpt-set: ${n}\n", id="list-and-element"
        ),
    ],
)
def test_create_setters(setters: dict[str, str], before: str, after: str) -> None:
    output = run_function(create_setters, HEAD + before, build_config("ConfigMap", setters))

    assert not output.has_failed
    assert format_items(output.items) == HEAD + after


def test_messages() -> None:
    text = f"{HEAD}i: nginx\nl: [q, p]\n"
    output = run_function(create_setters, text, build_config("ConfigMap", {"n": "nginx", "l": "[p, q]"}))

    assert [(result.field, result.message) for result in output.results] == [
        ("l", 'Added line comment "kpt-set: ${l}" for field with value "[p q]"'),
        ("i", 'Added line comment "kpt-set: ${n}" for field with value "nginx"'),
    ]


def test_field_without_position_for_a_comment_is_a_warning() -> None:
    text = f"{HEAD}i: {{m: nginx, n: x}}\n"
    output = run_function(create_setters, text, build_config("ConfigMap", {"n": "nginx"}))

    assert format_items(output.items) == text
    assert [result.severity for result in output.results] == ["warning"]


@pytest.mark.parametrize(
    ("setters", "reason"),
    [
        pytest.param({}, "config map cannot be empty", id="empty"),
        pytest.param({"n": "[a"}, "the value of n must be a scalar or a list", id="no-yaml"),
        pytest.param({"n": "nowhere"}, "no matches for the input list of setters", id="no-match"),
    ],
)
def test_errors(setters: dict[str, str], reason: str) -> None:
    output = run_function(create_setters, HEAD, build_config("ConfigMap", setters))

    assert output.has_failed
    assert reason in list_messages(output)[0][1]
