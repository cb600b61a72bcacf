"""Scripts in a process that can be stopped: started once, used for call after call, replaced when it ends."""

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
from reconciler.runners.commands import KILLS
from reconciler.runners.script_process import OUT_OF_MEMORY
from reconciler.runners.spoiled import SpoiledCalls

_PROGRAM = str(Path(__file__).with_name("script_process.py"))
_CHUNK = 1 << 20
# how long a new process may take to load the interpreter, on a machine that does much else
_START_SECONDS = 60.0
_CPU_SIGNALS = frozenset({signal.SIGPROF, signal.SIGXCPU})
_ENDED = "the process that evaluates scripts ended"


class _ProcessEndedError(Exception):
    """The process ended: it closed its pipes."""


class _TooLongError(Exception):
    """The process did not answer in time."""


@dataclass(frozen=True)
class _Running:
    """A process that has loaded the interpreter, and the write end of the pipe that it ends with."""

    process: subprocess.Popen[bytes]
    life: IO[bytes]
    owner: int
    """The process that started it; after a fork the copy must not use it."""

    @property
    def requests(self) -> int:
        """The pipe that it reads."""
        assert self.process.stdin is not None
        return self.process.stdin.fileno()

    @property
    def answers(self) -> int:
        """The pipe that it writes."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def end(self) -> int:
        """Kill the process, if it still runs, and return how it ended: its exit code, or the signal as a negative."""
        if os.getpid() != self.owner:
            return 0
        # one that has closed its pipes ends by itself, and how it ends is of interest
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
        for stream in (self.process.stdin, self.process.stdout, self.life):
            if stream is not None:
                stream.close()


class ScriptProcess:
    """Evaluates scripts in one process beside this one, call by call.

    The process has an empty environment, no descriptors but its pipes, and its own session. It is stopped by the kernel
    when a call takes more CPU time or memory than its limits, and when this process is gone; it is killed when a call
    takes longer than `timeout_seconds`. The next call starts another one.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._memory_bytes = 0

    def __call__(self, request: bytes, limits: FunctionLimits, most_bytes: int) -> bytes:
        """Return the answer to a request. Raises LimitError, InterruptedFunctionError."""
        deadline = time.monotonic() + self._timeout_seconds
        if not self._lock.acquire(timeout=self._timeout_seconds):
            raise InterruptedFunctionError(f"other scripts took longer than {self._timeout_seconds:g} seconds")
        try:
            return self._answered(request, limits, most_bytes, deadline)
        finally:
            self._lock.release()

    @property
    def process_id(self) -> int | None:
        """The process that evaluates scripts now, None before the first call and after one that ended it."""
        return self._running.process.pid if self._running else None

    def end(self) -> None:
        """End the process; a later call starts another one."""
        if running := self._forget():
            running.kill()

    def _answered(self, request: bytes, limits: FunctionLimits, most_bytes: int, deadline: float) -> bytes:
        message = limits.cpu_seconds.to_bytes(8) + len(request).to_bytes(8) + request
        running = self._ready(limits)
        try:
            _write(running.requests, message, deadline)
            size = int.from_bytes(_read(running.answers, 8, deadline))
            check_answer_size(size, most_bytes)
            return _read(running.answers, size, deadline)
        except _ProcessEndedError:
            self._forget()
            raise _why(running.end(), limits) from None
        except _TooLongError:
            self.end()
            why = f"the script did not end within {self._timeout_seconds:g} seconds and its process was killed"
            raise InterruptedFunctionError(why) from None
        except BaseException:
            # what is left in the pipes belongs to this call
            self.end()
            raise

    def _ready(self, limits: FunctionLimits) -> _Running:
        """Return a process that is ready for a call: the one that is there, or a new one."""
        running = self._running
        if running is not None and (
            running.owner != os.getpid()
            or self._memory_bytes != limits.memory_bytes
            or running.process.poll() is not None
        ):
            # it was killed between two calls, the limit has changed, or it belongs to the parent of a fork
            self.end()
            running = None
        if running is None:
            running = self._running = _started(limits.memory_bytes)
            self._memory_bytes = limits.memory_bytes
            weakref.finalize(self, running.kill)
        return running

    def _forget(self) -> _Running | None:
        running, self._running = self._running, None
        return running


@dataclass(frozen=True)
class Scripts:
    """Evaluates scripts in a process; a call that the environment ended rests before the next attempt."""

    process: ScriptProcess
    spoiled: SpoiledCalls

    def __call__(self, request: bytes, limits: FunctionLimits, most_bytes: int) -> bytes:
        """Return the answer to a request. Raises LimitError, InterruptedFunctionError."""
        key = f"starlark {hashlib.sha256(request).hexdigest()}"
        return self.spoiled.call(key, lambda: self.process(request, limits, most_bytes))


@lru_cache(maxsize=4)
def shared_script_process(timeout_seconds: float) -> ScriptProcess:
    """Return the one process of this process that evaluates scripts."""
    return ScriptProcess(timeout_seconds)


def _started(memory_bytes: int) -> _Running:
    """Start a process and wait until it has loaded the interpreter. Raises InterruptedFunctionError."""
    paths = [str(Path(reconciler.__file__).parents[1]), *(path for path in sys.path if path)]
    life_read, life_write = os.pipe()
    command = [sys.executable, "-I", "-S", _PROGRAM, str(life_read), str(memory_bytes), *paths]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=nothing, cwd="/", env={}, pass_fds=(life_read,), bufsize=0,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        os.close(life_write)
        raise InterruptedFunctionError(f"the process for scripts cannot be started: {error.strerror}") from error
    finally:
        os.close(life_read)
    running = _Running(process, os.fdopen(life_write, "wb", 0), os.getpid())
    os.set_blocking(running.requests, False)
    os.set_blocking(running.answers, False)
    try:
        _read(running.answers, 8, time.monotonic() + _START_SECONDS)
    except _TooLongError:
        running.kill()
        raise InterruptedFunctionError(f"the process for scripts did not start in {_START_SECONDS:g} seconds") from None
    except _ProcessEndedError:
        code = running.end()
        raise InterruptedFunctionError(f"the process for scripts does not start: it ended with {code}") from None
    return running


def _why(code: int, limits: FunctionLimits) -> Exception:
    """Return what the end of the process during a call means: a limit, a crash, or an event in the environment."""
    if -code in _CPU_SIGNALS:
        return LimitError(
            f"the script must not take more than {limits.cpu_seconds} seconds of CPU time in one call: make it faster, "
            "or raise the setting limits.functions.cpu_seconds"
        )
    if -code in KILLS or (code >= 0 and code != OUT_OF_MEMORY):
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return InterruptedFunctionError(f"the process that evaluates scripts {how}")
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
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(pipe, left[:_CHUNK]) :]
        except BlockingIOError:
            _wait_for(pipe, select.POLLOUT, deadline)
        except BrokenPipeError:
            raise _ProcessEndedError(_ENDED) from None


def _read(pipe: int, size: int, deadline: float) -> bytes:
    data = bytearray()
    while len(data) < size:
        try:
            chunk = os.read(pipe, min(_CHUNK, size - len(data)))
        except BlockingIOError:
            _wait_for(pipe, select.POLLIN, deadline)
            continue
        if not chunk:
            raise _ProcessEndedError(_ENDED)
        data += chunk
    return bytes(data)


def _wait_for(pipe: int, event: int, deadline: float) -> None:
    waiting = select.poll()
    waiting.register(pipe, event)
    left = deadline - time.monotonic()
    if left <= 0 or not waiting.poll(left * 1_000):
        raise _TooLongError
