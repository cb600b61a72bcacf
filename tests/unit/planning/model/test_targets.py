"""Tests of targets: conflicts between targets, and the names of branches and packages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.planning.model.targets import (
    PackagePathIndex,
    Target,
    are_paths_nested,
    find_target_conflicts,
    format_draft_branch,
)
from tests.unit.planning.builders import build_target

ONE = build_target("one", branch="main", directory="a")
DRAFTS = ("drafts/{repository}", "removals/{repository}")


@pytest.mark.parametrize(
    ("other", "conflict"),
    [
        pytest.param(build_target("two", branch="main", directory="a"), True, id="equal-directory"),
        pytest.param(build_target("two", branch="main", directory="a/b"), True, id="below"),
        pytest.param(build_target("two", branch="main", directory=""), True, id="above"),
        pytest.param(build_target("two", branch="main", directory="ab"), False, id="only-a-common-beginning"),
        pytest.param(build_target("two", branch="main", directory="b"), False, id="beside"),
        pytest.param(build_target("two", branch="next", directory="a"), False, id="another-branch"),
        pytest.param(build_target("two", branch="main", directory="a", url="x"), False, id="another-remote"),
        pytest.param(build_target("one", branch="x", namespace="team"), True, id="one-name-two-namespaces"),
        pytest.param(
            build_target("one", branch="x", namespace="team", is_deployment=False), False, id="a-catalog-of-that-name"
        ),
    ],
)
def test_conflict_of_two_targets(other: Target, conflict: bool) -> None:
    target_conflicts = find_target_conflicts([ONE, other], DRAFTS)

    assert set(target_conflicts) == ({ONE.key, other.key} if conflict else set())
    assert {finding.code for finding in target_conflicts.values()} <= {"DestinationConflict"}


def test_each_finding_of_a_conflict_names_the_other_target() -> None:
    other = build_target("two", branch="main", directory="a/b")

    target_conflicts = find_target_conflicts([other, ONE], DRAFTS)

    assert "default/two" in target_conflicts[ONE.key].message
    assert "default/one" in target_conflicts[other.key].message


@pytest.mark.parametrize(
    ("template", "other", "conflict"),
    [
        pytest.param("{branch}-next", build_target("two", branch="main", directory="b"), True, id="one-draft-branch"),
        pytest.param("{branch}-{package}", build_target("two", branch="main", directory="b"), True, id="by-package"),
        pytest.param(
            "{branch}-next/{repository}", build_target("two", branch="main", directory="b"), False, id="named"
        ),
        pytest.param("{branch}-next", build_target("two", branch="next", directory="b"), False, id="another-branch"),
        pytest.param("{branch}-next", build_target("two", branch="main", url="x"), False, id="another-remote"),
    ],
)
def test_two_targets_with_the_same_draft_branch(template: str, other: Target, conflict: bool) -> None:
    target_conflicts = find_target_conflicts([ONE, other], ("drafts/{repository}", template))

    assert set(target_conflicts) == ({ONE.key, other.key} if conflict else set())
    assert all(template in finding.message for finding in target_conflicts.values())


def test_many_targets_of_one_fleet_have_no_conflict() -> None:
    assert find_target_conflicts((build_target(f"c{number}") for number in range(300)), DRAFTS) == {}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param("drafts/{repository}", "drafts/berlin", id="one-per-cluster"),
        pytest.param("drafts/{repository}/{package}", "drafts/berlin/team_gw", id="one-per-package"),
        pytest.param("{branch}-next", "clusters/berlin-next", id="beside-the-branch"),
    ],
)
def test_name_of_a_draft_branch(template: str, expected: str) -> None:
    assert format_draft_branch(template, build_target(), "team/gw") == expected


@pytest.mark.parametrize(
    ("directory", "path", "status"),
    [
        pytest.param("", "team/gw", ".reconciler/team/gw.yaml", id="at-the-top"),
        pytest.param("sites/b", "sites/b/team/gw", "sites/b/.reconciler/team/gw.yaml", id="in-a-directory"),
    ],
)
def test_paths_of_a_package_and_its_status_file(directory: str, path: str, status: str) -> None:
    target = build_target(directory=directory)

    assert (target.get_package_path("team/gw"), target.get_status_file_path("team/gw")) == (path, status)


@pytest.mark.parametrize(
    ("package", "expected"),
    [
        pytest.param("a/b", ("a", "a/b/c"), id="above-and-below"),
        pytest.param("a/bc", ("a",), id="a-common-beginning-is-no-nesting"),
        pytest.param("d", (), id="beside"),
        pytest.param("a/b/c", ("a",), id="itself-does-not-count"),
    ],
)
def test_find_nested_packages(package: str, expected: tuple[str, ...]) -> None:
    assert PackagePathIndex(["a", "a/b/c", "b"]).find_nested(package) == expected


PATHS = st.lists(st.sampled_from(["a", "b", "ab"]), max_size=4).map("/".join)


@given(st.lists(PATHS), PATHS)
def test_index_finds_the_same_nested_packages_as_a_full_search(known: list[str], package: str) -> None:
    looked_at = (item for item in set(known) if item != package and are_paths_nested(item, package))

    assert PackagePathIndex(known).find_nested(package) == tuple(sorted(looked_at))


@pytest.mark.parametrize("other", ["a", "a/b", ""])
def test_nesting_is_symmetric(other: str) -> None:
    assert are_paths_nested("a", other)
    assert are_paths_nested(other, "a")
