"""Tests of malformed trees, names and states, which Git can transfer: each blocks only its own scope."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from reconciler.cli.entry import run
from tests.support.git_repositories import commit_files, git, point_ref, read_ref
from tests.support.world import STATE, World, config_map, small_world, variant

pytestmark = pytest.mark.real_git

Entry = tuple[str, str, str]
KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: broken\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return small_world(tmp_path)


def write_blob(repository: Path, content: str) -> str:
    return git(repository, "hash-object", "-w", "--stdin", stdin=content.encode())


def write_tree(repository: Path, entries: Sequence[Entry]) -> str:
    """Write a tree with exactly these entries, in this order."""
    data = b"".join(f"{mode} {name}".encode() + b"\0" + bytes.fromhex(item) for mode, name, item in entries)
    return git(repository, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=data)


def release_tree(world: World, name: str, package: str, seconds: int = 1_000_000_000) -> None:
    """Release version v1 of a package with a tree as its content."""
    root = write_tree(world.catalog, [("40000", name, package)])
    person = f"Ada <ada@example.com> {seconds} +0000"
    commit = f"tree {root}\nauthor {person}\ncommitter {person}\n\nx\n"
    result = git(world.catalog, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=commit.encode())
    point_ref(world.catalog, f"refs/tags/{name}/v1", result)


MALFORMED = {
    "a-file-and-a-folder-of-one-name": lambda b, t: [("100644", "a", b), ("40000", "a", t)],
    "a-folder-and-a-file-of-one-name": lambda b, t: [("40000", "a", t), ("100644", "a", b)],
    "a-file-twice": lambda b, t: [("100644", "a", b), ("100644", "a", b)],
    "a-folder-twice": lambda b, t: [("40000", "a", t), ("40000", "a", t)],
    "a-folder-called-git": lambda b, t: [("40000", ".git", t)],
    "a-file-called-git": lambda b, t: [("100644", ".GIT", b)],
    "a-name-with-a-slash": lambda b, t: [("100644", "a/b", b)],
    "a-name-that-leads-out": lambda b, t: [("100644", "../../outside", b)],
    "the-folder-above": lambda b, t: [("40000", "..", t)],
    "the-folder-itself": lambda b, t: [("40000", ".", t)],
    "an-unknown-mode": lambda b, t: [("140000", "a", b)],
    "a-name-and-a-path-with-it": lambda b, t: [("100644", "a", b), ("100644", "a/c", b)],
}


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("entries", MALFORMED.values(), ids=MALFORMED)
def test_malformed_upstream_tree_blocks_its_package_only(entries: object, world: World) -> None:
    kptfile = write_blob(world.catalog, KPTFILE)
    content = write_blob(world.catalog, config_map("settings"))
    folder = write_tree(world.catalog, [("100644", "c", content)])
    release_tree(
        world, "broken", write_tree(world.catalog, [("100644", "Kptfile", kptfile), *entries(content, folder)])
    )  # type: ignore[operator]
    world.write({"broken.yaml": variant("broken-berlin", "berlin", "broken")})

    after = world.sync()

    assert after.outcomes["berlin/broken"] in {"PathRefused", "PackageTooLarge"}, after.findings
    mapping = {place: how for place, how in after.outcomes.items() if place != "berlin/broken"}
    assert set(mapping.values()) == {"draft"}
    assert after.changed_branches >= {"drafts/berlin", "drafts/lisbon"}
    assert world.sync().is_unchanged


def write_huge_tree(repository: Path, depth: int = 7, width: int = 10) -> str:
    """Write a tree that contains `width ** depth` files and consists of `depth` Git trees."""
    inside = write_blob(repository, "x")
    result = write_tree(repository, [("100644", f"f{index}", inside) for index in range(width)])
    for _ in range(depth - 1):
        result = write_tree(repository, [("40000", f"d{index}", result) for index in range(width)])
    return result


@pytest.mark.slow
def test_tree_of_ten_million_files_blocks_its_package_only(world: World) -> None:
    kptfile = write_blob(world.catalog, KPTFILE)
    release_tree(
        world,
        "broken",
        write_tree(world.catalog, [("100644", "Kptfile", kptfile), ("40000", "b", write_huge_tree(world.catalog))]),
    )
    world.write({"broken.yaml": variant("broken-berlin", "berlin", "broken")})

    after = world.sync()

    assert after.outcomes["berlin/broken"] == "PackageTooLarge"
    assert after.outcomes["berlin/metrics"] == "draft"
    assert after.outcomes["lisbon/gateway"] == "draft"


class RepositoryWorld(World):
    """A world with a config on the branch of a repository."""

    @property
    def source(self) -> str:
        return str(self.folder / "config.git")

    def commit_config(self, extra: Sequence[Entry] = ()) -> None:
        """Commit the config folder with additional entries at its root."""
        repository = self.folder / "config.git"
        if not repository.exists():
            git(self.folder, "init", "--quiet", "--bare", "-b", "main", str(repository))
        files = {str(path.relative_to(self.config)): path.read_bytes() for path in self.config.rglob("*.yaml")}
        commit_files(repository, "refs/heads/main", {**files})
        if extra:
            listed = git(repository, "ls-tree", "main").splitlines()
            known = [(line.split()[0], line.split("\t")[1], line.split()[2]) for line in listed]
            root = write_tree(repository, sorted([*known, *extra], key=lambda entry: entry[1]))
            commit = git(repository, "commit-tree", "-m", "x", "-p", "main", root)
            git(repository, "update-ref", "refs/heads/main", commit)


@pytest.fixture
def git_world(tmp_path: Path) -> RepositoryWorld:
    new_world = small_world(tmp_path)
    world = RepositoryWorld(new_world.folder)
    for path in world.config.rglob("*.yaml"):
        path.write_text(path.read_text().replace(" ./", f" {world.folder}/"))
    world.commit_config()
    return world


@pytest.mark.slow
def test_config_folder_of_ten_million_files_is_reported_and_removes_nothing(git_world: RepositoryWorld) -> None:
    git_world.sync()
    repository = git_world.folder / "config.git"
    git_world.commit_config([("40000", "huge", write_huge_tree(repository))])

    after = git_world.sync()

    assert [(finding.code, finding.location.file) for finding in after.findings] == [("FileUnreadable", "huge/")]
    assert set(after.outcomes.values()) == {"drafted"}
    assert git_world.sync().is_unchanged


@pytest.mark.parametrize("kind", ["folder", "repository"])
def test_config_folder_with_too_many_files_is_reported(kind: str, git_world: RepositoryWorld, tmp_path: Path) -> None:
    world: World = git_world
    if kind == "folder":
        (world.config / "many").mkdir()
        for index in range(6):
            (world.config / "many" / f"{index}.yaml").write_text(config_map(f"n{index}"))
        world = World(git_world.folder, limits={"folder_files": 5})
    else:
        repository = git_world.folder / "config.git"
        result = write_blob(repository, config_map("one"))
        git_world.commit_config(
            [("40000", "many", write_tree(repository, [("100644", f"{n}.yaml", result) for n in range(6)]))]
        )
        world = RepositoryWorld(git_world.folder, limits={"folder_files": 5})

    after = world.sync()

    (finding,) = after.findings
    assert (finding.code, finding.location.file) == ("FileUnreadable", "many/")
    assert "at most 5" in finding.message
    assert set(after.outcomes.values()) == {"draft"}


def test_malformed_config_entries_are_reported(git_world: RepositoryWorld) -> None:
    repository = git_world.folder / "config.git"
    result = write_blob(repository, config_map("one"))
    folder = write_tree(repository, [("100644", "a.yaml", result)])
    git_world.commit_config([("100644", "odd", result), ("40000", "odd", folder), ("40000", "..", folder)])

    after = git_world.sync()

    assert [(finding.code, finding.location.file) for finding in after.findings] == [
        ("FileUnreadable", "../"),
        ("FileUnreadable", "odd/"),
    ]
    assert set(after.outcomes.values()) == {"draft"}


def test_malformed_config_folder_is_reported(git_world: RepositoryWorld) -> None:
    repository = git_world.folder / "config.git"
    result = write_blob(repository, config_map("one"))
    git_world.commit_config([("40000", "odd", write_tree(repository, [("100644", "a.yaml", result)] * 2))])

    after = git_world.sync()

    assert [(finding.code, finding.location.file) for finding in after.findings] == [("FileUnreadable", "odd/")]
    assert 'more than one entry "a.yaml"' in after.findings[0].message
    assert set(after.outcomes.values()) == {"draft"}


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("name", [b"caf\xe9.yaml", b"\xff\xfe.yaml", b"sub/caf\xe9.json", b"caf\xe9/a.yaml"])
@pytest.mark.parametrize("kind", ["folder", "repository"])
def test_config_file_name_that_is_not_utf8_is_reported(kind: str, name: bytes, git_world: RepositoryWorld) -> None:
    world: World = git_world
    if kind == "folder":
        world = World(git_world.folder)
        path = os.path.join(os.fsencode(world.config), name)  # noqa: PTH118 - pathlib has no bytes
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        with open(path, "wb") as stream:  # noqa: PTH123
            stream.write(config_map("odd").encode())
    else:
        repository = git_world.folder / "config.git"
        stream = (
            b"commit refs/heads/main\ncommitter Ada <ada@example.com> 1000000000 +0000\ndata 1\nx\n"
            b"from refs/heads/main^0\nM 100644 inline " + name + b"\ndata 1\nx\n\n"
        )
        git(repository, "fast-import", "--quiet", stdin=stream)

    after = world.sync()

    assert [finding.code for finding in after.findings] == ["FileUnreadable"]
    shown = name.decode("utf-8", "backslashreplace")
    assert after.findings[0].location.file == shown
    assert after.findings[0].message == f"{shown}: the name must be valid UTF-8 and allowed in a Git repository"
    assert set(after.outcomes.values()) == {"draft"}
    assert world.sync().is_unchanged


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("file", ["destination.json", "packages/metrics.json"])
@pytest.mark.parametrize("depth", [500, 50_000])
def test_deeply_nested_state_blocks_its_target_only(file: str, depth: int, world: World) -> None:
    world.sync()
    remaining = world.head("drafts/berlin")
    nested = "[" * depth + "]" * depth
    commit_files(world.fleet, f"{STATE}berlin", {file: nested.encode()})
    world.release("metrics", "v2", {"Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: metrics\n"})
    world.write({"metrics.yaml": variant("metrics-lisbon", "lisbon", "metrics", "v2")})

    after = world.sync()

    assert {finding.code for finding in after.findings} == {"StateUnreadable"}
    assert after.outcomes["lisbon/metrics"] == "draft"
    assert world.head("drafts/berlin") == remaining
    assert read_ref(world.fleet, f"{STATE}berlin")
    assert [cluster_row.cluster for cluster_row in world.report().rows if cluster_row.read_error] == ["berlin"]


def test_validate_and_plan_report_a_malformed_name(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(world.folder)
    with open(os.fsencode(world.config) + b"/caf\xe9.yaml", "wb"):  # noqa: PTH123
        pass
    fleet = ["--fleet", str(world.fleet), "--cache", str(world.folder / "cache")]

    for command in (
        ["validate", str(world.config), "--cache", str(world.folder / "cache")],
        ["plan", str(world.config), *fleet],
    ):
        assert run(command) in {1, 2}
        assert "the name must be valid UTF-8" in capsys.readouterr().out
