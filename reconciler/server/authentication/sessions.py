"""Sessions of people who have signed in. The browser has only the random ID of a session, in a cookie."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from starlette.requests import Request
from starlette.responses import Response

from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.review.people import Reviewer
from reconciler.review.permissions import Permissions
from reconciler.server.console.people import Session

IDLE_SECONDS = 8 * 3_600
ABSOLUTE_SECONDS = 24 * 3_600
_ID_BYTES = 32


@dataclass(frozen=True)
class Cookie:
    """A cookie with a random ID.

    Attributes:
        is_secure: Whether browsers send the cookie only with TLS. Browsers accept the prefix `__Host-` only with TLS.
    """

    base_name: str
    is_secure: bool

    @property
    def name(self) -> str:
        """The name of the cookie. With the prefix, other hosts of the domain cannot set the cookie."""
        return f"__Host-{self.base_name}" if self.is_secure else self.base_name

    def read(self, request: Request) -> str:
        """Return the value in a request. Return "" if the request does not contain the cookie."""
        return request.cookies.get(self.name, "")

    def set(self, response: Response, value: str, seconds: int | None = None) -> None:
        """Let the browser store the cookie. Without `seconds`, the browser deletes it when it is closed."""
        response.set_cookie(self.name, value, seconds, secure=self.is_secure, httponly=True, samesite="lax")

    def delete(self, response: Response) -> None:
        """Let the browser delete the cookie."""
        response.delete_cookie(self.name, secure=self.is_secure, httponly=True, samesite="lax")


@dataclass(frozen=True)
class _StoredSession:
    person: Reviewer
    created_at: float
    used_at: float


class SessionStore:
    """The sessions of this process. The numbers of sessions are limited. The object is thread-safe.

    Args:
        clock: Returns seconds since 1970.
        max_sessions: The number of sessions of all people. The sessions without a request for the longest time end.
        max_per_person: The number of sessions of one person.
    """

    def __init__(self, clock: Callable[[], float], max_sessions: int = 10_000, max_per_person: int = 20) -> None:
        self._clock = clock
        self._max_sessions = max_sessions
        self._max_per_person = max_per_person
        self._lock = Lock()
        # All sessions, in the order of their last requests.
        self._sessions: OrderedDict[str, _StoredSession] = OrderedDict()

    def create(self, person: Reviewer) -> str:
        """Create a session with a new ID, and return the ID."""
        identifier, now = secrets.token_urlsafe(_ID_BYTES), self._clock()
        with self._lock:
            for expired in [key for key, session in self._sessions.items() if _has_expired(session, now)]:
                del self._sessions[expired]
            own = [key for key, session in self._sessions.items() if session.person.key == person.key]
            for key in own[: max(len(own) - self._max_per_person + 1, 0)]:
                del self._sessions[key]
            while len(self._sessions) >= self._max_sessions:
                self._sessions.popitem(last=False)
            self._sessions[identifier] = _StoredSession(person, now, now)
        return identifier

    def find(self, identifier: str, *, extends_session: bool = True) -> Reviewer | None:
        """Return the person of a session. Return None if it does not exist.

        Args:
            extends_session: Whether to record the use of the session, so that it expires later.
        """
        now = self._clock()
        with self._lock:
            session = self._sessions.get(identifier)
            if session is None or _has_expired(session, now):
                return None
            if extends_session:
                self._sessions[identifier] = replace(session, used_at=now)
                self._sessions.move_to_end(identifier)
            return session.person

    def delete(self, identifier: str) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(identifier, None)


def _has_expired(session: _StoredSession, now: float) -> bool:
    return now - session.used_at >= IDLE_SECONDS or now - session.created_at >= ABSOLUTE_SECONDS


class SessionAuthenticator:
    """Identifies people by the cookie of their session.

    Args:
        issuer: The service that must have identified the person. Sessions of another issuer are refused, because the
            settings can change while sessions exist.
        find_permissions: Returns the current permissions of a person.
    """

    def __init__(
        self,
        store: SessionStore,
        cookie: Cookie,
        issuer: str,
        find_permissions: Callable[[Reviewer], Permissions],
    ) -> None:
        self._store = store
        self._cookie = cookie
        self._issuer = issuer
        self._find_permissions = find_permissions

    def authenticate(self, request: Request, *, extends_session: bool = True) -> Session | None:
        """Return the session of the person. Return None if the request has no cookie of a current session."""
        identifier = self._cookie.read(request)
        person = self._store.find(identifier, extends_session=extends_session) if identifier else None
        if person is None or person.issuer != self._issuer:
            return None
        return Session(person, self._find_permissions(person), identifier, "oidc")
