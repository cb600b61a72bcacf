"""The paths for health checks. Liveness shows that the process works. Readiness shows that it has completed a pass."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from reconciler import __version__
from reconciler.krm.times import format_rfc3339
from reconciler.server.request_origin import OriginRules, parse_address
from reconciler.service.health import Health, HealthCheck, evaluate_health, is_stuck
from reconciler.service.state import ServiceState

DEGRADED_HEADER = "X-Reconciler-Degraded"


def create_health_routes(
    state: ServiceState, get_origin_rules: Callable[[], OriginRules], clock: Callable[[], float] = time.time
) -> list[Route]:
    """Return the routes of the health checks.

    Args:
        get_origin_rules: Returns the current rules for the origin of requests.
        clock: Returns seconds since 1970.
    """

    async def report_liveness(_request: Request) -> Response:
        if is_stuck(state):
            return PlainTextResponse("stuck\n", HTTPStatus.SERVICE_UNAVAILABLE)
        return PlainTextResponse("ok\n")

    async def report_readiness(request: Request) -> Response:
        health = evaluate_health(state)
        is_healthy = health.status == "ready" if "strict" in request.query_params else health.is_ready
        status = HTTPStatus.OK if is_healthy else HTTPStatus.SERVICE_UNAVAILABLE
        headers = {DEGRADED_HEADER: ",".join(health.failed_codes)} if health.status == "degraded" else {}
        if "verbose" in request.query_params:
            if not _can_read_details(request, get_origin_rules()):
                return PlainTextResponse("details are available only on this machine\n", HTTPStatus.FORBIDDEN)
            return JSONResponse(_describe(health, state, clock()), status, headers)
        text = "".join(f"{code}\n" for code in health.failed_codes or ["ok"])
        return PlainTextResponse(text, status, headers)

    return [Route("/healthz", report_liveness), Route("/readyz", report_readiness)]


def _can_read_details(request: Request, rules: OriginRules) -> bool:
    """Return whether the client may read the details, which contain the addresses of remotes.

    The client must be on this machine. The `Host` header must be allowed, because a web page could otherwise read the
    details by DNS rebinding.
    """
    address = parse_address(request.client.host) if request.client else ipaddress.IPv4Address("127.0.0.1")
    return address is not None and address.is_loopback and rules.allows_host(request.headers.get("host", ""))


def _describe(health: Health, state: ServiceState, now: float) -> Mapping[str, Any]:
    view = state.view
    # Convert times of the monotonic clock to times of day.
    offset = now - state.clock()
    last_pass = view and {
        "startedAt": format_rfc3339(int(view.last_pass.started_at)),
        "completedAt": format_rfc3339(int(view.completed_at + offset)),
        "result": view.last_pass.result,
        "durationSeconds": round(view.last_pass.duration_seconds, 3),
    }
    return {
        "status": health.status,
        "version": __version__,
        "shard": state.shard,
        "mode": "read-only" if state.is_read_only else "read-write",
        "targets": view.targets if view else 0,
        "lastPass": last_pass,
        "checks": [entry for check in health.checks for entry in _describe_check(check, offset)],
    }


def _describe_check(check: HealthCheck, offset: float) -> Iterator[Mapping[str, Any]]:
    if not check.failures:
        yield {"code": check.code, "ok": True, "since": None, "message": ""}
    for failure in check.failures:
        entry = {"code": check.code, "ok": False, "since": format_rfc3339(int(failure.since + offset))}
        remote = {"remote": failure.name} if failure.name else {}
        yield entry | {"message": failure.message} | remote
