"""The state of the service: health checks, remotes, the last passes and the rules for risks."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from starlette.exceptions import HTTPException

from reconciler import __version__
from reconciler.output.fleet.risk import RISK_CLASSES
from reconciler.reconcile.remotes.availability import RemoteState
from reconciler.server.console.forms import Form
from reconciler.server.console.page import PageContent, PageRequest, Redirect
from reconciler.service.health import evaluate_health

_MAX_REMOTES = 100


def build_page(page: PageRequest) -> PageContent:
    """Build the content of the page."""
    state = page.context.state
    # Convert times of the monotonic clock to times of day.
    offset = page.context.clock() - state.clock()
    return PageContent(
        "system.html",
        {
            "health": evaluate_health(state),
            "offset": offset,
            "state": state,
            "version": __version__,
            "risk_classes": RISK_CLASSES,
            "remotes": tuple(sorted(_list_remotes(page), key=lambda remote: remote.error is None)),
            "max_remotes": _MAX_REMOTES,
        },
    )


def _list_remotes(page: PageRequest) -> Sequence[RemoteState]:
    """Return the remotes of the last pass. Their URLs contain names of targets."""
    view = page.context.state.view
    return view.remotes if view and page.session.permissions.reads_everything else ()


def start_pass(page: PageRequest, _form: Form) -> PageContent | Redirect:
    """Request a pass, which also tries failing remotes again. Only an admin may do it."""
    _check_admin(page)
    page.context.wake_pass()
    return Redirect("/system")


def reload_settings(page: PageRequest, _form: Form) -> PageContent | Redirect:
    """Request that the service reads its settings again. Only an admin may do it."""
    _check_admin(page)
    page.context.reload()
    return Redirect("/system")


def retry_remote(page: PageRequest, form: Form) -> PageContent | Redirect:
    """End the back-off of a remote, and request a pass. Only an admin may do it."""
    _check_admin(page)
    found = [remote for remote in _list_remotes(page) if remote.key == form.get("remote")]
    if not found:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    for remote in found:
        page.context.retry_remote(remote.address)
    return Redirect("/system")


def _check_admin(page: PageRequest) -> None:
    if not page.session.permissions.is_admin:
        raise HTTPException(HTTPStatus.FORBIDDEN)
