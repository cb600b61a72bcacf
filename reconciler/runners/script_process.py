"""The process that evaluates scripts: reads requests and writes answers until its input ends.

Started by `scripts.py` as `python -I -S script_process.py LIFE_PIPE MEMORY_BYTES PATH...`, with an empty environment. A
message is its length in eight bytes, then its bytes; before the length of a request comes its CPU limit in seconds.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sys
from pathlib import Path

# the exit status of a process that has no memory left for an answer
OUT_OF_MEMORY = 71
_READY = b"\x00" * 8


def main() -> None:
    """Take the limits on, load the interpreter, and serve."""
    life, memory_bytes, paths = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    _end_with_the_parent(life)
    sys.path[:] = paths
    from reconciler.packages.functions.starlark_script import evaluate_script

    _limit_memory(memory_bytes)
    # what the parent reads first: loading has worked, and a later failure belongs to a call
    _write(_READY)
    while len(head := _read(16)) == 16:
        seconds, size = int.from_bytes(head[:8]), int.from_bytes(head[8:])
        _limit_cpu(seconds)
        try:
            answer = evaluate_script(_read(size))
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _write(len(answer).to_bytes(8) + answer)


def _end_with_the_parent(life: int) -> None:
    """Have the kernel end this process when the other end of a pipe is closed, which is open as long as the parent is.

    A thread could not, because the interpreter holds the lock of all threads. Systems whose default action for SIGIO is
    to ignore it end this process at the end of its call, when its input has ended.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)


def _limit_memory(memory_bytes: int) -> None:
    """Limit the address space to what is in use now and so many bytes; macOS accepts this limit and ignores it."""
    limit = _address_space() + memory_bytes
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    # a core file of a script that was stopped has no use
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _address_space() -> int:
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def _limit_cpu(seconds: int) -> None:
    """Have the kernel end this process after so many seconds of CPU time: by a timer, and behind it by a limit."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    limit = int(used.ru_utime + used.ru_stime) + seconds + 2
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, hard))


def _read(size: int) -> bytes:
    data = bytearray()
    while len(data) < size and (chunk := os.read(0, size - len(data))):
        data += chunk
    return bytes(data)


def _write(data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(1, left) :]


if __name__ == "__main__":
    main()
