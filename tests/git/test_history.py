"""Find commits by name: in a mirror, with the names of the remote, and in the repository of a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.git.errors import ObjectMissingError
from reconciler.git.history import CommitHistory, MirrorHistory, open_local_history
from reconciler.git.mirror import Mirror
from reconciler.git.options import GitOptions
from tests.support.git_repositories import commit_files, git, make_bare, point_ref

pytestmark = pytest.mark.usefixtures("each_git")

ABSENT = "1" * 40


class SourceRemote:
    """A remote with three commits on `main`, a feature branch, a tag, and a pull request ref without a branch."""

    def __init__(self, folder: Path) -> None:
        self.remote = make_bare(folder / "remote.git")
        self.first, self.second, self.third = (
            commit_files(self.remote, "refs/heads/main", {"a": text}, seconds=1_000_000_000 + index)
            for index, text in enumerate((b"1", b"2", b"3"))
        )
        point_ref(self.remote, "refs/heads/feature/x", self.second)
        self.feature = commit_files(self.remote, "refs/heads/feature/x", {"b": b"1"})
        git(self.remote, "tag", "--annotate", "v1", "-m", "one", self.second)
        point_ref(self.remote, "refs/pull/7/head", self.second)
        self.pull = commit_files(self.remote, "refs/pull/7/head", {"c": b"1"})


# No test writes to these repositories, so one of each is enough.


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> SourceRemote:
    return SourceRemote(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def mirrored(source: SourceRemote, tmp_path_factory: pytest.TempPathFactory) -> CommitHistory:
    return MirrorHistory(Mirror.open(tmp_path_factory.mktemp("cache"), str(source.remote)))


@pytest.fixture(scope="module")
def cloned(source: SourceRemote, tmp_path_factory: pytest.TempPathFactory) -> CommitHistory:
    folder = tmp_path_factory.mktemp("cloned")
    git(folder, "clone", "--quiet", str(source.remote), "work")
    (folder / "work/deep/er").mkdir(parents=True)
    local_history = open_local_history(folder / "work/deep/er", GitOptions())
    assert local_history
    return local_history[0]


@pytest.mark.parametrize("kind", ["mirrored", "cloned"])
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        pytest.param("main", "third", id="branch"),
        pytest.param("refs/heads/main", "third", id="full-ref"),
        pytest.param("heads/main", "third", id="partial-ref"),
        pytest.param("origin/main", "third", id="remote-tracking-branch"),
        pytest.param("HEAD", "third", id="default-branch"),
        pytest.param("@", "third", id="head-shorthand"),
        pytest.param("HEAD~2", "first", id="ancestor"),
        pytest.param("v1", "second", id="annotated-tag"),
        pytest.param("v1^", "first", id="parent-of-a-tag"),
        pytest.param("main~1^1", "first", id="parent-of-an-ancestor"),
        pytest.param("origin/feature/x", "feature", id="branch-with-a-slash"),
    ],
)
def test_a_name_is_found(
    kind: str, name: str, meant: str, source: SourceRemote, request: pytest.FixtureRequest
) -> None:
    history: CommitHistory = request.getfixturevalue(kind)

    assert history.find(name) == getattr(source, meant)


@pytest.mark.parametrize("kind", ["mirrored", "cloned"])
def test_an_id_is_found_whole_or_by_its_beginning(
    kind: str, source: SourceRemote, request: pytest.FixtureRequest
) -> None:
    history: CommitHistory = request.getfixturevalue(kind)

    assert history.find(source.second) == source.second
    assert history.find(source.second[:12]) == source.second
    assert history.find(f"{source.second[:12]}~1") == source.first


@pytest.mark.parametrize("kind", ["mirrored", "cloned"])
@pytest.mark.parametrize(
    "name", ["nowhere", "main~9", "", "--all", "-", "a b", "..", ABSENT, "refs/pull/8/head", "ma\0in"]
)
def test_what_is_no_commit_is_reported(kind: str, name: str, request: pytest.FixtureRequest) -> None:
    history: CommitHistory = request.getfixturevalue(kind)

    with pytest.raises(ObjectMissingError) as caught:
        history.find(name)

    assert repr(name) in caught.value.message
    assert history.url in caught.value.message


def test_a_pull_request_is_found_where_the_host_has_it(source: SourceRemote, mirrored: CommitHistory) -> None:
    assert mirrored.find("refs/pull/7/head") == source.pull
    assert mirrored.find("refs/pull/7/head~1") == source.second


def test_a_commit_that_no_branch_has_is_brought_from_the_host(source: SourceRemote, mirrored: CommitHistory) -> None:
    assert mirrored.find(source.pull) == source.pull


@pytest.mark.parametrize("kind", ["mirrored", "cloned"])
def test_the_merge_base_and_the_files_of_commits(
    kind: str, source: SourceRemote, request: pytest.FixtureRequest
) -> None:
    history: CommitHistory = request.getfixturevalue(kind)
    main, feature = history.find("main"), history.find("origin/feature/x")

    base = history.merge_base(main, feature)

    assert base == source.second
    with history.open_reader() as reader:
        entry = reader.find_entry(reader.read_commit(base).tree, "a")
        assert entry
        assert reader.read_blobs([entry.id]) == {entry.id: b"2"}


def test_a_shallow_clone_reports_missing_commits(source: SourceRemote, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth=1", "--no-single-branch", f"file://{source.remote}", "shallow")
    local_history = open_local_history(tmp_path / "shallow", GitOptions())
    assert local_history
    main, feature = local_history[0].find("main"), local_history[0].find("origin/feature/x")

    with pytest.raises(ObjectMissingError, match="shallow"):
        local_history[0].find("main~1")
    with pytest.raises(ObjectMissingError, match="shallow"):
        local_history[0].merge_base(main, feature)


def test_the_place_of_a_folder_in_its_repository(source: SourceRemote, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(source.remote), "work")
    (tmp_path / "work/deep/er").mkdir(parents=True)
    (tmp_path / "plain").mkdir()
    places = ["work", "work/deep/er", "plain"]

    values = [open_local_history(tmp_path / place, GitOptions()) for place in places]

    assert [item and item[1] for item in values] == ["", "deep/er", None]


def test_a_secondary_work_tree_has_its_own_head(source: SourceRemote, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(source.remote), "work")
    git(tmp_path / "work", "worktree", "add", "--quiet", "--detach", "../second", source.first)

    local_history = open_local_history(tmp_path / "second", GitOptions())

    assert local_history
    assert local_history[0].find("HEAD") == source.first
    assert local_history[0].find("main") == source.third
