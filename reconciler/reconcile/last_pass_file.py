"""The cache file with the last pass of this machine.

The file also contains the times of the pass. They are not stored in Git, because each pass would then push a commit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.git.filesystem import replace_file
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.status.last_pass import LastPass, parse_last_pass
from reconciler.telemetry.event_log import log

if TYPE_CHECKING:
    from reconciler.reconcile.pass_runner import PassSummary


@dataclass(frozen=True)
class PassTimes:
    """The start of a pass in seconds since 1970, and its duration in seconds."""

    started_at: float
    duration_seconds: float


def measure_pass(run_pass: Callable[[], object]) -> PassTimes:
    """Run a pass, and return its times."""
    started_at, start = time.time(), time.monotonic()
    run_pass()
    return PassTimes(started_at, time.monotonic() - start)


class LastPassFile:
    """Writes and reads the cache file with the last pass."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._last: LastPass | None = None

    def read(self) -> LastPass | None:
        """Return the last pass. Return None if the file is missing or not valid."""
        try:
            return parse_last_pass(json.loads(self._file.read_bytes()))
        except (OSError, ValueError):
            return None

    def write(self, times: PassTimes, summary: PassSummary | None) -> None:
        """Record a pass. If this fails, log the error and do not raise it.

        Args:
            summary: The result of the pass, or None if the pass could not read the config.
        """
        commit = summary.dry_commit if summary else None
        last_pass = LastPass(
            started_at=int(times.started_at),
            completed_at=int(times.started_at + times.duration_seconds),
            result=summary.result if summary else "failure",
            duration_seconds=round(times.duration_seconds, 3),
            config_commit=summary.config if summary else "",
            config_title=commit.message.partition("\n")[0] if commit else "",
            config_author=commit.author.partition(" <")[0] if commit else "",
        )
        if summary and summary.is_skipped and self._last and self._last.config_commit == summary.config:
            # Copy the title and the author of the config commit from the last pass, because a skipped pass does not
            # read the commit.
            names = {"config_title": self._last.config_title, "config_author": self._last.config_author}
            last_pass = last_pass.model_copy(update=names)
        self._last = last_pass
        try:
            replace_file(self._file, json.dumps(last_pass.to_data()))
        except OSError as error:
            log.warning("last_pass_store_failed", file=str(self._file), message=error.strerror)
