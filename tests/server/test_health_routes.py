"""The paths for health checks, for each state of the service."""

from __future__ import annotations

import pytest

from reconciler.server.application import create_app
from reconciler.server.health_routes import create_health_routes
from reconciler.server.limits import ServerLimits
from reconciler.server.request_origin import OriginRules
from reconciler.service.fleet_view import FleetView, ServiceState
from tests.support.asgi_client import request

VIEW = FleetView("c0ffee")


@pytest.mark.parametrize(
    ("view", "is_stopping", "status", "text"),
    [
        pytest.param(None, False, 503, "NoPassYet\n", id="before-the-first-pass"),
        pytest.param(VIEW, False, 200, "ok\n", id="after-a-pass"),
        pytest.param(VIEW, True, 503, "Stopping\n", id="after-a-signal"),
        pytest.param(None, True, 503, "Stopping\nNoPassYet\n", id="after-an-early-signal"),
    ],
)
def test_readiness(view: FleetView | None, is_stopping: bool, status: int, text: str) -> None:
    state = ServiceState()
    state.view, state.is_stopping = view, is_stopping
    app = create_app(create_health_routes(state), ServerLimits(), OriginRules)

    response = request(app, "/readyz")

    assert (response.status_code, response.text) == (status, text)
    assert request(app, "/healthz").text == "ok\n"
