"""Which revisions lack a tag, what it is called, and what is remembered of those that are made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.planning.state import Revision
from reconciler.planning.tags import Tagging, missing_tags, note_tags
from reconciler.rules.variant import Place
from reconciler.snapshot.objects import ObjectId
from tests.unit.planning.values import commit, destination, offer, record, state

ONE, TWO = Revision(1, commit("b1"), offer("v1")), Revision(2, commit("b2"), offer("v2"))
KNOWN = state(packages={"gw": record(revisions=(ONE, TWO)), "web": record(revisions=(ONE,)), "new": record()})
USED = Tagging("used", frozenset({Place("default", "berlin", "gw")}))


@pytest.mark.parametrize(
    ("tagging", "expected"),
    [
        pytest.param(Tagging("all"), ["berlin/gw/v1", "berlin/gw/v2", "berlin/web/v1"], id="all"),
        pytest.param(Tagging("none", USED.used), [], id="none"),
        pytest.param(USED, ["berlin/gw/v1", "berlin/gw/v2"], id="used"),
        pytest.param(Tagging("used", frozenset({Place("default", "lisbon", "gw")})), [], id="used-elsewhere"),
        pytest.param(Tagging("used", frozenset({Place("other", "berlin", "gw")})), [], id="used-in-another-namespace"),
    ],
)
def test_whose_revisions_lack_a_tag(tagging: Tagging, expected: list[str]) -> None:
    missing = missing_tags(destination(tag_prefix="berlin/"), KNOWN, tagging)

    assert [one.name for one in missing] == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"tag_prefix": ""}, "gw/v1", id="without-a-prefix"),
        pytest.param({"tag_prefix": "sites-"}, "sites-gw/v1", id="a-prefix-without-a-slash"),
        pytest.param({"tag_prefix": "a/", "directory": "base"}, "a/gw/v1", id="the-directory-is-no-part"),
    ],
)
def test_what_a_tag_is_called(fields: dict[str, Any], expected: str) -> None:
    assert missing_tags(destination(**fields), KNOWN, USED)[0].name == expected


def test_what_has_a_tag_lacks_none() -> None:
    noted = note_tags(KNOWN, {("gw", 2): ObjectId("t2")})

    assert noted.packages["gw"].revisions == (ONE, replace(TWO, tag="t2"))
    assert noted.packages["web"] == KNOWN.packages["web"]
    assert [one.revision.number for one in missing_tags(destination(), noted, USED)] == [1]


def test_a_tag_that_is_known_is_not_forgotten_with_the_next() -> None:
    noted = note_tags(note_tags(KNOWN, {("gw", 1): ObjectId("t1")}), {("gw", 2): ObjectId("t2")})

    assert [one.tag for one in noted.packages["gw"].revisions] == ["t1", "t2"]
