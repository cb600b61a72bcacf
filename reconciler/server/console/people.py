"""The sessions of people in the console, and how the server identifies people."""

from __future__ import annotations

from typing import Literal, Protocol

from starlette.requests import Request

from reconciler.lazy_dataclasses import dataclass
from reconciler.review.people import Reviewer
from reconciler.review.permissions import ADMIN_PERMISSIONS, Permissions

AUTOMATIC_HEADER = "x-automatic"
"""The header of a request that a script of a page sends without an action of the person."""

AuthenticationMode = Literal["none", "token", "proxy", "oidc"]


@dataclass(frozen=True)
class Session:
    """A person or program that sends a request.

    Attributes:
        id: The ID of the session. Forms of a different session are refused.
        mode: How the person or program was identified, such as `proxy` or `token`.
    """

    person: Reviewer
    permissions: Permissions
    id: str = ""
    mode: AuthenticationMode = "none"


class Authenticator(Protocol):
    """Identifies the person who sends a request."""

    def authenticate(self, request: Request, *, extends_session: bool = True) -> Session | None:
        """Return the session. Return None if the person must first sign in.

        Call this method only in a thread, because it can wait for the provider that identified the person.

        Args:
            extends_session: Whether the request shows that the person is active. An open stream of events does not.
        """
        ...


@dataclass(frozen=True)
class LocalAuthenticator:
    """Treats every request as a request of one person. The server must listen only on this machine."""

    person: Reviewer

    def authenticate(self, _request: Request, *, extends_session: bool = True) -> Session | None:
        """Return the session of the person, who has all permissions."""
        return Session(self.person, ADMIN_PERMISSIONS)
