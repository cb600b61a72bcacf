"""Tests of revision tags: which tags are missing, their names, and their records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.files import ObjectId
from reconciler.controllers.results import PackageTarget
from reconciler.planning.layout.refs import TagPolicy, find_missing_tags, record_tags
from reconciler.planning.model.state import PublishedRevision
from tests.unit.planning.builders import build_commit_id, build_record, build_state, build_target, build_version

ONE, TWO = (
    PublishedRevision(1, build_commit_id("b1"), build_version("v1")),
    PublishedRevision(2, build_commit_id("b2"), build_version("v2")),
)
KNOWN = build_state(
    packages={"gw": build_record(revisions=(ONE, TWO)), "web": build_record(revisions=(ONE,)), "new": build_record()}
)
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
def test_missing_tags_of_each_tagging_mode(tagging: TagPolicy, expected: list[str]) -> None:
    missing = find_missing_tags(build_target(tag_prefix="berlin/"), KNOWN, tagging)

    assert [missing_tag.name for missing_tag in missing] == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"tag_prefix": ""}, "gw/v1", id="without-a-prefix"),
        pytest.param({"tag_prefix": "sites-"}, "sites-gw/v1", id="a-prefix-without-a-slash"),
        pytest.param({"tag_prefix": "a/", "directory": "base"}, "a/gw/v1", id="the-directory-is-no-part"),
    ],
)
def test_name_of_a_tag(fields: dict[str, Any], expected: str) -> None:
    assert find_missing_tags(build_target(**fields), KNOWN, USED)[0].name == expected


def test_recorded_tag_is_not_missing() -> None:
    noted = record_tags(KNOWN, {("gw", 2): ObjectId("t2")})

    assert noted.packages["gw"].revisions == (ONE, replace(TWO, tag="t2"))
    assert noted.packages["web"] == KNOWN.packages["web"]
    assert [missing_tag.revision.number for missing_tag in find_missing_tags(build_target(), noted, USED)] == [1]


def test_recorded_tag_stays_when_the_next_tag_is_recorded() -> None:
    noted = record_tags(record_tags(KNOWN, {("gw", 1): ObjectId("t1")}), {("gw", 2): ObjectId("t2")})

    assert [published_revision.tag for published_revision in noted.packages["gw"].revisions] == ["t1", "t2"]
