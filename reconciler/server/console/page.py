"""The request for a page, and the content of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from reconciler.lazy_dataclasses import dataclass, field
from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.forms import Form
from reconciler.server.console.people import Session
from reconciler.server.console.topics import FLEET_TOPIC

if TYPE_CHECKING:
    from reconciler.output.fleet.model import FleetIndex


@dataclass(frozen=True)
class PageRequest:
    """A request for a page. All parts of a page must use `index`, because a newer index can appear meanwhile.

    Attributes:
        index: The part of the newest fleet index that the person may read.
        whole_index: The whole newest fleet index. Only checks of permissions may use it.
    """

    request: Request
    context: ConsoleContext
    session: Session
    index: FleetIndex
    whole_index: FleetIndex


@dataclass(frozen=True)
class PageContent:
    """The template of a page with its variables.

    Attributes:
        is_from_index: Whether the variables depend only on the index, the URL and the time. Browsers then request the
            page only once for each index and minute.
        is_streamed: Whether the server sends each part of the page, up to `end_of_part` in its template, before it
            renders the next part.
        topics: The parts of the fleet that the page shows. An open page loads again if one of them changes.
    """

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: HTTPStatus = HTTPStatus.OK
    is_from_index: bool = False
    is_streamed: bool = False
    topics: Sequence[str] = (FLEET_TOPIC,)


@dataclass(frozen=True)
class Download:
    """A file that the browser stores. Its text depends only on the index and the URL."""

    text: str
    media_type: str
    name: str


@dataclass(frozen=True)
class Redirect:
    """The page that the browser loads after an action.

    Attributes:
        change_response: Changes the response, for example sets a cookie. None if there is nothing to change.
    """

    url: str
    change_response: Callable[[Response], None] | None = None


Page = Callable[[PageRequest], PageContent | Download]
"""Builds the content of a page, or a file."""

PageAction = Callable[[PageRequest, Form], PageContent | Redirect]
"""Applies an action that a form requests."""
