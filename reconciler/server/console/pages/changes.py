"""The inbox: all changes of open drafts, with filters."""

from __future__ import annotations

from collections import Counter

from reconciler.output.fleet.model import CHANGE_STATES
from reconciler.output.fleet.risk import RISK_LEVELS
from reconciler.output.pages.environment import format_date
from reconciler.review.stages import find_current_stage
from reconciler.server.console.filters import (
    CHANGE_FILTERS,
    CHANGE_SORT_KEYS,
    check_since,
    filter_changes,
    sort_changes,
)
from reconciler.server.console.listing import (
    check_selector,
    count_filters,
    is_time,
    list_page,
    read_choice,
    read_names,
    read_text,
)
from reconciler.server.console.page import PageContent, PageRequest
from reconciler.server.console.pages.change import describe_difference
from reconciler.server.console.quick_filters import QUICK_FILTERS, apply_quick_filter

_MAX_VARIANTS = 10


def build_page(page: PageRequest) -> PageContent:
    """Build the content of the page."""
    query, index = page.request.query_params, page.index
    selector = read_text(query, "target")
    error = check_selector(selector)
    found = () if error else tuple(filter_changes(index, query, selector))
    since, since_error = read_text(query, "since"), check_since(query)
    changes = sort_changes(apply_quick_filter(page, found), query)
    listing = list_page(changes, query)
    return PageContent(
        "changes.html",
        {
            "listing": listing,
            "stages": {change.key: find_current_stage(index, change, page.context.stages) for change in listing.items},
            "state_counts": Counter(change.state for change in index.changes),
            "states": CHANGE_STATES,
            "levels": RISK_LEVELS,
            "sorts": tuple(CHANGE_SORT_KEYS),
            "sort": read_choice(query, "sort", tuple(CHANGE_SORT_KEYS), "risk"),
            # Browsers accept only days as the value of the field.
            "since_day": format_date(int(since)) if is_time(since) else "" if since_error else since,
            "since_error": since_error,
            "selector_error": error,
            "filter_count": count_filters(query, (*CHANGE_FILTERS, "only")),
            "target_names": sorted(read_names(query, "on")),
            "quick_filters": QUICK_FILTERS,
            "describe_difference": describe_difference,
            "max_variants": _MAX_VARIANTS,
        },
        is_from_index=True,
    )
