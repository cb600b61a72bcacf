"""Tests of the unified diffs in results."""

from __future__ import annotations

import pytest

from reconciler.output.fleet.detail_results import format_hunks
from reconciler.output.fleet.resource_diffs import build_blocks

LINES = [f"line {number}" for number in range(1, 21)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            LINES, [*LINES[:1], "x", *LINES[2:15], "y", *LINES[16:]],
            ["@@ -1,5 +1,5 @@", "@@ -13,8 +13,8 @@"], id="two-hunks",
        ),
        pytest.param([], ["a", "b"], ["@@ -0,0 +1,2 @@"], id="added"),
        pytest.param(["a"], [], ["@@ -1,1 +0,0 @@"], id="removed"),
    ],
)  # fmt: skip
def test_the_headers_of_hunks_have_the_numbers_of_their_lines(
    old: list[str], new: list[str], expected: list[str]
) -> None:
    text = format_hunks(build_blocks(old, new)).splitlines()

    assert [line for line in text if line.startswith("@@")] == expected
    assert [line[1:] for line in text if line[0] == "+"] == [line for line in new if line not in old]
    assert [line[1:] for line in text if line[0] == "-"] == [line for line in old if line not in new]
