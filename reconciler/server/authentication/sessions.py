"""The cookie of a session. The browser has only the random ID of the session."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from reconciler.lazy_dataclasses import dataclass
from reconciler.review.people import Reviewer
from reconciler.review.permissions import Permissions
from reconciler.server.authentication.session_store import SessionStore
from reconciler.server.console.people import Session


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
        """The name of the cookie. If it starts with `__Host-`, other hosts of the domain cannot set the cookie."""
        return f"__Host-{self.base_name}" if self.is_secure else self.base_name

    def read(self, request: Request) -> str:
        """Return the value in a request. Return "" if the request does not contain the cookie."""
        return request.cookies.get(self.name, "")

    def set(self, response: Response, value: str, seconds: int | None = None) -> None:
        """Let the browser store the cookie. Without `seconds`, the cookie ends with the browser."""
        response.set_cookie(self.name, value, seconds, secure=self.is_secure, httponly=True, samesite="lax")

    def delete(self, response: Response) -> None:
        """Let the browser delete the cookie."""
        response.delete_cookie(self.name, secure=self.is_secure, httponly=True, samesite="lax")


class SessionAuthenticator:
    """Identifies people by the cookie of their session.

    Args:
        issuer: The service that must have identified the person. Other sessions are refused, because the settings can
            change while sessions exist.
        find_permissions: Returns the current permissions of a person.
        check: Checks the person of a session at the provider, if a check is due. It can take several seconds.
    """

    def __init__(
        self,
        store: SessionStore,
        cookie: Cookie,
        issuer: str,
        find_permissions: Callable[[Reviewer], Permissions],
        check: Callable[[str], None],
    ) -> None:
        self._store = store
        self._cookie = cookie
        self._issuer = issuer
        self._find_permissions = find_permissions
        self._check = check

    def authenticate(self, request: Request, *, extends_session: bool = True) -> Session | None:
        """Return the session of the person. Return None if the request has no cookie of a current session."""
        identifier = self._cookie.read(request)
        stored = self._store.find(identifier, extends_session=extends_session) if identifier else None
        if stored is None or stored.person.issuer != self._issuer:
            return None
        self._check(identifier)
        stored = self._store.find(identifier, extends_session=False)
        if stored is None:
            return None
        return Session(stored.person, self._find_permissions(stored.person), identifier, "oidc")
