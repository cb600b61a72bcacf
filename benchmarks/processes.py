"""What a process and all below it take: CPU seconds and memory, as Linux counts them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_SETTLED_TICKS = 20


@dataclass(frozen=True)
class _Process:
    """A process: its parent, its ticks, which include those of children that it waited for, and when it started."""

    parent: int
    ticks: int
    started: int


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of all below it, those that have ended as well as those that live.

    `os.times` knows of children only when they have ended and were waited for here: it misses workers, for which a
    server of forks waits, and git processes that are kept.
    """
    there = dict(_processes())
    return sum(there[pid].ticks for pid in _family(os.getpid(), there)) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    """Return the memory of a process and of all below it; what they share counts once.

    What has just been started, and is about to be another program, is still in its parent's memory: that is left out.
    """
    there = dict(_processes())
    now = float(Path("/proc/uptime").read_text().split()[0]) * os.sysconf("SC_CLK_TCK")
    settled = (one for one in _family(pid, there) if one == pid or now - there[one].started > _SETTLED_TICKS)
    return sum(map(_proportional_mib, settled))


def _family(pid: int, there: Mapping[int, _Process]) -> set[int]:
    family, found = {pid} & there.keys(), 0
    while len(family) > found:
        found = len(family)
        family |= {one for one, process in there.items() if process.parent in family}
    return family


def _processes() -> Iterator[tuple[int, _Process]]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            # it has ended meanwhile
            continue
        yield int(folder.name), _Process(int(fields[1]), sum(map(int, fields[11:15])), int(fields[19]))


def _proportional_mib(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        # it has ended meanwhile
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
