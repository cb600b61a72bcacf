"""The inbox: all changes of open drafts, with filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from reconciler.output.fleet.model import CHANGE_STATES, ReviewChange
from reconciler.output.fleet.risk import RISK_LEVELS
from reconciler.server.console.filters import filter_changes
from reconciler.server.console.listing import (
    check_selector,
    count_filters,
    list_page,
    read_choice,
    read_names,
    read_text,
)
from reconciler.server.console.page import PageContent, PageRequest
from reconciler.server.console.pages.change import describe_difference
from reconciler.server.console.quick_filters import QUICK_FILTERS, apply_quick_filters

_MAX_VARIANTS = 10
SORT_KEYS: Mapping[str, Callable[[ReviewChange], object]] = {
    "risk": lambda change: change.sort_key,
    "age": lambda change: (change.since is None, change.since, change.key),
    "targets": lambda change: (-len(change.members), change.key),
}


def build_page(page: PageRequest) -> PageContent:
    """Build the content of the page."""
    query, index = page.request.query_params, page.index
    selector = read_text(query, "target")
    error = check_selector(selector)
    found = () if error else tuple(filter_changes(index, query, selector))
    sort = read_choice(query, "sort", tuple(SORT_KEYS), "risk")
    selected = apply_quick_filters(page, found)
    changes = sorted(selected, key=SORT_KEYS[sort])  # type: ignore[arg-type]
    return PageContent(
        "changes.html",
        {
            "listing": list_page(changes, query),
            "state_counts": Counter(change.state for change in index.changes),
            "states": CHANGE_STATES,
            "levels": RISK_LEVELS,
            "sorts": tuple(SORT_KEYS),
            "sort": sort,
            "selector_error": error,
            "filter_count": count_filters(query, ("state", "risk", "target", "q", "only", "since", "on")),
            "target_names": sorted(read_names(query, "on")),
            "quick_filters": QUICK_FILTERS,
            "describe_difference": describe_difference,
            "max_variants": _MAX_VARIANTS,
        },
        is_from_index=True,
    )
