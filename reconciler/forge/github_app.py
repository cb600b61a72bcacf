"""Tokens of a GitHub App. A token is valid for one hour. A request signed with the private key returns a new token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock

import httpx

from reconciler.forge.credentials import WatchedFile, is_token
from reconciler.forge.errors import ForgeAnswerError, ForgeCredentialsError
from reconciler.forge.github import HEADERS
from reconciler.forge.http_client import ForgeClient
from reconciler.forge.rate_limits import RateLimiter
from reconciler.forge.responses import ResponseFields
from reconciler.lazy_dataclasses import dataclass, field

# GitHub accepts a signature for at most ten minutes, and rejects a signature date in the future. The clocks of two
# machines can differ. Therefore, the signature date is 60 seconds before now.
_BACK_SECONDS = 60
_SIGNATURE_SECONDS = 480
_RENEW_SECONDS = 300


@dataclass(frozen=True)
class _Token:
    text: str = field(repr=False)
    until: int


class AppToken:
    """Builds the header with a token of one installation of a GitHub App. It implements `Authorize`.

    `app` is the client ID or the number of the App. `key_file` contains its private key in PEM format. If
    `installation` is 0, the installation ID for `repository` ("owner/name") is requested from GitHub. A token is
    renewed five minutes before it expires. The object is thread-safe.
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
        # Use a rate limiter without limits, because requests for tokens do not count as writes.
        self._client = ForgeClient(api, self._sign, RateLimiter(0, 0, clock), clock, transport).with_headers(HEADERS)
        self._token: _Token | None = None
        self._lock = Lock()

    def __call__(self) -> Mapping[str, str]:
        """Return the header with a valid token. Raises ForgeError."""
        with self._lock:
            if self._token is None or self._token.until - self._clock() < _RENEW_SECONDS:
                self._token = self._renew_token()
            return {"Authorization": f"Bearer {self._token.text}"}

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _renew_token(self) -> _Token:
        installation = self._installation or self._find_installation()
        path = f"/app/installations/{installation}/access_tokens"
        answer = ResponseFields(self._client.send("POST", path, {}), f"POST {path}")
        token = answer.get_text("token")
        if not is_token(token):
            raise ForgeAnswerError(f"POST {path}: the token in the response must be printable ASCII characters")
        return _Token(token, answer.get_time("expires_at"))

    def _find_installation(self) -> int:
        # Request the ID for every token, because the ID changes if the App is installed again.
        path = f"/repos/{self._repository}/installation"
        return ResponseFields(self._client.get(path), f"GET {path}").get_number("id")

    def _sign(self) -> Mapping[str, str]:
        try:
            import jwt
            from jwt.algorithms import has_crypto
        except ImportError:
            has_crypto = False
        if not has_crypto:
            raise ForgeCredentialsError(
                "tokens of a GitHub App require more Python packages: run pip install 'reconciler[forge-app]'"
            )
        now = int(self._clock())
        claims = {"iat": now - _BACK_SECONDS, "exp": now + _SIGNATURE_SECONDS, "iss": self._app}
        try:
            signed = jwt.encode(claims, self._key.read(), algorithm="RS256")
        except (jwt.PyJWTError, ValueError, TypeError):
            # Do not chain the original exception, because it can contain the key.
            raise ForgeCredentialsError(
                f"the credentials file {self._key_file} must contain the private key of a GitHub App (RSA, PEM)"
            ) from None
        return {"Authorization": f"Bearer {signed}"}
