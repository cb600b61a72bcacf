"""The page with the results of a search, and the results in the command palette."""

from __future__ import annotations

from itertools import groupby

from reconciler.server.console.commands import find_commands
from reconciler.server.console.listing import read_text
from reconciler.server.console.page import PageContent, PageRequest
from reconciler.server.console.search import SearchResult, build_result, search

_MAX_RESULTS_PER_KIND = 20
_MAX_RESULTS_IN_PALETTE = 5


def build_page(page: PageRequest) -> PageContent:
    """Build the page with the results of the query parameter `q`. With `brief`, return only the first results."""
    query = page.request.query_params
    text, is_brief = read_text(query, "q"), query.get("brief") == "yes"
    limit = _MAX_RESULTS_IN_PALETTE if is_brief else _MAX_RESULTS_PER_KIND
    groups: dict[str, list[SearchResult]] = {}
    counts: dict[str, int] = {}
    for kind, found in search(page.index, text) if text else ():
        counts[kind] = len(found)
        groups[kind] = [build_result(kind, item) for item in found[:limit]]
    commands = find_commands(text, page.session.permissions) if text or is_brief else ()
    for kind, results in groupby(commands, lambda result: result.kind):
        listed = list(results)
        counts[kind], groups[kind] = len(listed), listed[:limit]
    template = "search_results.html" if is_brief else "search.html"
    return PageContent(template, {"text": text, "groups": groups, "counts": counts}, is_from_index=True)
