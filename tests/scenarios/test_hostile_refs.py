"""Tests of refs with unusual names and refs with unexpected objects: they do not stop work on other targets."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.git.filesystem import remove_folder
from tests.support.command_line import run_in
from tests.support.git_repositories import commit_files, git, point_ref
from tests.support.prepared_worlds import begin, berlin_published
from tests.support.world import STATE, World, package, variant

pytestmark = pytest.mark.real_git

DEEP_TAG = "refs/tags/" + "a/" * 1200 + "a"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Return a world with published packages of Berlin. The fixture removes the cache, because pytest cannot remove
    it.
    """
    yield begin(tmp_path, berlin_published)
    remove_folder(tmp_path / "cache")


def _pack_refs(place: Path) -> str:
    git(place, "pack-refs", "--all")
    lines = (place / "packed-refs").read_text().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("#"))


def release_update(world: World) -> None:
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write(
        {
            f"metrics-{cluster}.yaml": variant(f"metrics-{cluster}", cluster, "metrics", "v2")
            for cluster in ("berlin", "lisbon")
        }
    )
    world.write({"metrics.yaml": None})


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("repository", ["catalog", "fleet"])
def test_tag_name_with_a_thousand_slashes_has_no_effect(world: World, repository: str) -> None:
    place = getattr(world, repository)
    release_update(world)
    head = git(place, "for-each-ref", "--format=%(objectname)", "--count=1", "refs/heads").strip()
    (place / "packed-refs").write_text(f"{_pack_refs(place)}{head} {DEEP_TAG}\n")

    first = world.sync()

    assert "InternalError" not in first.codes
    assert first.outcomes["berlin/metrics"] == "draft"
    assert world.sync().is_unchanged


@pytest.mark.parametrize("kind", ["blob", "tree", "tag of a blob"])
@pytest.mark.emits("prefetch_failed")
def test_state_ref_without_a_commit_blocks_its_cluster_only(world: World, kind: str) -> None:
    release_update(world)
    blob = git(world.fleet, "hash-object", "-w", "--stdin", stdin=b"text").strip()
    tree = git(world.fleet, "rev-parse", "clusters/berlin^{tree}").strip()
    tag = git(world.fleet, "mktag", stdin=f"object {blob}\ntype blob\ntag t\ntagger t <t> 1 +0000\n\nt\n".encode())
    point_ref(world.fleet, f"{STATE}berlin", {"blob": blob, "tree": tree}.get(kind, tag.strip()))
    before = world.head("clusters/berlin")

    after = world.sync()

    assert "StateUnreadable" in after.codes
    assert after.outcomes["lisbon/metrics"] == "draft"
    assert world.head("clusters/berlin") == before
    assert not world.head("removals/berlin")


@pytest.mark.parametrize(
    "text", ["[]", "a: &a [*a]", "{{", "kind: 5", "", "\0\xff", "status: {conditions: 5}"], ids=repr
)
def test_summary_with_an_unknown_format_is_an_error_of_status(world: World, text: str) -> None:
    commit_files(world.fleet, "refs/heads/reconciler/status", {"summary.yaml": text.encode("latin-1")}, "by hand", 5)

    ended = run_in(world.folder, {}, "status", "--fleet", str(world.fleet), "--cache", str(world.folder / "other"))

    assert ended.returncode == 3
    assert "does not have the expected format" in ended.stderr


def _create_foreign_status(world: World, kind: str) -> str:
    """Return the ID of an object that no pass writes to the status branch."""
    blob = git(world.fleet, "hash-object", "-w", "--stdin", stdin=b"text")
    tree = git(world.fleet, "rev-parse", "clusters/berlin^{tree}")
    commit = git(world.fleet, "rev-parse", "clusters/berlin")
    match kind:
        case "blob":
            return blob
        case "tree":
            return tree
        case "tag-of-a-commit":
            text = f"object {commit}\ntype commit\ntag t\ntagger t <t> 1 +0000\n\nt\n"
            return git(world.fleet, "mktag", stdin=text.encode())
        case _:
            return commit


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("kind", ["blob", "tree", "tag-of-a-commit", "commit-of-another-branch"])
def test_foreign_status_branch_stays_and_all_clusters_are_reconciled(world: World, kind: str) -> None:
    world.sync()
    world.write({"more.yaml": variant("metrics-lisbon", "lisbon", "metrics")})
    status = _create_foreign_status(world, kind)
    point_ref(world.fleet, "refs/heads/reconciler/status", status)
    options = ("--fleet", str(world.fleet), "--cache", str(world.folder / "cache"))

    synced = run_in(world.folder, {}, "sync", world.source, *options)
    report = run_in(world.folder, {}, "report", world.source, *options)

    assert (synced.returncode, report.returncode) == (1, 0 if kind.startswith("commit") else 1), synced.stderr
    assert "error StatusBranchUnusable: the branch reconciler/status of" in synced.stdout
    assert "delete the branch" in synced.stdout
    assert "Reconciler-Package: metrics" in git(world.fleet, "log", "-1", "--format=%B", "drafts/lisbon")
    assert world.head("reconciler/status") == status
    assert "rebuilt" not in synced.stderr + report.stderr
