"""Tests of conflicts between targets."""

import pytest

from reconciler.planning.model.target_conflicts import find_target_conflicts
from reconciler.planning.model.targets import Target
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
