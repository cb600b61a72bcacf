"""Tests of the diffs of large drafts: the most important files up to a limit, and notes for the other files."""

from __future__ import annotations

import pytest

from reconciler.output.changes.package_changes import compare_packages
from reconciler.output.fleet.large_diffs import build_limited_diffs
from reconciler.output.fleet.resource_diffs import build_resource_diffs
from tests.unit.output.builders import build_tree, format_deployment
from tests.unit.output.fleet.builders import format_size

SETTINGS = format_size(1)["settings.yaml"]
BEFORE = build_tree({"d.yaml": format_deployment(image="web:1"), "settings.yaml": SETTINGS, "notes.txt": "a" * 50})
AFTER = build_tree({
    "d.yaml": format_deployment(image="web:2"), "settings.yaml": format_size(2)["settings.yaml"],
    "notes.txt": "b" * 50, "big.txt": "c" * 5_000,
})  # fmt: skip
CHANGES = compare_packages(BEFORE, AFTER)


def test_a_small_draft_is_complete() -> None:
    diffs, size = build_limited_diffs(BEFORE, AFTER, CHANGES)
    assert diffs == build_resource_diffs(BEFORE, AFTER, CHANGES)
    assert size == sum(len(file.data) for file in AFTER.values())


@pytest.mark.parametrize(
    ("requested", "shown"),
    [
        pytest.param((), "Deployment web", id="most-important"),
        pytest.param(("ConfigMap settings",), "ConfigMap settings", id="resource"),
        pytest.param(("notes.txt",), "notes.txt", id="file"),
        pytest.param(("missing", "settings.yaml"), "ConfigMap settings", id="file-of-a-resource"),
        pytest.param(("big.txt",), "Deployment web", id="too-large"),
    ],
)
def test_a_large_draft_has_the_requested_resource(requested: tuple[str, ...], shown: str) -> None:
    limit = len(AFTER["d.yaml"].data)
    diffs, size = build_limited_diffs(BEFORE, AFTER, CHANGES, requested, limit)

    with_lines = [diff.title for diff in diffs if diff.blocks]
    notes = {diff.title: (diff.is_omitted, diff.note) for diff in diffs if not diff.blocks}
    # The rest of the limit has space for small files.
    assert {"Deployment web", shown} & {*with_lines} == {shown}
    assert size > limit
    assert {diff.file for diff in diffs} == {"d.yaml", "settings.yaml", "notes.txt", "big.txt"}
    assert notes["big.txt"] == (False, f"The file is not shown, because it has more than {limit} bytes.")
    assert all(is_omitted for title, (is_omitted, _) in notes.items() if title != "big.txt")
