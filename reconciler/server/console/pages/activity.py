"""The latest publications of all packages, with filters."""

from __future__ import annotations

from reconciler.server.console.filters import ACTIVITY_FILTERS, filter_activity
from reconciler.server.console.listing import count_filters, list_page
from reconciler.server.console.page import PageContent, PageRequest


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
