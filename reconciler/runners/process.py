"""One process: fed, listened to within bounds, and gone at the end with all that it started."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, cast

# how often a silent process is looked at; what it writes is read at once
_GRACE_SECONDS = 10.0
_LOOK_SECONDS = 0.05
_CHUNK = 65_536
_MOST_WORDS = 16_384


class TookTooLongError(Exception):
    """A process did not end in its time, and was killed."""


@dataclass(frozen=True)
class Bounds:
    """What one call may cost: wall time, memory, and what it writes."""

    seconds: float
    memory_bytes: int
    output_bytes: int


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code (negative: the signal), its output, the first of its words.

    `too_large`: it wrote more than it may, and was killed.
    """

    code: int
    output: bytes
    words: str
    too_large: bool = False


@dataclass(frozen=True)
class Start:
    """What to start and where; without an environment it has ours."""

    command: Sequence[str]
    folder: Path | None = None
    environment: Mapping[str, str] | None = None


def run_process(start: Start, stdin: bytes, bounds: Bounds) -> Ended:
    """Run a process to its end. Raises TookTooLongError, OSError; either way its process group is gone."""
    deadline = time.monotonic() + bounds.seconds
    with _started(start) as process:
        talk = _Talk(process, stdin, bounds.output_bytes)
        talk.finish(deadline)
        if not talk.is_too_much:
            _wait(process, deadline)
    words = bytes(talk.words).decode(errors="replace")
    return Ended(process.returncode, bytes(talk.output), words, talk.is_too_much)


@contextmanager
def _started(start: Start) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        start.command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=start.folder, env=start.environment,
        bufsize=0, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        _end_group(process)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        with suppress(subprocess.TimeoutExpired):
            # A killed process that waits for a broken disk or network folder cannot end before that answers.
            process.wait(_GRACE_SECONDS)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    # nobody has waited for it yet, so that its number is still its own and its group's
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # some systems refuse the signal where only the dead are left


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _wait(process: subprocess.Popen[bytes], deadline: float) -> None:
    while not _has_ended(process):
        if time.monotonic() > deadline:
            raise TookTooLongError
        time.sleep(_LOOK_SECONDS)


class _Talk:
    """The three pipes of one process, served as they are ready."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes, most_bytes: int) -> None:
        self._process = process
        self._left = memoryview(stdin)
        self._most_bytes = most_bytes
        self.output = bytearray()
        self.words = bytearray()

    @property
    def is_too_much(self) -> bool:
        """Whether the process wrote more than it may."""
        return len(self.output) > self._most_bytes

    def finish(self, deadline: float) -> None:
        """Write and read until all is said, or too much. Raises TookTooLongError."""
        with selectors.DefaultSelector() as pipes:
            self._open(pipes)
            while pipes.get_map() and not self.is_too_much:
                ready = pipes.select(_LOOK_SECONDS)
                if time.monotonic() > deadline:
                    raise TookTooLongError
                # a child may have left the group and hold the pipes open: who is dead says no more
                if not ready and _has_ended(self._process):
                    break
                for key, _ in ready:
                    if not key.data():
                        pipes.unregister(key.fileobj)
                        cast("IO[bytes]", key.fileobj).close()

    def _open(self, pipes: selectors.BaseSelector) -> None:
        serving: tuple[tuple[IO[bytes] | None, int, Callable[[int], bool]], ...] = (
            (self._process.stdin, selectors.EVENT_WRITE, self._write),
            (self._process.stdout, selectors.EVENT_READ, self._read_output),
            (self._process.stderr, selectors.EVENT_READ, self._read_words),
        )
        for stream, event, serve in serving:
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            pipes.register(stream, event, partial(serve, stream.fileno()))

    def _write(self, pipe: int) -> bool:
        try:
            self._left = self._left[os.write(pipe, self._left[:_CHUNK]) :]
        except BrokenPipeError:
            return False  # it does not want to know the rest
        return bool(self._left)

    def _read_output(self, pipe: int) -> bool:
        chunk = os.read(pipe, _CHUNK)
        self.output += chunk
        return bool(chunk)

    def _read_words(self, pipe: int) -> bool:
        chunk = os.read(pipe, _CHUNK)
        self.words += chunk[: max(0, _MOST_WORDS - len(self.words))]
        return bool(chunk)
