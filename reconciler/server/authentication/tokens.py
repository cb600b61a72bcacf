"""The identification of programs by access tokens in the header `Authorization`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.requests import Request

from reconciler.review.people import Reviewer
from reconciler.server.authentication.access_tokens import PREFIX, AccessToken, compute_digest
from reconciler.server.authentication.reloaded_file import ReloadedFile
from reconciler.server.console.people import Session
from reconciler.server.shared_secrets import parse_bearer_token

ISSUER = "token"


def read_access_token(request: Request) -> str:
    """Return the access token in the header `Authorization`. Return "" if the header contains no access token.

    Tokens with a different prefix are ignored, because a proxy can add a header `Authorization` with its own token.
    """
    token = parse_bearer_token(request.headers.get("authorization", ""))
    return token if token.startswith(PREFIX) else ""


class TokenAuthenticator:
    """Identifies programs by their access tokens.

    Args:
        file: The tokens by their digests. If the file cannot be used, each token is refused.
        clock: Returns seconds since 1970.
    """

    def __init__(self, file: ReloadedFile[Mapping[str, AccessToken]], clock: Callable[[], float]) -> None:
        self._file = file
        self._clock = clock

    def list_tokens(self) -> tuple[AccessToken, ...]:
        """Return the tokens in the order of the file. Empty if the file cannot be used."""
        return tuple((self._file.read() or {}).values())

    def authenticate(self, request: Request, *, extends_session: bool = True) -> Session | None:
        """Return the session of the program. Return None if there is no valid token."""
        text, tokens = read_access_token(request), self._file.read()
        # The duration of the search depends only on the digest. An attacker cannot use it to guess the token.
        token = tokens.get(compute_digest(text)) if text and tokens else None
        if token is None or (token.expires_at is not None and token.expires_at <= self._clock()):
            return None
        return Session(Reviewer(token.name, "", token.name, ISSUER), token.permissions, mode="token")
