"""The history of changes, in memory and in a file of the cache, so that links to past changes show what happened."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.git.filesystem import replace_file
from reconciler.output.fleet.change_history import PastChange, select_drafts, update_history
from reconciler.telemetry.event_log import log

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import TypeAdapter

    from reconciler.output.fleet.model import FleetIndex
    from reconciler.review.permissions import Permissions


class ChangeArchive:
    """The history of all changes. One thread updates it, and other threads read it.

    Args:
        file: Stores the history for later processes. If None, the history is only in memory.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._history: Mapping[str, PastChange] | None = None

    def update(self, index: FleetIndex) -> None:
        """Compare `index` with the recorded history, and record what happened to the drafts of each change."""
        before = self._read() if self._history is None else self._history
        self._history = after = update_history(before, index)
        if after != before:
            self._write(after)

    def find(self, key: str, index: FleetIndex, permissions: Permissions) -> PastChange | None:
        """Return a change that is not open any more. Return None if the person may not read it, or if it is unknown.

        Args:
            index: The part of the newest index that the person may read.
        """
        change = (self._history or {}).get(key)
        return select_drafts(change, index, reads_everything=permissions.reads_everything) if change else None

    @cached_property
    def _adapter(self) -> TypeAdapter[tuple[PastChange, ...]]:
        from pydantic import TypeAdapter

        return TypeAdapter(tuple[PastChange, ...])

    def _read(self) -> Mapping[str, PastChange]:
        if self._file is None or not self._file.exists():
            return {}
        try:
            return {change.key: change for change in self._adapter.validate_json(self._file.read_bytes())}
        except (OSError, ValueError) as error:
            # Start with an empty history, because a different version of the program can have written the file.
            log.warning("change_history_unreadable", file=str(self._file), message=type(error).__name__)
            return {}

    def _write(self, history: Mapping[str, PastChange]) -> None:
        if self._file is None:
            return
        try:
            replace_file(self._file, self._adapter.dump_json(tuple(history.values()), exclude_defaults=True))
        except OSError as error:
            log.warning("change_history_store_failed", file=str(self._file), message=error.strerror)
