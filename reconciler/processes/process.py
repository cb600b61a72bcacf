"""Runs one process with limits for time and output. Afterwards, kills the child processes that the process has left."""

from __future__ import annotations

import hashlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, cast

from reconciler.lazy_dataclasses import dataclass

# The maximal time to wait for the end of a killed process.
_GRACE_SECONDS = 10.0
# The time between two checks whether a process without output has ended. Output is read without this delay.
_POLL_SECONDS = 0.05
_CHUNK_BYTES = 65_536
_MAX_STDERR_BYTES = 16_384
_MAX_DIGESTS = 64
_LIMIT_PROGRAM = str(Path(__file__).with_name("exec_with_limits.py"))


class ProcessTimeoutError(Exception):
    """The process did not end within the time limit and was killed."""


class ProcessCanceledError(Exception):
    """The caller canceled the process, which was killed."""


@dataclass(frozen=True)
class ProcessLimits:
    """The limits of one call: wall time in seconds, memory in bytes, and output in bytes."""

    seconds: float
    memory_bytes: int
    output_bytes: int


@dataclass(frozen=True)
class ProcessResult:
    """The exit code, the output and the start of the error output of an ended process.

    If a signal ended the process, `exit_code` is the negative number of the signal. `is_too_large` is True if the
    process was killed because it wrote more than the output limit. `output` is then empty.
    """

    exit_code: int
    output: bytes
    stderr: str
    is_too_large: bool = False


@dataclass(frozen=True)
class ProcessSpec:
    """The command of a process, its working directory and its environment.

    If `folder` or `environment` is None, the process inherits the value from this process.
    """

    command: Sequence[str]
    folder: Path | None = None
    environment: Mapping[str, str] | None = None


def limit_resources(command: Sequence[str], limits: ProcessLimits) -> tuple[str, ...]:
    """Return a command that runs `command` with limits for the memory and for the size of each written file."""
    sizes = (str(limits.memory_bytes), str(limits.output_bytes))
    return (sys.executable, "-I", "-S", _LIMIT_PROGRAM, *sizes, *command)


def compute_program_digest(program: Path) -> str:
    """Return the SHA-256 digest of a program file, e.g. "sha256:…". Raises OSError.

    A program can have a hundred MB, so its content is read again only after its file has changed.
    """
    status = program.stat()
    return _compute_digest(
        program, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    )


@lru_cache(_MAX_DIGESTS)
def _compute_digest(program: Path, status: tuple[int, ...]) -> str:
    """Return the digest of the content of a file. Results are cached.

    `status` is only used in the cache key. Each change of the file changes `status`, and therefore the cache key.
    """
    with program.open("rb") as content:
        return f"sha256:{hashlib.file_digest(content, 'sha256').hexdigest()}"


def run_process(
    spec: ProcessSpec, stdin: bytes, limits: ProcessLimits, is_canceled: Callable[[], bool] = lambda: False
) -> ProcessResult:
    """Run a process until it ends or exceeds a limit, and then kill all processes of its group.

    Args:
        is_canceled: Returns whether the process must be killed before its end. It is called several times per second.

    Raises:
        ProcessTimeoutError: The process exceeded the time limit.
        ProcessCanceledError: The process was canceled.
        OSError: The process cannot be started.
    """
    deadline = time.monotonic() + limits.seconds

    def check() -> None:
        if time.monotonic() > deadline:
            raise ProcessTimeoutError
        if is_canceled():
            raise ProcessCanceledError

    with _start(spec) as process:
        pipes = _Pipes(process, stdin, limits.output_bytes)
        pipes.transfer(check)
        if not pipes.is_too_large:
            _wait_for_exit(process, check)
    stderr = bytes(pipes.stderr).decode(errors="replace")
    output = b"" if pipes.is_too_large else bytes(pipes.output)
    return ProcessResult(process.returncode, output, stderr, pipes.is_too_large)


@contextmanager
def _start(spec: ProcessSpec) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        spec.command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=spec.folder, env=spec.environment,
        bufsize=0, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        _kill_group(process)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        with suppress(subprocess.TimeoutExpired):
            # Limit the wait, because a killed process cannot end while it waits for a broken disk or network folder.
            process.wait(_GRACE_SECONDS)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    # Kill the group by the process ID, which is still valid because `wait` was not called yet for the process.
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # Some systems reject the signal if all processes of the group have ended.


def _has_exited(process: subprocess.Popen[bytes]) -> bool:
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _wait_for_exit(process: subprocess.Popen[bytes], check: Callable[[], None]) -> None:
    while not _has_exited(process):
        check()
        time.sleep(_POLL_SECONDS)


class _Pipes:
    """The input, output and error pipes of one process. Data is written and read when a pipe is ready."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes, max_bytes: int) -> None:
        self._process = process
        self._remaining_input = memoryview(stdin)
        self._max_bytes = max_bytes
        self.output = bytearray()
        self.stderr = bytearray()

    @property
    def is_too_large(self) -> bool:
        """Whether the process wrote more than the output limit."""
        return len(self.output) > self._max_bytes

    def transfer(self, check: Callable[[], None]) -> None:
        """Write the input and read the output until the process ends or exceeds the output limit.

        Args:
            check: Raises an exception if the process must not continue.
        """
        with selectors.DefaultSelector() as selector:
            self._open(selector)
            while selector.get_map() and not self.is_too_large:
                # Check the process before the pipes. In the opposite order, its last output could be lost: the process
                # can write and exit between the two checks.
                has_exited = _has_exited(self._process)
                ready_pipes = selector.select(0 if has_exited else _POLL_SECONDS)
                check()
                # Stop if the process has exited, because a child process that left the group can keep the pipes open.
                if not ready_pipes and has_exited:
                    break
                for key, _ in ready_pipes:
                    if not key.data():
                        selector.unregister(key.fileobj)
                        cast("IO[bytes]", key.fileobj).close()

    def _open(self, selector: selectors.BaseSelector) -> None:
        handlers: tuple[tuple[IO[bytes] | None, int, Callable[[int], bool]], ...] = (
            (self._process.stdin, selectors.EVENT_WRITE, self._write_input),
            (self._process.stdout, selectors.EVENT_READ, self._read_output),
            (self._process.stderr, selectors.EVENT_READ, self._read_stderr),
        )
        for stream, event, handler in handlers:
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, event, partial(handler, stream.fileno()))

    def _write_input(self, pipe: int) -> bool:
        try:
            self._remaining_input = self._remaining_input[os.write(pipe, self._remaining_input[:_CHUNK_BYTES]) :]
        except BrokenPipeError:
            return False  # Stop writing, because the process closed its input before reading all of it.
        return bool(self._remaining_input)

    def _read_output(self, pipe: int) -> bool:
        chunk = os.read(pipe, _CHUNK_BYTES)
        self.output += chunk
        return bool(chunk)

    def _read_stderr(self, pipe: int) -> bool:
        chunk = os.read(pipe, _CHUNK_BYTES)
        self.stderr += chunk[: max(0, _MAX_STDERR_BYTES - len(self.stderr))]
        return bool(chunk)
