"""An unexpected exception in the work on one repository or pull request does not affect the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.daemon.backoff import Backoff
from reconciler.daemon.request_board import Forges, RequestBoard
from reconciler.forge.errors import InternalForgeError
from reconciler.krm.findings import errors
from tests.support.forge_world import github_world

ERRORS = (MemoryError, RecursionError, ValueError, OSError)


class _Forge:
    """A forge without pull requests, whose list raises an error if there is one."""

    def __init__(self, error: type[Exception] | None = None) -> None:
        self._error = error

    def open_requests(self) -> tuple[()]:
        if self._error:
            raise self._error("injected")
        return ()


def _board(find: Callable[[str], Any]) -> RequestBoard:
    return RequestBoard(Forges(find, lambda url: "github"), Backoff(1, 1, lambda: 0.0))


@pytest.mark.parametrize("error", ERRORS)
def test_a_list_that_fails_is_a_failure_of_its_repository_alone(error: type[Exception]) -> None:
    board = _board({"a": _Forge(error), "b": _Forge()}.get)

    board.look(["a", "b"])

    assert list(board.failures) == ["a"]
    assert isinstance(board.failures["a"], InternalForgeError)
    assert (board.forge("a"), board.forge("b") is not None) == (None, True)


@pytest.mark.parametrize("error", ERRORS)
def test_a_forge_that_cannot_be_found_is_a_failure_of_its_repository_until_it_is_found(error: type[Exception]) -> None:
    broken = {"a"}

    def find(url: str) -> _Forge:
        if url in broken:
            raise error("injected")
        return _Forge()

    board = _board(find)
    board.look(["a", "b"])
    assert (list(board.failures), board.asked("a"), board.seen) == (["a"], True, {"a", "b"})

    broken.clear()
    board.look(["a", "b"])
    assert not board.failures


STAGES = {
    "working-on-a-request": (
        "reconciler.daemon.request_round.RequestRounds._settle",
        lambda self, url, forge, result: result.task.branch == "drafts/berlin",
    ),
    "describing-a-request": (
        "reconciler.daemon.request_tasks._words",
        lambda draft, *_: draft.destination.name == "berlin",
    ),
    "reading-the-drafts-of-a-cluster": (
        "reconciler.daemon.requests.request_tasks",
        lambda destination, *_: destination.name == "berlin",
    ),
    "closing-requests-without-a-draft": (
        "reconciler.daemon.request_round.RequestRounds._close_leftovers",
        lambda *_: True,
    ),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_request_that_fails_leaves_the_others(stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, applies = STAGES[stage]
    error: type[Exception] | None = ValueError
    module, _, name = target.rpartition(".")
    holder: Any = __import__(".".join(module.split(".")[:3]), fromlist=["_"])
    holder = holder.RequestRounds if module.endswith("RequestRounds") else holder
    original = getattr(holder, name)

    def wrapper(*arguments: Any, **options: Any) -> Any:
        if error and applies(*arguments):
            raise error("injected")
        return original(*arguments, **options)

    monkeypatch.setattr(holder, name, wrapper)
    with github_world(tmp_path) as world:
        for error in ERRORS:
            findings = errors(world.sync().report.plan.all_findings())
            assert {one.code for one in findings} == {"InternalError"}, error
            missing = set() if stage == "closing-requests-without-a-draft" else {"drafts/berlin"}
            assert set(world.open_requests) == {"drafts/berlin", "drafts/lisbon"} - missing

        error = None
        world.settle()
        assert set(world.open_requests) == {"drafts/berlin", "drafts/lisbon"}
