"""The latest publications of all packages, with filters."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.datastructures import QueryParams

from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.model import FleetIndex, PackageRow
from reconciler.output.fleet.publications import Publication
from reconciler.server.console.listing import list_page, read_text
from reconciler.server.console.page import PageContent, PageRequest


@dataclass(frozen=True)
class ActivityRow:
    """The publication of a package."""

    package: PackageRow
    publication: Publication


def build_page(page: PageRequest) -> PageContent:
    """Build the content of the page."""
    query = page.request.query_params
    rows = sorted(filter_activity(page.index, query), key=lambda row: -row.publication.seconds)
    return PageContent(
        "activity.html",
        {
            "listing": list_page(rows, query),
            "filter_count": sum(bool(query.get(name)) for name in ("actor", "target", "q")),
        },
        is_from_index=True,
    )


def filter_activity(index: FleetIndex, query: QueryParams) -> Iterator[ActivityRow]:
    """Yield the publications that match the query parameters `actor`, `target` and `q`."""
    actor, target, text = (read_text(query, name).lower() for name in ("actor", "target", "q"))
    for entry in index.targets:
        for row in entry.packages:
            publication = row.publication
            if publication is None:
                continue
            content = f"{row.package} {publication.subject} {publication.reason}".lower()
            if actor in publication.author.lower() and target in row.target.lower() and text in content:
                yield ActivityRow(row, publication)
