"""Tests of matching: which documents are the same resource."""

from __future__ import annotations

import pytest

from reconciler.krm.yaml import YamlFile
from reconciler.packages.parsing import parse_cached
from reconciler.packages.update.matching import (
    MergeEntry,
    ResourceGroup,
    find_duplicate_entries,
    match_by_position,
    match_resources,
)
from tests.unit.packages.update.builders import format_resource


def build_entries(path: str, *names: str) -> list[MergeEntry]:
    file = parse_cached("---\n".join(format_resource(name) for name in names).encode())
    assert isinstance(file, YamlFile)
    return [MergeEntry("", path, index, document) for index, document in enumerate(file.documents)]


def format_groups(groups: tuple[ResourceGroup, ...]) -> list[str]:
    sides = [(group.origin, group.updated, group.local) for group in groups]
    return [" ".join(f"{entry.path}.{entry.name}" if entry else "-" for entry in side) for side in sides]


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param([("x", "a")], [("x", "a")], [("x", "a")], ["x.a x.a x.a"], id="exact"),
        pytest.param([("x", "a")], [("x", "a")], [("y", "a")], ["x.a x.a y.a"], id="moved-here"),
        pytest.param([("x", "a")], [("y", "a")], [("x", "a")], ["x.a y.a x.a"], id="moved-upstream"),
        pytest.param([("x", "a")], [("y", "a")], [("z", "a")], ["x.a y.a z.a"], id="moved-by-both"),
        pytest.param([], [("y", "a")], [("z", "a")], ["- y.a z.a"], id="added-by-both"),
        pytest.param(
            [("x", "a")], [("x", "a")], [("y", "a"), ("z", "a")], ["- - y.a", "- - z.a", "x.a x.a -"], id="ambiguous"
        ),
        pytest.param(
            [("x", "a"), ("y", "a")], [("x", "a")], [("x", "a"), ("y", "a")], ["x.a x.a x.a", "y.a - y.a"], id="copies"
        ),
    ],
)
def test_match_resources(
    origin: list[tuple[str, str]], updated: list[tuple[str, str]], local: list[tuple[str, str]], expected: list[str]
) -> None:
    sides = [[entry for path, name in side for entry in build_entries(path, name)] for side in (origin, updated, local)]

    assert format_groups(match_resources(sides, follow_moves=True, use_annotations=False)) == expected


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param(["new"], ["old"], ["new"], ["x.new x.old x.new"], id="renamed"),
        pytest.param(["new"], ["old"], [], ["x.new x.old -"], id="deleted-here"),
        pytest.param(["new"], ["old"], ["old"], ["x.new x.old x.old"], id="renamed-back-here"),
        pytest.param(["a", "new"], ["a", "old"], ["new", "a"], ["x.new x.old x.new", "x.a x.a x.a"], id="second"),
        pytest.param(["new"], ["old", "b"], ["new"], ["x.new - x.new", "- x.old -", "- x.b -"], id="other-count"),
        pytest.param(["new"], ["old"], ["new", "old"], ["x.new - x.new", "- x.old x.old"], id="both-here"),
    ],
)
def test_match_by_position(origin: list[str], updated: list[str], local: list[str], expected: list[str]) -> None:
    sides = [build_entries("x", *names) if names else [] for names in (origin, updated, local)]

    assert format_groups(match_by_position(match_resources(sides, follow_moves=True, use_annotations=True))) == expected


def test_documents_without_common_kind_or_name_are_not_matched_by_position() -> None:
    other = parse_cached(format_resource("old").replace("kind: ", "kind: Other").encode())
    assert isinstance(other, YamlFile)
    sides = [build_entries("x", "new"), [MergeEntry("", "x", 0, other.documents[0])], build_entries("x", "new")]

    assert format_groups(match_by_position(match_resources(sides, follow_moves=True, use_annotations=True))) == [
        "x.new - x.new",
        "- x.old -",
    ]


def test_documents_without_names_are_not_matched_across_files() -> None:
    values = parse_cached(b"a: 1\n")
    assert isinstance(values, YamlFile)
    sides = [[MergeEntry("", path, 0, values.documents[0])] for path in "xxy"]

    assert len(match_resources(sides, follow_moves=True, use_annotations=True)) == 2


def test_duplicates() -> None:
    first, _, third = build_entries("x", "a", "b", "a")

    assert list(find_duplicate_entries([*build_entries("x", "a", "b", "a"), *build_entries("y", "a")])) == [
        (first, third)
    ]
