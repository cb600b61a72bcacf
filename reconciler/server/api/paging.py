"""Pages of API results. All pages of a list come from one fleet index, even if a newer index appears."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Generic, TypeVar

from starlette.datastructures import QueryParams

from reconciler.lazy_dataclasses import dataclass
from reconciler.server.api.endpoint import ApiRequest, read_number
from reconciler.server.api.problems import ApiError

DEFAULT_LIMIT, MAX_LIMIT = 100, 500
_T = TypeVar("_T")
_CURSOR = re.compile(r"([0-9a-f]{8})\.([0-9]{1,9})\.([0-9]{1,9})")


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


@dataclass(frozen=True)
class Cursor:
    """The position in a list.

    Attributes:
        indexes: The ID of the object `RestrictedIndexes` that stores the fleet index of the list.
        view: The number of the fleet index of the list.
        start: The number of items on earlier pages.
    """

    indexes: str
    view: int
    start: int

    def __str__(self) -> str:
        return urlsafe_b64encode(f"{self.indexes}.{self.view}.{self.start}".encode()).decode().rstrip("=")


def read_page(items: Sequence[_T], request: ApiRequest) -> Page[_T]:
    """Return the page that the parameters `limit` and `cursor` select.

    Raises:
        ApiError: A parameter is not valid.
    """
    limit = read_number(request.query, "limit", MAX_LIMIT, minimum=1, default=DEFAULT_LIMIT)
    cursor = read_cursor(request.query)
    start = cursor.start if cursor else 0
    end = start + limit
    if end >= len(items):
        return Page(items[start:end], len(items), None)
    indexes = request.context.indexes
    indexes.keep(request.whole_index)
    return Page(items[start:end], len(items), str(Cursor(indexes.id, request.whole_index.number, end)))


def read_cursor(query: QueryParams) -> Cursor | None:
    """Return the cursor of a request. Return None if the request has none.

    Raises:
        ApiError: The cursor is not valid.
    """
    text = query.get("cursor", "")
    if not text:
        return None
    try:
        decoded = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except ValueError:
        decoded = ""
    match = _CURSOR.fullmatch(decoded)
    if match is None:
        raise ApiError("InvalidParameter", "cursor: must be the value of the field `next` of an earlier result")
    return Cursor(match[1], int(match[2]), int(match[3]))
