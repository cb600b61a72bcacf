"""A Git in the test process: the commands that the product uses, without a process per command.

The repositories on disk are real, so that Git and the code in this folder can work on the same repository in one test.
A command runs here only if it succeeds and if the repositories are usual. Otherwise Git itself runs, for example for
hooks, refused pushes, damaged repositories, and remotes that are not folders. Many tests in `tests/git` run with both.
"""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, BinaryIO

import pytest

from reconciler.git import object_reader
from reconciler.git.command import GitCommand, GitResult
from reconciler.git.errors import MirrorCorruptError
from reconciler.git.object_reader import _Pipe
from tests.support.in_process_git.commands import COMMANDS, Invocation, check_repository, push
from tests.support.in_process_git.objects import ObjectStore, UnsupportedError

run_git, start_git = GitCommand.run, GitCommand.start
# Git compares and changes a ref while it holds the lock file of the ref. Here, one lock protects all refs, so that two
# threads that push the same ref cannot both find the expected value.
_ref_lock = RLock()


@contextmanager
def in_process_git(*, enabled: bool = True) -> Iterator[None]:
    """Make the product run Git commands in this process until the context ends."""
    with pytest.MonkeyPatch.context() as patches:
        if enabled:
            patches.setattr(GitCommand, "run", _run)
            patches.setattr(GitCommand, "start", _start)
            patches.setattr(object_reader, "_Pipe", _open_pipe)
        yield


@pytest.fixture(scope="module", autouse=True)
def git_of_the_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run Git commands in the test process, except in modules with the marker `real_git`.

    The `conftest.py` of a folder imports this fixture for the tests of the folder.
    """
    with in_process_git(enabled=request.node.get_closest_marker("real_git") is None):
        yield


def _run(
    self: GitCommand,
    *arguments: str,
    stdin: bytes | BinaryIO = b"",
    lock_descriptor: int | None = None,
    accepted_exit_codes: tuple[int, ...] = (0,),
) -> GitResult:
    position = 0 if isinstance(stdin, bytes) else os.lseek(stdin.fileno(), 0, os.SEEK_CUR)
    try:
        with _ref_lock:
            exit_code, output = _call(_build_invocation(self, arguments, stdin))
        if exit_code in accepted_exit_codes:
            return GitResult(exit_code, output.encode(errors="surrogateescape"), "")
    except (UnsupportedError, OSError, KeyError, ValueError):
        # Git reports the error.
        pass
    if not isinstance(stdin, bytes):
        # The process reads from the position of the descriptor.
        os.lseek(stdin.fileno(), position, os.SEEK_SET)
    return run_git(
        self,
        *arguments,
        stdin=stdin,
        lock_descriptor=lock_descriptor,
        accepted_exit_codes=accepted_exit_codes,
    )


def _build_invocation(command: GitCommand, arguments: tuple[str, ...], stdin: bytes | BinaryIO) -> Invocation:
    url = command._url
    return Invocation(command._folder, Path(url.text) if url.is_local else None, arguments, stdin)


def _call(call: Invocation) -> tuple[int, str]:
    if "push" in call.arguments[:3]:
        check_repository(call.folder)
        return push(call)
    name, *arguments = call.arguments
    if name not in COMMANDS:
        raise UnsupportedError
    if name != "init":
        check_repository(call.folder)
    return COMMANDS[name](Invocation(call.folder, call.remote, tuple(arguments), call.stdin))


@contextmanager
def _start(self: GitCommand, *arguments: str, **more: Any) -> Iterator[Any]:
    try:
        if arguments != ("cat-file", "--batch"):
            raise UnsupportedError
        check_repository(self._folder)
        store = ObjectStore(self._folder)
    except (UnsupportedError, OSError, ValueError):
        with start_git(self, *arguments, **more) as process:
            yield process
        return
    yield _Batch(store)


def _open_pipe(process: _Batch | subprocess.Popen[bytes], timeout_seconds: float) -> _Batch | _Pipe:
    return process if isinstance(process, _Batch) else _Pipe(process, timeout_seconds)


class _Batch:
    """The answers of `git cat-file --batch`, with the methods of the product's pipe to this process."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._requested = deque[str]()
        self._content = b""

    def write(self, request: bytes) -> None:
        self._requested += request.decode().splitlines()

    def read_line(self) -> bytes:
        object_id = self._requested.popleft()
        try:
            found = self._store.find(object_id)
        except UnsupportedError as error:
            raise MirrorCorruptError("git cat-file ended early: no reason given") from error
        if found is None:
            return f"{object_id} missing".encode()
        kind, self._content = found
        return b"%s %s %d" % (object_id.encode(), kind, len(self._content))

    def read_content(self, size: int, limit: int) -> bytes:
        return self._content if size <= limit else b""
