"""Events: what the daemon says of its work, each a name with fields; structlog is loaded when the first one is told.

A pass of a process of its own mostly has nothing to tell, and loading structlog would take a tenth of its time.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any


class Events:
    """A logger of structlog's, set up when it is first used."""

    def __init__(self) -> None:
        self._set_up: Callable[[], None] | None = None
        self._lock = RLock()

    def set_up(self, configure: Callable[[], None]) -> None:
        """Have `configure` tell structlog how events are told, before the next one is."""
        self._set_up = configure

    def debug(self, event: str, **fields: object) -> None:
        """Tell what only a search for a fault wants to know."""
        self._logger.debug(event, **fields)

    def info(self, event: str, **fields: object) -> None:
        """Tell what was done."""
        self._logger.info(event, **fields)

    def warning(self, event: str, **fields: object) -> None:
        """Tell what somebody should look at one day."""
        self._logger.warning(event, **fields)

    def error(self, event: str, **fields: object) -> None:
        """Tell what could not be done."""
        self._logger.error(event, **fields)

    @property
    def _logger(self) -> Any:
        import structlog

        # remotes are written to in threads: whoever comes second must find it set up
        with self._lock:
            if self._set_up:
                self._set_up()
                self._set_up = None
        return structlog.get_logger("reconciler")


log = Events()


def log_rebuild(url: str, reason: str) -> None:
    """Log that a damaged mirror was replaced by a new one; its remote has everything that it held."""
    log.warning("mirror_rebuilt", remote=url, reason=reason)
