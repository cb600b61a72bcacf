"""Sign-in with an OpenID Connect provider: the authorization code flow with PKCE."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from threading import BoundedSemaphore
from typing import Any, TypeGuard
from urllib.parse import quote_plus, urlencode

from reconciler.lazy_dataclasses import dataclass, field
from reconciler.review.people import Reviewer
from reconciler.server.authentication.errors import ProviderUnavailableError, SignInError
from reconciler.server.authentication.id_tokens import (
    SigningKeys,
    TokenRecipient,
    verify_id_token,
    verify_logout_token,
)
from reconciler.server.authentication.pending_sign_ins import PendingSignIn
from reconciler.server.authentication.provider_client import ProviderClient
from reconciler.server.authentication.provider_metadata import MetadataCache

_SURROGATE = re.compile("[\ud800-\udfff]")
MAX_SIGN_INS = 16
"""The maximum number of sign-ins that wait for the provider. A slow provider must not block all threads."""
MAX_LOGOUTS = 4
"""The maximum number of logout tokens that wait for the keys of the provider."""


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
class SignedInPerson:
    """A person whom the provider has identified.

    Attributes:
        provider_session: The ID of the session at the provider (the claim `sid`). "" if the provider sends none.
        refresh_token: The secret with which the groups of the person are read again. "" if the provider sends none.
    """

    person: Reviewer
    provider_session: str = ""
    refresh_token: str = field(default="", repr=False)


@dataclass(frozen=True)
class EndedSessions:
    """The sessions that a provider has ended: sessions with the ID `provider_session`, or all sessions of `subject`."""

    issuer: str
    subject: str
    provider_session: str
    issued_at: float


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
        self._free_sign_ins = BoundedSemaphore(MAX_SIGN_INS)
        # Logout tokens have their own limit. Otherwise, forged tokens could prevent sign-ins.
        self._free_logouts = BoundedSemaphore(MAX_LOGOUTS)
        self._metadata = MetadataCache(options.issuer, client, clock)
        self._keys = SigningKeys(lambda: client.get(self._metadata.get().keys_url), clock)

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
            endpoint = self._metadata.get().authorization_endpoint
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
        if "offline_access" in self._options.scopes:
            # OpenID Connect Core, section 11: without `prompt=consent`, providers ignore the scope `offline_access`.
            query["prompt"] = "consent"
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    def identify(self, code: str, pending: PendingSignIn) -> SignedInPerson:
        """Return the person to whom the provider issued an authorization code.

        Raises:
            SignInError: The code, the ID token or a claim is not valid.
        """
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._options.redirect_url,
            "code_verifier": pending.code_verifier,
        }
        with self._limit_sign_ins():
            answer = self._request_tokens(form)
            id_token = answer.get("id_token")
            if not isinstance(id_token, str):
                raise SignInError("TokenInvalid", "the response of the provider must contain an ID token")
            claims = verify_id_token(id_token, self._keys, self._get_recipient(), pending.nonce)
            person = self._read_person(self._add_userinfo(claims, answer.get("access_token")))
        return SignedInPerson(person, _read_text(claims, "sid"), _read_text(answer, "refresh_token"))

    def refresh(self, known: Reviewer, refresh_token: str, store_token: Callable[[str], None]) -> Reviewer:
        """Return the person with the current claims of the provider. If the provider sends no claims, return `known`.

        Args:
            store_token: Stores a new refresh token. The old token can be invalid from then on.

        Raises:
            ProviderUnavailableError: The claims cannot be read now.
            SignInError: The provider refuses the refresh token, or a claim is not valid.
        """
        with self._limit_sign_ins():
            answer = self._request_tokens({"grant_type": "refresh_token", "refresh_token": refresh_token})
            if new_token := _read_text(answer, "refresh_token"):
                store_token(new_token)
            claims: Mapping[str, Any] = {"sub": known.subject}
            if isinstance(id_token := answer.get("id_token"), str):
                claims = verify_id_token(id_token, self._keys, self._get_recipient(), None)
                if claims["sub"] != known.subject:
                    raise SignInError("ClaimInvalid", "the person of the ID token is not the person who signed in")
            claims = self._add_userinfo(claims, answer.get("access_token"))
        # Return the known person if the provider has sent neither an ID token nor user info. `claims` then contains
        # only the subject.
        return known if len(claims) == 1 else self._read_person(self._add_known(claims, known))

    def _add_known(self, claims: Mapping[str, Any], known: Reviewer) -> Mapping[str, Any]:
        """If the claims contain no mail address, add the mail address and the name of `known`, but not its groups.

        Some providers send the mail address only at the sign-in, and not in later responses.
        """
        options = self._options
        if claims.get(options.email_claim) is not None:
            return claims
        verified = {options.email_claim: known.email, "email_verified": True}
        return {options.name_claim: known.name, **claims, **verified}

    def read_logout(self, token: str) -> EndedSessions:
        """Return the sessions that the provider ends with a logout token (OpenID Connect Back-Channel Logout).

        Raises:
            SignInError: The token is not valid.
        """
        with _limit(self._free_logouts, "the provider ends many sessions at the same time; try again in a minute"):
            claims = verify_logout_token(token, self._keys, self._get_recipient())
        return EndedSessions(self.issuer, _read_text(claims, "sub"), _read_text(claims, "sid"), float(claims["iat"]))

    def _get_recipient(self) -> TokenRecipient:
        return TokenRecipient(self.issuer, self._options.client_id)

    def _limit_sign_ins(self) -> AbstractContextManager[None]:
        return _limit(self._free_sign_ins, "too many people sign in at the same time; try again in a minute")

    def _request_tokens(self, form: Mapping[str, str]) -> Mapping[str, Any]:
        metadata, options = self._metadata.get(), self._options
        secret = options.read_secret()
        if secret is None:
            raise SignInError(
                "SecretUnreadable", "the file in the setting console.oidc.client_secret_file cannot be read"
            )
        all_fields = {**form, "client_id": options.client_id}
        if secret and metadata.accepts_basic_authentication:
            # RFC 6749 requires form encoding of the client ID and the secret in the header `Authorization`.
            credentials = quote_plus(options.client_id), quote_plus(secret)
            return self._client.post(metadata.token_endpoint, all_fields, credentials)
        return self._client.post(
            metadata.token_endpoint, all_fields | ({"client_secret": secret} if secret else {}), None
        )

    def _add_userinfo(self, claims: Mapping[str, Any], access_token: object) -> Mapping[str, Any]:
        """Return the claims. If claims are missing, add the claims of the userinfo endpoint.

        Some providers send these claims only from the userinfo endpoint.
        """
        options, endpoint = self._options, self._metadata.get().userinfo_endpoint
        needed = {options.name_claim, options.email_claim, "email_verified", options.groups_claim}
        if needed <= claims.keys() or not endpoint or not isinstance(access_token, str):
            return claims
        userinfo = self._client.get(endpoint, access_token)
        if userinfo.get("sub") != claims["sub"]:
            raise SignInError("ClaimInvalid", "the userinfo endpoint and the ID token describe different persons")
        merged = {**userinfo, **claims}
        # Take the mail address and `email_verified` from the same source, because `email_verified` applies only to the
        # mail address that the same source has sent.
        if not {options.email_claim, "email_verified"} <= claims.keys():
            merged |= {name: userinfo.get(name) for name in (options.email_claim, "email_verified")}
        return merged

    def _read_person(self, claims: Mapping[str, Any]) -> Reviewer:
        options = self._options
        subject, email = claims["sub"], claims.get(options.email_claim)
        if not _is_text(subject) or not subject:
            raise SignInError("ClaimInvalid", "the claim `sub` must be a string that is not empty")
        if not _is_text(email) or not email:
            raise SignInError("ClaimInvalid", f"the claim `{options.email_claim}` must be a mail address")
        if claims.get("email_verified") is not True:
            raise SignInError(
                "ClaimInvalid", "the claim `email_verified` must be true; verify the mail address at the provider"
            )
        name = claims.get(options.name_claim)
        groups = claims.get(options.groups_claim) or []
        groups = [groups] if isinstance(groups, str) else groups
        if not isinstance(groups, list) or not all(map(_is_text, groups)):
            raise SignInError("ClaimInvalid", f"the claim `{options.groups_claim}` must be a list of strings")
        return Reviewer(name if _is_text(name) and name else email, email, subject, self.issuer, frozenset(groups))


@contextmanager
def _limit(free: BoundedSemaphore, message: str) -> Iterator[None]:
    """Limit the number of threads that run a `with` block at the same time.

    Raises:
        ProviderUnavailableError: Too many threads run the block. The error contains a message."""
    if not free.acquire(blocking=False):
        raise ProviderUnavailableError(message)
    try:
        yield
    finally:
        free.release()


def _read_text(values: Mapping[str, Any], name: str) -> str:
    """Return a value that is a text. Return "" for other values."""
    value = values.get(name)
    return value if _is_text(value) else ""


def _is_text(value: object) -> TypeGuard[str]:
    """Return whether a value is a string without lone surrogates, which cannot be stored in a file."""
    return isinstance(value, str) and not _SURROGATE.search(value)
