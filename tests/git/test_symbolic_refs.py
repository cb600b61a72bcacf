"""Symbolic refs at a remote: nothing is pushed through one, and one that the host hides is found by what it moved."""

from pathlib import Path

import pytest

from reconciler.git.errors import SymbolicRefError
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit, PutFile
from reconciler.git.options import GitOptions
from reconciler.git.push import RemoteBranches, can_be_symbolic, find_ref_moved_by_push
from reconciler.git.push_outcomes import PushDone, PushFailed, PushUnit, RefUpdate
from tests.support.git_http import GitHost, serve
from tests.support.git_repositories import git, make_bare, read_refs

pytestmark = pytest.mark.usefixtures("each_git")

CLUSTER, DRAFT = "refs/heads/clusters/x", "refs/heads/drafts/x"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    (tmp_path / "host").mkdir()
    return make_bare(tmp_path / "host" / "remote.git", http__receivepack="true")


def open_mirror(tmp_path: Path, url: str) -> Mirror:
    mirror = Mirror.open(tmp_path / "cache", url, GitOptions(allowed_urls=("*",)))
    mirror.fetch("target")
    return mirror


def commits(mirror: Mirror) -> list[str]:
    texts = ("published", "drafted", "other")
    return [
        *mirror.write_commits(
            [NewCommit((), (PutFile("text", text.encode()),), text, 1, has_empty_base=True) for text in texts]
        )
    ]


def linked(
    tmp_path: Path, remote: Path, url: str, name: str = DRAFT, target: str = CLUSTER
) -> tuple[Mirror, list[str]]:
    """Return a mirror of a remote on which `name` is a symbolic ref to `target`, and three commits."""
    mirror = open_mirror(tmp_path, url)
    result = commits(mirror)
    mirror.push([PushUnit("x", (RefUpdate(CLUSTER, result[0], None),))])
    git(remote, "symbolic-ref", name, target)
    mirror.fetch("target")
    return mirror, result


@pytest.mark.parametrize("new", ["update", "delete"])
def test_a_push_through_a_symbolic_ref_fails_and_moves_nothing(tmp_path: Path, remote: Path, new: str) -> None:
    mirror, (published, drafted, other) = linked(tmp_path, remote, str(remote))
    update = RefUpdate(DRAFT, drafted if new == "update" else None, published)

    report = mirror.push([PushUnit("x", (update,)), PushUnit("y", (RefUpdate("refs/heads/drafts/y", other, None),))])

    failed = report["x"]
    assert isinstance(failed, PushFailed)
    assert isinstance(failed.error, SymbolicRefError)
    assert f"{DRAFT} is a symbolic ref to {CLUSTER}" in failed.error.full_message
    assert report["y"] == PushDone()
    assert read_refs(remote)[CLUSTER] == published
    assert git(remote, "symbolic-ref", DRAFT) == CLUSTER


def test_the_target_of_a_symbolic_ref_is_an_ordinary_branch(tmp_path: Path, remote: Path) -> None:
    mirror, (published, drafted, _) = linked(tmp_path, remote, str(remote))

    report = mirror.push([PushUnit("x", (RefUpdate(CLUSTER, drafted, published),))])

    assert report["x"] == PushDone()
    assert read_refs(remote)[CLUSTER] == drafted


def test_a_symbolic_ref_is_seen_over_http(tmp_path: Path, remote: Path) -> None:
    with serve(GitHost(remote.parent)) as host:
        mirror, (published, drafted, _) = linked(tmp_path, remote, f"{host.url}/remote.git")

        report = mirror.push([PushUnit("x", (RefUpdate(DRAFT, drafted, published),))])

    assert isinstance(report["x"], PushFailed)
    assert read_refs(remote)[CLUSTER] == published


def test_a_symbolic_ref_to_a_branch_that_does_not_exist_is_found_by_what_it_made(tmp_path: Path, remote: Path) -> None:
    mirror = open_mirror(tmp_path, str(remote))
    drafted = commits(mirror)[1]
    git(remote, "symbolic-ref", DRAFT, CLUSTER)

    report = mirror.push([PushUnit("x", (RefUpdate(DRAFT, drafted, None),))])

    failed = report["x"]
    assert isinstance(failed, PushFailed)
    assert f"the push to {DRAFT} has also moved {CLUSTER}" in failed.error.full_message
    assert "before the push: absent" in failed.error.full_message


UNIT = PushUnit("x", (RefUpdate(DRAFT, "2", "1"),))


@pytest.mark.parametrize(
    ("before", "after", "value"),
    [
        pytest.param({DRAFT: "1", CLUSTER: "1"}, {DRAFT: "2", CLUSTER: "2"}, True, id="both-moved"),
        pytest.param({DRAFT: "1", CLUSTER: "1"}, {DRAFT: "2", CLUSTER: "1"}, False, id="one-moved"),
        pytest.param({DRAFT: "1", CLUSTER: "0"}, {DRAFT: "2", CLUSTER: "2"}, False, id="merged-meanwhile"),
        pytest.param({DRAFT: "1"}, {DRAFT: "2"}, False, id="alone"),
    ],
)
def test_refs_that_moved_together(before: dict[str, str], after: dict[str, str], value: bool) -> None:
    # a host with protocol version 0 shows no targets
    refs = [RemoteBranches(ids, {}) for ids in (before, after)]

    assert (find_ref_moved_by_push(UNIT, refs[0], refs[1], [DRAFT]) is not None) == value


def test_an_update_that_moves_no_ref_is_not_compared_with_other_branches() -> None:
    refs = RemoteBranches({DRAFT: "1", CLUSTER: "1"}, {})

    assert find_ref_moved_by_push(PushUnit("x", (RefUpdate(DRAFT, "1", "1"),)), refs, refs, [DRAFT]) is None


def test_a_remote_is_read_again_only_where_a_symbolic_ref_is_possible() -> None:
    shared = RemoteBranches({DRAFT: "1", CLUSTER: "1"}, {})
    apart = RemoteBranches({DRAFT: "1", CLUSTER: "0"}, {})

    assert [can_be_symbolic(UNIT, refs) for refs in (shared, apart)] == [True, False]
    assert can_be_symbolic(PushUnit("x", (RefUpdate(DRAFT, "2", None),)), apart)
    assert not can_be_symbolic(PushUnit("x", (RefUpdate(DRAFT, None, "1"),)), shared)
