"""Tokens of a GitHub App. A token is valid for one hour. A request signed with the private key returns a new token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock

import httpx

from reconciler.credential_files import is_token
from reconciler.forge.credentials import WatchedFile
from reconciler.forge.errors import ForgeAnswerError, ForgeCredentialsError
from reconciler.forge.github import HEADERS
from reconciler.forge.http_client import ForgeClient
from reconciler.forge.rate_limits import RateLimiter
from reconciler.forge.responses import ResponseFields
from reconciler.lazy_dataclasses import dataclass
from reconciler.redaction import Secret, register_secret

# GitHub accepts a signature for at most ten minutes, and rejects a signature date in the future. The clocks of two
# machines can differ. Therefore, the signature date is 60 seconds before now.
_BACK_SECONDS = 60
_SIGNATURE_SECONDS = 480
_RENEW_SECONDS = 300


@dataclass(frozen=True)
class TokenRequest:
    """The properties of a token of a GitHub App. The token is only valid for one repository.

    Attributes:
        api: The URL of the API.
        app: The client ID or the number of the App.
        key_file: The file with the private key of the App in PEM format.
        repository: A repository of the installation, as "owner/name".
        installation: The ID of the installation. 0 means that the ID is requested from GitHub for `repository`.
        permissions: The names and levels of the permissions of the token. () means all permissions of the App.
    """

    api: str
    app: str
    key_file: str
    repository: str
    installation: int = 0
    permissions: tuple[tuple[str, str], ...] = ()


class AppTokens:
    """The tokens of GitHub Apps. The forge clients and Git share this object. It is thread-safe."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tokens: dict[TokenRequest, AppToken] = {}
        self._lock = Lock()

    def get(self, request: TokenRequest) -> AppToken:
        """Return the token with these properties. Equal requests return the same object."""
        with self._lock:
            return self._tokens.setdefault(request, AppToken(request, self._clock))


@dataclass(frozen=True)
class _Token:
    secret: Secret
    until: int


class AppToken:
    """A token of a GitHub App for one repository. It implements `Authorize`, which builds a header with the token.

    A token is renewed five minutes before it expires. The object is thread-safe.
    """

    def __init__(
        self, request: TokenRequest, clock: Callable[[], float], transport: httpx.BaseTransport | None = None
    ) -> None:
        self._request = request
        self._key = WatchedFile(Path(request.key_file))
        self._clock = clock
        # Use a rate limiter without limits, because requests for tokens do not count as writes.
        limiter = RateLimiter(0, 0, clock)
        self._client = ForgeClient(request.api, self._sign, limiter, clock, transport).with_headers(HEADERS)
        self._token: _Token | None = None
        # The log masks these replaced tokens until they expire, because they stay valid until then.
        self._replaced: list[_Token] = []
        self._lock = Lock()

    def __call__(self) -> Mapping[str, str]:
        """Return the header with a valid token. Raises ForgeError."""
        return {"Authorization": f"Bearer {self.get_secret().reveal()}"}

    def get_secret(self) -> Secret:
        """Return a token that is valid for at least five minutes. Raises ForgeError."""
        with self._lock:
            if self._token is None or self._token.until - self._clock() < _RENEW_SECONDS:
                self._discard_token()
                try:
                    self._token = self._renew_token()
                finally:
                    # Close the connection, because the next request is in an hour.
                    self._client.close()
            return self._token.secret

    def expire(self) -> None:
        """Request a new token at the next use, because the host refused this token."""
        with self._lock:
            self._discard_token()

    def _discard_token(self) -> None:
        self._replaced += [self._token] if self._token else []
        self._token = None
        for token in [token for token in self._replaced if token.until < self._clock()]:
            token.secret.unregister()
            self._replaced.remove(token)

    def _renew_token(self) -> _Token:
        request = self._request
        installation = request.installation or self._find_installation()
        path = f"/app/installations/{installation}/access_tokens"
        body: dict[str, object] = {"repositories": [request.repository.partition("/")[2]]}
        if request.permissions:
            body["permissions"] = dict(request.permissions)
        answer = ResponseFields(self._client.send("POST", path, body), f"POST {path}")
        token = answer.get_text("token")
        if not is_token(token):
            raise ForgeAnswerError(f"POST {path}: the token in the response must be printable ASCII characters")
        return _Token(Secret(token), answer.get_time("expires_at"))

    def _find_installation(self) -> int:
        # Request the ID for every token, because the ID changes if the App is installed again.
        path = f"/repos/{self._request.repository}/installation"
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
        key = self._key.read()
        # Mask each line of the key, because a log line contains at most one line of the key.
        register_secret(*(line for line in key.splitlines() if not line.startswith("-----")))
        now = int(self._clock())
        claims = {"iat": now - _BACK_SECONDS, "exp": now + _SIGNATURE_SECONDS, "iss": self._request.app}
        try:
            signed = jwt.encode(claims, key, algorithm="RS256")
        except (jwt.PyJWTError, ValueError, TypeError):
            # Do not chain the original exception, because it can contain the key.
            raise ForgeCredentialsError(
                f"the credentials file {self._request.key_file} must contain the private key of a GitHub App (RSA, PEM)"
            ) from None
        return {"Authorization": f"Bearer {signed}"}
