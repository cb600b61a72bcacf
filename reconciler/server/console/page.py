"""The request for a page, and the content of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from reconciler.lazy_dataclasses import dataclass, field
from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.people import Person

if TYPE_CHECKING:
    from reconciler.output.fleet.model import FleetIndex


@dataclass(frozen=True)
class PageRequest:
    """A request for a page. All parts of the page must use this index, because a newer index can appear meanwhile."""

    request: Request
    context: ConsoleContext
    person: Person
    index: FleetIndex


@dataclass(frozen=True)
class PageContent:
    """The template of a page with its variables."""

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: HTTPStatus = HTTPStatus.OK


Page = Callable[[PageRequest], PageContent]
"""Builds the content of a page."""
