"""Pages of API results. All pages of a list come from one fleet index, even if a newer index appears."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Generic, TypeVar

from starlette.datastructures import QueryParams

from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.model import shorten_digest
from reconciler.server.api.endpoint import ApiRequest, read_number
from reconciler.server.api.problems import ApiError

DEFAULT_LIMIT, MAX_LIMIT = 100, 500
_T = TypeVar("_T")
_CURSOR = re.compile(r"([0-9a-f]{8})\.([0-9]{1,9})\.([0-9]{1,9})\.([0-9a-f]{12})")
_PAGING_PARAMETERS = ("limit", "cursor")


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
        indexes: The ID of the `RestrictedIndexes` object. This object stores the fleet index that the list shows.
        view: The number of this fleet index.
        start: The number of items on earlier pages.
        selection: The digest of the path and the filters of the list.
    """

    indexes: str
    view: int
    start: int
    selection: str

    def __str__(self) -> str:
        text = f"{self.indexes}.{self.view}.{self.start}.{self.selection}"
        return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_page(items: Sequence[_T], request: ApiRequest) -> Page[_T]:
    """Return the page that the parameters `limit` and `cursor` select.

    Raises:
        ApiError: A parameter is not valid.
    """
    limit = read_number(request.query, "limit", MAX_LIMIT, minimum=1, default=DEFAULT_LIMIT)
    cursor = read_cursor(request.url_path, request.query)
    start = cursor.start if cursor else 0
    end = start + limit
    if end >= len(items):
        return Page(items[start:end], len(items), None)
    indexes = request.context.indexes
    indexes.keep(request.whole_index)
    selection = compute_selection(request.url_path, request.query)
    following = Cursor(indexes.id, request.whole_index.number, end, selection)
    return Page(items[start:end], len(items), str(following))


def read_cursor(path: str, query: QueryParams) -> Cursor | None:
    """Return the cursor of a request. Return None if the request has none.

    Raises:
        ApiError: The cursor is not valid, or it belongs to a list with a different path or with different filters.
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
    cursor = Cursor(match[1], int(match[2]), int(match[3]), match[4])
    if cursor.selection != compute_selection(path, query):
        raise ApiError(
            "CursorMismatch", "cursor: belongs to a list with a different path or different parameters",
            next_step="Send the path and the parameters of the first page, or omit the cursor.",
        )  # fmt: skip
    return cursor


def compute_selection(path: str, query: QueryParams) -> str:
    """Return the digest of the path and of all parameters except for those of the paging. Empty values are omitted."""
    parameters = sorted(
        [name, value] for name, value in query.multi_items() if value and name not in _PAGING_PARAMETERS
    )
    return shorten_digest(compute_digest([path, parameters]))
