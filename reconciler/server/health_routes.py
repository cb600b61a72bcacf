"""The paths for health checks. Liveness shows that the process works. Readiness shows that it has completed a pass."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from reconciler.service.fleet_view import ServiceState


def create_health_routes(state: ServiceState) -> list[Route]:
    """Return the routes of the health checks."""

    async def report_liveness(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def report_readiness(_request: Request) -> Response:
        codes = [
            code for code, is_failing in (("Stopping", state.is_stopping), ("NoPassYet", not state.view)) if is_failing
        ]
        status = HTTPStatus.SERVICE_UNAVAILABLE if codes else HTTPStatus.OK
        return PlainTextResponse("".join(f"{code}\n" for code in codes or ["ok"]), status)

    return [Route("/healthz", report_liveness), Route("/readyz", report_readiness)]
