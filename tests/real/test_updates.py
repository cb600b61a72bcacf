"""Packages that other projects published, changed twice by upstream and in between by people, whose edits survive.

What must come out is known without a merge, to the byte: see `line_edits`.
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
from tests.real.line_edits import Side, Story, applied, tell
from tests.real.packages import DATA, package_files

PACKAGES = sorted(file.parent.relative_to(DATA).as_posix() for file in DATA.rglob("Kptfile"))
SEEDS = range(4)
pytestmark = pytest.mark.skipif(not PACKAGES, reason="the packages of other projects are not beside this project")


def read_package(name: str) -> dict[str, str]:
    return {path: content.decode() for path, content in package_files(DATA / name).items()}


@pytest.fixture(params=[f"{name}#{seed}" for name in PACKAGES for seed in SEEDS])
def story(request: pytest.FixtureRequest) -> Story:
    return tell(read_package(request.param.partition("#")[0]), request.param)


def tree(files: Mapping[str, str]) -> FileTree:
    return FileTree({path: File(text.encode()) for path, text in files.items()})


def texts(files: FileTree) -> dict[str, str]:
    return {path: file.data.decode() for path, file in files.items()}


def options(winner: Winner = "upstream") -> MergeOptions:
    return MergeOptions(rules=MergeRules(winner=winner))


def first_update(story: Story, winner: Winner = "upstream") -> UpdateResult:
    origin, updated, local = (tree(applied(story.first, side)) for side in (Side(), story.second, story.people))
    return update_package(origin, updated, local, "resource-merge", options(winner))


def assert_same(mapping: Mapping[str, str], expected: Mapping[str, str]) -> None:
    assert sorted(mapping) == sorted(expected)
    for path, text in expected.items():
        assert mapping[path] == text, path


@pytest.mark.parametrize("winner", ["upstream", "local"])
def test_an_update_has_what_both_sides_changed_and_no_other_line(story: Story, winner: Winner) -> None:
    sides = (story.people, story.second) if winner == "upstream" else (story.second, story.people)

    updated = first_update(story, winner)

    assert_same(texts(updated.files), applied(story.first, *sides))
    assert updated.findings == ()


def test_conflicts_are_what_both_sides_changed_differently(story: Story) -> None:
    updated = first_update(story)

    assert {(conflict.file, conflict.pointer) for conflict in updated.conflicts} == story.conflicts
    assert {(conflict.kind, conflict.chosen, conflict.rule) for conflict in updated.conflicts} <= {
        ("field", "upstream", "D2")
    }


def test_the_next_update_keeps_them_and_tells_nothing_twice(story: Story) -> None:
    before = first_update(story).files
    second, third = (tree(applied(story.first, *sides)) for sides in ((story.second,), (story.second, story.third)))

    updated = update_package(second, third, before, "resource-merge", options())

    assert_same(texts(updated.files), applied(story.first, story.people, story.second, story.third))
    assert (updated.conflicts, updated.findings) == ((), ())


def test_a_second_pass_is_silent(story: Story) -> None:
    updated = tree(applied(story.first, story.second))
    result = first_update(story).files

    update_results = [
        update_package(updated, updated, result, "resource-merge", options()),
        merge_packages(updated, updated, result, options()),
    ]

    assert [
        (update_result.files == result, update_result.conflicts, update_result.findings)
        for update_result in update_results
    ] == [(True, (), ())] * 2


def test_the_stories_are_long_enough() -> None:
    stories = [tell(read_package(name), f"{name}#{seed}") for name in PACKAGES for seed in SEEDS]

    assert sum(len(story.conflicts) for story in stories) >= len(PACKAGES)
    assert sum(len(story.people.lines) for story in stories) > 10 * len(PACKAGES)
    assert sum(len(story.second.lines) for story in stories) > 10 * len(PACKAGES)
    assert sum(len(story.second.renames) for story in stories) > 5
    assert sum(len(story.third.moves) for story in stories) > 5
