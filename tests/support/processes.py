"""What any process of this machine can read about the others: arguments and environments, as `ps` shows them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def visible_process_data() -> Iterator[tuple[str, bytes]]:
    """Yield (path, content) of every /proc/<pid>/cmdline and /proc/<pid>/environ that this process may read."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            for name in ("cmdline", "environ"):
                # a process may end at any moment, and another user's environment is not readable
                with suppress(OSError):
                    yield f"{folder}/{name}", (folder / name).read_bytes()


def find_in_processes(*needles: str) -> list[str]:
    """Return the /proc files that contain one of some texts."""
    expected = [needle.encode() for needle in needles]
    return [path for path, content in visible_process_data() if any(needle in content for needle in expected)]
