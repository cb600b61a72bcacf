"""The remotes of the last pass, with their times, errors and next attempts."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from starlette.exceptions import HTTPException

from reconciler.reconcile.remotes.availability import RemoteState
from reconciler.server.console.filters import REMOTE_STATES, filter_remotes
from reconciler.server.console.forms import Form
from reconciler.server.console.listing import count_filters, list_page
from reconciler.server.console.page import PageContent, PageRequest, Redirect
from reconciler.server.console.pages.missing import build_unreadable_page

REMOTES_PATH = "/system/remotes"


def build_page(page: PageRequest) -> PageContent:
    """Build the list of the remotes, the failing ones first."""
    if not page.session.permissions.reads_everything:
        return build_unreadable_page("To read the remotes, you need a role that applies to all targets.")
    query, remotes = page.request.query_params, list_remotes(page)
    return PageContent(
        "remotes.html",
        {
            "listing": list_page(tuple(filter_remotes(remotes, query)), query),
            "states": REMOTE_STATES,
            "remote_count": len(remotes),
            "failing_count": sum(remote.error is not None for remote in remotes),
            "filter_count": count_filters(query, ("q", "state")),
            "forge_limits": view.forge_limits if (view := page.context.state.view) else (),
            **build_times(page),
        },
    )


def list_remotes(page: PageRequest) -> Sequence[RemoteState]:
    """Return the remotes of the last pass, the failing ones first. Return () if the person may not read all targets.

    The URLs of remotes contain names of targets.
    """
    view = page.context.state.view
    remotes = view.remotes if view and page.session.permissions.reads_everything else ()
    return sorted(remotes, key=lambda remote: remote.error is None)


def build_times(page: PageRequest) -> dict[str, float]:
    """Return the end of the last pass, and the offset that converts times of the monotonic clock to times of day."""
    state = page.context.state
    offset = page.context.clock() - state.clock()
    return {"offset": offset, "completed_at": (state.view.completed_at if state.view else state.clock()) + offset}


def retry_remote(page: PageRequest, form: Form) -> PageContent | Redirect:
    """End the back-off of a remote, and request a pass. Only an admin may do it."""
    if not page.session.permissions.is_admin:
        raise HTTPException(HTTPStatus.FORBIDDEN)
    found = [remote for remote in list_remotes(page) if remote.key == form.get("remote")]
    if not found:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    for remote in found:
        page.context.controls.retry_remote(remote.address)
    return Redirect(REMOTES_PATH if form.get("page") == "remotes" else "/system")
