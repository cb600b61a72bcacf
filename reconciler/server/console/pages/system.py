"""The state of the service: checks, failing remotes, the last passes, the rules for risks, and sessions."""

from __future__ import annotations

from http import HTTPStatus

from starlette.exceptions import HTTPException

from reconciler import __version__
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.risk import RISK_CLASSES
from reconciler.output.text import to_one_line
from reconciler.review.people import Reviewer
from reconciler.server.authentication.session_store import StoredSession
from reconciler.server.console.forms import Form
from reconciler.server.console.page import PageContent, PageRequest, Redirect
from reconciler.server.console.pages.remotes import build_times, list_remotes
from reconciler.service.health import evaluate_health
from reconciler.telemetry.event_log import log

ACTION_PREFIX = "/system/"
"""The prefix of the paths of actions on the service, which need no index of the fleet."""
_MAX_REMOTES = 10


@dataclass(frozen=True)
class SignedInPerson:
    """A person with at least one session. `used_at` is the time of the last request, in seconds since 1970."""

    person: Reviewer
    session_count: int
    used_at: float


def build_page(page: PageRequest) -> PageContent:
    """Build the content of the page."""
    state = page.context.state
    remotes = list_remotes(page)
    return PageContent(
        "system.html",
        {
            "health": evaluate_health(state),
            "state": state,
            "version": __version__,
            "risk_classes": RISK_CLASSES,
            "remote_count": len(remotes),
            "failing_remotes": [remote for remote in remotes if remote.error],
            "max_remotes": _MAX_REMOTES,
            "people": _list_people(page) if page.session.permissions.is_admin else (),
            **build_times(page),
        },
    )


def _list_people(page: PageRequest) -> tuple[SignedInPerson, ...]:
    """Return the people who are signed in, the person with the newest request first."""
    sign_in = page.context.sign_in
    sessions: dict[tuple[str, str], list[StoredSession]] = {}
    for session in sign_in.sessions.list_current() if sign_in else ():
        sessions.setdefault(session.person.key, []).append(session)
    return tuple(SignedInPerson(own[0].person, len(own), own[0].used_at) for own in sessions.values())


def end_sessions(page: PageRequest, form: Form) -> PageContent | Redirect:
    """End all sessions of a person. Only an admin may do it."""
    _check_admin(page)
    subject, sign_in = form.get("subject"), page.context.sign_in
    if subject and sign_in:
        count = sign_in.sessions.delete_matching(lambda session: session.person.qualified_subject == subject)
        log.info("sessions_ended", actor=page.session.person.signature, subject=to_one_line(subject), sessions=count)
    return Redirect("/system")


def start_pass(page: PageRequest, _form: Form) -> PageContent | Redirect:
    """Request a pass, which also tries failing remotes again. Only an admin may do it."""
    _check_admin(page)
    page.context.controls.wake_pass()
    return Redirect("/system")


def reload_settings(page: PageRequest, _form: Form) -> PageContent | Redirect:
    """Request that the service reads its settings again. Only an admin may do it."""
    _check_admin(page)
    page.context.controls.reload()
    return Redirect("/system")


def _check_admin(page: PageRequest) -> None:
    if not page.session.permissions.is_admin:
        raise HTTPException(HTTPStatus.FORBIDDEN)
