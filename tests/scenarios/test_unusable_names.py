"""Tests of Repository objects with an unusable name or branch: an error finding, and no push."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repositories import read_refs
from tests.support.world import injected_set, repository, small_world, variant


@pytest.mark.parametrize("name", [pytest.param("Berlin_1", id="no-dns-name"), pytest.param("b" * 246, id="too-long")])
def test_a_repository_with_an_unusable_name_gets_no_draft(tmp_path: Path, name: str) -> None:
    world = small_world(tmp_path)
    world.write({"odd.yaml": repository(name), "own.yaml": variant("own", name, "metrics")})

    synced = world.sync()

    assert "NameNotUsable" in synced.codes
    assert not [ref for ref in read_refs(world.fleet) if name in ref]
    assert "drafts/lisbon" in synced.changed_branches
    assert world.sync().is_unchanged


@pytest.mark.parametrize(
    "branch", ["drafts/lisbon", "removals/x", "proposed/x", "reconciler/status", "reconciler/state/x"]
)
def test_a_reserved_branch_is_not_used_as_a_target_branch(tmp_path: Path, branch: str) -> None:
    world = small_world(tmp_path)
    everywhere = injected_set("gateway", ("berlin", "lisbon", "odd"))
    world.write({"odd.yaml": repository("odd", branch=branch), "gateway.yaml": everywhere})

    synced = world.sync()

    (finding,) = [finding for finding in synced.findings if finding.code == "NameNotUsable"]
    assert (finding.location.file, finding.location.pointer) == ("odd.yaml", "/spec/git/branch")
    assert f'spec.git.branch "{branch}" is reserved' in finding.message
    assert not [ref for ref in read_refs(world.fleet) if ref.endswith("/odd")]
    assert "drafts/lisbon" in synced.changed_branches
    assert world.sync().is_unchanged


def test_a_reserved_branch_is_reported_without_requested_packages(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    world.write({"odd.yaml": repository("odd", branch="drafts/berlin")})

    assert "NameNotUsable" in world.sync().codes


def test_an_upstream_may_be_read_from_any_branch(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    written = repository("source", branch="drafts/berlin").replace("deployment: true", "deployment: false")
    world.write({"source.yaml": written})

    assert "NameNotUsable" not in world.sync().codes
