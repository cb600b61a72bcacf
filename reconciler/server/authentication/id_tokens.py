"""The verification of ID tokens of an OpenID Connect provider, and its signing keys."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator, Mapping
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
_REQUIRED = ["exp", "iat", "iss", "aud", "sub", "nonce"]


@dataclass(frozen=True)
class ExpectedToken:
    """The values that an ID token must contain."""

    issuer: str
    client_id: str
    nonce: str


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

        Keys are fetched again after an hour, and after at least a minute if a key is unknown, because providers
        rotate their keys.
        """
        with self._lock:
            age = self._clock() - self._fetched_at
            found = [*self._list_candidates(algorithm, key_id)]
            if age >= KEY_SECONDS or (not found and age >= _MIN_REFRESH_SECONDS):
                self._keys = _read_keys(self._fetch())
                self._fetched_at = self._clock()
                found = [*self._list_candidates(algorithm, key_id)]
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


def verify_id_token(token: str, keys: SigningKeys, expected: ExpectedToken) -> Mapping[str, Any]:
    """Return the claims of an ID token.

    Raises:
        SignInError: The token is not valid, or it was not issued for this sign-in.
    """
    try:
        header = jwt.get_unverified_header(token)
        algorithm, key_id = str(header.get("alg")), header.get("kid")
        if algorithm not in _ALGORITHMS:
            raise SignInError("TokenInvalid", f"the algorithm of the ID token must be {' or '.join(_ALGORITHMS)}")
        data = keys.find(algorithm, key_id if isinstance(key_id, str) else None)
        if data is None:
            raise SignInError("TokenInvalid", "the provider has no key that matches the ID token")
        claims: dict[str, Any] = jwt.decode(
            token,
            jwt.PyJWK(dict(data), algorithm),
            algorithms=[algorithm],
            audience=expected.client_id,
            issuer=expected.issuer,
            leeway=CLOCK_SKEW_SECONDS,
            options={"require": _REQUIRED},
        )
    except jwt.PyJWTError as error:
        raise SignInError("TokenInvalid", f"the ID token is not valid: {error}") from None
    _check_sign_in(claims, expected)
    return claims


def _check_sign_in(claims: Mapping[str, Any], expected: ExpectedToken) -> None:
    """Check that the provider issued the token for this client and this sign-in."""
    audience = claims["aud"]
    is_shared = isinstance(audience, list) and len(audience) > 1
    if claims.get("azp", None if is_shared else expected.client_id) != expected.client_id:
        raise SignInError("TokenInvalid", "the ID token was issued for another client")
    nonce = claims["nonce"]
    if not (isinstance(nonce, str) and hmac.compare_digest(nonce.encode(), expected.nonce.encode())):
        raise SignInError("TokenInvalid", "the ID token belongs to another sign-in")
