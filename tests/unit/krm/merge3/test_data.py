"""Tests of the field merge of plain data: the result, the chosen side and the conflicts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from reconciler.krm.merge3 import COMPAT, SAFE, MergeError, MergeRules, merge_data
from reconciler.krm.merge3.rules import ABSENT, Conflict
from reconciler.krm.schema.merge_schemas import ATOMIC_SCHEMA, UNKNOWN_SCHEMA, MergeSchema
from reconciler.krm.yaml.compare import is_equal_data

BY_NAME = MergeSchema(fields={"list": MergeSchema(keys=("name",), is_closed=True)})
BY_PORT = MergeSchema(
    fields={"list": MergeSchema(keys=("port", "protocol"), defaults={"protocol": "TCP"}, is_closed=True)}
)
SET = MergeSchema(fields={"list": MergeSchema(keys=(), is_closed=True)})
LOCAL = MergeRules(winner="local")
WEAVING = MergeRules(winner="local", merges_scalar_lists=True)
DEMANDING = replace(COMPAT, requires_names=True)


def merge(sides: Iterable[Any], shape: MergeSchema, rules: MergeRules) -> tuple[Any, tuple[Conflict, ...]]:
    origin, updated, local = sides
    return merge_data(origin, updated, local, shape, rules)


def format_conflicts(conflicts: tuple[Conflict, ...]) -> list[str]:
    return [f"{conflict.rule} {conflict.kind} {conflict.pointer} {conflict.chosen}" for conflict in conflicts]


@pytest.mark.parametrize(
    ("origin", "updated", "local", "rules", "result", "conflicts"),
    [
        pytest.param(1, 2, 1, SAFE, 2, [], id="changed-upstream"),
        pytest.param(1, 1, 2, SAFE, 2, [], id="changed-locally"),
        pytest.param(1, 2, 2, SAFE, 2, [], id="changed-alike"),
        pytest.param(1, 2, 3, SAFE, 2, ["D2 field  upstream"], id="changed-differently"),
        pytest.param(1, 2, 3, LOCAL, 3, ["D2 field  local"], id="changed-differently-and-ours-wins"),
        pytest.param(1, ABSENT, 3, SAFE, ABSENT, ["D2 field  upstream"], id="removed-upstream-changed-locally"),
        pytest.param(1, ABSENT, 3, LOCAL, 3, ["D2 field  local"], id="removed-upstream-and-ours-wins"),
        pytest.param(1, 2, ABSENT, SAFE, 2, ["D2 field  upstream"], id="removed-locally-changed-upstream"),
        pytest.param(1, 1, ABSENT, SAFE, ABSENT, [], id="removed-locally"),
        pytest.param(ABSENT, 2, 3, SAFE, 2, ["D2 field  upstream"], id="added-differently"),
        pytest.param(ABSENT, 2, ABSENT, SAFE, 2, [], id="added-upstream"),
        pytest.param(1, "1", 1, SAFE, "1", [], id="another-type-is-a-change"),
        pytest.param(1, "1", 1, COMPAT, 1, [], id="kpt-sees-no-type"),
        pytest.param(True, "true", True, COMPAT, True, [], id="kpt-sees-no-boolean"),
        pytest.param([1], ["1"], [1], COMPAT, ["1"], [], id="kpt-sees-types-in-lists"),
        pytest.param(1, "1", 2, SAFE, "1", ["D2 field  upstream"], id="another-type-against-another-value"),
        pytest.param(1, None, 1, SAFE, None, [], id="made-null-upstream"),
        pytest.param(1, 2, None, LOCAL, None, ["D2 field  local"], id="made-null-locally-and-ours-wins"),
        pytest.param(1, 2, None, COMPAT, ABSENT, ["D2 field  local"], id="a-null-clears-for-kpt"),
        pytest.param(1, None, 3, COMPAT, ABSENT, ["D2 field  upstream"], id="a-null-upstream-clears-for-kpt"),
        pytest.param(None, 2, ABSENT, COMPAT, 2, [], id="a-null-is-no-value-for-kpt"),
        pytest.param({"a": 1}, ABSENT, ABSENT, COMPAT, ABSENT, [], id="removed-on-both-sides-for-kpt"),
        pytest.param(1, {"a": 1}, 1, SAFE, {"a": 1}, [], id="another-kind-upstream"),
        pytest.param(1, {"a": 1}, 2, SAFE, {"a": 1}, ["D7 field  upstream"], id="another-kind-against-a-change"),
        pytest.param(1, {"a": 1}, 2, LOCAL, 2, ["D7 field  local"], id="another-kind-and-ours-wins"),
        pytest.param([1, 2], [1], [1, 2, 3], LOCAL, [1, 2, 3], ["D2 field  local"], id="a-list-is-taken-whole"),
        pytest.param([1, 2], [1], [1, 2, 3], WEAVING, [1, 3], [], id="or-item-by-item"),
        pytest.param([1, 2], [1], [1, 4], WEAVING, [1, 4], ["D2 field  local"], id="where-that-does-not-meet"),
        pytest.param([1], {"a": 1}, [1, 2], SAFE, {"a": 1}, ["D7 field  upstream"], id="a-mapping-for-a-list"),
    ],
)
def test_single_values(
    origin: Any, updated: Any, local: Any, rules: MergeRules, result: Any, conflicts: list[str]
) -> None:
    merged, actual_conflicts = merge_data(origin, updated, local, UNKNOWN_SCHEMA, rules)

    assert is_equal_data(merged, result)
    assert format_conflicts(actual_conflicts) == conflicts


@pytest.mark.parametrize(
    ("origin", "updated", "local", "field", "types"),
    [
        pytest.param(
            {"a": 1}, {"a": {"b": 1}}, {"a": 1}, "/a", "local scalar, origin scalar, upstream mapping", id="upstream"
        ),
        pytest.param({"a": [1]}, {"a": [1]}, {"a": 1}, "/a", "local scalar, origin list, upstream list", id="locally"),
        pytest.param({}, {"a": []}, {"a": {}}, "/a", "local mapping, upstream list", id="added-on-both-sides"),
        pytest.param({}, [], {}, "the document", "local mapping, origin mapping, upstream list", id="whole-document"),
    ],
)
def test_different_types_are_an_error_in_kpt(origin: Any, updated: Any, local: Any, field: str, types: str) -> None:
    message = f"{field} must have the same type on all sides of the merge; types: {types}"

    with pytest.raises(MergeError, match=f"^{re.escape(message)}$"):
        merge_data(origin, updated, local, UNKNOWN_SCHEMA, COMPAT)


@pytest.mark.parametrize(
    ("origin", "updated", "local", "safely", "as_kpt"),
    [
        pytest.param({"m": {"x": 1}}, {}, {"m": {"x": 1}}, {}, {"m": {}}, id="removed-upstream"),
        pytest.param({"m": {"x": 1}}, {"m": {"x": 1}}, {}, {}, {"m": {}}, id="removed-locally"),
        pytest.param({"m": {"x": 1}}, {"m": {}}, {"m": {"x": 1}}, {"m": {}}, {"m": {}}, id="emptied-upstream"),
        pytest.param({"m": {"x": 1}}, {}, {"m": {"x": 1, "y": 2}}, *[{"m": {"y": 2}}] * 2, id="local-additions-stay"),
        pytest.param({"m": {"x": 1}}, {"m": {"x": 1, "y": 2}}, {}, *[{"m": {"y": 2}}] * 2, id="additions-come-back"),
        pytest.param({}, {"m": {}}, {}, {"m": {}}, {"m": {}}, id="an-empty-one-added"),
        pytest.param({}, {}, {"m": {}}, {"m": {}}, {"m": {}}, id="an-empty-one-of-ours"),
        pytest.param({"m": {"x": 1}}, {}, {"m": {}}, {}, {"m": {}}, id="removed-there-and-emptied-here"),
        pytest.param({"m": {"a": {"x": 1}}}, {}, {"m": {"a": {"x": 1}}}, {}, {"m": {"a": {}}}, id="all-the-way-up"),
    ],
)
def test_emptied_mappings(origin: Any, updated: Any, local: Any, safely: Any, as_kpt: Any) -> None:
    safe, conflicts = merge_data(origin, updated, local)
    compat, _ = merge_data(origin, updated, local, UNKNOWN_SCHEMA, COMPAT)

    assert (safe, compat, conflicts) == (safely, as_kpt, ())


@pytest.mark.parametrize(
    ("origin", "updated", "local", "result"),
    [
        pytest.param("ab", "axb", "abc", "axbc", id="after-the-previous-element"),
        pytest.param("ab", "axyb", "abc", "axybc", id="two-in-their-order"),
        pytest.param("ab", "xab", "cab", "cxab", id="in-front-of-what-it-leads"),
        pytest.param("ab", "abx", "acb", "acbx", id="at-the-end"),
        pytest.param("a", "ax", "b", "bx", id="without-a-previous-element"),
        pytest.param("ab", "ba", "abc", "abc", id="the-order-of-keys-is-ours"),
    ],
)
def test_order_of_keys(origin: str, updated: str, local: str, result: str) -> None:
    merged, _ = merge((dict.fromkeys(keys, 1) for keys in (origin, updated, local)), UNKNOWN_SCHEMA, SAFE)

    assert "".join(merged) == result


def test_kpt_appends_new_keys_in_alphabetical_order() -> None:
    merged, _ = merge_data({"m": 1}, {"z": 1, "m": 1, "b": 1}, {"m": 1, "n": 1}, UNKNOWN_SCHEMA, COMPAT)

    assert list(merged) == ["m", "n", "b", "z"]


def parse_elements(text: str) -> list[dict[str, Any]] | Any:
    """Return a list of elements from "name=value …". A name without "=" has no value, and "-" is an absent list."""
    if text == "-":
        return ABSENT
    pairs = (word.partition("=")[::2] for word in text.split())
    return [{"name": name, **({"value": value} if value else {})} for name, value in pairs]


def format_elements(value: Any) -> str:
    if value is ABSENT:
        return "-"
    return " ".join("=".join(part for part in (item.get("name"), item.get("value")) if part) for item in value)


@pytest.mark.parametrize(
    ("origin", "updated", "local", "result", "conflicts"),
    [
        pytest.param("a=1 b=1", "a=2 b=1", "a=1 b=2", "a=2 b=2", [], id="each-its-own"),
        pytest.param("a=1", "a=2", "a=3", "a=2", ["D2 field /list/0/value upstream"], id="both-the-same-field"),
        pytest.param("a b", "a", "a b", "a", [], id="removed-upstream"),
        pytest.param("a b", "a b", "a", "a", [], id="removed-locally"),
        pytest.param("a b", "a", "a b=1", "a b=1", ["D3 element /list/1 local"], id="removed-there-edited-here"),
        pytest.param("a b", "a b=1", "a", "a", ["D4 element /list/1 local"], id="removed-here-edited-there"),
        pytest.param("a b", "a", "a", "a", [], id="removed-on-both-sides"),
        pytest.param("a", "a b", "a c", "a c b", [], id="added-on-both-sides"),
        pytest.param("a", "a b=1", "a b=2", "a b=1", ["D2 field /list/1/value upstream"], id="added-twice"),
        pytest.param("a b", "-", "a b", "-", [], id="all-removed-upstream"),
        pytest.param("a", "-", "a c", "c", ["D5 field /list local"], id="all-removed-upstream-and-one-is-ours"),
        pytest.param("a", "-", "a=1", "a=1", ["D3 element /list/0 local"], id="all-removed-upstream-and-one-is-edited"),
        pytest.param("a b", "a b c", "-", "c", [], id="all-removed-locally"),
        pytest.param("a", "a=1", "-", "-", ["D4 element /list/0 local"], id="all-removed-locally-and-one-is-edited"),
        pytest.param("-", "a b", "c a", "c a b", [], id="lists-added-on-both-sides"),
        pytest.param("a b", "", "a", "", [], id="emptied-upstream-and-one-removed-locally"),
        pytest.param("a b", "b a", "a=1 b", "b a=1", [], id="upstreams-order-if-we-left-it-alone"),
        pytest.param("a b", "a x b", "a=1 b", "a=1 x b", [], id="new-ones-in-their-place-if-we-left-the-order-alone"),
        pytest.param("a b", "a x b", "b a", "b a x", [], id="new-ones-at-the-end-of-another-order"),
        pytest.param(
            "a b c",
            "x c",
            "a b=1 c",
            "x b=1 c",
            ["D3 element /list/1 local"],
            id="a-kept-element-after-the-previous-element",
        ),
        pytest.param(
            "a b",
            "c a=2",
            "b=1 a=1",
            "b=1 a=2 c",
            ["D3 element /list/0 local", "D2 field /list/1/value upstream"],
            id="pointers-are-into-the-result",
        ),
        pytest.param(
            "a b",
            "x a=2 b",
            "a=1 b",
            "x a=2 b",
            ["D2 field /list/1/value upstream"],
            id="pointers-are-into-the-result-in-the-order-of-upstream",
        ),
        pytest.param("a a", "a=1 a", "a a=2", "a=1 a", ["D6 field /list upstream"], id="duplicates-make-it-atomic"),
        pytest.param("a a", "a=1 a", "a a", "a=1 a", [], id="duplicates-that-only-upstream-changed"),
    ],
)
def test_lists_with_name_keys(origin: str, updated: str, local: str, result: str, conflicts: list[str]) -> None:
    sides = ({} if (side := parse_elements(text)) is ABSENT else {"list": side} for text in (origin, updated, local))

    merged, actual_conflicts = merge(sides, BY_NAME, SAFE)

    assert format_elements(merged.get("list", ABSENT)) == result
    assert format_conflicts(actual_conflicts) == conflicts


@pytest.mark.parametrize(
    ("rules", "origin", "updated", "local", "off"),
    [
        pytest.param(replace(SAFE, keeps_edited_elements=False), "a b=1", "a", "a b=2", "a", id="D3"),
        pytest.param(replace(SAFE, keeps_removals=False), "a b", "a b=1", "a", "a b=1", id="D4"),
        pytest.param(replace(SAFE, keeps_local_elements=False), "a", "-", "a c", "-", id="D5"),
    ],
)
def test_each_list_option(rules: MergeRules, origin: str, updated: str, local: str, off: str) -> None:
    sides = [{} if (side := parse_elements(text)) is ABSENT else {"list": side} for text in (origin, updated, local)]

    merged, _ = merge(sides, BY_NAME, rules)

    assert format_elements(merged.get("list", ABSENT)) == off


@pytest.mark.parametrize(
    ("origin", "updated", "local", "shape", "safely", "as_kpt"),
    [
        pytest.param(
            [{"name": "a"}],
            [{"name": "a", "x": 1}],
            [{"y": 1}, {"name": "a", "z": 1}],
            BY_NAME,
            [{"name": "a", "x": 1}],
            [{"y": 1}, {"x": 1, "name": "a"}],
            id="an-element-of-ours-without-a-key",
        ),
        pytest.param(
            [{"name": "a"}],
            [{"name": "a"}, {"x": 1}],
            [{"name": "a"}, {"name": "b"}],
            BY_NAME,
            [{"name": "a"}, {"x": 1}],
            [{"name": "a"}, {"name": "b"}],
            id="an-element-of-theirs-without-a-key",
        ),
        pytest.param(
            [{"name": "a"}],
            [{"name": "a", "x": 1}],
            [{"name": "a"}, {"name": "a", "z": 1}],
            BY_NAME,
            [{"name": "a", "x": 1}],
            [{"name": "a", "x": 1}, {"name": "a", "x": 1}],
            id="two-of-ours-with-one-key",
        ),
        pytest.param(
            [{"port": 80}],
            [{"port": 80, "protocol": "TCP"}],
            [{"port": 80, "name": "x"}],
            BY_PORT,
            [{"port": 80, "name": "x", "protocol": "TCP"}],
            [{"name": "x", "port": 80}, {"port": 80, "protocol": "TCP"}],
            id="the-default-of-a-key",
        ),
        pytest.param(
            [{"port": 80}],
            [{"port": 80}, {"port": 81}],
            [{"port": 80, "name": "x"}],
            BY_PORT,
            [{"port": 80, "name": "x"}, {"port": 81}],
            [{"port": 80, "name": "x"}, {"port": 81}],
            id="the-rest-of-a-key",
        ),
        pytest.param(["a", "b"], ["b", "c"], ["a", "b", "z"], SET, ["b", "z", "c"], ["b", "z", "c"], id="a-set"),
        pytest.param(["a"], ["a"], [], SET, [], [], id="an-emptied-set"),
        pytest.param(["a"], ["a", "a", "b"], ["a", "z"], SET, ["a", "a", "b"], ["a", "z", "b"], id="no-set"),
        pytest.param(
            ["a"],
            ["a", "b"],
            ["a", {"x": 1}, None, "a"],
            SET,
            ["a", "b"],
            [{"x": 1}, None, "a", "a", "b"],
            id="a-set-of-ours-with-items-that-are-no-scalars",
        ),
        pytest.param("a", "b", "c", BY_NAME, "b", "b", id="no-list-at-all"),
        pytest.param(
            [{"name": "a"}],
            [{"name": "a"}, {"name": "b"}],
            [{"name": "a"}, {"name": "c"}],
            UNKNOWN_SCHEMA,
            [{"name": "a"}, {"name": "c"}, {"name": "b"}],
            [{"name": "a"}, {"name": "b"}],
            id="names-are-inferred-where-nothing-is-known",
        ),
        pytest.param(
            [{"name": "a"}],
            [{"name": "a"}, {"name": "b"}],
            [{"name": "a"}, {"name": "c"}],
            ATOMIC_SCHEMA,
            [{"name": "a"}, {"name": "b"}],
            [{"name": "a"}, {"name": "b"}],
            id="a-schema-without-keys-is-used",
        ),
        pytest.param(
            [{"name": "a"}],
            [{"name": "a"}, {"name": "b"}],
            [{"name": "a"}, {"name": "a"}],
            UNKNOWN_SCHEMA,
            [{"name": "a"}, {"name": "b"}],
            [{"name": "a"}, {"name": "b"}],
            id="names-that-are-not-unique-are-no-keys",
        ),
        pytest.param(
            [{"name": "a"}],
            [{"name": "a"}, {"id": 1}],
            [{"name": "a"}, {"name": "c"}],
            UNKNOWN_SCHEMA,
            [{"name": "a"}, {"id": 1}],
            [{"name": "a"}, {"id": 1}],
            id="names-that-not-all-have-are-no-keys",
        ),
    ],
)
def test_list_keys(origin: Any, updated: Any, local: Any, shape: MergeSchema, safely: Any, as_kpt: Any) -> None:
    sides = [{"list": side} for side in (origin, updated, local)]

    safe, compat = (merge(sides, shape, rules)[0] for rules in (SAFE, COMPAT))

    assert (safe, compat) == ({"list": safely}, {"list": as_kpt})


@pytest.mark.parametrize(
    ("origin", "updated", "local", "result"),
    [
        pytest.param("a", "a b", "a c", "a c b", id="by-name"),
        pytest.param("-", "a", "c", "c a", id="without-origin"),
        pytest.param("", "a", "", "a", id="empty-lists-are-ignored"),
    ],
)
def test_names_can_be_required(origin: str, updated: str, local: str, result: str) -> None:
    sides = ({} if (side := parse_elements(text)) is ABSENT else {"list": side} for text in (origin, updated, local))

    merged, _ = merge(sides, UNKNOWN_SCHEMA, DEMANDING)

    assert format_elements(merged["list"]) == result


def test_lists_without_names_are_replaced_if_names_are_required() -> None:
    assert merge_data([1], [1, 2], [1], UNKNOWN_SCHEMA, DEMANDING)[0] == [1, 2]


@pytest.mark.parametrize("other", [pytest.param([{"x": 1}], id="nameless"), pytest.param(["a"], id="scalars")])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_missing_names_on_one_side_are_an_error_in_kpt(other: Any, place: int) -> None:
    sides = [{"spec": {"list": [{"name": "a"}]}} for _ in range(3)]
    sides[place] = {"spec": {"list": other}}

    with pytest.raises(MergeError, match="/spec/list: conflicting merge keys"):
        merge(sides, UNKNOWN_SCHEMA, DEMANDING)


@pytest.mark.parametrize(
    ("origin", "updated", "local", "result", "conflicts"),
    [
        pytest.param({"x": 1}, None, {"x": 1}, None, [], id="a-mapping-made-null"),
        pytest.param({"x": 1}, None, {}, None, [], id="a-mapping-made-null-that-we-emptied"),
        pytest.param({"x": 1}, None, {"x": 1, "y": 2}, {"y": 2}, [], id="additions-win-over-null"),
        pytest.param({"x": 1}, {"x": 2}, None, {"x": 2}, ["D2 field /m upstream"], id="our-null-is-a-value"),
        pytest.param({"x": 1}, {"x": 1}, None, None, [], id="our-null-stays"),
        pytest.param(None, {"x": 1}, None, {"x": 1}, [], id="a-mapping-for-null"),
        pytest.param(None, {"x": 1}, {"y": 1}, {"y": 1, "x": 1}, [], id="mappings-for-null"),
        pytest.param(None, {"x": 1}, ABSENT, {"x": 1}, ["D2 field /m upstream"], id="a-null-that-we-removed"),
        pytest.param(ABSENT, None, {"y": 1}, None, ["D2 field /m upstream"], id="a-null-added-against-ours"),
    ],
)
def test_nulls_and_collections(origin: Any, updated: Any, local: Any, result: Any, conflicts: list[str]) -> None:
    sides = ({} if side is ABSENT else {"m": side} for side in (origin, updated, local))

    merged, actual_conflicts = merge(sides, UNKNOWN_SCHEMA, SAFE)

    assert merged == {"m": result}
    assert format_conflicts(actual_conflicts) == conflicts


@pytest.mark.parametrize(
    ("origin", "updated", "local", "rule"),
    [
        pytest.param(1, 2, ABSENT, "D2", id="a-field"),
        pytest.param([{"name": "a"}] * 2, [{"name": "b"}], [{"name": "c"}], "D6", id="a-list-with-equal-keys"),
        pytest.param([1], {"x": 1}, [2], "D7", id="another-type"),
    ],
)
def test_conflict_contains_the_values_of_all_sides(origin: Any, updated: Any, local: Any, rule: str) -> None:
    by_name = MergeSchema(additional_fields=BY_NAME.find_field("list"))
    sides = ({"a/b": {} if side is ABSENT else {"~": side}} for side in (origin, updated, local))

    _, conflicts = merge(sides, MergeSchema(additional_fields=by_name), SAFE)

    assert conflicts == (Conflict("field", "/a~1b/~0", origin, local, updated, "upstream", rule),)


@pytest.mark.parametrize(
    ("rules", "origin", "updated", "local", "result"),
    [
        pytest.param(
            SAFE,
            [{"port": 80, "protocol": "TCP"}],
            [{"port": 80, "protocol": "TCP", "x": 1}],
            [{"port": 80, "y": 1}],
            [{"port": 80, "y": 1, "x": 1}],
            id="a-default-that-we-removed-stays-removed",
        ),
        pytest.param(
            replace(SAFE, keeps_edited_elements=False),
            [{"port": 80, "protocol": "TCP"}],
            [],
            [{"port": 80, "protocol": "TCP", "x": 1}],
            [{"x": 1, "port": 80, "protocol": "TCP"}],
            id="a-partial-element-gets-its-keys-back",
        ),
    ],
)
def test_key_fields_of_elements(rules: MergeRules, origin: Any, updated: Any, local: Any, result: Any) -> None:
    merged, conflicts = merge(({"list": side} for side in (origin, updated, local)), BY_PORT, rules)

    assert (merged, conflicts) == ({"list": result}, ())


def test_without_strict_keys_a_port_without_a_protocol_is_another_port() -> None:
    sides = ({"list": [{"port": 80, "protocol": "TCP"}]}, {}, {"list": [{"port": 80}]})

    _, conflicts = merge(sides, BY_PORT, replace(SAFE, strict_keys=False))

    assert format_conflicts(conflicts) == ["D5 field /list local"]


def test_deeply_nested_data() -> None:
    def build_nested(value: Any, ours: Any) -> Any:
        for number in range(99):
            value = {"a": value, **ours} if number % 2 else [{"name": "x", "value": value}]
        return value

    merged, conflicts = merge_data(build_nested(1, {}), build_nested(2, {}), build_nested(1, {"b": 1}))

    assert merged == build_nested(2, {"b": 1})
    assert not conflicts
