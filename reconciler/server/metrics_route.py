"""The path from which Prometheus reads metrics."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from reconciler.credential_files import SecretFileError, read_secrets
from reconciler.server.shared_secrets import is_accepted, parse_bearer_token
from reconciler.telemetry.event_log import log
from reconciler.telemetry.metrics import render_metrics

METRICS_PATH = "/metrics"


class MetricsAccess:
    """Decides which requests can read metrics.

    Attributes:
        token_file: The file with the accepted tokens, one per line. If None, all requests can read metrics.
    """

    def __init__(self) -> None:
        self.token_file: Path | None = None

    def is_allowed(self, authorization: str) -> bool:
        """Return whether a request with this value of the header `Authorization` can read metrics."""
        if self.token_file is None:
            return True
        try:
            accepted = read_secrets(self.token_file)
        except SecretFileError as error:
            log.error("metrics_token_unreadable", file=str(self.token_file), message=str(error))
            return False
        return is_accepted(parse_bearer_token(authorization), accepted)


def create_metrics_route(access: MetricsAccess) -> Route:
    """Return the route that reports the current values of all metrics."""

    # Each call takes some milliseconds. This function is not a coroutine, so that Starlette calls it in a thread and
    # the event loop does not wait for it.
    def report(request: Request) -> Response:
        if not access.is_allowed(request.headers.get("authorization", "")):
            return Response(status_code=HTTPStatus.UNAUTHORIZED, headers={"WWW-Authenticate": "Bearer"})
        body, content_type = render_metrics(request.headers.get("accept", ""))
        return Response(body, headers={"Content-Type": content_type})

    return Route(METRICS_PATH, report)
