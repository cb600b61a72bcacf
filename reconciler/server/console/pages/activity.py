"""What people and passes did, with filters, and as files for auditors."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from starlette.exceptions import HTTPException

from reconciler.output.fleet.activity import ACTIVITY_ACTIONS, ActivityEvent
from reconciler.output.fleet.activity_csv import format_activity_csv
from reconciler.output.fleet.results import build_activity_list
from reconciler.review.jobs import RESULT_SECONDS
from reconciler.server.console.activity_filters import ACTIVITY_FILTERS, check_days, list_activity
from reconciler.server.console.listing import count_filters, list_page
from reconciler.server.console.page import Download, PageContent, PageRequest


def build_page(page: PageRequest) -> PageContent:
    """Build the content of the page."""
    query = page.request.query_params
    return PageContent(
        "activity.html",
        {
            "listing": list_page(_list_events(page), query),
            "filter_count": count_filters(query, ACTIVITY_FILTERS),
            "actions": ACTIVITY_ACTIONS,
            "day_error": check_days(query),
            "revert_since": _find_revert_start(page),
        },
        is_from_index=True,
    )


def _find_revert_start(page: PageRequest) -> float | None:
    """Return the time after which approvals can be reverted. Return None if the person cannot revert approvals."""
    if page.context.state.is_read_only or page.session.permissions.role == "viewer":
        return None
    return page.context.clock() - RESULT_SECONDS


def build_csv_file(page: PageRequest) -> Download:
    """Build the file with the events that match the filters, as CSV."""
    return Download(format_activity_csv(_list_exported_events(page)), "text/csv", "activity.csv")


def build_json_file(page: PageRequest) -> Download:
    """Build a JSON file with all events that match the filters. Its format is the format of an API response."""
    events = _list_exported_events(page)
    return Download(build_activity_list(page.index, events, len(events)).to_json(), "application/json", "activity.json")


def _list_events(page: PageRequest) -> Sequence[ActivityEvent]:
    return list_activity(page.context, page.session, page.whole_index, page.index, page.request.query_params)


def _list_exported_events(page: PageRequest) -> Sequence[ActivityEvent]:
    if error := check_days(page.request.query_params):
        raise HTTPException(HTTPStatus.BAD_REQUEST, error)
    return _list_events(page)
