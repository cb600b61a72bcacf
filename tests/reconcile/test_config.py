"""The config at any commit: of a branch, of a history, below a directory, from a repository or from its work tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.bootstrap.services import Services, build_services
from reconciler.catalog.files import CommitId
from reconciler.git.errors import RepositoryMissingError
from reconciler.git.history import MirrorHistory
from reconciler.git.mirror import STATE_REF_PREFIX, Mirror
from reconciler.reconcile.config_source import ConfigCommitReader, ConfigHistory, RepositoryConfigSource
from reconciler.settings import Settings
from tests.support.git_repositories import commit_files, git, make_bare


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return make_bare(tmp_path / "config.git")


@pytest.fixture
def mirror(tmp_path: Path, remote: Path) -> Mirror:
    return Mirror.open(tmp_path / "cache", str(remote))


def parts_of(config: Path, cache: Path, at: str = "", directory: str = "") -> Services:
    settings = Settings.model_validate({"cache": str(cache), "config": {"directory": directory}})
    return build_services(settings, str(config), commit=at)


def test_a_branch_and_its_commits_are_read_alike(mirror: Mirror, remote: Path) -> None:
    first = commit_files(remote, "refs/heads/main", {"a.yaml": b"1\n", "conf/b.yaml": b"2\n"}, seconds=1_000_000_001)
    head = commit_files(remote, "refs/heads/main", {"conf/b.yaml": b"3\n"}, seconds=1_000_000_002)
    now = RepositoryConfigSource(mirror, "main", "conf", "drafts/config", STATE_REF_PREFIX).read()
    history = ConfigHistory(MirrorHistory(mirror), "conf")

    then, config_snapshot = (
        history.source_at(history.find_commit(first)).read(),
        history.source_at(history.find_commit("main")).read(),
    )

    assert config_snapshot == now
    assert (now.id, now.seconds, {path: file.data for path, file in now.files.items()}) == (
        head, 1_000_000_002, {"b.yaml": b"3\n"},
    )  # fmt: skip
    assert (then.id, then.seconds, {path: file.data for path, file in then.files.items()}) == (
        first, 1_000_000_001, {"b.yaml": b"2\n"},
    )  # fmt: skip
    assert then.dry_commit
    assert then.dry_commit.commit == first


def test_what_two_commits_share_is_one_object(mirror: Mirror, remote: Path) -> None:
    first = commit_files(remote, "refs/heads/main", {"a.yaml": b"1\n", "b.yaml": b"2\n"})
    second = commit_files(remote, "refs/heads/main", {"b.yaml": b"3\n"})
    mirror.fetch("target")
    reader = ConfigCommitReader(mirror, "")

    before, after = (reader.read(mirror.ensure_commit(CommitId(item))).files for item in (first, second))

    assert before["a.yaml"] is after["a.yaml"]
    assert before["b.yaml"].data == b"2\n"
    assert after["b.yaml"].data == b"3\n"


@pytest.mark.parametrize("directory", ["conf", "a.yaml"])
def test_a_directory_that_is_not_there_is_empty(directory: str, mirror: Mirror, remote: Path) -> None:
    commit = commit_files(remote, "refs/heads/main", {"a.yaml": b"1\n"})
    mirror.fetch("target")

    assert not ConfigCommitReader(mirror, directory).read(CommitId(commit)).files


@pytest.mark.parametrize("at", ["HEAD~1", "v1"])
def test_parts_read_the_config_of_a_folder_at_a_commit_of_the_repository_around_it(
    at: str, tmp_path: Path, remote: Path
) -> None:
    first = commit_files(remote, "refs/heads/main", {"teams/conf/a.yaml": b"1\n", "else.yaml": b"1\n"})
    git(remote, "tag", "v1", first)
    commit_files(remote, "refs/heads/main", {"teams/conf/a.yaml": b"2\n"})
    git(tmp_path, "clone", "--quiet", str(remote), "work")
    parts = parts_of(tmp_path / "work/teams", tmp_path / "cache", at, "conf")

    read = parts.source.read()

    assert read.id == first
    assert {path: file.data for path, file in read.files.items()} == {"a.yaml": b"1\n"}


def test_parts_read_a_repository_at_a_commit(tmp_path: Path, remote: Path) -> None:
    first = commit_files(remote, "refs/heads/main", {"a.yaml": b"1\n"})
    commit_files(remote, "refs/heads/main", {"a.yaml": b"2\n"})

    assert parts_of(remote, tmp_path / "cache", "main~1").source.read().id == first
    assert parts_of(remote, tmp_path / "cache").source.read().id != first


def test_a_folder_outside_of_any_repository_has_no_commits(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()

    with pytest.raises(RepositoryMissingError, match="work tree"):
        parts_of(tmp_path / "config", tmp_path / "cache", "main")
