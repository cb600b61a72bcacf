"""Pages of API results. A cursor is valid for one index, and for a short time after the next index appears."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Generic, TypeVar

from starlette.datastructures import QueryParams

from reconciler.lazy_dataclasses import dataclass
from reconciler.server.api.problems import ApiError

DEFAULT_LIMIT, MAX_LIMIT = 100, 500
_T = TypeVar("_T")


@dataclass(frozen=True)
class Page(Generic[_T]):
    """One page of items.

    Attributes:
        total: The number of items on all pages.
        cursor: The cursor of the next page. None on the last page.
    """

    items: Sequence[_T]
    total: int
    cursor: str | None


def read_page(items: Sequence[_T], query: QueryParams) -> Page[_T]:
    """Return the page that the parameters `limit` and `cursor` select.

    Raises:
        ApiError: A parameter is not valid.
    """
    limit = _read_limit(query.get("limit", str(DEFAULT_LIMIT)))
    start = _parse_cursor(query.get("cursor", ""))
    end = start + limit
    return Page(items[start:end], len(items), _format_cursor(end) if end < len(items) else None)


def _read_limit(text: str) -> int:
    if not text.isdecimal() or len(text) > 4 or not 0 < int(text) <= MAX_LIMIT:
        raise ApiError("InvalidParameter", f"limit: must be a number from 1 to {MAX_LIMIT}, not {text[:40]!r}")
    return int(text)


def _format_cursor(start: int) -> str:
    return urlsafe_b64encode(f"start={start}".encode()).decode().rstrip("=")


def _parse_cursor(text: str) -> int:
    if not text:
        return 0
    try:
        name, _, value = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition("=")
    except ValueError:
        name, value = "", ""
    if name != "start" or not value.isdecimal() or len(value) > 9:
        raise ApiError("InvalidParameter", "cursor: must be the value of the field `next` of another result")
    return int(value)
