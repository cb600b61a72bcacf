"""An unexpected exception in the work on one repository or pull request does not affect the others."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.forge.errors import InternalForgeError
from reconciler.krm.findings import select_errors
from reconciler.reconcile.pull_requests.open_requests import ForgeLookup, PullRequestCache
from reconciler.reconcile.remotes.scheduling import Backoff
from tests.support.forge_world import github_world

ERRORS = (MemoryError, RecursionError, ValueError, OSError)


class _Forge:
    """A forge without pull requests, whose list raises an error if there is one."""

    def __init__(self, error: type[Exception] | None = None) -> None:
        self._error = error

    def list_open_requests(self) -> tuple[()]:
        if self._error:
            raise self._error("injected")
        return ()


def _board(find: Callable[[str], Any]) -> PullRequestCache:
    return PullRequestCache(ForgeLookup(find, lambda url: "github"), Backoff(1, 1, lambda: 0.0))


@pytest.mark.parametrize("error", ERRORS)
def test_a_list_that_fails_is_a_failure_of_its_repository_alone(error: type[Exception]) -> None:
    board = _board({"a": _Forge(error), "b": _Forge()}.get)

    board.refresh(["a", "b"])

    assert list(board.failures) == ["a"]
    assert isinstance(board.failures["a"], InternalForgeError)
    assert (board.get_forge("a"), board.get_forge("b") is not None) == (None, True)


@pytest.mark.parametrize("error", ERRORS)
def test_a_forge_that_cannot_be_found_is_a_failure_of_its_repository_until_it_is_found(error: type[Exception]) -> None:
    broken = {"a"}

    def find(url: str) -> _Forge:
        if url in broken:
            raise error("injected")
        return _Forge()

    board = _board(find)
    board.refresh(["a", "b"])
    assert (list(board.failures), board.is_enabled("a"), board.checked_urls) == (["a"], True, {"a", "b"})

    broken.clear()
    board.refresh(["a", "b"])
    assert not board.failures


def test_a_forge_is_unavailable_if_none_of_its_repositories_can_be_read() -> None:
    failing, working = _Forge(RuntimeError), _Forge()
    forges = {
        "https://one.example/a": failing,
        "git@one.example:b": failing,
        "https://two.example/a": failing,
        "https://two.example/b": working,
        "https://three.example/a": working,
    }
    board = _board(forges.get)

    board.refresh(forges)

    assert [*board.list_unavailable_hosts()] == ["one.example"]


STAGES = {
    "working-on-a-request": (
        "reconciler.reconcile.pull_requests.request_updates.PullRequestUpdater._update_request",
        lambda self, url, forge, result: result.task.branch == "drafts/berlin",
    ),
    "describing-a-request": (
        "reconciler.reconcile.pull_requests.tasks._build_text",
        lambda draft, *_: draft.target.name == "berlin",
    ),
    "reading-the-drafts-of-a-cluster": (
        "reconciler.reconcile.pull_requests.synchronizer.list_request_tasks",
        lambda destination, *_: destination.name == "berlin",
    ),
    "closing-requests-without-a-draft": (
        "reconciler.reconcile.pull_requests.request_updates.PullRequestUpdater._close_without_branch",
        lambda *_: True,
    ),
}


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("stage", STAGES)
def test_a_request_that_fails_leaves_the_others(stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, applies = STAGES[stage]
    error: type[Exception] | None = ValueError
    holder_name, _, name = target.rpartition(".")
    holder = pkgutil.resolve_name(holder_name)
    original = getattr(holder, name)

    def wrapper(*arguments: Any, **options: Any) -> Any:
        if error and applies(*arguments):
            raise error("injected")
        return original(*arguments, **options)

    monkeypatch.setattr(holder, name, wrapper)
    with github_world(tmp_path) as world:
        for error in ERRORS:
            findings = select_errors(world.sync().report.plan.list_findings())
            assert {finding.code for finding in findings} == {"InternalError"}, error
            missing = set() if stage == "closing-requests-without-a-draft" else {"drafts/berlin"}
            assert set(world.open_requests) == {"drafts/berlin", "drafts/lisbon"} - missing

        error = None
        world.sync_until_unchanged()
        assert set(world.open_requests) == {"drafts/berlin", "drafts/lisbon"}
