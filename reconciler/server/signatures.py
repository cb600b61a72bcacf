"""Signatures of webhooks: parsing of the headers of each Git host, and verification with the secrets.

The headers are only a claim until `SignatureCheck` has verified the complete body.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Standard Webhooks: a secret with this prefix is a key in base64. All other secrets are keys without encoding.
_BASE64_KEY = b"whsec_"
# This number suffices for a rotation of secrets, and limits the work for a request with thousands of signatures.
_MAX_SIGNATURES = 16


@dataclass(frozen=True)
class SignatureClaim:
    """The unverified data in the headers of a request.

    `identity` identifies the delivery and is b"" if the headers do not identify it. It is part of the signed content or
    it is the signature, because an unsigned id could be different in each replay. `proofs` are the signatures, or the
    token if `is_plain_token` is set. `prefix` is the signed content in front of the body. `signed_at` is in seconds
    since 1970.
    """

    event: str
    delivery: str
    identity: bytes
    proofs: tuple[bytes, ...]
    prefix: bytes = b""
    signed_at: int | None = None
    is_plain_token: bool = False


@dataclass(frozen=True)
class _HostHeaders:
    """The headers of a host that signs only the body, with HMAC-SHA256 in hex.

    `prefix` is the text in front of the signature in its header.
    """

    signature: str
    prefix: str
    event: str
    deliveries: tuple[str, ...]


_HOSTS = (
    _HostHeaders("x-forgejo-signature", "", "x-forgejo-event", ("x-forgejo-delivery",)),
    _HostHeaders("x-gitea-signature", "", "x-gitea-event", ("x-gitea-delivery",)),
    _HostHeaders("x-hub-signature-256", "sha256=", "x-github-event", ("x-github-delivery",)),
    # Bitbucket Cloud and Bitbucket Data Center
    _HostHeaders("x-hub-signature", "sha256=", "x-event-key", ("x-request-uuid", "x-request-id")),
)


def read_claim(headers: Mapping[str, str]) -> SignatureClaim | None:
    """Return the claim in the headers, or None if there is none. The names of the headers are in lower case.

    If there are several proofs, only the strongest proof is verified. A weaker proof cannot replace it.
    """
    if "webhook-signature" in headers:
        return _read_standard_claim(headers)
    for host in _HOSTS:
        if host.signature in headers:
            return _read_body_claim(headers, host)
    return _read_token_claim(headers) if "x-gitlab-token" in headers else None


def _read_standard_claim(headers: Mapping[str, str]) -> SignatureClaim | None:
    """Read the headers of Standard Webhooks (https://www.standardwebhooks.com): GitLab signs id, time and body."""
    delivery, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not delivery or not re.fullmatch(r"[0-9]{1,15}", timestamp):
        return None
    signatures = headers["webhook-signature"].split()[:_MAX_SIGNATURES]
    proofs = tuple(_decode_base64(text.removeprefix("v1,").encode()) for text in signatures if text.startswith("v1,"))
    event = headers.get("x-gitlab-event", "")
    return SignatureClaim(
        event, delivery, delivery.encode(), proofs, f"{delivery}.{timestamp}.".encode("latin-1"), int(timestamp)
    )


def _read_body_claim(headers: Mapping[str, str], host: _HostHeaders) -> SignatureClaim | None:
    signature = headers[host.signature]
    if not re.fullmatch(f"{host.prefix}[0-9a-fA-F]{{64}}", signature):
        return None
    proof = bytes.fromhex(signature.removeprefix(host.prefix))
    return SignatureClaim(headers.get(host.event, ""), _get_first(headers, host.deliveries), proof, (proof,))


def _read_token_claim(headers: Mapping[str, str]) -> SignatureClaim:
    # GitLab sends the same key with all attempts of one delivery. Older versions do not send the key.
    delivery = _get_first(headers, ("idempotency-key", "x-gitlab-event-uuid"))
    token = headers["x-gitlab-token"].encode("latin-1")
    event = headers.get("x-gitlab-event", "")
    return SignatureClaim(event, delivery, delivery.encode(), (token,), is_plain_token=True)


def _get_first(headers: Mapping[str, str], names: Sequence[str]) -> str:
    return next((headers[name] for name in names if name in headers), "")


class SignatureCheck:
    """Verifies a claim with all secrets. It processes the body in chunks and does not store the body."""

    def __init__(self, claim: SignatureClaim, secrets: Sequence[bytes]) -> None:
        self._claim = claim
        self._tokens = secrets if claim.is_plain_token else ()
        keys = () if claim.is_plain_token else [_decode_key(secret) for secret in secrets]
        self._hmacs = [hmac.new(key, claim.prefix, hashlib.sha256) for key in keys]

    def update(self, chunk: bytes) -> None:
        """Add the next chunk of the body."""
        for body_hmac in self._hmacs:
            body_hmac.update(chunk)

    def is_valid(self) -> bool:
        """Return whether the claim is valid for a secret.

        The method compares all secrets, so that its duration does not depend on the result.
        """
        expected = [*self._tokens, *(body_hmac.digest() for body_hmac in self._hmacs)]
        matches = [hmac.compare_digest(proof, value) for proof in self._claim.proofs for value in expected]
        return any(matches)


def _decode_key(secret: bytes) -> bytes:
    encoded = secret.removeprefix(_BASE64_KEY)
    return secret if encoded == secret else _decode_base64(encoded) or secret


def _decode_base64(text: bytes) -> bytes:
    """Return the decoded bytes, or b"" if the text is not base64."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
