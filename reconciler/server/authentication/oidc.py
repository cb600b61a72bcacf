"""Sign-in with an OpenID Connect provider: the authorization code flow with PKCE."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock
from typing import Any
from urllib.parse import quote_plus, urlencode

from reconciler.lazy_dataclasses import dataclass
from reconciler.review.people import Reviewer
from reconciler.server.authentication.errors import ProviderUnavailableError, SignInError
from reconciler.server.authentication.id_tokens import ExpectedToken, SigningKeys, verify_id_token
from reconciler.server.authentication.pending_sign_ins import PendingSignIn
from reconciler.server.authentication.provider_client import ProviderClient, check_endpoint

_METADATA_SECONDS = 3_600
MAX_SIGN_INS = 16
"""The number of sign-ins that wait for the provider. A slow provider must not block all threads of the server."""


@dataclass(frozen=True)
class OidcOptions:
    """The registration of the console at the provider.

    Attributes:
        redirect_url: The URL of the console to which the provider returns.
        read_secret: Returns the client secret. Returns "" if the client is public, and None if its file is unreadable.
    """

    issuer: str
    client_id: str
    read_secret: Callable[[], str | None]
    redirect_url: str
    scopes: tuple[str, ...]
    name_claim: str
    email_claim: str
    groups_claim: str


@dataclass(frozen=True)
class _Metadata:
    authorization_endpoint: str
    token_endpoint: str
    keys_url: str
    userinfo_endpoint: str
    accepts_basic_authentication: bool


class OidcProvider:
    """The provider of a client. Its metadata and keys are cached. The object is thread-safe.

    Args:
        clock: Returns the seconds of a monotonic clock.
    """

    def __init__(
        self, options: OidcOptions, client: ProviderClient, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._options = options
        self._client = client
        self._clock = clock
        self._lock = Lock()
        self._free_sign_ins = BoundedSemaphore(MAX_SIGN_INS)
        self._metadata: _Metadata | None = None
        self._metadata_until = 0.0
        self._keys = SigningKeys(lambda: client.get(self._get_metadata().keys_url), clock)

    @property
    def issuer(self) -> str:
        """The issuer of the ID tokens."""
        return self._options.issuer

    def build_authorization_url(self, pending: PendingSignIn) -> str:
        """Return the URL of the provider at which the person signs in.

        Raises:
            SignInError: The provider does not respond.
        """
        with self._limit_sign_ins():
            endpoint = self._get_metadata().authorization_endpoint
        query = {
            "response_type": "code",
            "client_id": self._options.client_id,
            "redirect_uri": self._options.redirect_url,
            "scope": " ".join(self._options.scopes),
            "state": pending.state,
            "nonce": pending.nonce,
            "code_challenge": pending.code_challenge,
            "code_challenge_method": "S256",
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    def identify(self, code: str, pending: PendingSignIn) -> Reviewer:
        """Return the person to whom the provider issued an authorization code.

        Raises:
            SignInError: The code, the ID token or a claim is not valid.
        """
        with self._limit_sign_ins():
            answer = self._redeem(code, pending)
            id_token, access_token = answer.get("id_token"), answer.get("access_token")
            if not isinstance(id_token, str):
                raise SignInError("TokenInvalid", "the response of the provider must contain an ID token")
            expected = ExpectedToken(self.issuer, self._options.client_id, pending.nonce)
            claims = verify_id_token(id_token, self._keys, expected)
            return self._read_person(self._add_userinfo(claims, access_token))

    @contextmanager
    def _limit_sign_ins(self) -> Iterator[None]:
        if not self._free_sign_ins.acquire(blocking=False):
            raise ProviderUnavailableError("too many people sign in at the same time; try again in a minute")
        try:
            yield
        finally:
            self._free_sign_ins.release()

    def _redeem(self, code: str, pending: PendingSignIn) -> Mapping[str, Any]:
        metadata, options = self._get_metadata(), self._options
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": options.redirect_url,
            "client_id": options.client_id,
            "code_verifier": pending.code_verifier,
        }
        secret = options.read_secret()
        if secret is None:
            raise SignInError("SecretUnreadable", "the file of the client secret cannot be read")
        if secret and metadata.accepts_basic_authentication:
            # RFC 6749 requires this encoding for both parts.
            return self._client.post(metadata.token_endpoint, form, (quote_plus(options.client_id), quote_plus(secret)))
        return self._client.post(metadata.token_endpoint, form | ({"client_secret": secret} if secret else {}), None)

    def _add_userinfo(self, claims: Mapping[str, Any], access_token: object) -> Mapping[str, Any]:
        """Return the claims. If some are missing, add them from the userinfo endpoint, as some providers require."""
        options, endpoint = self._options, self._get_metadata().userinfo_endpoint
        needed = {options.name_claim, options.email_claim, "email_verified", options.groups_claim}
        if needed <= claims.keys() or not endpoint or not isinstance(access_token, str):
            return claims
        userinfo = self._client.get(endpoint, access_token)
        if userinfo.get("sub") != claims["sub"]:
            raise SignInError("ClaimInvalid", "the userinfo endpoint describes another person than the ID token")
        merged = {**userinfo, **claims}
        # Take the address and its verification from the same source.
        if not {options.email_claim, "email_verified"} <= claims.keys():
            merged |= {name: userinfo.get(name) for name in (options.email_claim, "email_verified")}
        return merged

    def _read_person(self, claims: Mapping[str, Any]) -> Reviewer:
        options = self._options
        subject, email = claims["sub"], claims.get(options.email_claim)
        if not isinstance(subject, str) or not subject:
            raise SignInError("ClaimInvalid", "the claim `sub` must be a text")
        if not isinstance(email, str) or not email:
            raise SignInError("ClaimInvalid", f"the claim `{options.email_claim}` must be a mail address")
        if claims.get("email_verified") is not True:
            raise SignInError("ClaimInvalid", "the provider has not verified the mail address (`email_verified`)")
        name = claims.get(options.name_claim)
        groups = claims.get(options.groups_claim) or []
        groups = [groups] if isinstance(groups, str) else groups
        if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
            raise SignInError("ClaimInvalid", f"the claim `{options.groups_claim}` must be a list of texts")
        return Reviewer(
            name if isinstance(name, str) and name else email, email, subject, self.issuer, frozenset(groups)
        )

    def _get_metadata(self) -> _Metadata:
        with self._lock:
            if self._metadata is None or self._clock() >= self._metadata_until:
                self._metadata = self._fetch_metadata()
                self._metadata_until = self._clock() + _METADATA_SECONDS
            return self._metadata

    def _fetch_metadata(self) -> _Metadata:
        issuer = self.issuer
        data = self._client.get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if data.get("issuer") != issuer:
            raise ProviderUnavailableError(
                f"the provider has another issuer than the setting console.oidc.issuer, {issuer}; both must be equal"
            )
        authorization, token, keys = (
            check_endpoint(data.get(name), name, issuer)
            for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")
        )
        userinfo = data.get("userinfo_endpoint")
        methods = data.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        return _Metadata(
            authorization,
            token,
            keys,
            check_endpoint(userinfo, "userinfo_endpoint", issuer) if userinfo else "",
            accepts_basic_authentication=not isinstance(methods, list) or "client_secret_basic" in methods,
        )
