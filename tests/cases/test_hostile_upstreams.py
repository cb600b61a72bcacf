"""Invalid trees of packages: each blocks only its own package, and the other package is drafted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repositories import git, read_ref
from tests.support.world import PassResult, World, repository, small_world, variant


@pytest.fixture
def world(tmp_path: Path) -> World:
    return small_world(tmp_path)


def graft(world: World, name: str, entries: str) -> None:
    """Tag a commit as version v9 of a package: its v1, and these lines for mktree."""
    standing = git(world.catalog, "ls-tree", f"refs/tags/{name}/v1:{name}")
    tree = git(world.catalog, "mktree", "--missing", stdin=f"{standing}\n{entries}\n".encode())
    root = git(world.catalog, "mktree", stdin=f"040000 tree {tree}\t{name}\n".encode())
    git(world.catalog, "update-ref", f"refs/tags/{name}/v9", git(world.catalog, "commit-tree", "-m", "x", root))


def folder(world: World, name: str) -> str:
    """Return a tree with one small file."""
    blob = git(world.catalog, "hash-object", "-w", "--stdin", stdin=b"a: 1\n")
    return git(world.catalog, "mktree", stdin=f"100644 blob {blob}\t{name}\n".encode())


def deep(world: World, levels: int) -> str:
    """Return a tree with the given number of nested folders."""
    tree = folder(world, "x")
    for _ in range(levels):
        tree = git(world.catalog, "mktree", stdin=f"040000 tree {tree}\td\n".encode())
    return tree


def sync_v9(world: World) -> PassResult:
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v9")})
    return world.sync()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param("..", "PathRefused", id="upwards"),
        pytest.param(".git", "PathRefused", id="dot-git"),
        pytest.param("GIT~1", "PathRefused", id="dot-git-on-windows"),
    ],
)
def test_a_path_that_leads_elsewhere_blocks_its_package(world: World, name: str, code: str) -> None:
    graft(world, "metrics", f"040000 tree {folder(world, 'config')}\t{name}")
    pass_result = sync_v9(world)

    assert pass_result.outcomes["berlin/metrics"] == code
    assert "draft" in pass_result.outcomes.values()
    assert sync_v9(world).is_unchanged


@pytest.mark.slow
def test_a_tree_beyond_the_limits_blocks_its_package(world: World) -> None:
    graft(world, "metrics", f"040000 tree {deep(world, 201)}\td")
    pass_result = sync_v9(world)

    assert pass_result.outcomes["berlin/metrics"] == "PackageTooLarge"
    assert "draft" in pass_result.outcomes.values()
    assert sync_v9(world).is_unchanged


def test_a_submodule_is_omitted_and_reported(world: World) -> None:
    graft(world, "metrics", f"160000 commit {read_ref(world.catalog, 'refs/heads/main')}\tmodule")
    pass_result = sync_v9(world)

    assert (pass_result.outcomes["berlin/metrics"], "LinkSkipped" in pass_result.codes) == ("draft", True)
    assert sync_v9(world).is_unchanged


def test_a_new_cluster_whose_packages_are_all_blocked_goes_on_later(world: World) -> None:
    graft(world, "metrics", f"040000 tree {folder(world, 'config')}\t.git")
    world.write({"oslo.yaml": repository("oslo"), "m.yaml": variant("metrics-oslo", "oslo", "metrics", "v9")})
    first, second = world.sync(), world.sync()
    world.write({"m.yaml": variant("metrics-oslo", "oslo", "metrics")})

    assert [pass_result.outcomes["oslo/metrics"] for pass_result in (first, second, world.sync())] == [
        "PathRefused"
    ] * 2 + ["draft"]
