"""The rollouts of override rules in waves."""

from __future__ import annotations

from reconciler.server.console.listing import list_page
from reconciler.server.console.page import PageContent, PageRequest


def build_page(page: PageRequest) -> PageContent:
    """Build the content of the page."""
    return PageContent("rollouts.html", {"listing": list_page(page.index.rollouts, page.request.query_params)})
