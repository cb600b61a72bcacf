"""The routes of the console, and the steps that all pages share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from reconciler.output.fleet.model import FleetIndex
from reconciler.server.authentication.return_path import get_return_path
from reconciler.server.console.appearance import choose_appearance, read_appearance
from reconciler.server.console.caching import COMPRESSION, build_entity_tag, has_entity_tag
from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.events import EVENTS_PATH, EventFeed, EventStreams
from reconciler.server.console.failure_page import FailurePages
from reconciler.server.console.forms import Form, read_form
from reconciler.server.console.page import Download, Page, PageAction, PageContent, PageRequest, Redirect
from reconciler.server.console.pages import (
    activity,
    administration,
    change,
    changes,
    findings,
    fleet,
    package,
    release_effects,
    remotes,
    review,
    rollouts,
    search,
    system,
    target,
    targets,
    value,
)
from reconciler.server.console.people import AUTOMATIC_HEADER, Session
from reconciler.server.console.rendering import PAGE_CACHE_CONTROL, read_static_file, render_page, render_plain_page
from reconciler.server.console.security import SecurityHeaders
from reconciler.server.console.sign_in import create_sign_in_routes
from reconciler.server.console.staleness import find_staleness
from reconciler.server.console.topics import compute_version
from reconciler.server.console.unauthenticated import respond_to_unauthenticated

_STATIC_SECONDS = 31_536_000
# An empty fleet index for actions on the service. These actions must be possible before the first index is complete.
_NO_INDEX = FleetIndex(0, 0, "")

_PAGES: Mapping[str, Page] = {
    "/": fleet.build_page,
    "/changes": changes.build_page,
    "/changes/{key}": change.build_page,
    "/changes/{key}/targets": change.build_targets_page,
    "/changes/{key}/effects": release_effects.build_page,
    "/targets": targets.build_list_page,
    "/targets/{target}": target.build_page,
    "/targets/{target}/packages/{package:path}": package.build_page,
    "/findings": findings.build_list_page,
    "/findings/{id}": findings.build_finding_page,
    "/activity": activity.build_page,
    "/activity.csv": activity.build_csv_file,
    "/activity.json": activity.build_json_file,
    "/search": search.build_page,
    "/rollouts": rollouts.build_page,
    "/system": system.build_page,
    "/system/remotes": remotes.build_page,
    "/system/settings": administration.build_settings_page,
    "/system/tokens": administration.build_tokens_page,
    "/confirmations/{id}": review.build_confirmation_page,
    "/jobs/{id}": review.build_job_page,
    "/searches/{id}": value.build_search_page,
}
_ACTIONS: Mapping[str, PageAction] = {
    "/changes/confirm": review.create_confirmation,
    "/confirmations/{id}/submit": review.submit,
    "/confirmations/{id}/renew": review.renew_confirmation,
    "/jobs/{id}/retry": review.retry,
    "/jobs/{id}/undo": review.undo,
    "/jobs/{id}/revert": review.revert,
    "/restore": package.restore,
    "/searches": value.start_search,
    "/searches/{id}/cancel": value.cancel_search,
    "/system/appearance": choose_appearance,
    "/system/pass": system.start_pass,
    "/system/reload": system.reload_settings,
    "/system/retry": remotes.retry_remote,
    "/system/sessions/end": system.end_sessions,
}


def create_console_routes(
    get_context: Callable[[], ConsoleContext | None], streams: EventStreams | None = None
) -> list[Route]:
    """Return the routes of the console.

    Args:
        get_context: Returns the current data of the console. If it returns None, the console is disabled, and all its
            paths have the status 404.
        streams: The streams of events. By default, new ones with the usual limits.
    """
    middleware = [Middleware(SecurityHeaders), COMPRESSION, Middleware(FailurePages)]

    def create_page_route(path: str, page: Page) -> Route:
        # This function is not a coroutine, so that Starlette calls it in a thread.
        def respond(request: Request) -> Response:
            return _respond(request, page, _require_context(get_context))

        return Route(path, respond, middleware=middleware)

    def create_action_route(path: str, action: PageAction) -> Route:
        async def respond(request: Request) -> Response:
            context = _require_context(get_context)
            form = await read_form(request)
            return await run_in_threadpool(_respond_to_form, request, action, form, context)

        return Route(path, respond, methods=["POST"], middleware=middleware)

    def send_static_file(request: Request) -> Response:
        _require_context(get_context)
        content = read_static_file(request.path_params["name"])
        if content is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        headers = {"Cache-Control": f"public, max-age={_STATIC_SECONDS}, immutable"}
        return Response(content[0], headers=headers, media_type=content[1])

    event_streams = streams or EventStreams()

    async def open_events(request: Request) -> Response:
        context = _require_context(get_context)

        def authenticate() -> Session | None:
            # Do not extend the session, because browsers reconnect streams without an action of the person.
            return context.authenticator.authenticate(request, extends_session=False)

        session = await run_in_threadpool(authenticate)
        if session is None:
            raise HTTPException(HTTPStatus.UNAUTHORIZED)

        def is_open() -> bool:
            # Close the stream if the session has expired, or if the person has signed out or has different rights now.
            return get_context() is context and authenticate() == session

        feed = EventFeed(
            is_open=is_open,
            get_number=lambda: context.index.number if context.index else None,
            get_index=lambda: context.indexes.find(session.permissions),
            get_view=lambda: context.state.view,
            get_job=lambda job_id: context.jobs.find(job_id, session.person, session.permissions),
        )
        return event_streams.open(request, feed)

    pages = [create_page_route(path, page) for path, page in _PAGES.items()]
    actions = [create_action_route(path, action) for path, action in _ACTIONS.items()]
    return [
        *actions,
        *pages,
        *create_sign_in_routes(get_context, middleware),
        Route("/static/{name}", send_static_file, middleware=middleware),
        # Do not compress streams, because compression would delay their first bytes.
        Route(EVENTS_PATH, open_events, middleware=[Middleware(SecurityHeaders)]),
    ]


def _require_context(get_context: Callable[[], ConsoleContext | None]) -> ConsoleContext:
    context = get_context()
    if context is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return context


def _open_page(request: Request, context: ConsoleContext, form: Form | None = None) -> PageRequest | Response:
    """Return the request with its session and its index, or the response if there is no session, role or index."""
    session = context.authenticator.authenticate(request, extends_session=AUTOMATIC_HEADER not in request.headers)
    if session is None:
        return respond_to_unauthenticated(request, context, review.keep_input(context, request, form) if form else "")
    if session.permissions.role is None:
        return _render_no_role(request, session, context)
    whole_index, index = context.index, context.indexes.find(session.permissions)
    if whole_index is not None and index is not None:
        return PageRequest(request, context, session, index, whole_index)
    if form and request.url.path.startswith(system.ACTION_PREFIX):
        return PageRequest(request, context, session, _NO_INDEX, _NO_INDEX)
    path = review.keep_input(context, request, form) or get_return_path(request) if form else request.url.path
    return render_page(request, "waiting.html", context, session, {"page_path": path})


def _render_no_role(request: Request, session: Session, context: ConsoleContext) -> Response:
    person = session.person
    name = person.name or person.email or person.subject
    csrf_token = context.csrf.create(session.id) if session.mode == "oidc" else ""
    values = {"name": name, "email": person.email, "contact": context.contact, "csrf_token": csrf_token}
    return render_plain_page(request, "no_role.html", values, HTTPStatus.FORBIDDEN)


def _respond(request: Request, page: Page, context: ConsoleContext) -> Response:
    page_request = _open_page(request, context)
    if isinstance(page_request, Response):
        return page_request
    tag = _build_tag(page_request)
    if has_entity_tag(request, tag):
        headers = {"ETag": tag, "Cache-Control": PAGE_CACHE_CONTROL}
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    content = page(page_request)
    if isinstance(content, Download):
        disposition = f'attachment; filename="{content.name}"'
        headers = {"ETag": tag, "Cache-Control": PAGE_CACHE_CONTROL, "Content-Disposition": disposition}
        return Response(content.text, headers=headers, media_type=content.media_type)
    response = _render(page_request, content)
    if content.is_from_index and content.status is HTTPStatus.OK:
        response.headers["ETag"] = tag
    return response


def _build_tag(page: PageRequest) -> str:
    context, view = page.context, page.context.state.view
    # Include the minute in the tag, because pages contain ages, such as the age of a draft.
    minute = int(context.clock() // 60)
    csrf, pass_number = context.csrf.compute_session_digest(page.session.id), view.number if view else 0
    appearance = repr(read_appearance(page.request))
    other = (csrf, pass_number, repr(find_staleness(context, page.index)), minute, appearance)
    return build_entity_tag(page.request, page.index, page.session, other)


def _respond_to_form(request: Request, action: PageAction, form: Form, context: ConsoleContext) -> Response:
    page_request = _open_page(request, context, form)
    if isinstance(page_request, Response):
        return page_request
    # A request with an access token needs no CSRF token, because browsers do not add access tokens to requests.
    if page_request.session.mode != "token":
        try:
            context.csrf.check(request, form, page_request.session.id)
        except HTTPException:
            if content := review.show_again(page_request, form):
                return _render(page_request, content)
            raise
    result = action(page_request, form)
    if isinstance(result, Redirect):
        response = RedirectResponse(result.url, HTTPStatus.SEE_OTHER)
        if result.change_response:
            result.change_response(response)
        return response
    return _render(page_request, result)


def _render(page: PageRequest, content: PageContent) -> Response:
    version = compute_version(page.index, content.topics)
    values = {"index": page.index, "topics": content.topics, "version": version, **content.values}
    return render_page(
        page.request, content.template, page.context, page.session, values, content.status,
        is_streamed=content.is_streamed,
    )  # fmt: skip
