"""The page with the results of a search."""

from __future__ import annotations

from reconciler.server.console.listing import read_text
from reconciler.server.console.page import PageContent, PageRequest
from reconciler.server.console.search import SearchResult, build_result, search

_MAX_RESULTS_PER_KIND = 20


def build_page(page: PageRequest) -> PageContent:
    """Build the page with the results of the query parameter `q`."""
    text = read_text(page.request.query_params, "q")
    groups: dict[str, list[SearchResult]] = {}
    counts: dict[str, int] = {}
    for kind, found in search(page.index, text) if text else ():
        counts[kind] = len(found)
        groups[kind] = [build_result(kind, item) for item in found[:_MAX_RESULTS_PER_KIND]]
    return PageContent("search.html", {"text": text, "groups": groups, "counts": counts}, is_from_index=True)
