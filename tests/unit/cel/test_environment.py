from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pytest

from reconciler.cel import (
    OMIT,
    CelCodes,
    CelEnvironment,
    CelOptional,
    ExpressionBudget,
    ExpressionError,
    ExpressionLimits,
    Uint,
    evaluate_string,
)
from reconciler.cel.inspection import find_field_path, list_called_functions

LOADED = "import sys; from reconciler.cel import load_parser; {}; sys.exit('lark' in sys.modules)"
SHAPES = CelEnvironment({"spec": {"image": {"tag": None}, "ports": None}, "env": None})
PORCH = CelEnvironment(frozenset({"repoDefault", "packageDefault", "upstream", "repository", "target"}))
BINDINGS = {
    "repoDefault": "east",
    "packageDefault": "base",
    "upstream": {"name": "base", "namespace": "default", "labels": {}, "annotations": {}},
    "repository": {"name": "east", "namespace": "default", "labels": {"region": "eu"}, "annotations": {}},
    "target": {"repo": "east", "package": "base"},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("repository.labels['region'] + '-x'", "eu-x", id="concatenation"),
        pytest.param("target.package", "base", id="a-reserved-word-is-a-field"),
        pytest.param("upstream.namespace + '/' + upstream.name", "default/base", id="another-reserved-word"),
        pytest.param("'zone' in repository.labels ? repository.labels.zone : 'none'", "none", id="guarded-key"),
        pytest.param("has(repository.labels.region) ? 'yes' : 'no'", "yes", id="has"),
    ],
)
def test_expression_of_a_package_variant_set(text: str, expected: str) -> None:
    assert evaluate_string(PORCH.compile(text), BINDINGS) == expected


def test_result_that_is_no_string_is_an_error() -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate_string(PORCH.compile("repository.labels"), BINDINGS)

    assert caught.value.code == "CelNotString"
    assert caught.value.message.startswith("expression returned non-string value")


@pytest.mark.parametrize(
    ("text", "code", "message", "column"),
    [
        pytest.param("target.name", "CelNoSuchKey", "no such key: name", 8, id="missing-field"),
        pytest.param("repository.labels['a']", "CelNoSuchKey", "no such key: a", 18, id="missing-key"),
        pytest.param("{true: 1}[false]", "CelNoSuchKey", "no such key: false", 10, id="missing-bool-key"),
        pytest.param("[1][1]", "CelIndex", "index out of bounds: 1; number of elements: 1", 4, id="index"),
        pytest.param("repoDefault.x", "CelNoOverload", "a value of type string has no field 'x'", 13, id="no-map"),
        pytest.param(
            "repoDefault + 1",
            "CelNoOverload",
            "no such overload: string + int; convert with string()",
            13,
            id="string-plus-int",
        ),
        pytest.param(
            "1 + 1.5",
            "CelNoOverload",
            "no such overload: int + double; convert with int(), uint() or double()",
            3,
            id="int-plus-double",
        ),
        pytest.param("1 / 0", "CelArithmetic", "division by zero", 3, id="division"),
        pytest.param("size(1)", "CelNoOverload", "no such overload: size(int)", 1, id="function"),
        pytest.param("repoDefault.split(1)", "CelNoOverload", "no such overload: split(string, int)", 13, id="method"),
        pytest.param("1 ? 2 : 3", "CelNoOverload", "?: requires a bool, not a value of type int", 3, id="condition"),
        pytest.param("!1", "CelNoOverload", "no such overload: !(int)", 1, id="not"),
        pytest.param("1 && true", "CelNoOverload", "&& requires a bool, not a value of type int", 3, id="and"),
        pytest.param(
            "[1].filter(x, x)", "CelNoOverload", "filter() requires a bool, not a value of type int", 5, id="filter"
        ),
        pytest.param(
            "1.map(x, x)", "CelNoOverload", "map() requires a list or map, not a value of type int", 3, id="range"
        ),
        pytest.param("{'a': 1, 'a': 2}", "CelDuplicateKey", "the map has the key a twice", 10, id="duplicate-key"),
        pytest.param(
            "{1.5: 1}", "CelNoOverload", "a value of type double cannot be the key of a map", 2, id="double-as-key"
        ),
        pytest.param("'a'.matches('(')", "CelRegex", "the pattern is not an RE2 regular expression", 5, id="pattern"),
        pytest.param(
            "optional.none().value()", "CelNone", "value() requires an optional that is not empty", 17, id="none"
        ),
        pytest.param(
            "[?1]", "CelNoOverload", "[?…] requires an optional, not a value of type int", 1, id="optional-item"
        ),
        pytest.param("int('x')", "CelConversion", "'x' cannot be converted to int", 1, id="conversion"),
        pytest.param(
            "has(repoDefault.x)", "CelNoOverload", "a value of type string has no field 'x'", 17, id="test-of-no-map"
        ),
        pytest.param(
            "repoDefault.?x", "CelNoOverload", "a value of type string has no field 'x'", 14, id="optional-of-no-map"
        ),
        pytest.param("['a']['a']", "CelNoOverload", "a list index must be an integer", 6, id="string-as-index"),
        pytest.param(
            "1 + 9223372036854775808", "CelSyntax", "9223372036854775808 is outside of the range", 5, id="range-of-int"
        ),
        *(
            pytest.param(
                text, "CelNoOverload", f"{name} requires an optional, not a value of type int", column, id=text
            )
            for text, name, column in (
                ("1.orValue(2)", "orValue()", 3),
                ("1.or(optional.none())", "or()", 3),
                ("optional.none().or(1)", "or()", 17),
                ("1.optMap(x, x)", "optMap()", 3),
                ("1.optFlatMap(x, x)", "optFlatMap()", 3),
                ("optional.of(1).optFlatMap(x, x)", "optFlatMap()", 16),
                ("{'a': 1, ?'b': 2}", "{?…}", 11),
            )
        ),
        pytest.param(
            "cel.bind(x, 1 / 0, 1 + x)", "CelArithmetic", "division by zero", 15, id="inside-of-a-bound-variable"
        ),
    ],
)
def test_error_contains_message_and_position(text: str, code: str, message: str, column: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        PORCH.compile(text).evaluate(BINDINGS)

    error = caught.value
    assert (error.code, error.line, error.column) == (code, 1, column)
    assert error.message.startswith(message)
    assert code in CelCodes.by_name


@pytest.mark.parametrize(
    ("text", "code", "message", "column"),
    [
        pytest.param(
            "nam",
            "CelUndeclared",
            "the variable 'nam' is not declared; declared variables: env, spec",
            1,
            id="undeclared",
        ),
        pytest.param(
            "{name: 1}", "CelUndeclared", "the variable 'name' is not declared", 2, id="a-key-is-an-expression"
        ),
        pytest.param(
            "env.x || y", "CelUndeclared", "the variable 'y' is not declared", 10, id="even-where-it-is-not-reached"
        ),
        pytest.param(
            "[1].map(x, x) + x", "CelUndeclared", "the variable 'x' is not declared", 17, id="outside-of-its-loop"
        ),
        pytest.param(
            "cel.bind(x, x, 1)", "CelUndeclared", "the variable 'x' is not declared", 13, id="in-its-own-value"
        ),
        pytest.param(".spec2", "CelUndeclared", "the variable 'spec2' is not declared", 2, id="absolute"),
        pytest.param("[1].map(spec, .spec.no)", "CelUndefinedField", "spec has no field 'no'", 21, id="past-a-local"),
        pytest.param(
            "spec.imag",
            "CelUndefinedField",
            "spec has no field 'imag'; existing fields: image, ports",
            6,
            id="undefined-field",
        ),
        pytest.param("spec['imag']", "CelUndefinedField", "spec has no field 'imag'", 5, id="undefined-key"),
        pytest.param("spec.?imag", "CelUndefinedField", "spec has no field 'imag'", 7, id="undefined-optional-field"),
        pytest.param("has(spec.image.tga)", "CelUndefinedField", "spec.image has no field 'tga'", 16, id="in-has"),
        pytest.param("f(1)", "CelUnknownFunction", "there is no function f()", 1, id="function"),
        pytest.param("omit()", "CelUnknownFunction", "there is no function omit()", 1, id="a-function-of-the-project"),
        pytest.param("env.f(1)", "CelUnknownFunction", "there is no method f()", 5, id="method"),
        pytest.param(
            "size(1, 2)", "CelUnknownFunction", "size() takes 1 argument, not 2", 1, id="arguments-of-a-function"
        ),
        pytest.param(
            "'a'.substring()", "CelUnknownFunction", "substring() takes 1 or 2 arguments, not 0", 5, id="of-a-method"
        ),
        pytest.param("math.least()", "CelUnknownFunction", "math.least() takes 1 or more", 6, id="of-any-number"),
        pytest.param("split('a', 'b')", "CelUnknownFunction", "split() is a method", 1, id="no-function"),
        pytest.param("1.type()", "CelUnknownFunction", "type() is a function", 3, id="no-method"),
        pytest.param("[1].map(x)", "CelUnknownFunction", "map() does not take 1 argument", 5, id="macro"),
    ],
)
def test_static_check(text: str, code: str, message: str, column: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        SHAPES.compile(text)

    error = caught.value
    assert (error.code, error.column) == (code, column)
    assert error.message.startswith(message)
    assert code in CelCodes.by_name


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("spec.image.tag.whatever", id="beyond-the-shape"),
        pytest.param("spec.ports[0].name", id="below-a-list"),
        pytest.param("spec['image']['tag']", id="by-key"),
        pytest.param("[1].map(spec, spec.no)", id="a-local-variable-hides-the-shape"),
        pytest.param("env.anything.goes", id="no-shape"),
        pytest.param("type(env) == map", id="types-are-names"),
        pytest.param("type(env) == google.protobuf.Timestamp", id="dotted-types-too"),
    ],
)
def test_static_check_accepts(text: str) -> None:
    assert SHAPES.compile(text).text == text


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("1 + 2", set(), id="none"),
        pytest.param("spec.image.tag", {"spec"}, id="the-root"),
        pytest.param("[1].map(spec, spec)", set(), id="a-local-variable-is-not-it"),
        pytest.param("[env].map(x, x == spec.ports)", {"env", "spec"}, id="inside-of-a-loop"),
        pytest.param("cel.bind(x, spec, x.optMap(y, env))", {"env", "spec"}, id="inside-of-macros"),
        pytest.param("math.abs(env)", {"env"}, id="a-namespace-is-none"),
    ],
)
def test_names_of_a_program(text: str, names: set[str]) -> None:
    assert SHAPES.compile(text).names == names


@pytest.mark.parametrize(
    ("text", "places"),
    [
        pytest.param("1 + 2", (), id="none"),
        pytest.param("env.a + spec.image.tag", ((0, "env"), (8, "spec")), id="in-their-order"),
        pytest.param("x.env", ((0, "x"),), id="a-field-is-none"),
        pytest.param("'env' + env", ((8, "env"),), id="nor-is-text"),
        pytest.param("env.map(env, env)", ((0, "env"),), id="nor-is-what-a-macro-binds"),
        pytest.param("cel.bind(spec, spec, spec)", ((15, "spec"),), id="nor-what-is-bound-by-hand"),
        pytest.param(
            "has( spec.image) ? [env] : {env: env[env]}",
            ((5, "spec"), (20, "env"), (28, "env"), (33, "env"), (37, "env")),
            id="in-all-kinds-of-nodes",
        ),
        pytest.param(".env.a", ((1, "env"),), id="absolute"),
        pytest.param("'ä😀' + env", ((7, "env"),), id="counted-in-characters"),
    ],
)
def test_positions_of_the_names_of_a_program(text: str, places: tuple[tuple[int, str], ...]) -> None:
    environment = CelEnvironment({"spec": {"image": {"tag": None}}, "env": None, "x": None})

    references = environment.compile(text).references

    assert tuple((reference.end - len(reference.name), reference.name) for reference in references) == places


@pytest.mark.parametrize(
    ("text", "start", "end", "accesses"),
    [
        pytest.param("spec", 0, 4, [], id="variable"),
        pytest.param("1 + spec.image.tag", 4, 8, [("image", 8, 14), ("tag", 14, 18)], id="fields"),
        pytest.param("spec['image'] [r'tag']", 0, 4, [("image", 4, 13), ("tag", 13, 22)], id="constant-indexes"),
        pytest.param("spec // c\n .image", 0, 4, [("image", 4, 17)], id="comment"),
        pytest.param(". spec.image", 0, 6, [("image", 6, 12)], id="leading-dot"),
        pytest.param("spec.image[env].tag", 0, 4, [("image", 4, 10)], id="computed-index"),
        pytest.param("spec.image.size()", 0, 4, [("image", 4, 10)], id="method"),
        pytest.param("spec[?'image']", 0, 4, [], id="optional-index"),
        pytest.param("(spec).image", 1, 5, [], id="variable-in-parentheses"),
        pytest.param("(spec.image).tag", 1, 5, [("image", 5, 11)], id="field-in-parentheses"),
    ],
)
def test_references_have_the_offsets_of_their_accesses(
    text: str, start: int, end: int, accesses: list[tuple[str, int, int]]
) -> None:
    reference = CelEnvironment({"spec": {"image": {"tag": None}}, "env": None}).compile(text).references[0]

    assert (reference.start, reference.end) == (start, end)
    assert [(access.name, access.start, access.end) for access in reference.accesses] == accesses


def test_references_have_the_forms_of_their_accesses() -> None:
    optional, test = CelEnvironment({"spec": None}).compile("spec.?a.b.hasValue() && has(spec.a.b)").references

    assert [access.is_optional for access in optional.accesses] == [True, False]
    assert [access.is_test for access in test.accesses] == [False, True]


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        pytest.param("size(a) > 1 ? omit() : [b.map(x, int(x))]", {"size", "omit", "int"}, id="functions"),
        pytest.param("a.omit + 'omit()' + b.size()", set(), id="fields-texts-and-methods"),
        pytest.param("omit(", set(), id="invalid"),
    ],
)
def test_called_functions(text: str, functions: set[str]) -> None:
    assert list_called_functions(text) == functions


@pytest.mark.parametrize(
    ("text", "path"),
    [
        pytest.param(" spec.image.tag ", ("spec", "image", "tag"), id="field"),
        pytest.param("spec", (), id="variable"),
        pytest.param("spec.?image", (), id="optional"),
        pytest.param("has(spec.image)", (), id="test"),
        pytest.param("spec.image.size()", (), id="method"),
        pytest.param("spec.image + 1", (), id="operator"),
        pytest.param("spec.", (), id="invalid"),
    ],
)
def test_field_path(text: str, path: tuple[str, ...]) -> None:
    assert find_field_path(text) == path


@pytest.mark.parametrize(
    ("text", "extensions"),
    [
        pytest.param("env.x + string(size(env.y)) + type(1u)", set(), id="standard-functions"),
        pytest.param("env.x.startsWith('a') && env.y.exists(i, i.matches('b'))", set(), id="standard-macros"),
        pytest.param("timestamp(env).getHours('UTC') > 1 && has(env.a)", set(), id="standard-times"),
        pytest.param("env.x.split(',').join()", {"split", "join"}, id="methods"),
        pytest.param("math.abs(env) + [1].map(i, math.least(i))[0]", {"math.abs", "math.least"}, id="functions"),
        pytest.param("env.all(k, v, true)", {"all"}, id="two-variables"),
        pytest.param("env.transformList(k, v, k).sortBy(i, i)", {"transformList", "sortBy"}, id="macros"),
        pytest.param("env.?a[?0].orValue(1)", {".?", "[?]", "orValue"}, id="optional-paths"),
        pytest.param("[[?env], {?'a': env}].map(i, i)", {"[?]", "{?}"}, id="optional-items"),
        pytest.param("cel.bind(a, 1, env.optMap(b, a))", {"cel.bind", "optMap"}, id="bindings"),
    ],
)
def test_extensions_that_a_program_uses(text: str, extensions: set[str]) -> None:
    assert SHAPES.compile(text).extensions == extensions


@pytest.mark.parametrize(
    ("text", "column"),
    [
        pytest.param("env == null || spec.ports == 1", 16, id="read"),
        pytest.param("env == null || has(spec.ports)", 20, id="test"),
    ],
)
def test_declared_variable_can_be_unbound_until_it_is_used(text: str, column: int) -> None:
    program = SHAPES.compile(text)

    assert program.evaluate({"env": None}) is True
    with pytest.raises(ExpressionError, match="the variable 'spec' has no value in this expression") as caught:
        program.evaluate({"env": 1})
    assert (caught.value.code, caught.value.column) == ("CelUndeclared", column)


def test_programs_are_cached_by_the_value_of_their_environment() -> None:
    first, second = (CelEnvironment({"a": {"b": None}}).compile("a.b") for _ in range(2))

    assert first is second
    assert CelEnvironment({"a": {"b": None, "c": None}}).compile("a.b") is not first
    assert CelEnvironment({"a": None}) != CelEnvironment({"a": {}})


def test_variables_can_be_dotted_and_resolved_in_a_container() -> None:
    environment = CelEnvironment({"a.b": None, "a.b.c": None, "x.y.a": None}, container="x.y")
    bindings = {"a.b": {"d": 1}, "a.b.c": 2, "x.y.a": {"z": 3}}

    values = [environment.compile(text).evaluate(bindings) for text in ("a.b.c", "a.b.d", "a.z")]

    assert values == [2, 1, 3]


def test_result_is_a_copy() -> None:
    value = {"list": [{"a": 1}]}

    result = CelEnvironment(frozenset({"x"})).compile("[x, x]").evaluate({"x": value})
    result[0]["list"][0]["a"] = 2

    assert value == {"list": [{"a": 1}]}
    assert result[1] == {"list": [{"a": 1}]}


@pytest.mark.parametrize(
    "value",
    [
        pytest.param((1, 2), id="tuple"),
        pytest.param({1, 2}, id="set"),
        pytest.param([object()], id="object-in-a-list"),
        pytest.param({"a": ...}, id="ellipsis-in-a-map"),
    ],
)
def test_unsupported_values_are_refused(value: Any) -> None:
    with pytest.raises(ExpressionError, match="is not a CEL value"):
        CelEnvironment(frozenset({"x"})).compile("x").evaluate({"x": value})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("x + 1", 10**400, id="sum"),
        pytest.param("double(x)", 10**400, id="double"),
        pytest.param("x == 1.5", 10**400, id="equality"),
        pytest.param("x < 1.5", 10**400, id="order"),
        pytest.param("string(x)", 10**5000, id="string"),
        pytest.param("math.sqrt(x)", 10**400, id="root"),
        pytest.param("'%f'.format([x])", 10**400, id="format"),
        pytest.param("timestamp(x)", 10**400, id="timestamp"),
        pytest.param("[1][x]", 10**5000, id="index"),
        pytest.param("lists.range(x)", -(10**5000), id="range"),
        pytest.param("math.bitShiftLeft(1, x)", -(10**5000), id="shift"),
        pytest.param("{'a': 1}[x]", 10**5000, id="key"),
    ],
)
def test_input_numbers_can_have_any_size(text: str, value: int) -> None:
    with pytest.raises(ExpressionError):
        CelEnvironment(frozenset({"x"})).compile(text).evaluate({"x": value})


def test_one_budget_for_several_evaluations() -> None:
    program = CelEnvironment().compile("lists.range(1000).map(x, x)")
    budget = ExpressionBudget(ExpressionLimits(steps=7_000))

    assert program.evaluate({}, budget) == list(range(1000))
    assert program.evaluate({}, budget) == list(range(1000))
    with pytest.raises(ExpressionError, match="more than 7000 steps"):
        program.evaluate({}, budget)
    assert program.evaluate({}) == list(range(1000))


def test_openchoreo_functions_must_be_enabled() -> None:
    environment = CelEnvironment(openchoreo_functions=True)

    assert environment.compile("omit()").evaluate({}) is OMIT
    assert environment.compile("size('ab')").evaluate({}) == 2


def test_results_keep_their_types() -> None:
    result = CelEnvironment().compile("[1u, 1, 1.0, true, optional.of([1u])]").evaluate({})

    assert [type(value) for value in result] == [Uint, int, float, bool, CelOptional]


def test_errors_can_be_pickled() -> None:
    with pytest.raises(ExpressionError) as caught:
        CelEnvironment().compile("1 +\n y")
    error = caught.value

    copy = pickle.loads(pickle.dumps(error))

    assert (copy.code, copy.line, copy.column, str(copy)) == (error.code, 2, 2, str(error))


def test_error_shows_its_position() -> None:
    with pytest.raises(ExpressionError) as caught:
        CelEnvironment().compile("[1,\n\tnope]")

    assert str(caught.value) == "the variable 'nope' is not declared; declared variables: none (line 2, column 2)"


def test_error_message_stays_on_one_line() -> None:
    with pytest.raises(ExpressionError) as caught:
        CelEnvironment(frozenset({"x"})).compile("x['a\\nb']").evaluate({"x": {}})

    assert caught.value.message == "no such key: a\\nb"


@pytest.mark.parametrize(
    ("command", "loaded"), [pytest.param("load_parser()", 1, id="requested"), pytest.param("0", 0, id="not-requested")]
)
def test_parser_is_loaded_on_demand(command: str, loaded: int) -> None:
    assert subprocess.run([sys.executable, "-c", LOADED.format(command)], check=False).returncode == loaded


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        pytest.param("spec.size", {("spec", "size")}, id="field"),
        pytest.param("spec.a.b.c + spec.d", {("spec", "a", "b", "c"), ("spec", "d")}, id="several"),
        pytest.param("spec", {("spec",)}, id="whole"),
        pytest.param("spec.items[0].name", {("spec", "items")}, id="as-far-as-an-index"),
        pytest.param("spec.items.map(spec, spec.name)", {("spec", "items")}, id="what-a-macro-binds-is-no-variable"),
        pytest.param("spec.?a.orValue(1)", {("spec", "a")}, id="optional"),
        pytest.param("'spec.size'", set(), id="text"),
    ],
)
def test_fields_that_a_program_reads(text: str, reads: set[tuple[str, ...]]) -> None:
    assert CelEnvironment({"spec": None}).compile(text).field_reads == reads
