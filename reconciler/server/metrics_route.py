"""The path from which Prometheus reads the metrics."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


def create_metrics_route(render_metrics: Callable[[str], tuple[bytes, str]]) -> Route:
    """Return the route of the metrics.

    Args:
        render_metrics: Returns the metrics and their content type, for a value of the header `Accept`.
    """

    async def report_metrics(request: Request) -> Response:
        content, content_type = render_metrics(request.headers.get("accept", ""))
        return Response(content, headers={"Content-Type": content_type})

    return Route("/metrics", report_metrics)
