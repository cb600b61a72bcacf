"""Configuration of structlog: the level, the format, the fields of all events, and the redaction of secrets."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any

import structlog

from reconciler import __version__
from reconciler.redaction import redact_data
from reconciler.telemetry.event_log import log

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_Event = MutableMapping[str, Any]


def configure_log(level: str, shard: str, *, as_json: bool) -> None:
    """Write events of at least this level to standard error, as JSON lines or as text.

    The fields `version` and `shard` have the same value in all events. Lines of text omit these fields.
    """
    level_processor: list[Any] = [structlog.stdlib.add_log_level] if as_json else [structlog.processors.add_log_level]
    renderer = (
        structlog.processors.JSONRenderer(sort_keys=True)
        if as_json
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    common_fields = {"version": __version__, "shard": shard} if as_json else {}

    def add_common_fields(_logger: object, _method: str, event: _Event) -> _Event:
        event.update(common_fields)
        if log.pass_id:
            event["pass_id"] = log.pass_id
        if log.request_id:
            event.setdefault("request_id", log.request_id)
        if log.trace_id:
            event["trace_id"] = log.trace_id
        return event

    structlog.configure(
        processors=[
            *level_processor,
            _add_timestamp,
            add_common_fields,
            # Use `format_exc_info`, because its traceback contains no local variables. Their values may be secrets.
            structlog.processors.format_exc_info,
            _redact_event,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _add_timestamp(_logger: object, _method: str, event: _Event) -> _Event:
    event["timestamp"] = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return event


def _redact_event(_logger: object, _method: str, event: _Event) -> _Event:
    """Remove credentials from all keys and values of a log event."""
    return {name: redact_data(value) for name, value in event.items()}
