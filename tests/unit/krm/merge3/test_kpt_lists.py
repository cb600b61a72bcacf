"""Tests of lists whose elements lack some of their keys. Each row has the order that kpt produces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.krm.merge3 import COMPAT, merge_data
from reconciler.krm.merge3.rules import SAFE, MergeRules, Winner
from reconciler.krm.schema.merge_schemas import MergeSchema

UNCHANGED_KEYS = replace(SAFE, keeps_edited_elements=False, keeps_removals=False)
BY_PORT = MergeSchema(keys=("port", "protocol"), defaults={"protocol": "TCP"}, is_closed=True)


def parse_ports(text: str) -> list[dict[str, Any]]:
    """Return ports from `80/TCP=x 443 /UDP`: number, protocol and target, each of which can be absent."""
    values = []
    for part in text.split():
        key, _, target = part.partition("=")
        number, _, protocol = key.partition("/")
        fields = {"port": int(number) if number else None, "protocol": protocol, "target": target}
        values.append({name: value for name, value in fields.items() if value})
    return values


@pytest.mark.parametrize(
    ("origin", "updated", "local", "result"),
    [
        pytest.param("443/TCP 80/UDP 80", None, None, "80 443/TCP 80/UDP", id="one-that-others-stand-for-comes-first"),
        pytest.param("80 443/TCP", None, None, "80 443/TCP", id="all-in-place"),
        pytest.param("443 8080 8080/TCP", None, None, "8080 443 8080/TCP", id="the-one-that-stays-is-in-front"),
        pytest.param("8080/TCP=t 8080", None, None, "8080 8080/TCP=t", id="behind-the-one-that-has-all-keys"),
        pytest.param("80=a", "80/TCP=a", "80=b", "80=b 80/TCP=a", id="a-protocol-upstream-makes-another-entry"),
        pytest.param("80=a", "80/TCP=a", "80=a", "80=a 80/TCP=a", id="even-when-nothing-was-changed-here"),
        pytest.param("80=a", "80=b", "80/TCP=a", "80/TCP=a", id="a-local-protocol-gets-no-more-updates"),
        pytest.param("80 443", "80=x 443", "443 80", "443 80=x", id="without-protocols-the-port-is-the-key"),
        pytest.param("80=a 443", "443", "80=a 80=b 443", "443", id="without-protocols-all-with-the-port-are-removed"),
        pytest.param("=a", "=b", "=a", "=a", id="without-any-key-the-local-list-stays"),
        pytest.param("80 443/TCP", "443/TCP", None, "443/TCP", id="removed-without-a-protocol"),
        pytest.param("80/TCP 443/TCP", "", None, "", id="all-removed"),
        pytest.param("80 /TCP", None, None, "/TCP 80 /TCP /TCP", id="an-element-without-a-port-is-repeated"),
    ],
)
def test_order_of_ports(origin: str, updated: str | None, local: str | None, result: str) -> None:
    first, second, third = (parse_ports(origin if side is None else side) for side in (origin, updated, local))

    assert merge_data(first, second, third, BY_PORT, COMPAT)[0] == parse_ports(result)


@pytest.mark.parametrize(
    ("rules", "port"),
    [pytest.param(COMPAT, "80", id="a-string-as-in-kpt"), pytest.param(UNCHANGED_KEYS, 80, id="safe")],
)
@pytest.mark.parametrize(
    ("updated", "local", "remaining"),
    [
        pytest.param([], [{"port": 80, "target": "a", "node": 1}], {"node": 1}, id="removed-upstream"),
        pytest.param([{"port": 80, "target": "b"}], [], {"target": "b"}, id="removed-locally"),
    ],
)
def test_type_of_the_key_in_a_partial_element(
    rules: MergeRules, port: Any, updated: list[Any], local: list[Any], remaining: dict[str, Any]
) -> None:
    other = {"port": 443}
    sides = ([other, {"port": 80, "target": "a"}], [other, *updated], [other, *local])

    assert merge_data(*sides, BY_PORT, rules)[0] == [other, {**remaining, "port": port}]


def test_key_values_are_compared_as_text() -> None:
    number, text = {"port": 80}, {"port": "80"}

    assert merge_data([number], [{**number, "target": "x"}], [text], BY_PORT, COMPAT)[0] == [{**text, "target": "x"}]


@pytest.mark.parametrize(
    ("origin", "updated", "local", "winner", "conflicts"),
    [
        pytest.param("443=a 80=a", "443=c 80=c", "443=b 80=b", "upstream", "/0 /1", id="one-for-each-port"),
        pytest.param("443 80=a", "80=c", "443 80=b", "upstream", "/0", id="the-index-in-the-result"),
        pytest.param("443 80=a", "443", "443 80=b", "upstream", "/1", id="the-local-index-of-a-removed-port"),
        pytest.param("443 80=a", "443 80=c", "443", "local", "/1", id="the-index-in-upstream-of-a-removed-port"),
        pytest.param("443=a 80=a", "443=c 80=c", "", "local", "/0 /1", id="one-for-each-removed-port"),
        pytest.param("", "80/TCP=c", "80/TCP=b 80", "upstream", "/1", id="once-if-two-elements-match-one-port"),
    ],
)
def test_conflicts_in_ports(origin: str, updated: str, local: str, winner: Winner, conflicts: str) -> None:
    sides = map(parse_ports, (origin, updated, local))

    _, actual_conflicts = merge_data(*sides, BY_PORT, replace(COMPAT, winner=winner))

    assert [conflict.pointer for conflict in actual_conflicts] == [f"{index}/target" for index in conflicts.split()]


@pytest.mark.parametrize(
    ("origin", "updated", "local", "result"),
    [
        pytest.param("abc", "abc", "ab-", "-ab", id="a-local-one-without-a-name-comes-first"),
        pytest.param("abc", "abcd", "-bc", "-d", id="and-those-behind-it-are-lost"),
        pytest.param("ab", "ab-", "ab", "ab", id="a-new-one-without-a-name-is-not-taken"),
        pytest.param("abc", "abcd", "0bc", "0d", id="a-scalar-is-an-element-without-a-name"),
    ],
)
def test_elements_without_a_name(origin: str, updated: str, local: str, result: str) -> None:
    unnamed = {"-": {"x": 2}, "0": 0}
    first, second, third, expected = (
        [unnamed.get(item, {"name": item, "x": 1}) for item in side] for side in (origin, updated, local, result)
    )

    assert merge_data(first, second, third, MergeSchema(keys=("name",), is_closed=True), COMPAT)[0] == expected
