"""The routes of the console, and the steps that all pages share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.page import Page, PageRequest
from reconciler.server.console.pages import activity, change, changes, findings, fleet, package, search, system, targets
from reconciler.server.console.rendering import read_static_file, render_page
from reconciler.server.console.security import SecurityHeaders

_STATIC_SECONDS = 31_536_000

_PAGES: Mapping[str, Page] = {
    "/": fleet.build_page,
    "/changes": changes.build_page,
    "/changes/{key}": change.build_page,
    "/changes/{key}/targets": change.build_targets_page,
    "/targets": targets.build_list_page,
    "/targets/{target}": targets.build_target_page,
    "/targets/{target}/packages/{package:path}": package.build_page,
    "/findings": findings.build_list_page,
    "/findings/{id}": findings.build_finding_page,
    "/activity": activity.build_page,
    "/search": search.build_page,
    "/system": system.build_page,
}


def create_console_routes(get_context: Callable[[], ConsoleContext | None]) -> list[Route]:
    """Return the routes of the console.

    Args:
        get_context: Returns the current data of the console. If it returns None, the console is disabled, and all its
            paths have the status 404.
    """
    middleware = [Middleware(SecurityHeaders)]

    def create_page_route(path: str, page: Page) -> Route:
        # This function is not a coroutine, so that Starlette calls it in a thread.
        def respond(request: Request) -> Response:
            return _respond(request, page, _require_context(get_context))

        return Route(path, respond, middleware=middleware)

    def send_static_file(request: Request) -> Response:
        _require_context(get_context)
        content = read_static_file(request.path_params["name"])
        if content is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        headers = {"Cache-Control": f"public, max-age={_STATIC_SECONDS}, immutable"}
        return Response(content[0], headers=headers, media_type=content[1])

    pages = [create_page_route(path, page) for path, page in _PAGES.items()]
    return [*pages, Route("/static/{name}", send_static_file, middleware=middleware)]


def _require_context(get_context: Callable[[], ConsoleContext | None]) -> ConsoleContext:
    context = get_context()
    if context is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return context


def _respond(request: Request, page: Page, context: ConsoleContext) -> Response:
    person = context.authenticator.authenticate(request)
    if person is None:
        raise HTTPException(HTTPStatus.UNAUTHORIZED)
    index = context.index
    if index is None:
        return render_page(request, "waiting.html", context, person, {}, HTTPStatus.OK)
    content = page(PageRequest(request, context, person, index))
    return render_page(request, content.template, context, person, content.values, content.status)
