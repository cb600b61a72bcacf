"""The latest publications of all packages, with filters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from starlette.datastructures import QueryParams

from reconciler.output.fleet.model import FleetIndex, PackageRow
from reconciler.output.fleet.publications import Publication
from reconciler.server.console.listing import count_filters, list_page, read_text
from reconciler.server.console.page import PageContent, PageRequest

_FILTERS = ("actor", "target", "q")


def build_page(page: PageRequest) -> PageContent:
    """Build the content of the page."""
    query = page.request.query_params
    return PageContent(
        "activity.html",
        {
            "listing": list_page(filter_activity(page.index, query), query),
            "filter_count": count_filters(query, _FILTERS),
        },
        is_from_index=True,
    )


def filter_activity(index: FleetIndex, query: QueryParams) -> Sequence[tuple[PackageRow, Publication]]:
    """Return the publications that match the query parameters `actor`, `target` and `q`, the newest first."""
    actor, target, text = (read_text(query, name).lower() for name in _FILTERS)
    if not (actor or target or text):
        return index.publications
    return tuple(_select(index, actor, target, text))


def _select(index: FleetIndex, actor: str, target: str, text: str) -> Iterator[tuple[PackageRow, Publication]]:
    for row, publication in index.publications:
        if actor not in publication.author.lower() or target not in row.target.lower():
            continue
        if not text or text in f"{row.package} {publication.subject} {publication.reason}".lower():
            yield row, publication
