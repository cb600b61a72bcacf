"""Tests of expressions in options: placeholders, inserted values, their YAML types, and errors."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from reconciler.cel import ExpressionLimits
from reconciler.controllers.plugin_presets.option_expressions import (
    MAX_PLACEHOLDERS,
    EvaluatedExpression,
    evaluate_expression,
)

METADATA = {
    "region": "north-2",
    "version": "1.10",
    "answer": "yes",
    "mode": "0644",
    "on": "true",
    "none": "",
    "port": "8080",
    "list": "[a, b]",
    "comment": "a # b",
    "tricky": "${global.greenhouse.clusterName}",
}
VARIABLES: dict[str, Any] = {
    "global": {"greenhouse": {"organizationName": "acme", "clusterName": "edge-01", "metadata": METADATA}}
}
M = "global.greenhouse.metadata"


def evaluate_valid_expression(text: str) -> Any:
    evaluated_expression = evaluate_expression(text, VARIABLES)
    assert evaluated_expression.errors == ()
    return evaluated_expression.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("plain", "plain", id="no-placeholder"),
        pytest.param("a: [1, x]\nb: {c: true}", {"a": [1, "x"], "b": {"c": True}}, id="no-placeholder-is-yaml"),
        pytest.param("42", 42, id="no-placeholder-is-typed"),
        pytest.param(f"${{{M}.region}}", "north-2", id="whole"),
        pytest.param(f"${{ {M}.region }}", "north-2", id="blanks-inside"),
        pytest.param(f"${{{M}\n.region}}", "north-2", id="lines-inside"),
        pytest.param(
            f"https://in.${{{M}.region}}.logs/${{global.greenhouse.clusterName}}",
            "https://in.north-2.logs/edge-01",
            id="within-a-text",
        ),
        pytest.param(f"${{{M}.region}}-${{{M}.region}}", "north-2-north-2", id="every-repeat"),
        pytest.param(f"${{{M}.region}}${{global.greenhouse.organizationName}}", "north-2acme", id="side-by-side"),
        pytest.param(
            f"org: ${{global.greenhouse.organizationName}}\nlen: ${{size({M}.region)}}\n${{{M}.region}}: 1",
            {"org": "acme", "len": 7, "north-2": 1},
            id="in-values-and-keys",
        ),
        pytest.param(f"|\n  region=${{{M}.region}}\n", "region=north-2\n", id="block-scalar"),
        pytest.param(f"${{has({M}.ring) ? {M}.ring : 'stable'}}", "stable", id="has-and-choice"),
        pytest.param(f"${{{M}.region.upperAscii()}}", "NORTH-2", id="string-extension"),
        pytest.param(f"${{{M}.region.split('-').join('.')}}", "north.2", id="split-and-join"),
        pytest.param(f"$${{{M}.region}}", "$north-2", id="no-escape"),
        pytest.param("${}", "${}", id="nothing-in-it-is-text"),
        pytest.param(f"${{}}${{{M}.region}}", "${}north-2", id="nothing-in-it-before-a-placeholder"),
        pytest.param("'${'", "${", id="never-closed"),
        pytest.param("${'a' + \"b\"} }", "ab }", id="closing-brace-behind"),
        pytest.param(f"${{{M}.tricky}}", "${global.greenhouse.clusterName}", id="result-is-not-evaluated-again"),
    ],
)
def test_placeholders_are_replaced(text: str, expected: Any) -> None:
    assert evaluate_valid_expression(text) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("true", "true", id="boolean"),
        pytest.param("null", "null", id="null"),
        pytest.param("1 + 1", "2", id="int"),
        pytest.param("-9223372036854775808", "-9223372036854775808", id="least-int"),
        pytest.param("18446744073709551615u", "18446744073709551615", id="greatest-uint"),
        pytest.param("1.5", "1.5", id="double"),
        pytest.param("8080.0", "8080", id="whole-double-has-no-point"),
        pytest.param("1e20", "100000000000000000000", id="large-double"),
        pytest.param("1e21", "1e+21", id="very-large-double"),
        pytest.param("0.000001", "0.000001", id="small-double"),
        pytest.param("0.00000015", "1.5e-7", id="very-small-double"),
        pytest.param("['a', 1, [true]]", '["a",1,[true]]', id="list"),
        pytest.param("[]", "[]", id="empty-list"),
        pytest.param(r"'a\"b'", 'a"b', id="string-as-it-is"),
        pytest.param(r"['a\"b\\\n']", r'["a\"b\\\n"]', id="string-in-a-list-as-json"),
        pytest.param(f"['b', 'a'].map(k, {M}.region)", '["north-2","north-2"]', id="map"),
    ],
)
def test_inserted_values_are_formatted(expression: str, expected: str) -> None:
    assert evaluate_valid_expression(f"|-\n  ${{{expression}}}") == expected


def test_keys_of_an_inserted_map_are_sorted() -> None:
    variables = {"global": {"b": 1, "a": {"d": None, "c": "x"}}}

    assert evaluate_expression("'${global}'", variables).value == '{"a":{"c":"x","d":null},"b":1}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"${{{M}.answer}}", "yes", id="yes-stays-text-in-yaml-1.2"),
        pytest.param(f"'${{{M}.version}}'", "1.10", id="quoted-version"),
        pytest.param(f'"${{{M}.mode}}"', "0644", id="quoted-mode"),
        pytest.param(f"${{{M}.version}}.0", "1.10.0", id="version-of-three-parts"),
        pytest.param(f"v${{{M}.version}}", "v1.10", id="part-of-a-text"),
        pytest.param(f"${{int({M}.port)}}", 8080, id="number-on-purpose"),
        pytest.param(f"${{{M}.port == '8080'}}", True, id="boolean-on-purpose"),
        pytest.param(f"${{{M}.list}}", ["a", "b"], id="structure-is-put-in-too"),
        pytest.param(f"${{{M}.comment}}", "a", id="comment-is-one"),
        pytest.param(f"ports: [${{{M}.port}}0]", {"ports": [80800]}, id="number-in-parts"),
        pytest.param(f"!!int ${{{M}.port}}", 8080, id="an-explicit-yaml-tag"),
    ],
)
def test_values_without_a_type_warning(text: str, expected: Any) -> None:
    assert evaluate_expression(text, VARIABLES) == EvaluatedExpression(expected)


@pytest.mark.parametrize(
    ("text", "expected", "retyped"),
    [
        pytest.param(f"${{{M}.version}}", 1.1, [("version", "1.10", "1.1")], id="version"),
        pytest.param(f"${{{M}.mode}}", 644, [("mode", "0644", "644")], id="leading-zero"),
        pytest.param(f"${{{M}.on}}", True, [("on", "true", "true")], id="boolean"),
        pytest.param(f"${{{M}.port}} # why", 8080, [("port", "8080", "8080")], id="comment-behind"),
        pytest.param(f"a: ${{{M}.none}}\nb: 1", {"a": None, "b": 1}, [("none", "", "null")], id="empty-in-a-map"),
        pytest.param(
            f"- ${{{M}.on}}\n- '${{{M}.on}}'\n- [v${{{M}.port}}, ${{{M}.port}}]",
            [True, "true", ["v8080", 8080]],
            [("on", "true", "true"), ("port", "8080", "8080")],
            id="only-those-that-stand-alone",
        ),
    ],
)
def test_text_that_yaml_reads_as_another_type_is_reported(
    text: str, expected: Any, retyped: list[tuple[str, str, str]]
) -> None:
    evaluated_expression = evaluate_expression(text, VARIABLES)

    assert (evaluated_expression.value, evaluated_expression.errors) == (expected, ())
    assert list(evaluated_expression.retyped) == [
        f'contains {now} instead of the string "{was}", because the placeholder "${{{M}.{key}}}" is not in quotes; '
        "to keep a string, write quotes around the placeholder"
        for key, was, now in retyped
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "an expression must not be empty", id="empty"),
        pytest.param("  ", "of the expression must not be null", id="blank"),
        pytest.param("# nothing", "of the expression must not be null", id="only-a-comment"),
        pytest.param("null", "of the expression must not be null", id="null-written"),
        pytest.param("${null}", 'the result "null" of the expression must not be null', id="null-evaluated"),
        pytest.param(f"${{{M}.none}}", 'the result "" of the expression must not be null', id="empty-label"),
        pytest.param(f"${{{M}.ring}}", "no such key: ring (line 1, column 28)", id="missing-key"),
        pytest.param("${global.greenhouse.baseDomain}", "set the setting `rules.base_domain`", id="no-domain"),
        pytest.param(f"${{{M}.baseDomain}}", "no such key: baseDomain (line 1, column 28)", id="no-domain-of-metadata"),
        pytest.param("${global.greenhouse.teamNames}", "no such key: teamNames", id="injected-no-more"),
        pytest.param(
            "${cluster.name}", "the variable 'cluster' is not declared; declared variables: global", id="other-variable"
        ),
        pytest.param("${1 +}", '"${1 +}" cannot be evaluated: the expression is incomplete', id="no-cel"),
        pytest.param("${{'a': 1}}", "\"${{'a': 1}\" cannot be evaluated", id="a-brace-ends-a-placeholder"),
        pytest.param("${1 / 0}", "division by zero", id="arithmetic"),
        pytest.param("${b'x'}", "must be a string or a JSON value", id="bytes"),
        pytest.param("${[duration('1s')]}", "must be a string or a JSON value", id="duration-in-a-list"),
        pytest.param("${int}", "must be a string or a JSON value", id="type"),
        pytest.param("${1e308 * 10.0}", "must be a finite number", id="infinite-result"),
        pytest.param("[1, .inf]", "must contain only finite numbers", id="infinity-written"),
        pytest.param("{a: .nan}", "must contain only finite numbers", id="nan-written"),
        pytest.param(f"a: ${{{M}.region}}: b", "of the expression cannot be parsed: line 1", id="no-yaml"),
        pytest.param("${'a: 1\\na: 2'}", 'the key "a" occurs twice', id="key-twice"),
        pytest.param("a\n---\nb", "the text must be one document, not several", id="two-documents"),
        pytest.param("${'*a'}", "has no anchor", id="alias-put-in"),
        pytest.param("[" * 200 + "]" * 200, "at most 100 levels", id="deep"),
        pytest.param("\ud800", "cannot be parsed", id="lone-surrogate"),
    ],
)
def test_invalid_expression_is_reported(text: str, message: str) -> None:
    evaluated_expression = evaluate_expression(text, VARIABLES)

    assert evaluated_expression.value is None
    assert len(evaluated_expression.errors) == 1
    assert message in evaluated_expression.errors[0]


def test_each_failing_placeholder_is_reported_once() -> None:
    evaluated_expression = evaluate_expression("${a}${global.b}${a}", VARIABLES)

    assert [message.split(" cannot")[0] for message in evaluated_expression.errors] == ['"${a}"', '"${global.b}"']


@pytest.mark.parametrize(
    ("text", "limits", "message"),
    [
        pytest.param("${'" + "a" * 5_000 + "'}", ExpressionLimits(), "4096 are allowed", id="long-placeholder"),
        pytest.param(
            "${[1, 2, 3].map(x, x)} ${[1, 2, 3, 4].map(x, x)}",
            ExpressionLimits(steps=30),
            "more than 30 steps",
            id="steps-of-all-placeholders-together",
        ),
        pytest.param(
            ("${'" + "a" * 400 + "' + 'b'}") * 20,
            ExpressionLimits(bytes=5_000),
            "more than 5000 bytes of text",
            id="many-repeats",
        ),
        pytest.param(
            "".join(f"${{{number}}}" for number in range(MAX_PLACEHOLDERS + 1)),
            ExpressionLimits(),
            f"more than {MAX_PLACEHOLDERS} different placeholders",
            id="many-placeholders",
        ),
    ],
)
def test_limits_are_enforced(text: str, limits: ExpressionLimits, message: str) -> None:
    evaluated_expression = evaluate_expression(text, VARIABLES, limits)

    assert evaluated_expression.value is None
    assert any(message in error for error in evaluated_expression.errors)


def test_unclosed_placeholders_are_fast() -> None:
    text = "'" + "${" * 200_000 + "'"

    assert evaluate_valid_expression(text) == text[1:-1]


def test_value_does_not_share_memory_with_the_variables() -> None:
    before = json.dumps(VARIABLES)
    evaluate_expression("${global}", VARIABLES).value["greenhouse"]["metadata"].clear()

    assert json.dumps(VARIABLES) == before


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(-(2.0**53), 2.0**53)
    # YAML cannot contain a surrogate, and a mapping key in YAML has at most 1024 characters.
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(JSON)
@example("\x85\u2028\u2029\ufeff\ufffe\uffff\x7f\x00\U0001f600")
@example({"\u2028: ": [-0.0, 1e21, 1e-7, 5e-324]})
def test_inserted_json_is_read_as_the_same_data(data: Any) -> None:
    evaluated_expression = evaluate_expression("${[global]}", {"global": data})

    assert (evaluated_expression.value, evaluated_expression.errors, evaluated_expression.retyped) == ([data], (), ())


TOKENS = st.lists(st.sampled_from(["${", "{", "}", "$", "a", "1", "'", " ", "\n"]), max_size=12).map("".join)


@given(TOKENS)
def test_placeholders_match_the_pattern(tokens: str) -> None:
    text = tokens + "${a}"
    expressions = dict.fromkeys(re.findall(r"\$\{([^}]+)\}", text))
    alone = [
        message for expression in expressions for message in evaluate_expression(".${" + expression + "}", {}).errors
    ]

    assert list(evaluate_expression(text, {}).errors) == alone


@given(st.lists(st.sampled_from(["${'x'}", "${1}", "${", "{", "}", "$", "a", "\n  "]), max_size=12).map("".join))
def test_text_is_replaced_as_with_the_pattern(tokens: str) -> None:
    text = f".{tokens}."
    assume(set(re.findall(r"\$\{([^}]+)\}", text)) <= {"'x'", "1"})
    filled = re.sub(r"\$\{([^}]+)\}", lambda match: match[1].strip("'"), text)

    assert evaluate_expression(f"|-\n  {text}", {}).value == filled.replace("\n  ", "\n")


def test_formatted_double_is_read_as_the_same_number() -> None:
    for number in (0.1, 1 / 3, 123456.789, 1e-6, 9.999e-7, 1e20, 2.5e22, 5e-324, math.pi * 1e15):
        assert float(evaluate_expression("|-\n  ${global}", {"global": number}).value) == number
