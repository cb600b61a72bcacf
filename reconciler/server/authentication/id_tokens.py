"""Verifies ID tokens and logout tokens of an OpenID Connect provider, and caches the keys of the provider."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any

import jwt

from reconciler.lazy_dataclasses import dataclass
from reconciler.server.authentication.errors import ProviderUnavailableError, SignInError

CLOCK_SKEW_SECONDS = 60
KEY_SECONDS = 3_600
_MIN_REFRESH_SECONDS = 60
# The allowed algorithms, with the type and the curve of their keys. A token that is signed with the algorithm `none`,
# or with a public key as the secret of an HMAC, is refused.
_ALGORITHMS: Mapping[str, tuple[str, str | None]] = {"RS256": ("RSA", None), "ES256": ("EC", "P-256")}
_ID_CLAIMS = ("exp", "iat", "iss", "aud", "sub")
_LOGOUT_CLAIMS = ("iat", "iss", "aud", "events")
_LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"


@dataclass(frozen=True)
class TokenRecipient:
    """The issuer of a token and the client for which it was issued."""

    issuer: str
    client_id: str


class SigningKeys:
    """The public keys of the provider. They are cached. The object is thread-safe.

    Args:
        fetch: Returns the key set of the provider (RFC 7517). Raises ProviderUnavailableError.
        clock: Returns seconds.
    """

    def __init__(self, fetch: Callable[[], Mapping[str, Any]], clock: Callable[[], float]) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = Lock()
        self._keys: tuple[Mapping[str, Any], ...] = ()
        self._fetched_at = float("-inf")

    def find(self, algorithm: str, key_id: str | None) -> Mapping[str, Any] | None:
        """Return the key for a token. Return None if the provider has no such key, or several.

        Keys are fetched again after an hour, because providers rotate their keys. If no key matches, keys are
        fetched again too, but at most once a minute.

        Raises:
            ProviderUnavailableError: The key is unknown, and the keys were fetched less than a minute ago.
        """
        with self._lock:
            age = self._clock() - self._fetched_at
            found = [*self._list_candidates(algorithm, key_id)]
            if age >= KEY_SECONDS or (not found and age >= _MIN_REFRESH_SECONDS):
                self._keys = _read_keys(self._fetch())
                self._fetched_at = self._clock()
                found = [*self._list_candidates(algorithm, key_id)]
            elif not found:
                raise ProviderUnavailableError(
                    "the keys of the provider do not contain the signing key of the token; try again in a minute"
                )
        return found[0] if len(found) == 1 else None

    def _list_candidates(self, algorithm: str, key_id: str | None) -> Iterator[Mapping[str, Any]]:
        key_type, curve = _ALGORITHMS[algorithm]
        for key in self._keys:
            is_usable = key.get("use", "sig") == "sig" and key.get("alg", algorithm) == algorithm
            has_type = key.get("kty") == key_type and (curve is None or key.get("crv") == curve)
            if is_usable and has_type and key_id in (None, key.get("kid")):
                yield key


def _read_keys(key_set: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    keys = key_set.get("keys")
    if not isinstance(keys, list):
        raise ProviderUnavailableError("the key set of the provider must contain the list `keys`")
    return tuple(key for key in keys if isinstance(key, dict))


def verify_id_token(token: str, keys: SigningKeys, recipient: TokenRecipient, nonce: str | None) -> Mapping[str, Any]:
    """Return the claims of an ID token.

    Args:
        nonce: The random value of the sign-in. None for a token that was issued again after the sign-in.

    Raises:
        SignInError: The token is not valid, or it was not issued for this sign-in.
    """
    claims = _verify(token, "ID token", keys, recipient, _ID_CLAIMS)
    found = claims.get("nonce")
    if nonce is not None and not (isinstance(found, str) and hmac.compare_digest(found.encode(), nonce.encode())):
        raise SignInError("TokenInvalid", "the ID token belongs to a different sign-in")
    return claims


def verify_logout_token(token: str, keys: SigningKeys, recipient: TokenRecipient) -> Mapping[str, Any]:
    """Return the claims of a logout token.

    Raises:
        SignInError: The token is not valid, or it has a different purpose.
    """
    claims = _verify(token, "logout token", keys, recipient, _LOGOUT_CLAIMS)
    events = claims["events"]
    # Refuse ID tokens. They have a valid signature too, but only a logout token has this event and has no nonce.
    if not (isinstance(events, dict) and isinstance(events.get(_LOGOUT_EVENT), dict)) or "nonce" in claims:
        raise SignInError("TokenInvalid", "the token is not a logout token")
    if not any(isinstance(claims.get(name), str) and claims[name] for name in ("sub", "sid")):
        raise SignInError("TokenInvalid", "the logout token must contain `sub` or `sid`")
    return claims


def _verify(
    token: str, name: str, keys: SigningKeys, recipient: TokenRecipient, required: Sequence[str]
) -> dict[str, Any]:
    """Return the claims of a token that the provider has signed for this client."""
    try:
        header = jwt.get_unverified_header(token)
        algorithm, key_id = str(header.get("alg")), header.get("kid")
        if algorithm not in _ALGORITHMS:
            raise SignInError("TokenInvalid", f"the algorithm of the {name} must be {' or '.join(_ALGORITHMS)}")
        data = keys.find(algorithm, key_id if isinstance(key_id, str) else None)
        if data is None:
            raise SignInError("TokenInvalid", f"the provider has no key that matches the {name}")
        claims: dict[str, Any] = jwt.decode(
            token,
            jwt.PyJWK(dict(data), algorithm),
            algorithms=[algorithm],
            audience=recipient.client_id,
            issuer=recipient.issuer,
            leeway=CLOCK_SKEW_SECONDS,
            options={"require": list(required)},
        )
    except jwt.PyJWTError as error:
        raise SignInError("TokenInvalid", f"the {name} is not valid: {error}") from None
    audience = claims["aud"]
    is_shared = isinstance(audience, list) and len(audience) > 1
    if claims.get("azp", None if is_shared else recipient.client_id) != recipient.client_id:
        raise SignInError("TokenInvalid", f"the {name} was issued for a different client")
    return claims
