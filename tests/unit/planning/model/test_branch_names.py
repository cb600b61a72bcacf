"""Tests of branch names: names of draft branches, and reserved names that no target branch may have."""

from __future__ import annotations

import pytest

from reconciler.krm.findings import SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.planning.model.branch_names import ReservedBranches, format_draft_branch
from reconciler.planning.model.targets import Target
from tests.unit.planning.builders import build_target as build_default_target

DEFAULT = {"drafts.branch": "drafts/{repository}", "drafts.removals_branch": "removals/{repository}"}
NAMES = {"status.branch": "reconciler/status", "drafts.config_branch": "drafts/config"}


def build_target(name: str, branch: str, url: str = "/fleet.git") -> Target:
    key = ObjectKey("config.porch.kpt.dev", "Repository", "default", name)
    return Target(key, url, url, branch, "", True, SourceLocation())


def find_reserved_use(branch: str, templates: dict[str, str] | None = None, names: dict[str, str] | None = None) -> str:
    target = build_target("berlin", branch)
    return (
        ReservedBranches(templates or DEFAULT, NAMES if names is None else names)
        .find_reserved_uses([target])
        .get(target.key, "")
    )


@pytest.mark.parametrize(
    "branch",
    [
        pytest.param("drafts/berlin", id="draft"),
        pytest.param("drafts/lisbon", id="draft-of-another-cluster"),
        pytest.param("drafts/lisbon/gateway", id="below-a-draft"),
        pytest.param("drafts", id="folder-of-drafts"),
        pytest.param("removals/berlin", id="removal"),
        pytest.param("proposed/berlin", id="proposed"),
        pytest.param("reconciler/status", id="status"),
        pytest.param("reconciler", id="folder-of-the-status"),
        pytest.param("reconciler/state/berlin", id="state"),
        pytest.param("reconciler/kept/berlin/0123", id="kept-head"),
        pytest.param("drafts/config", id="proposal-to-the-config"),
        pytest.param("Drafts/Berlin", id="another-case"),
        pytest.param("HEAD", id="head"),
    ],
)
def test_branches_of_the_reconciler_are_reserved(branch: str) -> None:
    assert find_reserved_use(branch)


@pytest.mark.parametrize("branch", ["clusters/berlin", "main", "draft/berlin", "draftsmen", "prod/drafts/berlin"])
def test_other_branches_are_not_reserved(branch: str) -> None:
    assert find_reserved_use(branch) == ""


@pytest.mark.parametrize(
    ("template", "branch", "is_reserved"),
    [
        pytest.param("review/{repository}/{package}", "review/lisbon/gateway", True, id="own-template"),
        pytest.param("review/{repository}/{package}", "review", True, id="folder-of-the-template"),
        pytest.param("review/{repository}", "drafts/lisbon", False, id="default-is-free-under-another-template"),
        pytest.param("draft-{repository}", "draft-lisbon", True, id="prefix-without-a-folder"),
        pytest.param("{branch}-next", "clusters/lisbon", False, id="starts-with-a-placeholder"),
        pytest.param("{branch}-next", "release-next", False, id="only-looks-like-a-draft"),
    ],
)
def test_templates_of_the_settings_reserve_branches(template: str, branch: str, is_reserved: bool) -> None:
    assert bool(find_reserved_use(branch, {"drafts.branch": template}, {})) is is_reserved


def test_draft_branch_of_another_cluster_in_the_same_repository_is_reserved() -> None:
    berlin, twin = build_target("berlin", "prod"), build_target("twin", "prod-next")
    elsewhere = build_target("elsewhere", "prod-next", url="/other.git")

    uses = ReservedBranches({"drafts.branch": "{branch}-next"}, {}).find_reserved_uses([berlin, twin, elsewhere])

    assert uses == {twin.key: "the setting `drafts.branch` uses this branch for Repository berlin"}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param("drafts/{repository}", "drafts/berlin", id="one-per-cluster"),
        pytest.param("drafts/{repository}/{package}", "drafts/berlin/team_gw", id="one-per-package"),
        pytest.param("{branch}-next", "clusters/berlin-next", id="beside-the-branch"),
    ],
)
def test_name_of_a_draft_branch(template: str, expected: str) -> None:
    assert format_draft_branch(template, build_default_target(), "team/gw") == expected
