"""Which revisions lack a tag, what it is called, and what is remembered of those that are made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.files import ObjectId
from reconciler.controllers.results import PackageTarget
from reconciler.planning.layout.refs import TagPolicy, find_missing_tags, record_tags
from reconciler.planning.model.state import PublishedRevision
from tests.unit.planning.values import commit, destination, offer, record, state

ONE, TWO = PublishedRevision(1, commit("b1"), offer("v1")), PublishedRevision(2, commit("b2"), offer("v2"))
KNOWN = state(packages={"gw": record(revisions=(ONE, TWO)), "web": record(revisions=(ONE,)), "new": record()})
USED = TagPolicy("used", frozenset({PackageTarget("default", "berlin", "gw")}))


@pytest.mark.parametrize(
    ("tagging", "expected"),
    [
        pytest.param(TagPolicy("all"), ["berlin/gw/v1", "berlin/gw/v2", "berlin/web/v1"], id="all"),
        pytest.param(TagPolicy("none", USED.used_packages), [], id="none"),
        pytest.param(USED, ["berlin/gw/v1", "berlin/gw/v2"], id="used"),
        pytest.param(TagPolicy("used", frozenset({PackageTarget("default", "lisbon", "gw")})), [], id="used-elsewhere"),
        pytest.param(
            TagPolicy("used", frozenset({PackageTarget("other", "berlin", "gw")})), [], id="used-in-another-namespace"
        ),
    ],
)
def test_whose_revisions_lack_a_tag(tagging: TagPolicy, expected: list[str]) -> None:
    missing = find_missing_tags(destination(tag_prefix="berlin/"), KNOWN, tagging)

    assert [missing_tag.name for missing_tag in missing] == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"tag_prefix": ""}, "gw/v1", id="without-a-prefix"),
        pytest.param({"tag_prefix": "sites-"}, "sites-gw/v1", id="a-prefix-without-a-slash"),
        pytest.param({"tag_prefix": "a/", "directory": "base"}, "a/gw/v1", id="the-directory-is-no-part"),
    ],
)
def test_what_a_tag_is_called(fields: dict[str, Any], expected: str) -> None:
    assert find_missing_tags(destination(**fields), KNOWN, USED)[0].name == expected


def test_what_has_a_tag_lacks_none() -> None:
    noted = record_tags(KNOWN, {("gw", 2): ObjectId("t2")})

    assert noted.packages["gw"].revisions == (ONE, replace(TWO, tag="t2"))
    assert noted.packages["web"] == KNOWN.packages["web"]
    assert [missing_tag.revision.number for missing_tag in find_missing_tags(destination(), noted, USED)] == [1]


def test_a_tag_that_is_known_is_not_forgotten_with_the_next() -> None:
    noted = record_tags(record_tags(KNOWN, {("gw", 1): ObjectId("t1")}), {("gw", 2): ObjectId("t2")})

    assert [published_revision.tag for published_revision in noted.packages["gw"].revisions] == ["t1", "t2"]
