"""Data that each process of a machine can read about other processes: arguments and environments, as in `ps`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def visible_process_data() -> Iterator[tuple[str, bytes]]:
    """Yield (path, content) of every /proc/<pid>/cmdline and /proc/<pid>/environ that this process may read."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            for name in ("cmdline", "environ"):
                # A process may end at any time, and the environment of another user's process is not readable.
                with suppress(OSError):
                    yield f"{folder}/{name}", (folder / name).read_bytes()


def find_in_processes(*needles: str) -> list[str]:
    """Return the /proc files that contain one of these texts."""
    expected = [needle.encode() for needle in needles]
    return [path for path, content in visible_process_data() if any(needle in content for needle in expected)]
