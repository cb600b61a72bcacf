"""Tests of the Git in the test process. The other tests of this folder compare its results with those of Git."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.catalog.files import CommitId
from reconciler.git.command import GitCommand
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import DeletePath, NewCommit, NewTag, PutFile
from reconciler.git.push_outcomes import PushDone, PushRefused, PushStale, PushUnit, RefUpdate
from tests.support.git_repositories import (
    SQUASH_MESSAGE,
    assert_sound,
    commit_files,
    delete_ref,
    git,
    list_paths,
    make_bare,
    merge_descendant,
    point_ref,
    read_file,
    read_ref,
    read_refs,
    write_hook,
)
from tests.support.in_process_git import program


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the commands that Git itself runs."""
    names: list[str] = []

    def run(self: GitCommand, *arguments: str, **more: object) -> object:
        names.append(next(argument for argument in arguments if "=" not in argument and argument != "-c"))
        return original(self, *arguments, **more)  # type: ignore[arg-type]

    original = GitCommand.run
    monkeypatch.setattr(program, "run_git", run)
    with program.in_process_git():
        yield names


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    remote = make_bare(tmp_path / "remote.git")
    commit_files(remote, "refs/heads/main", {"a": b"1", "folder/b": b"2"})
    return remote


def change_remote(tmp_path: Path, remote: Path) -> tuple[Mirror, CommitId]:
    """Fetch, write two commits, and push them with a tag and a deletion."""
    point_ref(remote, "refs/heads/old", read_refs(remote)["refs/heads/main"])
    mirror = Mirror.open(tmp_path / "cache", str(remote))
    mirror.fetch("both")
    head = mirror.refs()["refs/heads/main"]
    first, second = mirror.write_commits(
        [
            NewCommit((head,), (PutFile("folder/c", b"3"), DeletePath("a")), "first", 0),
            NewCommit((0,), (DeletePath("folder/b"), DeletePath("folder/c")), "second", 1),
        ]
    )
    updates = (RefUpdate("refs/heads/main", second, head), RefUpdate("refs/heads/new/x", first, None))
    report = mirror.push([PushUnit("unit", (*updates, RefUpdate("refs/heads/old", None, head)))])
    assert isinstance(report["unit"], PushDone)
    [tag] = mirror.write_tags([NewTag("v1", first, "one", 2)])
    assert isinstance(mirror.push_tags({"v1": tag})["v1"], PushDone)
    return mirror, second


def test_a_pass_of_usual_commands_starts_no_process(tmp_path: Path, remote: Path, processes: list[str]) -> None:
    mirror, commit = change_remote(tmp_path, remote)

    mirror.fetch("both")
    with mirror.open_reader() as reader:
        assert reader.read_tree(reader.read_commit(commit).tree) == ()
    assert len(mirror.list_commits_changing(commit, "folder")) == 3
    assert mirror.is_ancestor(commit, commit)
    assert processes == []
    assert_sound(remote)


def test_both_implementations_write_the_same_objects_and_refs(tmp_path: Path, remote: Path) -> None:
    other = tmp_path / "other" / "remote.git"
    git(tmp_path, "clone", "--quiet", "--mirror", str(remote), str(other))
    git(other, "remote", "remove", "origin")
    change_remote(tmp_path / "other", other)

    with program.in_process_git():
        change_remote(tmp_path, remote)

    assert read_refs(remote) == read_refs(other)
    for folder in (remote, other):
        git(folder, "repack", "-adk", "--quiet")
    listing = ("cat-file", "--batch-check", "--batch-all-objects")
    assert git(remote, *listing) == git(other, *listing)


def test_git_reports_a_push_that_a_hook_refuses(tmp_path: Path, remote: Path, processes: list[str]) -> None:
    write_hook(remote, "pre-receive", "echo 'closed today' >&2; exit 1")
    mirror = Mirror.open(tmp_path / "cache", str(remote))
    mirror.fetch("both")

    [commit] = mirror.write_commits([NewCommit((), (PutFile("a", b"1"),), "m", 0)])
    report = mirror.push([PushUnit("unit", (RefUpdate("refs/heads/new", commit, None),))])

    assert isinstance(report["unit"], PushRefused)
    assert "push" in processes


def test_git_reports_a_push_after_another_push(tmp_path: Path, remote: Path, processes: list[str]) -> None:
    mirror = Mirror.open(tmp_path / "cache", str(remote))
    mirror.fetch("both")
    head = mirror.refs()["refs/heads/main"]
    newer = commit_files(remote, "refs/heads/main", {"a": b"2"})

    [commit] = mirror.write_commits([NewCommit((head,), (PutFile("a", b"3"),), "m", 0)])
    report = mirror.push([PushUnit("unit", (RefUpdate("refs/heads/main", commit, head),))])

    assert isinstance(report["unit"], PushStale)
    assert read_refs(remote)["refs/heads/main"] == newer
    assert "push" in processes


def test_a_fetch_deletes_packed_refs(tmp_path: Path, remote: Path, processes: list[str]) -> None:
    git(remote, "tag", "-a", "-m", "one", "v1", "main")
    point_ref(remote, "refs/heads/gone", read_refs(remote)["refs/heads/main"])
    mirror = Mirror.open(tmp_path / "cache", str(remote))
    mirror.fetch("both")
    for folder in (remote, mirror.folder):
        git(folder, "pack-refs", "--all", "--prune")
        git(folder, "gc", "--quiet")
    git(remote, "branch", "--delete", "--force", "gone")
    commit = commit_files(remote, "refs/heads/main", {"a": b"2"})

    again = Mirror.open(tmp_path / "cache", str(remote))
    again.fetch("both")

    assert again.refs().keys() == {"refs/heads/main", "refs/tags/v1"}
    assert again.refs()["refs/heads/main"] == commit
    assert git(again.folder, "for-each-ref", "--format=%(refname)").splitlines() == [
        "refs/remotes/origin/heads/main",
        "refs/remotes/origin/tags/v1",
    ]
    assert processes == []


# Functions of tests/support/git_repositories.py that start no process


@pytest.mark.parametrize("how", ["fast-forward", "merge", "squash"])
def test_a_merge_equals_the_merge_of_git(tmp_path: Path, remote: Path, how: str) -> None:
    for branch in ("clusters/berlin", "drafts/berlin"):
        point_ref(remote, f"refs/heads/{branch}", read_refs(remote)["refs/heads/main"])
    commit_files(remote, "refs/heads/drafts/berlin", {"folder/b": None, "c": b"3"})
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--branch", "clusters/berlin", str(remote), str(clone))

    assert merge_descendant(remote, "clusters/berlin", "drafts/berlin", how)

    flags = {"fast-forward": ["--ff-only"], "merge": ["--no-ff", "--no-edit"], "squash": ["--squash"]}[how]
    git(clone, "merge", "--quiet", *flags, "origin/drafts/berlin")
    if how == "squash":
        git(clone, "commit", "--quiet", "-m", SQUASH_MESSAGE)
    assert read_refs(remote)["refs/heads/clusters/berlin"] == git(clone, "rev-parse", "HEAD")


def test_diverged_branches_are_left_to_git(remote: Path) -> None:
    point_ref(remote, "refs/heads/draft", read_refs(remote)["refs/heads/main"])
    commit_files(remote, "refs/heads/draft", {"c": b"3"})
    head = commit_files(remote, "refs/heads/main", {"d": b"4"})

    assert not merge_descendant(remote, "main", "draft", "merge")
    assert read_refs(remote)["refs/heads/main"] == head


def test_files_are_read_as_git_reads_them(remote: Path) -> None:
    commit = commit_files(remote, "refs/heads/main", {"folder/b": b"2\n\n", "folder/e\xe9": b"3", "a": None})

    assert (
        list_paths(remote, "refs/heads/main")
        == git(remote, "ls-tree", "-r", "--name-only", "-z", commit).split("\0")[:-1]
    )
    assert list_paths(remote, "refs/heads/main", "folder") == ["b", "e\xe9"]
    assert list_paths(remote, "refs/heads/main", "absent") == list_paths(remote, "refs/heads/absent") == []
    assert read_file(remote, "refs/heads/main", "folder/b") == git(remote, "show", f"{commit}:folder/b") == "2"
    assert read_ref(remote, "refs/heads/main:folder") == git(remote, "rev-parse", f"{commit}:folder")
    assert read_ref(remote, "refs/heads/main:a") is None
    delete_ref(remote, "refs/heads/main")
    assert read_refs(remote) == {}
