"""The path that receives webhooks. An accepted request only starts a pass. Responses have no body."""

from __future__ import annotations

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from reconciler.server.deliveries import WebhookDeliveries
from reconciler.server.rate_limit import AddressRateLimit
from reconciler.server.request_limits import CLOSE, WEBHOOK_PATH


def create_webhook_route(deliveries: WebhookDeliveries, rate_limit: AddressRateLimit) -> Route:
    """Return the route that verifies deliveries. The rate limit includes deliveries with an invalid signature."""

    async def receive(request: Request) -> Response:
        _check_request(request, deliveries)
        if request.client and not rate_limit.allow(request.client.host):
            raise HTTPException(HTTPStatus.TOO_MANY_REQUESTS, headers=CLOSE)
        names = set(request.headers.keys())
        # Join the values of a repeated header, so that a repeated signature header is not valid.
        headers = {name: ", ".join(request.headers.getlist(name)) for name in names}
        return Response(status_code=await deliveries.receive(headers, request.stream()))

    return Route(WEBHOOK_PATH, receive, methods=["POST"])


def _check_request(request: Request, deliveries: WebhookDeliveries) -> None:
    # Compare the path as the client sent it, because a proxy can treat `/%68ooks` as a different path.
    if deliveries.secrets is None or request.scope["raw_path"] != WEBHOOK_PATH.encode() or request.url.query:
        raise HTTPException(HTTPStatus.NOT_FOUND, headers=CLOSE)
    # Reject a chunked body, because no header contains its length. Reverse proxies convert a chunked body before they
    # send it.
    if "content-length" not in request.headers or "transfer-encoding" in request.headers:
        raise HTTPException(HTTPStatus.LENGTH_REQUIRED, headers=CLOSE)
