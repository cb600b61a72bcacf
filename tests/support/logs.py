"""Log settings that a command changes in the process of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from reconciler.telemetry.event_log import log


@contextmanager
def unchanged_logs() -> Iterator[None]:
    """Restore the log settings at the end."""
    before = structlog.get_config()
    try:
        yield
    finally:
        log.configure_with(lambda: None)
        structlog.configure(**before)
