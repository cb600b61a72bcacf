"""The responses to requests that identify no person and no program."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from reconciler.server.api.problems import ApiError, respond_with_problem
from reconciler.server.authentication.return_path import get_return_path
from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.rendering import render_plain_page
from reconciler.server.console.sign_in import build_sign_in_url


def respond_to_unauthenticated(request: Request, context: ConsoleContext, return_path: str = "") -> Response:
    """Return the page on which people sign in, or a problem (RFC 9457) for a program.

    Args:
        return_path: The page to which the person returns. By default, the page of the request or of its form.
    """
    if "authorization" in request.headers or "text/html" not in request.headers.get("accept", ""):
        problem = ApiError(
            "Unauthenticated", "the request has no valid token and no session", HTTPStatus.UNAUTHORIZED,
            "Send a token in the header Authorization.",
        )  # fmt: skip
        response = respond_with_problem(problem)
        # Let the script in the browser reload the page, so that the person can sign in. If the input of a form was
        # stored, let the script open the sign-in page, which then returns to the page with this input.
        if return_path and context.sign_in:
            response.headers["HX-Redirect"] = build_sign_in_url(return_path)
        else:
            response.headers["HX-Refresh"] = "true"
        return response
    if context.sign_in is None:
        return render_plain_page(request, "not_signed_in.html", {}, HTTPStatus.UNAUTHORIZED)
    headers = {"Cache-Control": "no-store"}
    return RedirectResponse(build_sign_in_url(return_path or get_return_path(request)), HTTPStatus.SEE_OTHER, headers)
