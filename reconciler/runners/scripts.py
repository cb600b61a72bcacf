"""Evaluates Starlark scripts in a separate process, which can be killed. The process is reused until it ends."""

from __future__ import annotations

import hashlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from functools import lru_cache
from pathlib import Path
from typing import IO

import reconciler
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.packages.functions.limits import FunctionLimits, LimitError
from reconciler.packages.functions.starlark import check_answer_size
from reconciler.runners.commands import KILL_SIGNALS
from reconciler.runners.interrupted_calls import InterruptedCalls
from reconciler.runners.script_process import OUT_OF_MEMORY

_PROGRAM = str(Path(__file__).with_name("script_process.py"))
_CHUNK_BYTES = 1 << 20
# The maximal time until a new process has loaded the interpreter, also on a busy machine.
_START_SECONDS = 60.0
_CPU_SIGNALS = frozenset({signal.SIGPROF, signal.SIGXCPU})
_PROCESS_ENDED = "the process that evaluates scripts ended"


class _ProcessEndedError(Exception):
    """The process ended and closed its pipes."""


class _ScriptTimeoutError(Exception):
    """The process did not answer within the time limit."""


@dataclass(frozen=True)
class _ScriptWorker:
    """A child process that has loaded the Starlark interpreter.

    The kernel ends the child process when `life_pipe` is closed, for example because the parent process ended.
    """

    process: subprocess.Popen[bytes]
    life_pipe: IO[bytes]
    owner: int
    """The ID of the process that started the worker. After a fork, the child process must not use the worker."""

    @property
    def requests(self) -> int:
        """The file descriptor of the pipe from which the worker reads requests."""
        assert self.process.stdin is not None
        return self.process.stdin.fileno()

    @property
    def answers(self) -> int:
        """The file descriptor of the pipe to which the worker writes answers."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def end(self) -> int:
        """End the process, and return its exit code. If a signal ended it, return the negative number of the signal."""
        if os.getpid() != self.owner:
            return 0
        # Wait before killing: if the process closed its pipes, it ends by itself, and its exit code shows the reason.
        if self.process.poll() is None and not _wait_briefly(self.process):
            self.process.kill()
        code = self.process.wait()
        self._close()
        return code

    def kill(self) -> None:
        """Kill the process, and close its pipes."""
        if os.getpid() != self.owner:
            return
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._close()

    def _close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout, self.life_pipe):
            if stream is not None:
                stream.close()


class ScriptProcess:
    """Evaluates scripts in one separate process, one call at a time.

    The process has its own session, an empty environment, and no file descriptors except its pipes. The kernel ends the
    process when a call exceeds its limit of CPU time or memory, or when the parent process ends. If a call takes longer
    than `timeout_seconds`, the process is killed. The next call then starts a new process.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._worker: _ScriptWorker | None = None
        self._memory_bytes = 0

    def __call__(self, request: bytes, limits: FunctionLimits, max_bytes: int) -> bytes:
        """Send a request to the process, and return its answer. Raises LimitError, InterruptedFunctionError."""
        deadline = time.monotonic() + self._timeout_seconds
        if not self._lock.acquire(timeout=self._timeout_seconds):
            raise InterruptedFunctionError(
                f"the script did not start, because other scripts ran for more than {self._timeout_seconds:g} seconds"
            )
        try:
            return self._evaluate(request, limits, max_bytes, deadline)
        finally:
            self._lock.release()

    @property
    def process_id(self) -> int | None:
        """The ID of the running process. None before the first call of a script, and after the process has ended."""
        return self._worker.process.pid if self._worker else None

    def end(self) -> None:
        """Kill the process. The next call starts a new process."""
        if worker := self._drop_worker():
            worker.kill()

    def _evaluate(self, request: bytes, limits: FunctionLimits, max_bytes: int, deadline: float) -> bytes:
        message = limits.cpu_seconds.to_bytes(8) + len(request).to_bytes(8) + request
        worker = self._get_worker(limits)
        try:
            _write(worker.requests, message, deadline)
            size = int.from_bytes(_read(worker.answers, 8, deadline))
            check_answer_size(size, max_bytes)
            return _read(worker.answers, size, deadline)
        except _ProcessEndedError:
            self._drop_worker()
            raise _create_exit_error(worker.end(), limits) from None
        except _ScriptTimeoutError:
            self.end()
            raise InterruptedFunctionError(
                f"the script did not end within {self._timeout_seconds:g} seconds and its process was killed"
            ) from None
        except BaseException:
            # Replace the process, because its pipes may still contain data of this call.
            self.end()
            raise

    def _get_worker(self, limits: FunctionLimits) -> _ScriptWorker:
        """Return a process that is ready for a call. Start a new process if the current process cannot be used."""
        worker = self._worker
        if worker is not None and (
            worker.owner != os.getpid()
            or self._memory_bytes != limits.memory_bytes
            or worker.process.poll() is not None
        ):
            # Replace the script process in three cases: it was killed between two calls, the memory limit changed, or
            # the Python process that started the script process has been forked, and this code runs in the fork.
            self.end()
            worker = None
        if worker is None:
            worker = self._worker = _start_worker(limits.memory_bytes)
            self._memory_bytes = limits.memory_bytes
            weakref.finalize(self, worker.kill)
        return worker

    def _drop_worker(self) -> _ScriptWorker | None:
        worker, self._worker = self._worker, None
        return worker


@dataclass(frozen=True)
class BackoffScriptRunner:
    """Evaluates scripts in a process. An interrupted call is repeated only after its back-off has ended."""

    process: ScriptProcess
    interrupted_calls: InterruptedCalls

    def __call__(self, request: bytes, limits: FunctionLimits, max_bytes: int) -> bytes:
        """Send a request to the process, and return its answer. Raises LimitError, InterruptedFunctionError."""
        key = f"starlark {hashlib.sha256(request).hexdigest()}"
        return self.interrupted_calls.call(key, lambda: self.process(request, limits, max_bytes))


@lru_cache(maxsize=4)
def get_shared_script_process(timeout_seconds: float) -> ScriptProcess:
    """Return the script process that all callers in this process share."""
    return ScriptProcess(timeout_seconds)


def _start_worker(memory_bytes: int) -> _ScriptWorker:
    """Start a process and wait until it has loaded the interpreter. Raises InterruptedFunctionError."""
    paths = [str(Path(reconciler.__file__).parents[1]), *(path for path in sys.path if path)]
    life_read, life_write = os.pipe()
    command = [sys.executable, "-I", "-S", _PROGRAM, str(life_read), str(memory_bytes), *paths]
    pipe, devnull = subprocess.PIPE, subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=devnull, cwd="/", env={}, pass_fds=(life_read,), bufsize=0,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        os.close(life_write)
        raise InterruptedFunctionError(f"the process for scripts cannot be started: {error.strerror}") from error
    finally:
        os.close(life_read)
    worker = _ScriptWorker(process, os.fdopen(life_write, "wb", 0), os.getpid())
    os.set_blocking(worker.requests, False)
    os.set_blocking(worker.answers, False)
    try:
        _read(worker.answers, 8, time.monotonic() + _START_SECONDS)
    except _ScriptTimeoutError:
        worker.kill()
        raise InterruptedFunctionError(f"the process for scripts did not start in {_START_SECONDS:g} seconds") from None
    except _ProcessEndedError:
        code = worker.end()
        raise InterruptedFunctionError(
            f"the process for scripts ended with exit code {code} before it was ready"
        ) from None
    return worker


def _create_exit_error(code: int, limits: FunctionLimits) -> Exception:
    """Return the error for a script process that ended during a call.

    The error is LimitError if the script exceeded a limit or crashed the process. It is InterruptedFunctionError if
    another process killed the script process, or if the script process exited.
    """
    if -code in _CPU_SIGNALS:
        return LimitError(
            f"the script must not take more than {limits.cpu_seconds} seconds of CPU time in one call: make "
            "the script faster, or raise the setting `limits.functions.cpu_seconds`"
        )
    if -code in KILL_SIGNALS or (code >= 0 and code != OUT_OF_MEMORY):
        ending = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return InterruptedFunctionError(f"the process that evaluates scripts {ending}")
    return LimitError(
        f"the script used more than {limits.memory_bytes:,} bytes of memory, or the interpreter crashed: use "
        "smaller values, or raise the setting `limits.functions.memory_bytes`"
    )


def _wait_briefly(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(1)
    except subprocess.TimeoutExpired:
        return False
    return True


def _write(pipe: int, data: bytes, deadline: float) -> None:
    remaining = memoryview(data)
    while remaining:
        try:
            remaining = remaining[os.write(pipe, remaining[:_CHUNK_BYTES]) :]
        except BlockingIOError:
            _wait_for(pipe, select.POLLOUT, deadline)
        except BrokenPipeError:
            raise _ProcessEndedError(_PROCESS_ENDED) from None


def _read(pipe: int, size: int, deadline: float) -> bytes:
    data = bytearray()
    while len(data) < size:
        try:
            chunk = os.read(pipe, min(_CHUNK_BYTES, size - len(data)))
        except BlockingIOError:
            _wait_for(pipe, select.POLLIN, deadline)
            continue
        if not chunk:
            raise _ProcessEndedError(_PROCESS_ENDED)
        data += chunk
    return bytes(data)


def _wait_for(pipe: int, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(pipe, event)
    remaining_seconds = deadline - time.monotonic()
    if remaining_seconds <= 0 or not poll.poll(remaining_seconds * 1_000):
        raise _ScriptTimeoutError
