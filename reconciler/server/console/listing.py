"""The pages and URL parameters of lists. The query parameters of a URL contain the whole state of a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Generic, TypeVar
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from reconciler.krm.selectors import LabelQueryError, matches_label_query
from reconciler.lazy_dataclasses import dataclass

PAGE_SIZE = 100
_MAX_TEXT_CHARACTERS = 200
_MAX_DIGITS = 8
_MAX_TIME_DIGITS = 11
_T = TypeVar("_T")


@dataclass(frozen=True)
class Listing(Generic[_T]):
    """One page of a list.

    Attributes:
        page: The number of the page, starting at 1.
        total: The number of items on all pages.
    """

    items: Sequence[_T]
    page: int
    total: int
    page_size: int = PAGE_SIZE

    @property
    def pages(self) -> int:
        """The number of pages."""
        return max(-(-self.total // self.page_size), 1)

    @property
    def first(self) -> int:
        """The number of the first item on the page, starting at 1."""
        return (self.page - 1) * self.page_size + 1


def list_page(items: Sequence[_T], query: QueryParams, page_size: int = PAGE_SIZE) -> Listing[_T]:
    """Return the page that the query parameter `page` selects. A page that does not exist becomes the nearest page."""
    text = query.get("page", "1")
    number = int(text) if is_number(text) else 1
    page = min(max(number, 1), max(-(-len(items) // page_size), 1))
    return Listing(items[(page - 1) * page_size : page * page_size], page, len(items), page_size)


def is_number(text: str, max_digits: int = _MAX_DIGITS) -> bool:
    """Return whether a text is a number that is not negative and has at most this number of digits."""
    return text.isascii() and text.isdecimal() and len(text) <= max_digits


def is_time(text: str) -> bool:
    """Return whether a text is a time in seconds since 1970, before the year 5138."""
    return is_number(text, _MAX_TIME_DIGITS)


def parse_day(text: str) -> int:
    """Return the start of a day such as `2024-05-31` in UTC, in seconds since 1970.

    Raises:
        ValueError: The text is not a day.
    """
    day = date.fromisoformat(text)
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def build_query(query: QueryParams, **changes: object) -> str:
    """Return the query of a link: the current parameters with changes. A parameter with an empty value is removed.

    The link leads to the first page without selected rows, because changed filters select different items.
    """
    # A form sends a parameter several times if several checkboxes with this name are checked.
    parameters = {name: ",".join(query.getlist(name)) for name in query if name not in ("page", "select")}
    parameters |= {name: str(value) for name, value in changes.items()}
    return "?" + urlencode({name: value for name, value in parameters.items() if value})


def read_choice(query: QueryParams, name: str, choices: Sequence[str], default: str = "") -> str:
    """Return the value of a parameter, or the default if it is not one of the choices."""
    value = query.get(name, "")
    return value if value in choices else default


def read_text(query: QueryParams, name: str, max_characters: int = _MAX_TEXT_CHARACTERS) -> str:
    """Return the text of a parameter, shortened to a maximal length."""
    return query.get(name, "").strip()[:max_characters]


def read_names(query: QueryParams, name: str) -> frozenset[str]:
    """Return the names in a parameter. The parameter can occur several times, each with names separated by commas."""
    return frozenset(filter(None, ",".join(query.getlist(name)).split(",")))


def count_filters(query: QueryParams, names: Iterable[str]) -> int:
    """Return how many of these parameters have a value."""
    return sum(bool(query.get(name)) for name in names)


def check_selector(selector: str) -> str:
    """Return the reason why a label selector is not valid. Return "" if it is valid."""
    try:
        matches_label_query(selector, {})
    except LabelQueryError as error:
        return str(error)
    return ""
