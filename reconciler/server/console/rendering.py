"""Renders the templates of the console. All values in templates are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from jinja2 import Environment
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from reconciler.output.pages.environment import create_environment
from reconciler.server.console.appearance import COLOR_PAIRS, THEMES, read_appearance
from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.listing import build_query
from reconciler.server.console.people import Session
from reconciler.server.console.staleness import find_staleness
from reconciler.server.console.topics import FLEET_TOPIC
from reconciler.server.console.urls import build_change_url, build_finding_url, build_package_url, build_target_url
from reconciler.server.request_ids import read_request_id

_PACKAGE, _SHARED_PACKAGE = "reconciler.server.console", "reconciler.output.pages"
_DIALOG = "review"
"""The ID of the element that contains the confirmation of a review action, if it is a dialog."""
_END_OF_PART = Markup("<!-- end of part -->")
PAGE_CACHE_CONTROL = "private, no-cache"


def render_page(
    request: Request,
    template: str,
    context: ConsoleContext,
    session: Session,
    values: Mapping[str, Any],
    status: HTTPStatus = HTTPStatus.OK,
    *,
    is_streamed: bool = False,
) -> Response:
    """Return a page. `values` are the variables of the template. For `is_streamed`, see `PageContent`."""
    now = context.clock()
    page = _load_environment().get_template(template)
    variables = {
        "request_path": request.url.path,
        "request_id": read_request_id(request),
        "query": request.query_params,
        "is_dialog": request.headers.get("hx-target") == _DIALOG,
        "context": context,
        "session": session,
        "csrf_token": context.csrf.create(session.id),
        "session_seconds": count_session_seconds(context, session),
        "now": now,
        "appearance": read_appearance(request),
        "staleness": find_staleness(context, values.get("index")),
        "end_of_part": _END_OF_PART,
        "index": None,
        "topics": (FLEET_TOPIC,),
        "version": "",
        **values,
    }
    headers = {"Cache-Control": PAGE_CACHE_CONTROL}
    if is_streamed:
        parts = _join_parts(page.generate(**variables))
        return StreamingResponse(parts, status, headers, media_type=HTMLResponse.media_type)
    return HTMLResponse(page.render(**variables), status, headers)


def _join_parts(texts: Iterable[str]) -> Iterator[str]:
    """Yield each part of a page as one text."""
    part = []
    for text in texts:
        part.append(text)
        if _END_OF_PART in text:
            yield "".join(part)
            part = []
    yield "".join(part)


def count_session_seconds(context: ConsoleContext, session: Session) -> int | None:
    """Return the seconds until a session ends. Return None if the console does not end the session."""
    if session.mode != "oidc" or context.sign_in is None:
        return None
    return context.sign_in.sessions.count_seconds(session.id)


def render_plain_page(request: Request, template: str, values: Mapping[str, Any], status: HTTPStatus) -> Response:
    """Return a page for people who may not read the fleet. It contains no data of the fleet."""
    text = _load_environment().get_template(template).render(appearance=read_appearance(request), **values)
    return HTMLResponse(text, status, {"Cache-Control": "no-store"})


@cache
def _load_environment() -> Environment:
    environment = create_environment(_PACKAGE)
    environment.globals |= {
        "static_url": get_static_url, "build_query": build_query, "target_url": build_target_url,
        "change_url": build_change_url, "package_url": build_package_url, "finding_url": build_finding_url,
        "themes": THEMES, "color_pairs": COLOR_PAIRS,
    }  # fmt: skip
    return environment


_STATIC_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_STATIC_CHARACTERS = 12


@cache
def read_static_file(name: str) -> tuple[bytes, str] | None:
    """Return the content and the media type of a static file. Return None if there is no such file."""
    suffix = name[name.rfind(".") :]
    if "/" in name or suffix not in _STATIC_TYPES:
        return None
    found = (files(package) / "static" / name for package in (_PACKAGE, _SHARED_PACKAGE))
    return next(((file.read_bytes(), _STATIC_TYPES[suffix]) for file in found if file.is_file()), None)


@cache
def get_static_url(name: str) -> str:
    """Return the URL of a static file. The URL contains a digest, so that browsers can keep the file."""
    content = read_static_file(name)
    assert content is not None, f"the file {name} is part of the package"
    return f"/static/{name}?v={sha256(content[0]).hexdigest()[:_STATIC_CHARACTERS]}"
