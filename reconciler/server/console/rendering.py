"""Renders the templates of the console. All values in templates are escaped."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from reconciler.krm.times import format_rfc3339
from reconciler.output.text import format_count, to_one_line
from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.listing import build_query
from reconciler.server.console.people import Session
from reconciler.server.console.urls import build_finding_url, build_package_url, build_target_url

_PACKAGE = "reconciler.server.console"
PAGE_CACHE_CONTROL = "private, no-cache"
_SECOND, _MINUTE, _HOUR, _DAY = 1, 60, 3_600, 86_400
_UNITS = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (_SECOND, "s"))


def render_page(
    request: Request,
    template: str,
    context: ConsoleContext,
    session: Session,
    values: Mapping[str, Any],
    status: HTTPStatus = HTTPStatus.OK,
) -> Response:
    """Return a page. `values` are the variables of the template."""
    now = context.clock()
    text = (
        _load_environment()
        .get_template(template)
        .render(
            request_path=request.url.path,
            query=request.query_params,
            context=context,
            session=session,
            csrf_token=context.csrf.create(session.id),
            now=now,
            **{"index": None, **values},
        )
    )
    return HTMLResponse(text, status, {"Cache-Control": PAGE_CACHE_CONTROL})


def render_plain_page(template: str, values: Mapping[str, Any], status: HTTPStatus) -> Response:
    """Return a page for people who may not read the fleet. It contains no data of the fleet."""
    text = _load_environment().get_template(template).render(**values)
    return HTMLResponse(text, status, {"Cache-Control": "no-store"})


@cache
def _load_environment() -> Environment:
    environment = Environment(
        autoescape=True, finalize=_escape_controls, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=PackageLoader(_PACKAGE),
    )  # fmt: skip
    environment.filters |= {
        "count": format_count, "time": format_time, "age": format_age, "one_line": to_one_line,
    }  # fmt: skip
    environment.globals |= {
        "static_url": get_static_url, "build_query": build_query, "target_url": build_target_url,
        "package_url": build_package_url, "finding_url": build_finding_url,
    }  # fmt: skip
    return environment


def _escape_controls(value: object) -> object:
    """Show control characters and marks for the text direction as escapes. Keep line ends and tabs."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "".join(
        character if character.isprintable() or character in "\n\t" else f"\\u{ord(character):04x}"
        for character in value
    )


def format_time(seconds: float) -> str:
    """Return a time in seconds since 1970 as RFC 3339."""
    return format_rfc3339(int(seconds))


def format_age(seconds: float | None, now: float) -> str:
    """Return the time since a point in time in its largest unit, such as `3 d`. "" if the point is unknown."""
    if seconds is None:
        return ""
    age = max(int(now - seconds), 0)
    size, unit = next(((size, unit) for size, unit in _UNITS if age >= size), _UNITS[-1])
    return f"{age // size} {unit}"


_STATIC_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_STATIC_CHARACTERS = 12


@cache
def read_static_file(name: str) -> tuple[bytes, str] | None:
    """Return the content and the media type of a file in the folder `static`. Return None if there is no such file."""
    suffix = name[name.rfind(".") :]
    file = files(_PACKAGE) / "static" / name
    if "/" in name or suffix not in _STATIC_TYPES or not file.is_file():
        return None
    return file.read_bytes(), _STATIC_TYPES[suffix]


@cache
def get_static_url(name: str) -> str:
    """Return the URL of a static file. The URL contains a digest, so that browsers can keep the file."""
    content = read_static_file(name)
    assert content is not None, f"the file {name} is part of the package"
    return f"/static/{name}?v={sha256(content[0]).hexdigest()[:_STATIC_CHARACTERS]}"
