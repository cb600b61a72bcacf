"""The log event about an unexpected exception in the processing of a request."""

from __future__ import annotations

from starlette.requests import Request

from reconciler.server.request_ids import read_request_id
from reconciler.server.request_metrics import get_known_method
from reconciler.telemetry.event_log import log

_MAX_LOGGED_CHARACTERS = 200


def log_failed_request(request: Request, error: Exception) -> str:
    """Log the exception that ended the processing of a request. Return the ID of the request in the log."""
    request_id, path = read_request_id(request), request.url.path[:_MAX_LOGGED_CHARACTERS]
    method = get_known_method(request.scope)
    log.error("http_request_failed", method=method, path=path, request_id=request_id, exc_info=error)
    return request_id
