"""The program that evaluates Starlark scripts. It reads requests and writes answers until its input ends.

`scripts.py` starts this program as `python -I -S script_process.py LIFE_PIPE MEMORY_BYTES PATH...` with an empty
environment. LIFE_PIPE is the descriptor of a pipe that is closed when the parent process ends. A request is its CPU
limit in seconds (8 bytes), its length (8 bytes) and its content. An answer is its length (8 bytes) and its content.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sys
from pathlib import Path

# The exit code of a process that has not enough memory to write an answer.
OUT_OF_MEMORY = 71
_READY = b"\x00" * 8


def main() -> None:
    """Set the limits, load the Starlark interpreter, and answer requests."""
    life_pipe, memory_bytes, paths = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    _exit_with_parent(life_pipe)
    sys.path[:] = paths
    from reconciler.packages.functions.starlark_script import evaluate_script

    _limit_memory(memory_bytes)
    # Report that the interpreter is loaded. If the process ends earlier, the parent reports that the start failed, and
    # not that a script failed.
    _write(_READY)
    while len(header := _read(16)) == 16:
        seconds, size = int.from_bytes(header[:8]), int.from_bytes(header[8:])
        _limit_cpu(seconds)
        try:
            answer = evaluate_script(_read(size))
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _write(len(answer).to_bytes(8) + answer)


def _exit_with_parent(life_pipe: int) -> None:
    """Configure the kernel to end this process when the parent process ends and thereby closes `life_pipe`.

    A thread that waits for the pipe could not end the process, because Starlark does not release the global interpreter
    lock during a call. On systems that ignore the signal SIGIO by default, this process ends after its current call.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(life_pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life_pipe, fcntl.F_SETFL, fcntl.fcntl(life_pipe, fcntl.F_GETFL) | os.O_ASYNC)


def _limit_memory(memory_bytes: int) -> None:
    """Limit the address space to its current size plus `memory_bytes`. This limit has no effect on macOS."""
    limit = _get_address_space_size() + memory_bytes
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    # Write no core file, because it does not help to debug a script that was stopped.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _get_address_space_size() -> int:
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def _limit_cpu(seconds: int) -> None:
    """Configure the kernel to end this process after `seconds` of CPU time.

    A timer ends the process. If the timer fails, a resource limit ends the process two seconds later.
    """
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    hard_limit = resource.getrlimit(resource.RLIMIT_CPU)[1]
    limit = int(usage.ru_utime + usage.ru_stime) + seconds + 2
    limit = limit if hard_limit == resource.RLIM_INFINITY else min(limit, hard_limit)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, hard_limit))


def _read(size: int) -> bytes:
    data = bytearray()
    while len(data) < size and (chunk := os.read(0, size - len(data))):
        data += chunk
    return bytes(data)


def _write(data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(1, remaining) :]


if __name__ == "__main__":
    main()
