"""CPU seconds and memory of a process and its descendants, as Linux counts them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_SETTLED_TICKS = 20


@dataclass(frozen=True)
class _Process:
    """A process: its parent, its CPU ticks including finished children, and its start time."""

    parent: int
    ticks: int
    started: int


def cpu_seconds(pid: int = 0) -> float:
    """Return the CPU seconds of a process and its descendants, both finished and running. 0 is this process.

    `os.times` includes only finished children that this process waited for. It omits workers, whose parent is the fork
    server, and long-lived Git processes.
    """
    there = dict(_processes())
    return sum(there[member].ticks for member in _family(pid or os.getpid(), there)) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    """Return the memory of a process and its descendants. Shared memory counts once.

    A process between fork and exec still shows the memory of its parent, so it is omitted.
    """
    there = dict(_processes())
    now = float(Path("/proc/uptime").read_text().split()[0]) * os.sysconf("SC_CLK_TCK")
    settled = (item for item in _family(pid, there) if item == pid or now - there[item].started > _SETTLED_TICKS)
    return sum(map(_proportional_mib, settled))


def _family(pid: int, there: Mapping[int, _Process]) -> set[int]:
    family, value = {pid} & there.keys(), 0
    while len(family) > value:
        value = len(family)
        family |= {item for item, process in there.items() if process.parent in family}
    return family


def _processes() -> Iterator[tuple[int, _Process]]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            # The process has ended.
            continue
        yield int(folder.name), _Process(int(fields[1]), sum(map(int, fields[11:15])), int(fields[19]))


def _proportional_mib(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        # The process has ended.
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
