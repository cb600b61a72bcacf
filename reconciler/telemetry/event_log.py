"""The structured log of the process: events with a name and fields, written through structlog.

structlog is imported when the first event is logged. Most one-shot commands log nothing, and the import takes a
tenth of their run time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from typing import Any

_REQUEST_ID = ContextVar("request_id", default="")


class EventLog:
    """A structlog logger that is configured when it is first used.

    Attributes:
        pass_id: The ID of the running pass, or "" if no pass is running. All events of the pass have this ID.
        trace_id: The ID of the trace of the running pass, or "" if passes are not traced.
    """

    def __init__(self) -> None:
        self._configure: Callable[[], None] | None = None
        self._lock = RLock()
        self.pass_id = ""
        self.trace_id = ""

    def configure_with(self, configure: Callable[[], None]) -> None:
        """Set the function that configures structlog. The next logged event calls `configure` once."""
        self._configure = configure

    @contextmanager
    def pass_scope(self, pass_id: str, trace_id: str = "") -> Iterator[None]:
        """Add the IDs of a pass to all events in the `with` block, also to events of other threads."""
        self.pass_id, self.trace_id = pass_id, trace_id
        try:
            yield
        finally:
            self.pass_id = self.trace_id = ""

    @property
    def request_id(self) -> str:
        """The ID of the HTTP request that the current thread or task processes. "" if there is none."""
        return _REQUEST_ID.get()

    @contextmanager
    def request_scope(self, request_id: str) -> Iterator[None]:
        """Add the ID of an HTTP request to all events in the `with` block, also to events of threads that it awaits."""
        token = _REQUEST_ID.set(request_id)
        try:
            yield
        finally:
            _REQUEST_ID.reset(token)

    def debug(self, event: str, **fields: object) -> None:
        """Log an event that helps only to debug the daemon."""
        self._logger.debug(event, **fields)

    def info(self, event: str, **fields: object) -> None:
        """Log a completed action."""
        self._logger.info(event, **fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log an event that an operator should check, but that is not urgent."""
        self._logger.warning(event, **fields)

    def error(self, event: str, **fields: object) -> None:
        """Log a failed action."""
        self._logger.error(event, **fields)

    @property
    def _logger(self) -> Any:
        import structlog

        # Hold the lock, because several threads log events, and only the first event configures structlog.
        with self._lock:
            if self._configure:
                self._configure()
                self._configure = None
        return structlog.get_logger("reconciler")


log = EventLog()


def log_signing_failure(url: str, reason: str) -> None:
    """Log that a commit or tag was not pushed, because it could not be signed."""
    log.error("signing_failed", remote=url, message=reason)


def log_random_signatures(key_type: str) -> None:
    """Log that the key creates a different signature each time, so that equal commits get different IDs."""
    log.warning(
        "signatures_not_deterministic",
        key_type=key_type,
        message="equal commits get different IDs; use an Ed25519 or RSA key if several daemons push to one target",
    )


def log_mirror_rebuild(url: str, reason: str) -> None:
    """Log that a new mirror replaced a damaged mirror. No data is lost, because the remote contains all data."""
    log.warning("mirror_rebuilt", remote=url, message=reason)


class CredentialLog:
    """Logs events about credentials. Implements `CredentialObserver`. The events contain no secrets."""

    def report_reloaded(self, remote: str, use: str, file: str) -> None:
        """Log that a file has new content, which the next Git call uses."""
        log.info("credential_reloaded", remote=remote, use=use, file=file)

    def report_unreadable(self, remote: str, use: str, file: str, message: str) -> None:
        """Log that a file cannot be read or used."""
        log.error("credential_unreadable", remote=remote, use=use, file=file, message=message)

    def report_copied_key(self, remote: str, use: str, file: str) -> None:
        """Log that ssh uses a private copy of a key file, because the group can read the file."""
        log.info("ssh_key_copied", remote=remote, use=use, file=file)
