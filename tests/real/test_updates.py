"""Packages of other projects with two upstream updates, and local changes that survive them.

The expected result is known to the byte without a merge: see `line_edits`.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.krm.merge3 import MergeRules
from reconciler.krm.merge3.rules import Winner
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.sides import UpdateResult
from reconciler.packages.update.three_way import merge_packages, update_package
from tests.real.line_edits import PackageEdits, Side, applied, generate_edits
from tests.real.packages import DATA, package_files

PACKAGES = sorted(file.parent.relative_to(DATA).as_posix() for file in DATA.rglob("Kptfile"))
SEEDS = range(4)
pytestmark = pytest.mark.skipif(not PACKAGES, reason="the packages of other projects are not available")


def read_package(name: str) -> dict[str, str]:
    return {path: content.decode() for path, content in package_files(DATA / name).items()}


@pytest.fixture(params=[f"{name}#{seed}" for name in PACKAGES for seed in SEEDS])
def edits(request: pytest.FixtureRequest) -> PackageEdits:
    return generate_edits(read_package(request.param.partition("#")[0]), request.param)


def tree(files: Mapping[str, str]) -> FileTree:
    return FileTree({path: File(text.encode()) for path, text in files.items()})


def texts(files: FileTree) -> dict[str, str]:
    return {path: file.data.decode() for path, file in files.items()}


def options(winner: Winner = "upstream") -> MergeOptions:
    return MergeOptions(rules=MergeRules(winner=winner))


def first_update(edits: PackageEdits, winner: Winner = "upstream") -> UpdateResult:
    origin, updated, local = (tree(applied(edits.first, side)) for side in (Side(), edits.second, edits.people))
    return update_package(origin, updated, local, "resource-merge", options(winner))


def assert_same(mapping: Mapping[str, str], expected: Mapping[str, str]) -> None:
    assert sorted(mapping) == sorted(expected)
    for path, text in expected.items():
        assert mapping[path] == text, path


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("winner", ["upstream", "local"])
def test_an_update_has_what_both_sides_changed_and_no_other_line(edits: PackageEdits, winner: Winner) -> None:
    sides = (edits.people, edits.second) if winner == "upstream" else (edits.second, edits.people)

    updated = first_update(edits, winner)

    assert_same(texts(updated.files), applied(edits.first, *sides))
    assert updated.findings == ()


@pytest.mark.quick_cases(every=4)
def test_conflicts_are_what_both_sides_changed_differently(edits: PackageEdits) -> None:
    updated = first_update(edits)

    assert {(conflict.file, conflict.pointer) for conflict in updated.conflicts} == edits.conflicts
    assert {(conflict.kind, conflict.chosen, conflict.rule) for conflict in updated.conflicts} <= {
        ("field", "upstream", "D2")
    }


@pytest.mark.quick_cases(every=4)
def test_the_next_update_keeps_them_and_reports_nothing_twice(edits: PackageEdits) -> None:
    before = first_update(edits).files
    second, third = (tree(applied(edits.first, *sides)) for sides in ((edits.second,), (edits.second, edits.third)))

    updated = update_package(second, third, before, "resource-merge", options())

    assert_same(texts(updated.files), applied(edits.first, edits.people, edits.second, edits.third))
    assert (updated.conflicts, updated.findings) == ((), ())


@pytest.mark.quick_cases(every=4)
def test_a_second_pass_is_silent(edits: PackageEdits) -> None:
    updated = tree(applied(edits.first, edits.second))
    result = first_update(edits).files

    update_results = [
        update_package(updated, updated, result, "resource-merge", options()),
        merge_packages(updated, updated, result, options()),
    ]

    assert [
        (update_result.files == result, update_result.conflicts, update_result.findings)
        for update_result in update_results
    ] == [(True, (), ())] * 2


def test_the_stories_are_long_enough() -> None:
    all_edits = [generate_edits(read_package(name), f"{name}#{seed}") for name in PACKAGES for seed in SEEDS]

    assert sum(len(edits.conflicts) for edits in all_edits) >= len(PACKAGES)
    assert sum(len(edits.people.lines) for edits in all_edits) > 10 * len(PACKAGES)
    assert sum(len(edits.second.lines) for edits in all_edits) > 10 * len(PACKAGES)
    assert sum(len(edits.second.renames) for edits in all_edits) > 5
    assert sum(len(edits.third.moves) for edits in all_edits) > 5
