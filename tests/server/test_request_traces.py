"""Traces of HTTP requests: their names, their parents, and the passes that they trigger."""

from __future__ import annotations

import hashlib
import hmac
from ipaddress import ip_network

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from reconciler.server.application import create_app
from reconciler.server.deliveries import WebhookDeliveries
from reconciler.server.limits import ServerLimits
from reconciler.server.rate_limit import AddressRateLimit
from reconciler.server.request_origin import OriginRules
from reconciler.server.webhook_route import create_webhook_route
from reconciler.telemetry.traces import pass_span, span, use_tracer
from tests.support.asgi_client import request
from tests.support.http_connection import SECRET
from tests.support.traces import Traces

RULES = OriginRules(frozenset({"127.0.0.1"}), trusted_proxies=(ip_network("10.0.0.0/8"),))
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def send_request(traces: Traces, path: str, client: str = "127.0.0.1", **headers: str) -> None:
    """Send a request to a server with the routes `/work/{name}` and `/healthz`."""

    async def work(_request: Request) -> Response:
        return Response(status_code=204)

    async def probe(_request: Request) -> Response:
        return Response()

    app = create_app([Route("/work/{name}", work), Route("/healthz", probe)], ServerLimits(), lambda: RULES)
    with use_tracer(traces.tracer):
        request(app, path, client=client, **headers)


def test_a_span_has_the_route_and_not_the_path() -> None:
    traces = Traces()
    send_request(traces, "/work/secret")
    send_request(traces, "/secret")

    assert traces.list_parents() == {("GET /work/{name}", ""), ("GET unmatched", "")}
    assert traces.find("GET /work/{name}").attributes == {
        "http.request.method": "GET", "http.route": "/work/{name}", "http.response.status_code": 204
    }  # fmt: skip


@pytest.mark.parametrize(
    ("client", "parent", "is_used"),
    [
        pytest.param("10.1.2.3", PARENT, True, id="trusted-proxy"),
        pytest.param("10.1.2.3", "00-secret", False, id="not-valid"),
        pytest.param("192.0.2.1", PARENT, False, id="other-client"),
    ],
)
def test_only_a_trusted_proxy_can_set_the_parent(client: str, parent: str, is_used: bool) -> None:
    traces = Traces()
    send_request(traces, "/work/a", client, traceparent=parent)
    span = traces.find("GET /work/{name}")

    assert span.context
    assert (f"{span.context.trace_id:032x}" == PARENT.split("-")[1], span.parent is not None) == (is_used, is_used)


@pytest.mark.parametrize(("should_export_idle", "names"), [(False, set()), (True, {("GET /healthz", "")})])
def test_probes_are_exported_only_on_request(should_export_idle: bool, names: set[tuple[str, str]]) -> None:
    traces = Traces(should_export_idle=should_export_idle)
    send_request(traces, "/healthz")

    assert traces.list_parents() == names


def test_requests_during_a_pass_do_not_drop_its_spans() -> None:
    traces = Traces()

    async def work(_request: Request) -> Response:
        with span("inner", {}):
            return Response(status_code=204)

    app = create_app([Route("/work", work)], ServerLimits(), lambda: RULES)
    with use_tracer(traces.tracer), pass_span({}):
        with span("git fetch", {}):
            pass
        for _ in range(5):
            request(app, "/work")

    assert traces.list_parents() == {
        ("reconciler.pass", ""), ("git fetch", "reconciler.pass"), ("GET /work", ""), ("inner", "GET /work")
    }  # fmt: skip


def test_a_pass_is_linked_to_the_webhooks_that_trigger_it() -> None:
    traces, deliveries = Traces(), WebhookDeliveries(lambda: None)
    deliveries.secrets = lambda: (SECRET,)
    app = create_app([create_webhook_route(deliveries, AddressRateLimit(100))], ServerLimits(), lambda: RULES)
    signature = hmac.new(SECRET, b"{}", hashlib.sha256).hexdigest()
    with use_tracer(traces.tracer):
        for text in (signature, "0" * 64):
            headers = {"x_github_event": "push", "x_hub_signature_256": f"sha256={text}"}
            request(app, "/hooks", "POST", content=b"{}", **headers)
        for name in ("first", "second"):
            with pass_span({"pass.id": name}):
                pass
    accepted, _ = (opened for opened in traces.spans if opened.name == "POST /hooks")
    first, second = (opened for opened in traces.spans if opened.name == "reconciler.pass")

    assert [link.context for link in first.links] == [accepted.context]
    assert second.links == ()
