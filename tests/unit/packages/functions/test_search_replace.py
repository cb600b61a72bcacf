"""Tests of search-replace: matching fields and their new values."""

from __future__ import annotations

import pytest

from reconciler.packages.functions.search_replace import matches_path_pattern, search_replace
from tests.unit.packages.builders import build_config, format_items, list_messages, run_function

HEAD = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n"


@pytest.mark.parametrize(
    ("search", "before", "after"),
    [
        pytest.param({"by-value": "x", "put-value": "w"}, "b: x\nc: [x, z]\n", "b: w\nc: [w, z]\n", id="by-value"),
        pytest.param(
            {"by-value-regex": "ng(.*):(.*)", "put-value": "ub${1}:${2}-x"},
            "i: nginx:1\n",
            "i: ubinx:1-x\n",
            id="regex",
        ),
        pytest.param({"by-path": "**.m", "put-value": "4"}, "b:\n  m: 1\n", "b:\n  m: 4\n", id="by-path"),
        pytest.param({"by-path": "b.m", "put-value": "4"}, "b:\n  m: 1\n", "b:\n  m: 4\n", id="absolute-path"),
        pytest.param({"by-path": "b.m", "put-value": "4"}, "", "b:\n  m: 4\n", id="absolute-path-is-made"),
        pytest.param({"by-path": "b.m", "by-value": "1", "put-value": "4"}, "c: 1\n", "c: 1\n", id="both-must-hold"),
        pytest.param(
            {"by-value": "1", "put-comment": "kpt-set: ${n}"}, "c: 1\n", "c: 1 # kpt-set: ${n}\n", id="comment"
        ),
        pytest.param(
            {"by-path": "l", "put-comment": "kpt-set: ${l}"},
            "l:\n- a\n",
            "l: # kpt-set: ${l}\n- a\n",
            id="list-comment",
        ),
        pytest.param(
            {"by-value": "x", "put-value": "w", "by-file-path": "other/**"}, "b: x\n", "b: x\n", id="other-file"
        ),
        pytest.param(
            {"by-value": "x", "put-value": "w", "by-file-path": "**/*.yaml"}, "b: x\n", "b: w\n", id="this-file"
        ),
        pytest.param({"by-value": "x"}, "b: x\n", "b: x\n", id="only-looking"),
        pytest.param({"by-value": "x", "put-value": "3"}, 'b: "x"\n', 'b: "3"\n', id="quoted-stays-a-string"),
    ],
)
def test_search_replace(search: dict[str, str], before: str, after: str) -> None:
    output = run_function(search_replace, HEAD + before, build_config("ConfigMap", search))

    assert not output.has_failed
    assert format_items(output.items) == HEAD + after


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        pytest.param("a.b", "a.b", True, id="equal"),
        pytest.param("a.b.c", "a.*.c", True, id="star"),
        pytest.param("a.c", "a.*.c", False, id="star-is-one-element"),
        pytest.param("a.c", "a.**.c", True, id="two-stars-may-be-none"),
        pytest.param("a.b[0].c", "a.b[*].c", True, id="any-index"),
        pytest.param("a.b[0].c", "a.b[1].c", False, id="another-index"),
        pytest.param("a.b[0].c", "a.*[0].c", True, id="any-list"),
        pytest.param("a.b.c", "**", True, id="everything"),
        pytest.param("a", "b.**", False, id="wrong-start"),
    ],
)
def test_path_matches(path: str, pattern: str, expected: bool) -> None:
    assert matches_path_pattern(path, pattern.split(".")) is expected


@pytest.mark.parametrize(
    ("search", "message"),
    [
        pytest.param({"by-name": "x"}, "invalid matcher", id="unknown-key"),
        pytest.param({"by-value": "x", "by-value-regex": "x"}, "only one of", id="two-values"),
        pytest.param({"by-value-regex": "("}, "must be a valid regular expression", id="bad-regex"),
        pytest.param({"by-value-regex": "x", "put-value": "${1}"}, "unable to resolve", id="no-such-group"),
    ],
)
def test_failures(search: dict[str, str], message: str) -> None:
    output = run_function(search_replace, HEAD + "b: x\n", build_config("ConfigMap", search))

    assert output.has_failed
    assert message in list_messages(output)[0][1]


@pytest.mark.parametrize(
    ("search", "text", "message", "field"),
    [
        pytest.param({"by-value": "x"}, "b: x\n", 'Matched field value "x"', "b", id="match"),
        pytest.param({"by-value": "x"}, 'b: "x"\n', 'Matched field value "\\"x\\""', "b", id="in-its-quotes"),
        pytest.param(
            {"by-value": "x", "put-value": "it's"},
            "b: 'x'\n",
            "Mutated field value to \"'it''s'\"",
            "b",
            id="new-value",
        ),
        pytest.param(
            {"by-path": "**.l", "put-comment": "kpt-set: ${l}"},
            "b:\n  l: [x, 'y']\n",
            'Mutated field value to "[x, y]"',
            "**.l # kpt-set: ${l}",
            id="list",
        ),
        pytest.param({"by-value": "x"}, "", "no matches", "", id="nothing"),
    ],
)
def test_results(search: dict[str, str], text: str, message: str, field: str) -> None:
    output = run_function(search_replace, HEAD + text, build_config("ConfigMap", search))

    assert [(result.severity, result.message, result.field) for result in output.results] == [("info", message, field)]
