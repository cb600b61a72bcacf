"""The routes with which people sign in and out of the console."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from reconciler.lazy_dataclasses import dataclass
from reconciler.output.text import to_one_line
from reconciler.server.authentication.errors import ProviderUnavailableError, SignInError
from reconciler.server.authentication.return_path import clean_return_path
from reconciler.server.console.forms import Form, read_form
from reconciler.server.console.people import AUTOMATIC_HEADER
from reconciler.server.console.rendering import count_session_seconds, render_plain_page
from reconciler.telemetry.event_log import log

if TYPE_CHECKING:
    from reconciler.server.authentication.oidc import OidcProvider
    from reconciler.server.authentication.pending_sign_ins import PendingSignIns
    from reconciler.server.authentication.session_checks import SessionChecks
    from reconciler.server.authentication.session_store import SessionStore
    from reconciler.server.authentication.sessions import Cookie
    from reconciler.server.console.context import ConsoleContext
    from reconciler.server.rate_limit import AddressRateLimit

SIGN_IN_PATH = "/sign-in"
START_PATH = f"{SIGN_IN_PATH}/start"
CALLBACK_PATH = f"{SIGN_IN_PATH}/callback"
LOGOUT_PATH = f"{SIGN_IN_PATH}/back-channel-logout"
SIGN_OUT_PATH = "/sign-out"
SESSION_PATH = f"{SIGN_IN_PATH}/session"
_MAX_ERROR_CHARACTERS = 100
# Do not store redirects, because they contain cookies and values for one use.
_NO_STORE = {"Cache-Control": "no-store"}


@dataclass(frozen=True)
class SignIn:
    """The services for people who sign in at a provider.

    Attributes:
        limit: Limits the sign-ins per client address, because each one requires requests to the provider.
        logout_limit: Limits the logout tokens per client address. The provider sends one for each session.
    """

    provider: OidcProvider
    sessions: SessionStore
    checks: SessionChecks
    pending: PendingSignIns
    session_cookie: Cookie
    pending_cookie: Cookie
    limit: AddressRateLimit
    logout_limit: AddressRateLimit


def build_sign_in_url(return_path: str) -> str:
    """Return the URL of the sign-in page. After the sign-in, the browser opens the path `return_path`."""
    return f"{SIGN_IN_PATH}?return_to={quote(return_path, safe='/')}"


def create_sign_in_routes(
    get_context: Callable[[], ConsoleContext | None], middleware: list[Middleware]
) -> list[Route]:
    """Return the routes. Without a provider in the settings, all paths have the status 404."""

    def require_context() -> tuple[ConsoleContext, SignIn]:
        context = get_context()
        if context is None or context.sign_in is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        return context, context.sign_in

    # These functions are not coroutines, so that Starlette calls them in threads.
    def show_page(request: Request) -> Response:
        context, sign_in = require_context()
        return _show_page(request, context, sign_in)

    def start(request: Request) -> Response:
        return _isolate(request, lambda: _start(request, require_context()[1]))

    def complete(request: Request) -> Response:
        return _isolate(request, lambda: _complete(request, require_context()[1]))

    def show_session(request: Request) -> Response:
        context, _ = require_context()
        session = context.authenticator.authenticate(request, extends_session=AUTOMATIC_HEADER not in request.headers)
        seconds = count_session_seconds(context, session) if session else None
        if seconds is None:
            raise HTTPException(HTTPStatus.UNAUTHORIZED)
        return JSONResponse({"seconds": seconds}, headers=_NO_STORE)

    async def sign_out(request: Request) -> Response:
        context, sign_in = require_context()
        form = await read_form(request)
        return await run_in_threadpool(_sign_out, request, form, context, sign_in)

    async def end_sessions(request: Request) -> Response:
        _, sign_in = require_context()
        _check_limit(request, sign_in.logout_limit)
        form = await read_form(request)
        return await run_in_threadpool(_end_sessions, form, sign_in)

    return [
        Route(SIGN_IN_PATH, show_page, middleware=middleware),
        Route(START_PATH, start, middleware=middleware),
        Route(CALLBACK_PATH, complete, middleware=middleware),
        Route(SESSION_PATH, show_session, middleware=middleware),
        Route(LOGOUT_PATH, end_sessions, methods=["POST"], middleware=middleware),
        Route(SIGN_OUT_PATH, sign_out, methods=["POST"], middleware=middleware),
    ]


def _show_page(request: Request, context: ConsoleContext, sign_in: SignIn) -> Response:
    return_path = clean_return_path(request.query_params.get("return_to", ""))
    if context.authenticator.authenticate(request):
        return RedirectResponse(return_path, HTTPStatus.SEE_OTHER, _NO_STORE)
    values = {"issuer": sign_in.provider.issuer, "start_url": f"{START_PATH}?return_to={quote(return_path, safe='/')}"}
    return render_plain_page(request, "sign_in.html", values, HTTPStatus.OK)


def _start(request: Request, sign_in: SignIn) -> Response:
    """Send the browser to the provider."""
    _check_limit(request, sign_in.limit)
    identifier, pending = sign_in.pending.create(clean_return_path(request.query_params.get("return_to", "")))
    url = sign_in.provider.build_authorization_url(pending)
    response = RedirectResponse(url, HTTPStatus.SEE_OTHER, _NO_STORE)
    sign_in.pending_cookie.set(response, identifier)
    return response


def _complete(request: Request, sign_in: SignIn) -> Response:
    """Create a session for the person whom the provider has identified."""
    _check_limit(request, sign_in.limit)
    query = request.query_params
    pending = sign_in.pending.take(sign_in.pending_cookie.read(request), query.get("state", ""))
    if pending is None:
        raise SignInError(
            "StateInvalid", "the sign-in has expired, is already complete, or was started in a different browser"
        )
    # Providers send `iss` so that clients can refuse the response of a different provider (RFC 9207).
    if query.get("iss", sign_in.provider.issuer) != sign_in.provider.issuer:
        raise SignInError("IssuerInvalid", "a different provider has sent the response")
    if "code" not in query:
        code = to_one_line(query.get("error", ""))[:_MAX_ERROR_CHARACTERS]
        raise SignInError("ProviderRefused", f"the provider refused the sign-in: {code or 'no error code'}")
    signed_in = sign_in.provider.identify(query["code"], pending)
    person = signed_in.person
    sign_in.sessions.delete(sign_in.session_cookie.read(request))
    response = RedirectResponse(pending.return_path, HTTPStatus.SEE_OTHER, _NO_STORE)
    session = sign_in.sessions.create(person, signed_in.provider_session, signed_in.refresh_token)
    sign_in.session_cookie.set(response, session)
    sign_in.pending_cookie.delete(response)
    log.info("sign_in_completed", actor=person.signature, subject=person.qualified_subject)
    return response


def _sign_out(request: Request, form: Form, context: ConsoleContext, sign_in: SignIn) -> Response:
    session = context.authenticator.authenticate(request)
    if session is not None and session.mode == "oidc":
        context.csrf.check(request, form, session.id)
        sign_in.sessions.delete(session.id)
        log.info("sign_out_completed", actor=session.person.signature, subject=session.person.qualified_subject)
    response = RedirectResponse(SIGN_IN_PATH, HTTPStatus.SEE_OTHER, _NO_STORE)
    sign_in.session_cookie.delete(response)
    return response


def _end_sessions(form: Form, sign_in: SignIn) -> Response:
    """End sessions at the request of the provider. The signature of the logout token replaces a CSRF token."""
    try:
        sign_in.checks.end(form.get("logout_token"))
    except SignInError as error:
        log.warning("back_channel_logout_refused", reason=error.reason, message=str(error))
        is_unavailable = isinstance(error, ProviderUnavailableError)
        status = HTTPStatus.SERVICE_UNAVAILABLE if is_unavailable else HTTPStatus.BAD_REQUEST
        return Response(status_code=status, headers=_NO_STORE)
    return Response(headers=_NO_STORE)


def _check_limit(request: Request, limit: AddressRateLimit) -> None:
    if request.client and not limit.allow(request.client.host):
        raise HTTPException(HTTPStatus.TOO_MANY_REQUESTS)


def _isolate(request: Request, respond: Callable[[], Response]) -> Response:
    """Return the response, or the page of an error."""
    try:
        return respond()
    except SignInError as error:
        log.warning("sign_in_refused", reason=error.reason, message=str(error))
        is_unavailable = isinstance(error, ProviderUnavailableError)
        status = HTTPStatus.SERVICE_UNAVAILABLE if is_unavailable else HTTPStatus.FORBIDDEN
        values = {"message": str(error), "sign_in_url": SIGN_IN_PATH}
        return render_plain_page(request, "sign_in_error.html", values, status)
