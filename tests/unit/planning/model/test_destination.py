"""Which destinations get in each other's way, and what branches and packages are called."""

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
from tests.unit.planning.values import destination

ONE = destination("one", branch="main", directory="a")
DRAFTS = ("drafts/{repository}", "removals/{repository}")


@pytest.mark.parametrize(
    ("other", "conflict"),
    [
        pytest.param(destination("two", branch="main", directory="a"), True, id="equal-directory"),
        pytest.param(destination("two", branch="main", directory="a/b"), True, id="below"),
        pytest.param(destination("two", branch="main", directory=""), True, id="above"),
        pytest.param(destination("two", branch="main", directory="ab"), False, id="only-a-common-beginning"),
        pytest.param(destination("two", branch="main", directory="b"), False, id="beside"),
        pytest.param(destination("two", branch="next", directory="a"), False, id="another-branch"),
        pytest.param(destination("two", branch="main", directory="a", url="x"), False, id="another-remote"),
        pytest.param(destination("one", branch="x", namespace="team"), True, id="one-name-two-namespaces"),
        pytest.param(
            destination("one", branch="x", namespace="team", is_deployment=False), False, id="a-catalog-of-that-name"
        ),
    ],
)
def test_two_destinations(other: Target, conflict: bool) -> None:
    target_conflicts = find_target_conflicts([ONE, other], DRAFTS)

    assert set(target_conflicts) == ({ONE.key, other.key} if conflict else set())
    assert {finding.code for finding in target_conflicts.values()} <= {"DestinationConflict"}


def test_each_side_of_a_conflict_names_the_other() -> None:
    other = destination("two", branch="main", directory="a/b")

    target_conflicts = find_target_conflicts([other, ONE], DRAFTS)

    assert "default/two" in target_conflicts[ONE.key].message
    assert "default/one" in target_conflicts[other.key].message


@pytest.mark.parametrize(
    ("template", "other", "conflict"),
    [
        pytest.param("{branch}-next", destination("two", branch="main", directory="b"), True, id="one-draft-branch"),
        pytest.param("{branch}-{package}", destination("two", branch="main", directory="b"), True, id="by-package"),
        pytest.param("{branch}-next/{repository}", destination("two", branch="main", directory="b"), False, id="named"),
        pytest.param("{branch}-next", destination("two", branch="next", directory="b"), False, id="another-branch"),
        pytest.param("{branch}-next", destination("two", branch="main", url="x"), False, id="another-remote"),
    ],
)
def test_two_destinations_with_one_draft_branch(template: str, other: Target, conflict: bool) -> None:
    target_conflicts = find_target_conflicts([ONE, other], ("drafts/{repository}", template))

    assert set(target_conflicts) == ({ONE.key, other.key} if conflict else set())
    assert all(template in finding.message for finding in target_conflicts.values())


def test_many_destinations_of_one_fleet_do_not_disturb_one_another() -> None:
    assert find_target_conflicts((destination(f"c{number}") for number in range(300)), DRAFTS) == {}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param("drafts/{repository}", "drafts/berlin", id="one-per-cluster"),
        pytest.param("drafts/{repository}/{package}", "drafts/berlin/team_gw", id="one-per-package"),
        pytest.param("{branch}-next", "clusters/berlin-next", id="beside-the-branch"),
    ],
)
def test_names_of_draft_branches(template: str, expected: str) -> None:
    assert format_draft_branch(template, destination(), "team/gw") == expected


@pytest.mark.parametrize(
    ("directory", "path", "status"),
    [
        pytest.param("", "team/gw", ".reconciler/team/gw.yaml", id="at-the-top"),
        pytest.param("sites/b", "sites/b/team/gw", "sites/b/.reconciler/team/gw.yaml", id="in-a-directory"),
    ],
)
def test_where_a_package_and_its_status_file_stand(directory: str, path: str, status: str) -> None:
    target = destination(directory=directory)

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
def test_nested_packages(package: str, expected: tuple[str, ...]) -> None:
    assert PackagePathIndex(["a", "a/b/c", "b"]).find_nested(package) == expected


PATHS = st.lists(st.sampled_from(["a", "b", "ab"]), max_size=4).map("/".join)


@given(st.lists(PATHS), PATHS)
def test_packages_that_are_found_one_by_one_are_those_that_a_look_at_all_finds(known: list[str], package: str) -> None:
    looked_at = (item for item in set(known) if item != package and are_paths_nested(item, package))

    assert PackagePathIndex(known).find_nested(package) == tuple(sorted(looked_at))


@pytest.mark.parametrize("other", ["a", "a/b", ""])
def test_nesting_goes_both_ways(other: str) -> None:
    assert are_paths_nested("a", other)
    assert are_paths_nested(other, "a")
