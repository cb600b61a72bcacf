"""First seen: since when something has been on a branch for people to see, kept in the cache.

It is worth no more than the cache. Without it the delay of a draft begins anew, and nothing is published too early;
of what is published, Git's dates have to do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconciler.daemon.events import log


class FirstSeen:
    """Remembers by destination and package what lies on a branch, and when a pass saw that first."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: dict[str, dict[str, tuple[str, int]]] = _read(file)
        self._is_new = False

    def look(self, destination: str, there: Mapping[str, str], now: int, start: int | None = None) -> Mapping[str, int]:
        """Return since when each package has been what it is; what is not there any more is forgotten.

        What is there when nothing is known of the destination is taken to be there since `start`, if that is given.
        """
        known = self._known.get(destination, {})
        first = now if start is None or destination in self._known else start
        found = {
            package: known[package] if package in known and known[package][0] == content else (content, first)
            for package, content in there.items()
        }
        if found != known or (start is not None and destination not in self._known):
            self._known[destination] = found
            self._is_new = True
        return {package: since for package, (_, since) in found.items()}

    def keep(self) -> None:
        """Write it down for the next process. A disk that takes nothing is told of, and stops nothing."""
        if not self._is_new:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            new = self._file.with_suffix(".new")
            new.write_text(json.dumps(dict(sorted(self._known.items()))))
            new.replace(self._file)
        except OSError as error:
            log.warning("first_seen_not_kept", file=str(self._file), why=error.strerror)
            return
        self._is_new = False


def _read(file: Path) -> dict[str, dict[str, tuple[str, int]]]:
    try:
        data: dict[str, dict[str, Any]] = json.loads(file.read_bytes())
        return {
            name: {package: (str(content), int(since)) for package, (content, since) in drafts.items()}
            for name, drafts in data.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
