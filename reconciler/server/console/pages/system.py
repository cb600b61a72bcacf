"""The state of the service: health checks, the last pass, failing remotes and the rules for risks."""

from __future__ import annotations

from http import HTTPStatus

from starlette.exceptions import HTTPException

from reconciler import __version__
from reconciler.output.fleet.risk import RISK_CLASSES
from reconciler.server.console.forms import Form
from reconciler.server.console.page import PageContent, PageRequest, Redirect
from reconciler.service.health import evaluate_health


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
        },
    )


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


def _check_admin(page: PageRequest) -> None:
    if not page.session.permissions.is_admin:
        raise HTTPException(HTTPStatus.FORBIDDEN)
