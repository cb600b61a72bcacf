"""Headers of the console: they protect its pages from content of other sites, and contain the ID of the request."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reconciler.server.request_ids import REQUEST_ID_HEADER, read_request_id

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_TRANSPORT_SECURITY = "max-age=31536000"


class SecurityHeaders:
    """Adds the security headers and the ID of the request to each response of the console and of the API."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process a request."""

        async def add_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers[REQUEST_ID_HEADER] = read_request_id(Request(scope))
                if scope.get("scheme") == "https":
                    headers["Strict-Transport-Security"] = _TRANSPORT_SECURITY
            await send(message)

        await self._app(scope, receive, add_headers)
