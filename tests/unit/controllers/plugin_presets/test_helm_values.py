"""Tests of option names and their Helm values, with the rules of `helm --set-json`.

`helm_set_json.jsonl` contains options in the order of their paths, and the result of Helm 3.16.4 (strvals.ParseJSON) for
them, one by one: `made`, `refused`, or `lost`. With `lost`, Helm drops a part without an error; here it is an error.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.controllers.plugin_presets.helm_values import build_values
from reconciler.krm.helm_paths import (
    MAX_INDEX,
    MAX_INDEXES,
    MAX_LEVELS,
    PathStep,
    check_option_name,
    format_option_name,
    parse_option_name,
)
from reconciler.krm.values_tree import MAX_LIST_ITEMS

HIGHEST = f"a[{MAX_INDEX}]"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("a", ("a",), id="one-key"),
        pytest.param("a.b.c", ("a", "b", "c"), id="dots-nest"),
        pytest.param(r"ann.nginx\.ingress/x", ("ann", "nginx.ingress/x"), id="escaped-dot"),
        pytest.param(r"a\[0]", ("a[0]",), id="escaped-bracket"),
        pytest.param(r"a\=b\,c", ("a=b,c",), id="escaped-signs-that-end-a-name"),
        pytest.param(r"a\\.b", ("a\\", "b"), id="escaped-backslash"),
        pytest.param(r"\a\b", ("ab",), id="escaped-letters-are-letters"),
        pytest.param("a[0]", ("a", 0), id="place-in-a-list"),
        pytest.param("a[007]", ("a", 7), id="zeros-in-front"),
        pytest.param("a[1][2].b", ("a", 1, 2, "b"), id="list-in-a-list"),
        pytest.param("a.0.b", ("a", "0", "b"), id="number-between-dots-is-a-key"),
        pytest.param("a]b", ("a]b",), id="closing-bracket-alone"),
        pytest.param(" a . b ", (" a ", " b "), id="blanks-count"),
        pytest.param("a\n.é", ("a\n", "é"), id="any-character"),
        pytest.param(HIGHEST, ("a", MAX_INDEX), id="highest-place"),
        pytest.param(".".join("a" * 31), tuple("a" * 31), id="thirty-dots"),
        pytest.param("a[0]" + ".b[0]" * 29, ("a", 0, *("b", 0) * 29), id="thirty-places-dots-behind-them-are-free"),
    ],
)
def test_option_name_is_parsed_to_a_path(name: str, expected: tuple[PathStep, ...]) -> None:
    assert (check_option_name(name), parse_option_name(name)) == ("", expected)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("", "must not be empty", id="empty"),
        pytest.param("a.", "the key at character 3", id="trailing-dot"),
        pytest.param(".a", "the key at character 1", id="leading-dot-loses-the-value-in-helm"),
        pytest.param("a..b", "the key at character 3", id="two-dots"),
        pytest.param("[0]", "the key at character 1", id="index-first-loses-the-value-in-helm"),
        pytest.param("a.[0]", "the key at character 3", id="index-behind-a-dot"),
        pytest.param("a\\", "must not end in a backslash", id="backslash-last"),
        pytest.param("a.\\", "must not end in a backslash", id="backslash-alone"),
        pytest.param("a[]", "must have a number up to 65536", id="no-index"),
        pytest.param("a[b]", "must have a number up to 65536", id="index-is-text"),
        pytest.param("a[-1]", "must have a number up to 65536", id="negative-index"),
        pytest.param("a[0", "must have a number up to 65536", id="bracket-not-closed"),
        pytest.param("a[\u0661]", "must have a number up to 65536", id="digit-of-another-script"),
        pytest.param(f"a[{MAX_INDEX + 1}]", "must have a number up to 65536", id="index-too-high"),
        pytest.param(f"a[{'9' * 10_000}]", "must have a number up to 65536", id="index-beyond-reason"),
        pytest.param("a[0]b", 'must have a dot or nothing after "]", but is "b"', id="text-behind-an-index"),
        pytest.param("a[0]=1", 'must have a dot or nothing after "]", but is "="', id="sign-behind-an-index"),
        pytest.param("a=b", 'must have a \\ before "="', id="equals-sign"),
        pytest.param("a,b", 'must have a \\ before ","', id="comma"),
        pytest.param(".".join("a" * 32), f"must not have more than {MAX_LEVELS} dots", id="thirty-one-dots"),
        pytest.param("a" + "[0]" * (MAX_INDEXES + 1), f"not have more than {MAX_INDEXES}", id="lists-in-lists"),
        pytest.param("a[0].b" * 20_000, f"not have more than {MAX_INDEXES}", id="lists-and-maps-without-end"),
    ],
)
def test_invalid_option_name_is_reported(name: str, message: str) -> None:
    assert message in check_option_name(name)
    assert parse_option_name(name) == ()


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([], {}, id="nothing"),
        pytest.param([("a.b", 1), ("a.c", 2)], {"a": {"b": 1, "c": 2}}, id="siblings"),
        pytest.param([("a", {"b": 9, "c": 2}), ("a.b", 1)], {"a": {"b": 1, "c": 2}}, id="child-over-parent"),
        pytest.param([("a.b", 1), ("a", {"b": 9, "c": 2})], {"a": {"b": 1, "c": 2}}, id="child-over-a-later-parent"),
        pytest.param([("a-x", 1), ("a.b", 2), ("a", {})], {"a": {"b": 2}, "a-x": 1}, id="a-name-that-sorts-between"),
        pytest.param([("a", 1), ("\\a", 2)], {"a": 2}, id="later-of-two-names-for-one-path"),
        pytest.param([("a.b", 1), ("a\\.b", 2)], {"a": {"b": 1}, "a.b": 2}, id="escaped-dot-is-another-place"),
        pytest.param([("a[2]", "x")], {"a": [None, None, "x"]}, id="gaps-are-null"),
        pytest.param([("a[10]", 10), ("a[9]", 9)], {"a": [None] * 9 + [9, 10]}, id="places-by-number"),
        pytest.param([("a[1]", 5), ("a", [1, 2, 3])], {"a": [1, 5, 3]}, id="place-in-a-given-list"),
        pytest.param([("a[1].b", 1), ("a[1].c", 2)], {"a": [None, {"b": 1, "c": 2}]}, id="maps-in-a-list"),
        pytest.param([("a[1][0]", 1), ("a[0][1]", 2)], {"a": [[None, 2], [1]]}, id="lists-in-a-list"),
        pytest.param([("a", [None, 7]), ("a[0].b", 1)], {"a": [{"b": 1}, 7]}, id="null-in-a-list-is-a-gap"),
        pytest.param([("a", None)], {"a": None}, id="null-is-a-value"),
        pytest.param([("a.b", {}), ("a.c", [])], {"a": {"b": {}, "c": []}}, id="empty-collections-stay"),
        pytest.param([("a", 2**63), ("b", 1.0)], {"a": 2**63, "b": 1.0}, id="helm-would-round-large-integers"),
    ],
)
def test_values_are_built_from_names(entries: list[tuple[str, Any]], expected: dict[str, Any]) -> None:
    helm_values = build_values(entries)

    assert (repr(helm_values.values), helm_values.conflicts) == (repr(expected), ())


@pytest.mark.parametrize(
    ("entries", "conflicts", "expected"),
    [
        pytest.param(
            [("store.type", "s3"), ("store.type.cfg", 1)],
            [
                (
                    "store.type.cfg",
                    "store.type",
                    '"store.type.cfg" requires a map at "store.type", but "store.type" sets a string there',
                )
            ],
            {"store": {"type": "s3"}},
            id="scalar-where-a-map-must-be",
        ),
        pytest.param(
            [("a[0]", 1), ("a.b", 2)],
            [("a.b", "a[0]", '"a.b" requires a map at "a", but "a[0]" sets a list there')],
            {"a": [1]},
            id="list-where-a-map-must-be",
        ),
        pytest.param(
            [("a", {"b": {"c": 1}}), ("a.b[0]", 2)],
            [("a.b[0]", "a", '"a.b[0]" requires a list at "a.b", but "a" sets a map there')],
            {"a": {"b": {"c": 1}}},
            id="map-where-a-list-must-be",
        ),
        pytest.param(
            [("a", {"b": None}), ("a.b.c", 1)],
            [("a.b.c", "a", '"a.b.c" requires a map at "a.b", but "a" sets null there')],
            {"a": {"b": None}},
            id="null-in-a-map-is-in-the-way",
        ),
        pytest.param(
            [("a", True), ("a.b", 1), ("a.c", 2)],
            [
                ("a.b", "a", '"a.b" requires a map at "a", but "a" sets a boolean there'),
                ("a.c", "a", '"a.c" requires a map at "a", but "a" sets a boolean there'),
            ],
            {"a": True},
            id="every-option-that-does-not-fit",
        ),
        pytest.param(
            [("a[0]", 1.5), ("a[0].b", 2)],
            [("a[0].b", "a[0]", '"a[0].b" requires a map at "a[0]", but "a[0]" sets a number there')],
            {"a": [1.5]},
            id="value-of-a-list-that-helm-would-lose",
        ),
        pytest.param(
            [("b", 1), ("a.", 2)],
            [("a.", "", "must have a key between dots and before brackets; the key at character 3 is empty")],
            {"b": 1},
            id="name-that-leads-nowhere",
        ),
    ],
)
def test_conflicting_options_are_reported(
    entries: list[tuple[str, Any]], conflicts: list[tuple[str, str, str]], expected: dict[str, Any]
) -> None:
    helm_values = build_values(entries)

    assert [
        (path_conflict.name, path_conflict.conflicting_name, path_conflict.message)
        for path_conflict in helm_values.conflicts
    ] == conflicts
    assert helm_values.values == expected


RECORDED = [json.loads(line) for line in Path(__file__).with_name("helm_set_json.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "recorded", [pytest.param(item, id=" ".join(n for n, _ in item["options"])) for item in RECORDED]
)
def test_values_are_the_same_as_in_helm(recorded: dict[str, Any]) -> None:
    helm_values = build_values((name, value) for name, value in reversed(recorded["options"]))

    assert bool(helm_values.conflicts) == (recorded["helm"] != "made")
    assert helm_values.conflicts or helm_values.values == recorded["values"]


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([(HIGHEST, 1), (f"b[{MAX_INDEX}]", 2)], id="two-long-lists"),
        pytest.param([(f"a[{MAX_INDEX}]", 1), (f"b[0][{MAX_INDEX}].c[1]", 2)], id="long-list-in-a-list"),
        pytest.param([(HIGHEST, 1), (f"a[0][{MAX_INDEX}]", 2)], id="long-list-in-a-long-list"),
    ],
)
def test_list_size_is_limited(entries: list[tuple[str, Any]]) -> None:
    helm_values = build_values(entries)

    assert [path_conflict.message for path_conflict in helm_values.conflicts] == [
        f"would increase the number of list items in all values to more than {MAX_LIST_ITEMS}"
    ]
    assert list(helm_values.values) == ["a"]


def test_existing_list_items_do_not_count_for_the_limit() -> None:
    entries = [(HIGHEST, 0), *((f"a[{place}]", place) for place in range(3))]

    assert build_values(entries).conflicts == ()


def test_input_is_not_changed() -> None:
    parent: dict[str, Any] = {"b": {"c": [1]}}

    build_values([("a", parent), ("a.b.c[3]", 4), ("a.b.d", 5)])

    assert parent == {"b": {"c": [1]}}


KEYS = st.text(st.sampled_from("ab.\\[]=, 0é"), min_size=1, max_size=4)
PATHS = st.tuples(KEYS).flatmap(
    lambda first: st.lists(KEYS | st.integers(0, 3), max_size=4).map(lambda rest: (*first, *rest))
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@given(PATHS)
def test_formatted_path_is_parsed_to_the_same_path(path: tuple[PathStep, ...]) -> None:
    assert (check_option_name(format_option_name(path)), parse_option_name(format_option_name(path))) == ("", path)


SIMPLE = st.lists(
    st.tuples(
        st.tuples(
            st.sampled_from("ab"), st.lists(st.sampled_from([".a", ".b", "[0]", "[1]", "[2]"]), max_size=3).map("".join)
        ).map("".join),
        VALUES,
    ),
    max_size=6,
)


@pytest.mark.slow
@given(SIMPLE)
def test_values_are_the_same_as_in_the_reference_implementation(entries: list[tuple[str, Any]]) -> None:
    helm_values = build_values(entries)

    expected, conflicting = build_values_recursively(entries)
    assert (helm_values.values, [path_conflict.name for path_conflict in helm_values.conflicts]) == (
        expected,
        conflicting,
    )


@pytest.mark.slow
@given(SIMPLE, st.randoms(use_true_random=False))
def test_order_of_different_names_does_not_matter(entries: list[tuple[str, Any]], random: Any) -> None:
    entries = list(dict(entries).items())
    shuffled = random.sample(entries, len(entries))

    assert build_values(shuffled) == build_values(entries)


def build_values_recursively(entries: list[tuple[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    """Return the values, and the names that conflict. This reference implementation rebuilds all parents of each
    option.
    """
    values: Any = {}
    conflicting = []
    for name, value in sorted(
        entries, key=lambda values: [(not s.isdigit(), s) for s in re.findall(r"\w+", values[0])]
    ):
        try:
            values = set_value(values, re.findall(r"\[\d+|\w+", name), value)
        except ValueError:
            conflicting.append(name)
    return values, conflicting


def set_value(old: Any, tokens: list[str], value: Any) -> Any:
    if not tokens:
        return value
    token, rest = tokens[0], tokens[1:]
    if token.startswith("["):
        if not isinstance(old, list):
            raise ValueError
        place = int(token[1:])
        padded = {**dict.fromkeys(range(place + 1)), **dict(enumerate(old))}
        inner = choose_parent(padded[place], rest, padded[place] is None)
        return list({**padded, place: set_value(inner, rest, value)}.values())
    if not isinstance(old, dict):
        raise ValueError
    inner = choose_parent(old.get(token), rest, token not in old)
    return {**old, token: set_value(inner, rest, value)}


def choose_parent(value: Any, rest: list[str], is_new: bool) -> Any:
    return ([] if rest[0].startswith("[") else {}) if rest and is_new else value
