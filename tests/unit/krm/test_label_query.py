"""Tests of label queries in the selector syntax of Kubernetes."""

from __future__ import annotations

import pytest

from reconciler.krm.selectors import LabelQueryError, matches_label_query

LABELS = {"app": "web", "tier": "front"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", True, id="empty"),
        pytest.param("app=web", True, id="equal"),
        pytest.param("app == web, tier=front", True, id="two"),
        pytest.param("app=web,tier=back", False, id="all-must-hold"),
        pytest.param("app!=db", True, id="not-equal"),
        pytest.param("zone!=db", True, id="absent-is-not-equal"),
        pytest.param("app in (db, web)", True, id="in"),
        pytest.param("app notin (db, web)", False, id="not-in"),
        pytest.param("zone notin (a)", True, id="absent-is-not-in"),
        pytest.param("app", True, id="present"),
        pytest.param("!app", False, id="absent"),
        pytest.param("app in (a,b),tier=front", False, id="comma-inside-parentheses"),
    ],
)
def test_matches_query(query: str, expected: bool) -> None:
    assert matches_label_query(query, LABELS) is expected


@pytest.mark.parametrize("query", ["a b c", "a in b", "=", "a=(b)", "absent=x,a b"])
def test_invalid_query(query: str) -> None:
    with pytest.raises(LabelQueryError):
        matches_label_query(query, LABELS)
