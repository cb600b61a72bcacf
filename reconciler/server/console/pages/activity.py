"""The latest publications of all packages, with filters, and as files for auditors."""

from __future__ import annotations

from reconciler.output.fleet.publication_csv import format_publications_csv
from reconciler.output.fleet.results import build_publication_list
from reconciler.server.console.filters import ACTIVITY_FILTERS, filter_activity
from reconciler.server.console.listing import count_filters, list_page
from reconciler.server.console.page import Download, PageContent, PageRequest


def build_page(page: PageRequest) -> PageContent:
    """Build the content of the page."""
    query = page.request.query_params
    return PageContent(
        "activity.html",
        {
            "listing": list_page(filter_activity(page.index, query), query),
            "filter_count": count_filters(query, ACTIVITY_FILTERS),
        },
        is_from_index=True,
    )


def build_csv_file(page: PageRequest) -> Download:
    """Build the file with the publications that match the filters, as CSV."""
    rows = filter_activity(page.index, page.request.query_params)
    return Download(format_publications_csv(rows), "text/csv", "activity.csv")


def build_json_file(page: PageRequest) -> Download:
    """Build the file with the publications that match the filters, as the API returns them, on one page."""
    rows = filter_activity(page.index, page.request.query_params)
    return Download(build_publication_list(page.index, rows, len(rows)).to_json(), "application/json", "activity.json")
