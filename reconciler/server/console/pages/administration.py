"""The pages for admins: the effective settings, and the access tokens of programs."""

from __future__ import annotations

from reconciler.server.console.listing import count_filters, list_page
from reconciler.server.console.page import PageContent, PageRequest
from reconciler.server.console.pages.missing import build_unreadable_page
from reconciler.server.console.shown_settings import SETTING_ORIGINS, filter_settings


def build_settings_page(page: PageRequest) -> PageContent:
    """Build the list of the effective settings with their origins."""
    if not page.session.permissions.is_admin:
        return build_unreadable_page("To read the settings, you need the role admin.")
    query = page.request.query_params
    settings = tuple(filter_settings(page.context.list_settings(), query))
    return PageContent(
        "settings.html",
        {
            "listing": list_page(settings, query),
            "origins": SETTING_ORIGINS,
            "filter_count": count_filters(query, ("q", "origin")),
        },
    )


def build_tokens_page(page: PageRequest) -> PageContent:
    """Build the list of the access tokens without their digests."""
    if not page.session.permissions.is_admin:
        return build_unreadable_page("To read the list of access tokens, you need the role admin.")
    tokens = sorted(page.context.list_tokens(), key=lambda token: token.name)
    return PageContent("tokens.html", {"listing": list_page(tokens, page.request.query_params)})
