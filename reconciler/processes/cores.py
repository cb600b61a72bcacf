"""The number of cores for parallel work."""

from __future__ import annotations

import os


def count_available_cores() -> int:
    """Return the number of cores that this process may use."""
    # Use the CPU affinity if the system has it, because containers and `taskset` can limit a process to some of the
    # cores.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
