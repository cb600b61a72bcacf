"""Metrics of calls of git: durations, results, moved refs, and the labels of remotes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.git.errors import AccessDeniedError, GitError, GitTimeoutError, RepositoryMissingError
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit, PutFile
from reconciler.git.options import GitOptions
from reconciler.git.push_outcomes import PushUnit, RefUpdate
from reconciler.git.request_metrics import get_remote_label, measure_request
from reconciler.git.url import parse_url
from reconciler.telemetry.metrics import REGISTRY
from reconciler.telemetry.remote_metrics import RemoteLabel, select_remote_label
from tests.support.git_repositories import make_bare, write_hook
from tests.support.metric_samples import read_metric


@pytest.fixture(autouse=True)
def _export() -> Iterator[None]:
    with REGISTRY.export():
        yield
        select_remote_label("host")


def read_results() -> dict[str, float]:
    """Return the number of calls as `operation result`."""
    counts = read_metric("reconciler_git_requests_total")
    names = (labels.split('"') for labels in counts)
    return dict(zip((f"{parts[1]} {parts[5]}" for parts in names), counts.values(), strict=True))


def open_mirror(folder: Path, remote: Path, name: str = "cache") -> Mirror:
    mirror = Mirror.open(folder / name, str(remote), GitOptions())
    mirror.fetch("target")
    return mirror


def push(mirror: Mirror, text: str) -> None:
    (commit,) = mirror.write_commits([NewCommit((), (PutFile("text", text.encode()),), text, 1, has_empty_base=True)])
    updates = (RefUpdate("refs/heads/draft", commit, None), RefUpdate("refs/heads/second", commit, None))
    mirror.push([PushUnit("unit", updates)])


def test_calls_and_moved_refs_are_counted(tmp_path: Path) -> None:
    remote = make_bare(tmp_path / "remote.git")
    mirror, other = open_mirror(tmp_path, remote), open_mirror(tmp_path, remote, "other")
    push(mirror, "one")
    push(other, "two")

    results = read_results()
    assert (results["fetch ok"], results["push ok"]) == (2, 1)
    assert read_metric("reconciler_push_refs_total") == {
        '{remote="local",result="pushed"}': 2, '{remote="local",result="lost_race"}': 2
    }  # fmt: skip
    assert read_metric("reconciler_git_request_duration_seconds_count")['{operation="fetch",remote="local"}'] == 2
    assert read_metric("reconciler_remote_last_success_timestamp_seconds")['{operation="push",remote="local"}'] > 0


def test_a_refused_push_is_counted(tmp_path: Path) -> None:
    remote = make_bare(tmp_path / "remote.git")
    mirror = open_mirror(tmp_path, remote)
    write_hook(remote, "update", "exit 1")
    push(mirror, "one")

    assert read_results()["push refused"] > 0
    assert read_metric("reconciler_push_refs_total") == {'{remote="local",result="refused"}': 2}


def test_a_missing_repository_is_counted(tmp_path: Path) -> None:
    with pytest.raises(RepositoryMissingError):
        open_mirror(tmp_path, tmp_path / "missing.git")

    assert read_results()["fetch not_found"] > 0


def _raise(error: GitError) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("command", "fail", "expected"),
    [
        pytest.param("fetch", _raise(AccessDeniedError("no")), {"fetch auth": 1}, id="access-denied"),
        pytest.param("ls-remote", _raise(GitTimeoutError("late")), {"ls_remote timeout": 1}, id="timeout"),
        pytest.param("push", _raise(GitError("other")), {"push other": 1}, id="other"),
        pytest.param("cat-file", _raise(GitError("other")), {}, id="a-local-call"),
    ],
)
def test_errors_are_counted_by_class(command: str, fail: Callable[[], None], expected: dict[str, float]) -> None:
    with pytest.raises(GitError), measure_request(parse_url("https://example.com/a.git"), command):
        fail()

    assert read_results() == expected


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        pytest.param("host", {"example.com", "local"}, id="host"),
        pytest.param("repository", {"example.com/team/a", "example.com/team/b", "local/srv/c"}, id="repository"),
    ],
)
def test_a_label_contains_no_credentials(label: RemoteLabel, expected: set[str]) -> None:
    select_remote_label(label)
    urls = (
        "https://example.com:8443/team/a.git",
        "ssh://git@example.com/team/b",
        "git@example.com:team/b",
        "/srv/c.git",
    )

    assert {get_remote_label(parse_url(url)) for url in urls} == expected


def test_another_label_starts_with_new_series() -> None:
    def measure() -> list[str]:
        with pytest.raises(GitError), measure_request(parse_url("https://example.com/a.git"), "fetch"):
            raise GitError("down")
        return [*read_metric("reconciler_git_requests_total")]

    first = measure()
    select_remote_label("repository")
    second = measure()

    assert first == ['{operation="fetch",remote="example.com",result="other"}']
    assert second == ['{operation="fetch",remote="example.com/a",result="other"}']
