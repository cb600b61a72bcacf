"""Tests of unusual and invalid upstream packages: they block only their own package."""

from pathlib import Path

import pytest

from tests.support.git_repositories import git, read_ref
from tests.support.world import STATE, World, package, small_world, variant

pytestmark = pytest.mark.real_git


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = small_world(tmp_path)
    world.sync()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    return world


def request_version(world: World, version: str) -> None:
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", version)})


def release_package_with_link(world: World) -> None:
    """Release version v2 of the package with a symbolic link and an executable file."""
    head = read_ref(world.catalog, "refs/heads/main")
    commit = f"commit refs/heads/main\ncommitter Ada <ada@example.com> 1000000000 +0000\ndata 1\nx\nfrom {head}\n"
    files = "M 120000 inline metrics/link\ndata 5\n/etc/\nM 100755 inline metrics/run.sh\ndata 2\nx\n\n"
    git(world.catalog, "fast-import", "--quiet", "--date-format=raw", stdin=(commit + files).encode())
    git(world.catalog, "update-ref", "refs/tags/metrics/v2", "refs/heads/main")


@pytest.mark.slow
def test_link_is_skipped_and_its_package_is_published(world: World) -> None:
    release_package_with_link(world)
    request_version(world, "v2")

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "draft"
    assert "LinkSkipped" in after.codes
    listed = git(world.fleet, "ls-tree", "drafts/berlin", "metrics/").splitlines()
    assert {line.split()[0] for line in listed} == {"100644", "100755"}
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    git(world.fleet, "update-ref", "-d", f"{STATE}berlin")
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"
    world.release("metrics", "v3", package("metrics", image="3.0"))
    request_version(world, "v3")
    assert world.sync().outcomes["berlin/metrics"] == "draft"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "code"),
    [
        pytest.param({"Kptfile": "a: [\n"}, "KptfileSyntax", id="kptfile"),
        pytest.param({"deployment.yaml": "a: [\n"}, "InjectionPointInvalid", id="resource"),
    ],
)
def test_unreadable_package_changes_nothing(world: World, broken: dict[str, str], code: str) -> None:
    world.release("metrics", "v2", {**package("metrics"), **broken})
    request_version(world, "v2")

    after = world.sync()

    assert code in after.outcomes["berlin/metrics"]
    assert after.changed_branches == set()
    pass_result = world.sync()
    assert pass_result.is_unchanged
    owner = "PackageVariant/default/metrics-berlin"
    assert {(finding.location.package, finding.location.owner) for finding in after.findings} == {
        ("berlin/metrics", owner)
    }
    assert pass_result.findings == after.findings


def test_unavailable_function_creates_a_gated_draft_that_stays_unchanged(world: World) -> None:
    files = package("metrics", image="2.0")
    files["Kptfile"] += "pipeline:\n  mutators:\n    - image: nowhere.example.com/fn:v1\n"
    world.release("metrics", "v2", files)
    request_version(world, "v2")

    assert world.sync().outcomes["berlin/metrics"] == "draft"
    assert world.sync().is_unchanged
    assert "met: false" in world.text("drafts/berlin", ".reconciler/metrics.yaml")
    world.merge("berlin", "squash")
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"
