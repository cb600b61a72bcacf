"""Rules give each cluster its value, with as few rules as possible."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.adopt.rules import ValueRule, choose_rules

LABELS = {
    "berlin": {"region": "eu"}, "lyon": {"region": "eu"}, "rome": {"region": "eu"},
    "ohio": {"region": "us"}, "utah": {"region": "us"}, "perth": {"region": "au"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"ohio": "3", "utah": "3"}, [ValueRule("3", ("region", "us"))]),
        ({"ohio": "3"}, [ValueRule("3", None, ("ohio",))]),
        ({"perth": "3"}, [ValueRule("3", None, ("perth",))]),
        ({"berlin": "3", "ohio": "3"}, [ValueRule("3", None, ("berlin", "ohio"))]),
        (
            {"berlin": "3", "lyon": "3", "rome": "5"},
            [ValueRule("3", ("region", "eu")), ValueRule("5", None, ("rome",))],
        ),
        (
            {"berlin": "3", "lyon": "3", "ohio": "4", "utah": "4"},
            [ValueRule("3", None, ("berlin", "lyon")), ValueRule("4", None, ("ohio", "utah"))],
        ),
        ({}, []),
    ],
    ids=["label", "one-of-a-label", "one-cluster-per-label", "names", "exception", "fewer-rules-by-name", "equal"],
)
def test_the_rules_of_a_value(values: Mapping[str, str], expected: list[ValueRule]) -> None:
    assert [*choose_rules({name: values.get(name, "1") for name in LABELS}, LABELS, "1")] == expected


@given(
    st.dictionaries(st.sampled_from([f"c{n}" for n in range(8)]), st.sampled_from("1234"), min_size=1),
    st.lists(st.sampled_from(["a", "b", "c", None]), min_size=8, max_size=8),
)
def test_the_rules_give_each_cluster_its_value(values: dict[str, str], regions: list[str | None]) -> None:
    labels = {f"c{n}": {"region": region} if region else {} for n, region in enumerate(regions)}
    rules = choose_rules(values, labels, "1")

    actual = dict.fromkeys(values, "1")
    for rule in rules:
        for name in values:
            if name in rule.clusters or (rule.label and rule.label in labels[name].items()):
                actual[name] = rule.value
    assert actual == values
    assert len(rules) <= len({value for value in values.values() if value != "1"})
