"""Signatures of webhooks: what a request claims, and whether its sender knows one of our secrets.

Each host signs in its own way. What a request says of itself is a claim until the whole body went through `Check`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Standard Webhooks: such secrets are keys in base64, all others are keys as they stand
_BASE64_KEY = b"whsec_"
# enough for every secret of a rotation, and no work for those who send thousands
_MAX_SIGNATURES = 16


@dataclass(frozen=True)
class Claim:
    """What a request says: of which event it tells, and what should prove it.

    `mark` is what makes it this delivery and no other, b"" where nothing does. It is signed itself or is the
    signature: an id beside a signature could be made up for every replay.
    """

    event: str
    delivery: str
    mark: bytes
    proofs: tuple[bytes, ...]
    prefix: bytes = b""
    signed_at: int | None = None
    plain: bool = False


@dataclass(frozen=True)
class _Host:
    """A host that signs the body alone, with HMAC-SHA256 in hex: its headers, and what stands before the signature."""

    signature: str
    prefix: str
    event: str
    deliveries: tuple[str, ...]


_HOSTS = (
    _Host("x-forgejo-signature", "", "x-forgejo-event", ("x-forgejo-delivery",)),
    _Host("x-gitea-signature", "", "x-gitea-event", ("x-gitea-delivery",)),
    _Host("x-hub-signature-256", "sha256=", "x-github-event", ("x-github-delivery",)),
    # Bitbucket, its Cloud and its Data Center
    _Host("x-hub-signature", "sha256=", "x-event-key", ("x-request-uuid", "x-request-id")),
)


def read_claim(headers: Mapping[str, str]) -> Claim | None:
    """Return what the headers (names in lower case) claim, None if they claim nothing.

    The strongest proof that is there decides; a weaker one beside it does not rescue it.
    """
    if "webhook-signature" in headers:
        return _timed(headers)
    for host in _HOSTS:
        if host.signature in headers:
            return _signed(headers, host)
    return _by_token(headers) if "x-gitlab-token" in headers else None


def _timed(headers: Mapping[str, str]) -> Claim | None:
    """Standard Webhooks, as GitLab signs: id, time and body. https://www.standardwebhooks.com."""
    delivery, moment = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not delivery or not re.fullmatch(r"[0-9]{1,15}", moment):
        return None
    written = headers["webhook-signature"].split()[:_MAX_SIGNATURES]
    proofs = tuple(_from_base64(one.removeprefix("v1,").encode()) for one in written if one.startswith("v1,"))
    event = headers.get("x-gitlab-event", "")
    return Claim(event, delivery, delivery.encode(), proofs, f"{delivery}.{moment}.".encode("latin-1"), int(moment))


def _signed(headers: Mapping[str, str], host: _Host) -> Claim | None:
    written = headers[host.signature]
    if not re.fullmatch(f"{host.prefix}[0-9a-fA-F]{{64}}", written):
        return None
    proof = bytes.fromhex(written.removeprefix(host.prefix))
    return Claim(headers.get(host.event, ""), _first(headers, host.deliveries), proof, (proof,))


def _by_token(headers: Mapping[str, str]) -> Claim:
    # the key is the same for all tries of one delivery; older versions do not send it
    delivery = _first(headers, ("idempotency-key", "x-gitlab-event-uuid"))
    token = headers["x-gitlab-token"].encode("latin-1")
    return Claim(headers.get("x-gitlab-event", ""), delivery, delivery.encode(), (token,), plain=True)


def _first(headers: Mapping[str, str], names: Sequence[str]) -> str:
    return next((headers[name] for name in names if name in headers), "")


class Check:
    """Whether a claim holds, for any of the secrets; the body goes by in pieces and is never kept."""

    def __init__(self, claim: Claim, secrets: Sequence[bytes]) -> None:
        self._claim = claim
        self._tokens = secrets if claim.plain else ()
        keys = () if claim.plain else [_key(secret) for secret in secrets]
        self._codes = [hmac.new(key, claim.prefix, hashlib.sha256) for key in keys]

    def update(self, piece: bytes) -> None:
        """Take note of the next piece of the body."""
        for code in self._codes:
            code.update(piece)

    def holds(self) -> bool:
        """Return whether the sender knows a secret; every one is compared, so that the time taken tells nothing."""
        expected = [*self._tokens, *(code.digest() for code in self._codes)]
        equal = [hmac.compare_digest(proof, one) for proof in self._claim.proofs for one in expected]
        return any(equal)


def _key(secret: bytes) -> bytes:
    written = secret.removeprefix(_BASE64_KEY)
    return secret if written == secret else _from_base64(written) or secret


def _from_base64(text: bytes) -> bytes:
    """Return the bytes, b"" where it is no base64."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
