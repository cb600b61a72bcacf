"""The combination of several ways to identify people and programs."""

from __future__ import annotations

from starlette.requests import Request

from reconciler.lazy_dataclasses import dataclass
from reconciler.server.authentication.tokens import TokenAuthenticator, read_access_token
from reconciler.server.console.people import Authenticator, Session


@dataclass(frozen=True)
class CombinedAuthenticator:
    """Identifies programs by access tokens, and people by other authenticators, in order.

    A request with an access token is not passed to the other authenticators, so that a wrong token is an error.

    Attributes:
        tokens: Identifies programs. None if the settings contain no tokens.
    """

    tokens: TokenAuthenticator | None
    others: tuple[Authenticator, ...]

    def authenticate(self, request: Request, *, extends_session: bool = True) -> Session | None:
        """Return the session. Return None if the request identifies no person and no program."""
        if read_access_token(request):
            return self.tokens.authenticate(request) if self.tokens else None
        for other in self.others:
            if session := other.authenticate(request, extends_session=extends_session):
                return session
        return None
