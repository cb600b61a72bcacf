"""The pages and actions that the search of the console offers besides the objects of the fleet."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.review.permissions import Permissions
from reconciler.server.console.search import SearchResult, format_search_text

_PAGES = (
    ("Fleet", "/"),
    ("Changes", "/changes"),
    ("Changes with a high risk", "/changes?risk=high"),
    ("Changes with conflicts", "/changes?only=conflicts"),
    ("Changes of my config commits", "/changes?only=mine"),
    ("Targets", "/targets"),
    ("Targets as a matrix", "/targets?view=matrix"),
    ("Findings", "/findings"),
    ("Findings that are errors", "/findings?severity=error"),
    ("Rollouts", "/rollouts"),
    ("Activity", "/activity"),
    ("System", "/system"),
    ("Remotes", "/system/remotes"),
    ("Failing remotes", "/system/remotes?state=failing"),
)
_ADMIN_PAGES = (
    ("Settings", "/system/settings"),
    ("Access tokens", "/system/tokens"),
)
_REVIEW = SearchResult("action", "Select all waiting changes", "/changes?state=waiting&select=page")
_START_PASS = SearchResult("action", "Start a pass", "/system")


def find_commands(text: str, permissions: Permissions) -> Iterator[SearchResult]:
    """Yield the pages and actions whose names contain each word of a text. An empty text finds all of them.

    The result for an action is the page with the button of this action, because a link must not change anything.
    """
    words = text.lower().split()
    pages = (SearchResult("page", title, url) for title, url in _list_pages(permissions))
    reviews = (_REVIEW,) if permissions.role != "viewer" else ()
    for result in (*pages, *reviews, *((_START_PASS,) if permissions.is_admin else ())):
        if all(word in format_search_text(result.title) for word in words):
            yield result


def _list_pages(permissions: Permissions) -> Iterator[tuple[str, str]]:
    for title, url in (*_PAGES, *(_ADMIN_PAGES if permissions.is_admin else ())):
        if permissions.reads_everything or not url.startswith("/system/remotes"):
            yield title, url
