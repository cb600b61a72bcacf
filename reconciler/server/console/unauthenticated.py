"""The responses to requests that identify no person and no program."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from reconciler.server.console.rendering import render_plain_page

_PROBLEM = {
    "type": "about:blank",
    "title": "Unauthorized",
    "status": HTTPStatus.UNAUTHORIZED,
    "code": "Unauthenticated",
    "detail": "The request contains no valid access token, and no session.",
    "nextStep": "Create a token with `reconciler token create`, and send it in the header `Authorization: Bearer`.",
}


def respond_to_unauthenticated(request: Request) -> Response:
    """Return a page for a browser, and a problem (RFC 9457) for a program."""
    if "authorization" in request.headers or "text/html" not in request.headers.get("accept", ""):
        headers = {"WWW-Authenticate": "Bearer", "Cache-Control": "no-store"}
        return JSONResponse(_PROBLEM, HTTPStatus.UNAUTHORIZED, headers, "application/problem+json")
    return render_plain_page("not_signed_in.html", {}, HTTPStatus.UNAUTHORIZED)
