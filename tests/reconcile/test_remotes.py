"""A pass fetches each remote once, for all uses of it. A failed remote has a back-off."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from reconciler.catalog.files import CommitId
from reconciler.git.errors import GitError
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit
from reconciler.git.push_outcomes import PushDone, PushRefused
from reconciler.reconcile.remotes.availability import RemoteTimes
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.repository import Remote, TargetRepository
from reconciler.reconcile.remotes.scheduling import Backoff, RemoteLimits
from tests.support.git_repositories import commit_files, git, make_bare
from tests.unit.planning.builders import build_target


@dataclass(eq=False)
class FakeMirror:
    """Records the names that it is fetched with. It fails if its address requests a failure."""

    url: str
    metric_label = "local"
    fetched: list[str] = field(default_factory=list)

    def fetch(self, kind: str, state_ref_prefix: str) -> None:
        self.fetched.append(kind)
        if "broken" in self.url:
            raise GitError("no route to host")


def remotes() -> tuple[Remotes, dict[str, FakeMirror]]:
    opened: dict[str, FakeMirror] = {}

    def open_mirror(url: str) -> Mirror:
        opened[url] = FakeMirror(url)
        return cast("Mirror", opened[url])

    return Remotes(open_mirror, "refs/reconciler/state/", Backoff(5, 60, lambda: 0.0)), opened


@pytest.mark.parametrize(
    ("upstreams", "destinations", "expected"),
    [
        pytest.param(["a"], [], {"a": ["upstream"]}, id="an-upstream"),
        pytest.param([], ["a"], {"a": ["target"]}, id="a-target"),
        pytest.param(["a", "b"], ["b", "c"], {"a": ["upstream"], "b": ["both"], "c": ["target"]}, id="both"),
    ],
)
def test_each_is_fetched_once(upstreams: list[str], destinations: list[str], expected: dict[str, list[str]]) -> None:
    actual_remotes, opened = remotes()

    actual_remotes.fetch(upstreams, destinations)

    assert {url: mirror.fetched for url, mirror in opened.items()} == expected


def test_a_failed_remote_is_reported_and_has_a_back_off() -> None:
    actual_remotes, opened = remotes()

    actual_remotes.fetch(["broken"], ["broken", "b"])
    actual_remotes.fetch(["broken"], ["broken", "b"])

    assert opened["broken"].fetched == ["both"]
    assert opened["b"].fetched == ["target"] * 2
    assert list(actual_remotes.failures) == ["broken"]


def test_only_failing_target_remotes_are_listed() -> None:
    actual_remotes, _ = remotes()

    actual_remotes.fetch(["broken-upstream", "broken-both"], ["broken-both", "broken-target", "working"])

    assert actual_remotes.list_unavailable_targets() == {
        "broken-both": "no route to host",
        "broken-target": "no route to host",
    }


def test_the_states_of_all_remotes_are_listed() -> None:
    actual_remotes, _ = remotes()

    actual_remotes.fetch(["broken-upstream"], ["working"])
    states = {state.url: state for state in actual_remotes.list_states()}
    broken, working = states["broken-upstream"], states["working"]

    assert (broken.kind, broken.failures, broken.wait_seconds > 0) == ("upstream", 1, True)
    assert broken.error is not None
    assert broken.error.message == "no route to host"
    assert (working.kind, working.error, working.failures, working.wait_seconds) == ("target", None, 0, 0.0)


def test_the_states_have_the_times_of_the_last_fetch_and_push() -> None:
    now = 10.0

    def read_clock() -> float:
        return now

    limits = RemoteLimits(clock=read_clock)
    remotes = Remotes(
        lambda url: cast("Mirror", FakeMirror(url)), "refs/state/", Backoff(5, 60, read_clock), limits=limits
    )
    remotes.fetch([], ["a", "b", "broken"])
    now = 20.0
    remotes.push({"a": lambda: {"unit": PushDone()}, "b": lambda: {"unit": PushRefused("no")}})
    now = 30.0
    remotes.fetch([], ["b"])
    times = {state.url: (state.fetched_at, state.pushed_at) for state in remotes.list_states()}

    assert times == {"a": (10.0, 20.0), "b": (30.0, None), "broken": (None, None)}


def test_a_reload_keeps_the_times_of_remotes() -> None:
    times = RemoteTimes()

    def create(now: float) -> Remotes:
        limits = RemoteLimits(clock=lambda: now)
        backoff = Backoff(5, 60, limits.clock)
        return Remotes(lambda url: cast("Mirror", FakeMirror(url)), "refs/state/", backoff, limits=limits, times=times)

    first = create(10.0)
    first.fetch([], ["a", "broken"])
    first.push({"a": lambda: {"unit": PushDone()}})
    second = create(20.0)
    second.fetch(["b"], ["broken"])
    second.fetch([], ["a"])
    states = {state.url: (state.fetched_at, state.pushed_at) for state in second.list_states()}

    assert states == {"a": (20.0, 10.0), "b": (20.0, None), "broken": (None, None)}


def test_a_missing_remote_has_the_message_of_git_and_stops_no_other(tmp_path: Path) -> None:
    fleet, path = make_bare(tmp_path / "fleet.git"), tmp_path / "gone.git"
    commit_files(fleet, "refs/heads/main", {"a": b"1"})
    actual_remotes = Remotes(
        lambda url: Mirror.open(tmp_path / "cache", url), "refs/reconciler/state/", Backoff(5, 60, float)
    )
    with actual_remotes:
        actual_remotes.fetch([str(fleet)], [str(path)])
        remote = actual_remotes.get(str(fleet))

        assert remote is not None
        assert list(remote.refs) == ["refs/heads/main"]
        assert actual_remotes.failures[str(path)].message.endswith("gone.git' does not appear to be a git repository")


def test_the_tags_of_an_unfetched_remote_are_not_listed(tmp_path: Path) -> None:
    fleet = make_bare(tmp_path / "fleet.git")
    git(fleet, "update-ref", "refs/tags/berlin/gw/v1", commit_files(fleet, "refs/heads/main", {"a": b"1"}))
    backoff = Backoff(5, 60, lambda: 0.0)
    actual_remotes = Remotes(lambda url: Mirror.open(tmp_path / "cache", url), "refs/reconciler/state/", backoff)
    with actual_remotes:
        actual_remotes.fetch((), [str(fleet)])
        fleet.rename(tmp_path / "away")
        actual_remotes.fetch((), [str(fleet)])
        remote = actual_remotes.get_even_if_missing(str(fleet))

        assert remote is not None
        assert remote.list_tagged_revisions(build_target(tag_prefix="berlin/"), ["gw"]) == {"gw": ()}


def test_revisions_in_tags(tmp_path: Path) -> None:
    fleet = make_bare(tmp_path / "fleet.git")
    commit = commit_files(fleet, "refs/heads/main", {"a": b"1"}, "by hand")
    for name in ("gw/v01", "gw/vx", "gw/stable", "gw/below/v7", "other/v9", "gw/v10"):
        git(fleet, "update-ref", f"refs/tags/berlin/{name}", commit)
    git(fleet, "tag", "-a", "-m", "ours", "berlin/gw/v2", commit)
    git(fleet, "update-ref", "refs/tags/berlin/gw/v3", git(fleet, "rev-parse", "main^{tree}"))
    actual_remotes = Remotes(
        lambda url: Mirror.open(tmp_path / "cache", url), "refs/reconciler/state/", Backoff(5, 60, lambda: 0.0)
    )
    with actual_remotes:
        actual_remotes.fetch((), [str(fleet)])
        remote = actual_remotes.get(str(fleet))
        assert remote is not None

        tagged_revisions = remote.list_tagged_revisions(build_target(tag_prefix="berlin/"), ["gw", "none"])

    assert [(tagged_revision.number, tagged_revision.commit, tagged_revision.message) for tagged_revision in tagged_revisions["gw"]] == [
        (2, commit, "ours\n"), (10, commit, "by hand"),
    ]  # fmt: skip
    assert tagged_revisions["none"] == ()


@pytest.mark.parametrize(
    ("changed", "besides", "expected"),
    [
        pytest.param({"gw/a": b"2"}, [], True, id="a-change"),
        pytest.param({"gw/a": b"2"}, ["gw"], False, id="in-the-package-alone"),
        pytest.param({"gw/a": b"2"}, ["gw/inner"], True, id="not-below-that-one"),
        pytest.param({"gw/a": b"2", ".reconciler/gw.yaml": b"2"}, ["gw"], False, id="with-its-status-file"),
        pytest.param({".reconciler/other.yaml": b"2"}, ["gw"], True, id="the-status-file-of-another"),
        pytest.param({"team/new/a": b"2"}, ["team/new"], False, id="a-new-folder-with-nothing-else"),
        pytest.param({"team/new/a": b"2", "team/b": b"2"}, ["team/new"], True, id="a-new-folder-with-something-else"),
        pytest.param({"gw/a": None, "gw/b": None}, ["gw"], False, id="package-deleted"),
        pytest.param({"gw/a": None}, [], True, id="file-deleted"),
    ],
)
def test_the_other_content_of_a_draft(
    tmp_path: Path, changed: dict[str, bytes | None], besides: list[str], expected: bool
) -> None:
    bare = tmp_path / "fleet.git"
    make_bare(bare)
    files: dict[str, bytes | None] = {"gw/a": b"1", "gw/b": b"1", ".reconciler/gw.yaml": b"1"}
    base = commit_files(bare, "refs/heads/main", files, "base", 1)
    git(bare, "branch", "draft", "main")
    head = commit_files(bare, "refs/heads/draft", changed, "draft", 2)
    mirror = Mirror.open(tmp_path / "cache", str(bare))
    mirror.fetch("target", "refs/reconciler/state/")

    with mirror.open_reader() as reader:
        objects = TargetRepository(Remote(mirror, reader), build_target())

        assert objects.has_unpublished_changes(CommitId(head), CommitId(base), CommitId(base), besides) is expected


def test_first_parents_equal_those_of_git(tmp_path: Path) -> None:
    mirror = Mirror.open(tmp_path / "cache", str(make_bare(tmp_path / "fleet.git")))
    # a line of 60 commits, the last ten of which merge one commit of a branch that left at the start
    line = [NewCommit((), (), "0", 0), *(NewCommit((at,), (), str(at), 0) for at in range(50))]
    side = NewCommit((0,), (), "side", 0)
    merges = [NewCommit((at if at != 51 else 50, 51), (), f"merge {at}", 0) for at in range(51, 61)]
    commits = mirror.write_commits([*line, side, *merges])
    with mirror.open_reader() as reader:
        remote = Remote(mirror, reader)
        for old in (0, 10, 50, 51, 55):
            for new in (50, 51, 55, 61):
                commit_ids = remote.list_first_parents(commits[old], commits[new])
                first_parent_commits = mirror.list_first_parent_commits(commits[old], commits[new])
                assert (None if commit_ids is None else list(commit_ids)) == first_parent_commits, f"{old}..{new}"
