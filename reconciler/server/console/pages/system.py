"""The state of the service: health checks, the last pass, failing remotes and the rules for risks."""

from __future__ import annotations

from reconciler import __version__
from reconciler.output.fleet.risk import RISK_CLASSES
from reconciler.server.console.page import PageContent, PageRequest
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
