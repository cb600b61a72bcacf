"""Starlark scripts in a separate process that can be stopped. The process is reused, and replaced when it ends."""

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
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

import reconciler
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.packages.functions.limits import FunctionLimits, LimitError
from reconciler.packages.functions.starlark import check_answer_size
from reconciler.runners.commands import KILL_SIGNALS
from reconciler.runners.interrupted_calls import InterruptedCalls
from reconciler.runners.script_process import OUT_OF_MEMORY

_PROGRAM = str(Path(__file__).with_name("script_process.py"))
_CHUNK_BYTES = 1 << 20
# Time for a new process to load the interpreter on a busy machine.
_START_SECONDS = 60.0
_CPU_SIGNALS = frozenset({signal.SIGPROF, signal.SIGXCPU})
_PROCESS_ENDED = "the process that evaluates scripts ended"


class _ProcessEndedError(Exception):
    """The process closed its pipes."""


class _ScriptTimeoutError(Exception):
    """The process did not answer in time."""


@dataclass(frozen=True)
class _ScriptWorker:
    """A process that has loaded the interpreter, and the write end of its life pipe.

    The process ends with that pipe.
    """

    process: subprocess.Popen[bytes]
    life_pipe: IO[bytes]
    owner: int
    """Id of the process that started the worker. After a fork, the child process must not use it."""

    @property
    def requests(self) -> int:
        """File descriptor of the pipe that the worker reads."""
        assert self.process.stdin is not None
        return self.process.stdin.fileno()

    @property
    def answers(self) -> int:
        """File descriptor of the pipe that the worker writes."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def end(self) -> int:
        """Kill the process if it still runs. Return its exit code, or the negative number of its signal."""
        if os.getpid() != self.owner:
            return 0
        # A process that closed its pipes ends by itself. Wait for it, because its exit code shows the reason.
        if self.process.poll() is None and not _wait_briefly(self.process):
            self.process.kill()
        code = self.process.wait()
        self._close()
        return code

    def kill(self) -> None:
        """Kill the process at once."""
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

    The process has an empty environment, no file descriptors except its pipes, and its own session. The kernel ends it
    when a call exceeds its limit of CPU time or memory, and when this process ends. A call that takes longer than
    `timeout_seconds` kills it. The next call starts another process.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._worker: _ScriptWorker | None = None
        self._memory_bytes = 0

    def __call__(self, request: bytes, limits: FunctionLimits, max_bytes: int) -> bytes:
        """Return the answer to a request. Raises LimitError, InterruptedFunctionError."""
        deadline = time.monotonic() + self._timeout_seconds
        if not self._lock.acquire(timeout=self._timeout_seconds):
            raise InterruptedFunctionError(
                f"other scripts used the script process for more than {self._timeout_seconds:g} seconds"
            )
        try:
            return self._evaluate(request, limits, max_bytes, deadline)
        finally:
            self._lock.release()

    @property
    def process_id(self) -> int | None:
        """The id of the current process; None before the first call and after a call that ended it."""
        return self._worker.process.pid if self._worker else None

    def end(self) -> None:
        """End the process. A later call starts another one."""
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
            # The pipes may contain data of this call, so that the next call cannot use them.
            self.end()
            raise

    def _get_worker(self, limits: FunctionLimits) -> _ScriptWorker:
        """Return a process that is ready for a call: the current one or a new one."""
        worker = self._worker
        if worker is not None and (
            worker.owner != os.getpid()
            or self._memory_bytes != limits.memory_bytes
            or worker.process.poll() is not None
        ):
            # The process was killed between two calls, its limit changed, or it belongs to the parent of a fork.
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
    """Evaluates scripts in a process. A call that the environment interrupted is repeated after its back-off time."""

    process: ScriptProcess
    interrupted_calls: InterruptedCalls

    def __call__(self, request: bytes, limits: FunctionLimits, max_bytes: int) -> bytes:
        """Return the answer to a request. Raises LimitError, InterruptedFunctionError."""
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
        raise InterruptedFunctionError(f"the process for scripts does not start: it ended with {code}") from None
    return worker


def _create_exit_error(code: int, limits: FunctionLimits) -> Exception:
    """Return the error for a process that ended during a call: a limit, a crash, or an event in the environment."""
    if -code in _CPU_SIGNALS:
        return LimitError(
            f"the script must not take more than {limits.cpu_seconds} seconds of CPU time in one call: make it faster, "
            "or raise the setting limits.functions.cpu_seconds"
        )
    if -code in KILL_SIGNALS or (code >= 0 and code != OUT_OF_MEMORY):
        ending = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return InterruptedFunctionError(f"the process that evaluates scripts {ending}")
    return LimitError(
        f"the script must not take more than {limits.memory_bytes:,} bytes of memory or make the interpreter crash: "
        "use smaller values, or raise the setting limits.functions.memory_bytes"
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
