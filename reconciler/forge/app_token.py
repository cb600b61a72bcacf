"""Tokens of a GitHub App: an hour long, got with a signature of the App's private key, and renewed in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import httpx

from reconciler.forge.budget import Budget
from reconciler.forge.credentials import WatchedFile, is_token
from reconciler.forge.errors import ForgeAnswerError, ForgeCredentialsError
from reconciler.forge.fields import Fields
from reconciler.forge.github import HEADERS
from reconciler.forge.http import Client

# a signature must not be older than ten minutes, nor come from the future: clocks differ
_BACK_SECONDS = 60
_SIGNATURE_SECONDS = 480
_RENEW_SECONDS = 300


@dataclass(frozen=True)
class _Token:
    text: str = field(repr=False)
    until: int


class AppToken:
    """Puts a token of one installation of an App into the headers; an `Authorize` (reconciler/forge/http.py).

    `app` is the App's client id (or its number), `key_file` holds its private key as GitHub gives it (PEM).
    `installation` 0 is found by the `repository` ("owner/name"). A token is renewed when less than five minutes of it
    are left. Threads may share it.
    """

    def __init__(
        self,
        api: str,
        app: str,
        key_file: Path,
        repository: str,
        clock: Callable[[], float],
        installation: int = 0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._app = app
        self._key_file = key_file
        self._key = WatchedFile(key_file)
        self._repository = repository
        self._clock = clock
        self._installation = installation
        # these few calls are no writes of the kind that a budget is for
        self._client = Client(api, self._sign, Budget(0, 0, clock), clock, transport).speaking(HEADERS)
        self._token: _Token | None = None
        self._lock = Lock()

    def __call__(self) -> Mapping[str, str]:
        """Return the header. Raises ForgeError."""
        with self._lock:
            if self._token is None or self._token.until - self._clock() < _RENEW_SECONDS:
                self._token = self._renew()
            return {"Authorization": f"Bearer {self._token.text}"}

    def close(self) -> None:
        """Let go of all connections."""
        self._client.close()

    def _renew(self) -> _Token:
        installation = self._installation or self._find_installation()
        path = f"/app/installations/{installation}/access_tokens"
        answer = Fields(self._client.send("POST", path, {}), f"POST {path}")
        token = answer.text("token")
        if not is_token(token):
            raise ForgeAnswerError(f"POST {path}: the answer's token must be printable ASCII characters")
        return _Token(token, answer.moment("expires_at"))

    def _find_installation(self) -> int:
        # asked again for every token: an App may be installed anew
        path = f"/repos/{self._repository}/installation"
        return Fields(self._client.get(path), f"GET {path}").number("id")

    def _sign(self) -> Mapping[str, str]:
        try:
            import jwt
            from jwt.algorithms import has_crypto
        except ImportError:
            has_crypto = False
        if not has_crypto:
            raise ForgeCredentialsError("tokens of a GitHub App need the extra: pip install 'reconciler[forge-app]'")
        now = int(self._clock())
        claims = {"iat": now - _BACK_SECONDS, "exp": now + _SIGNATURE_SECONDS, "iss": self._app}
        try:
            signed = jwt.encode(claims, self._key.read(), algorithm="RS256")
        except (jwt.PyJWTError, ValueError, TypeError):
            # the cause could quote the key
            raise ForgeCredentialsError(
                f"the credentials file {self._key_file} must hold the private key of a GitHub App (RSA, PEM)"
            ) from None
        return {"Authorization": f"Bearer {signed}"}
