"""Upstream packages from real repositories by tag, branch and commit, and the committed content of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.git.errors import GitError, ObjectMissingError, PathRefusedError, TreeMalformedError
from reconciler.git.folder import read_package
from reconciler.git.local_repository import find_uncommitted_files
from reconciler.git.mirror import Mirror
from reconciler.git.options import GitOptions
from reconciler.git.upstream_packages import UpstreamPackages
from tests.support.git_repositories import commit_files, git, make_bare

pytestmark = pytest.mark.usefixtures("each_git")

MAIN = "refs/heads/main"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = make_bare(tmp_path / "up.git")
    commit_files(path, MAIN, {"a/b/Kptfile": b"first", "a/b/x": b"x"})
    return path


@pytest.fixture
def upstreams(tmp_path: Path) -> Iterator[UpstreamPackages]:
    with UpstreamPackages(lambda repo: Mirror.open(tmp_path / "cache", repo)) as upstream_packages:
        yield upstream_packages


def test_a_ref_means_the_packages_own_tag_before_any_other(repository: Path, upstreams: UpstreamPackages) -> None:
    names = ["tags/a/b/v1", "tags/a/v1", "tags/v1", "heads/v1"]
    commits = [commit_files(repository, MAIN, {"a/b/n": name.encode()}, seconds=n) for n, name in enumerate(names, 1)]
    for name, commit in zip(names, commits, strict=True):
        git(repository, "update-ref", f"refs/{name}", commit)

    fetched_packages = [upstreams.fetch(str(repository), folder, "v1") for folder in ("/a/b", "a", "/")]

    assert [(fetched_package.ref, fetched_package.commit) for fetched_package in fetched_packages] == [
        ("a/b/v1", commits[0]), ("a/v1", commits[1]), ("v1", commits[2]),
    ]  # fmt: skip
    assert list(fetched_packages[0].files) == ["Kptfile", "n", "x"]


def test_annotated_tags_branches_and_commits(repository: Path, upstreams: UpstreamPackages) -> None:
    commit = git(repository, "rev-parse", MAIN)
    git(repository, "tag", "-a", "v1", "-m", "v1", "main")

    fetched_packages = [upstreams.fetch(str(repository), "a/b", ref) for ref in ("v1", "main", MAIN, commit, "")]

    assert {fetched_package.commit for fetched_package in fetched_packages} == {commit}
    assert [fetched_package.ref for fetched_package in fetched_packages] == ["v1", "main", MAIN, commit, "main"]


def test_a_commit_that_no_branch_leads_to_any_more(repository: Path, upstreams: UpstreamPackages) -> None:
    lost = git(repository, "rev-parse", MAIN)
    git(repository, "update-ref", "-d", MAIN)
    commit_files(repository, MAIN, {"a/b/Kptfile": b"second"})

    assert upstreams.fetch(str(repository), "a/b", "main").files["Kptfile"].data == b"second"
    assert upstreams.fetch(str(repository), "a/b", lost).files["Kptfile"].data == b"first"


@pytest.mark.parametrize(
    ("folder", "ref", "text"),
    [
        pytest.param("a/b", "v2", r'no branch or tag "v2" \(nor a/b/v2, a/v2\).*; similar names: a/b/v1', id="ref"),
        pytest.param("a/c", "main", 'must have a folder "a/c" at main', id="folder"),
        pytest.param("a/b/x", "main", 'must have a folder "a/b/x" at main', id="a-file"),
        pytest.param("a/b", "1" * 40, "not our ref", id="commit"),
    ],
)
def test_what_is_not_there(repository: Path, upstreams: UpstreamPackages, folder: str, ref: str, text: str) -> None:
    git(repository, "tag", "a/b/v1", "main")

    with pytest.raises(ObjectMissingError, match=text):
        upstreams.fetch(str(repository), folder, ref)


def test_links_and_submodules_are_omitted_and_reported(repository: Path, upstreams: UpstreamPackages) -> None:
    link = git(repository, "hash-object", "-w", "--stdin", stdin=b"/etc/passwd")
    commit = git(repository, "rev-parse", MAIN)
    entries = f"120000 blob {link}\tlink\n160000 commit {commit}\tmodule\n100755 blob {link}\trun\n"
    tree = git(repository, "mktree", "--missing", stdin=entries.encode())
    git(repository, "update-ref", MAIN, git(repository, "commit-tree", tree, "-m", "links"))

    fetched_package = upstreams.fetch(str(repository), "/", "main")

    assert {path: file.executable for path, file in fetched_package.files.items()} == {"run": True}
    assert list(upstreams.skipped_paths) == ["link", "module"]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        pytest.param(b"..", TreeMalformedError, id="dots"),
        pytest.param(b".git", PathRefusedError, id="git"),
        pytest.param(b"\xff", PathRefusedError, id="no-text"),
    ],
)
def test_paths_that_no_package_may_hold(
    repository: Path, upstreams: UpstreamPackages, name: bytes, error: type[GitError]
) -> None:
    blob = git(repository, "hash-object", "-w", "--stdin", stdin=b"x")
    content = b"100644 " + name + b"\0" + bytes.fromhex(blob)
    tree = git(repository, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=content)
    git(repository, "update-ref", MAIN, git(repository, "commit-tree", tree, "-m", "odd"))

    with pytest.raises(error):
        upstreams.fetch(str(repository), "/", "main")


# the committed content of a folder


@pytest.fixture
def work_tree(tmp_path: Path) -> Path:
    path = tmp_path / "tree"
    (path / "web").mkdir(parents=True)
    (path / "web/a").write_text("a\n")
    (path / "web/b").write_text("b\n")
    git(path, "init", "--quiet")
    git(path, "add", ".")
    git(path, "commit", "--quiet", "-m", "first")
    return path


def uncommitted(folder: Path) -> set[str]:
    return set(find_uncommitted_files(folder, read_package(folder), GitOptions()))


def test_changed_new_staged_and_made_executable_files_are_uncommitted(work_tree: Path) -> None:
    assert uncommitted(work_tree / "web") == set()

    (work_tree / "web/a").write_text("other\n")
    (work_tree / "web/b").chmod(0o755)
    (work_tree / "web/new").write_text("new\n")
    (work_tree / ".gitignore").write_text("web/ignored\n")
    (work_tree / "web/ignored").write_text("mine\n")
    git(work_tree, "add", "web/new", "web/a")

    assert uncommitted(work_tree / "web") == {"a", "b", "new", "ignored"}
    assert uncommitted(work_tree) == {".gitignore", *(f"web/{name}" for name in ("a", "b", "new", "ignored"))}


def test_a_secondary_work_tree(work_tree: Path) -> None:
    git(work_tree, "worktree", "add", "--quiet", "../second")
    (work_tree.parent / "second/web/a").write_text("other\n")

    assert uncommitted(work_tree.parent / "second/web") == {"a"}


def test_nothing_is_committed_where_there_is_no_commit(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web/a").write_text("a")
    assert uncommitted(tmp_path / "web") == set()

    git(tmp_path, "init", "--quiet")

    assert uncommitted(tmp_path / "web") == {"a"}


def test_a_hostile_work_tree_runs_nothing(work_tree: Path) -> None:
    git(work_tree, "config", "core.fsmonitor", "touch ../ran")
    git(work_tree, "config", "filter.x.clean", "touch ../ran")
    (work_tree / ".gitattributes").write_text("* filter=x\n")

    uncommitted(work_tree)

    assert not (work_tree.parent / "ran").exists()
