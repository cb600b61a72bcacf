"""Selectors as they are typed: which labels they match, and what is wrong with others."""

from __future__ import annotations

import pytest

from reconciler.krm.selector_text import parse_selector
from reconciler.krm.selectors import LabelSelector

LABELS = {"region": "north", "tier": "live", "example.com/zone": "a"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        pytest.param("region=north", True, id="equal"),
        pytest.param("region == north", True, id="equal-with-two-signs"),
        pytest.param("region=south", False, id="another-value"),
        pytest.param("region!=south", True, id="not-equal"),
        pytest.param("absent!=x", True, id="not-equal-where-absent"),
        pytest.param("tier", True, id="there"),
        pytest.param("absent", False, id="not-there"),
        pytest.param("!absent", True, id="absent"),
        pytest.param("!tier", False, id="not-absent"),
        pytest.param("region in (south, north)", True, id="one-of"),
        pytest.param("region notin (south,north)", False, id="none-of"),
        pytest.param("region=north,tier in (live, test), example.com/zone=a", True, id="all-of-several"),
        pytest.param("region=north,tier=test", False, id="one-of-several-fails"),
        pytest.param("absent=", False, id="empty-value-is-a-value"),
    ],
)
def test_what_a_selector_matches(text: str, matches: bool) -> None:
    selector = parse_selector(text)

    assert isinstance(selector, LabelSelector)
    assert selector.matches(LABELS) is matches


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("", "'' is none of them", id="empty"),
        pytest.param("a=b,", "'' is none of them", id="comma-at-the-end"),
        pytest.param("a b", "'a b' is none of them", id="two-words"),
        pytest.param("a in x", "'a in x' is none of them", id="no-brackets"),
        pytest.param("a>1", "must be letters, digits", id="unknown-operator"),
        pytest.param("-a=b", 'the name part of "-a" must be', id="no-label"),
    ],
)
def test_what_is_no_selector(text: str, fault: str) -> None:
    assert fault in str(parse_selector(text))
