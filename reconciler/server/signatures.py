"""Verifies the signatures of webhooks, and parses the headers of each Git host.

The data in the headers is not trusted until `SignatureCheck` has verified the complete body.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence

from reconciler.lazy_dataclasses import dataclass

# A secret with this prefix is a key in Base64, as in Standard Webhooks. Any other secret is used as the key itself.
_BASE64_KEY = b"whsec_"
# Limit the work for a request with thousands of signatures. A rotation of secrets needs only a few signatures.
_MAX_SIGNATURES = 16


@dataclass(frozen=True)
class SignatureClaim:
    """The unverified data in the headers of a webhook request.

    Attributes:
        provider: The kind of the Git host, or `other`.
        event: The name of the event, for the log.
        delivery: The ID of the delivery, for the log.
        identity: Identifies the delivery, to detect replays. b"" if the headers do not identify the delivery. If the
            body is signed, the identity is the signature or a signed ID, because an attacker could change an unsigned
            ID.
        signatures: The signatures of the request, or the token if `is_plain_token` is True.
        prefix: The signed content before the body.
        signed_at: The time of the signature, in seconds since 1970. None if the headers do not contain it.
        is_plain_token: Whether the request contains a token instead of a signature.
    """

    provider: str
    event: str
    delivery: str
    identity: bytes
    signatures: tuple[bytes, ...]
    prefix: bytes = b""
    signed_at: int | None = None
    is_plain_token: bool = False


@dataclass(frozen=True)
class _HostHeaders:
    """The headers of a Git host that signs only the body, with HMAC-SHA256 in hexadecimal digits.

    `prefix` is the text before the signature in its header.
    """

    provider: str
    signature: str
    prefix: str
    event: str
    deliveries: tuple[str, ...]


_HOSTS = (
    _HostHeaders("forgejo", "x-forgejo-signature", "", "x-forgejo-event", ("x-forgejo-delivery",)),
    _HostHeaders("gitea", "x-gitea-signature", "", "x-gitea-event", ("x-gitea-delivery",)),
    _HostHeaders("github", "x-hub-signature-256", "sha256=", "x-github-event", ("x-github-delivery",)),
    # The headers of Bitbucket Cloud and Bitbucket Data Center.
    _HostHeaders("bitbucket", "x-hub-signature", "sha256=", "x-event-key", ("x-request-uuid", "x-request-id")),
)


def read_claim(headers: Mapping[str, str]) -> SignatureClaim | None:
    """Return the unverified signature data in the headers. Return None if there is no valid signature header.

    The names of the headers must be in lower case. If several headers contain a signature, only the strongest is used,
    so that a valid weak signature cannot replace an invalid strong signature.
    """
    if "webhook-signature" in headers:
        return _read_standard_claim(headers)
    for host in _HOSTS:
        if host.signature in headers:
            return _read_body_claim(headers, host)
    return _read_token_claim(headers) if "x-gitlab-token" in headers else None


def _read_standard_claim(headers: Mapping[str, str]) -> SignatureClaim | None:
    """Read the headers of Standard Webhooks (https://www.standardwebhooks.com), which GitLab uses."""
    delivery, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not delivery or not re.fullmatch(r"[0-9]{1,15}", timestamp):
        return None
    values = headers["webhook-signature"].split()[:_MAX_SIGNATURES]
    signatures = tuple(_decode_base64(text.removeprefix("v1,").encode()) for text in values if text.startswith("v1,"))
    event = headers.get("x-gitlab-event", "")
    provider = "gitlab" if event else "other"
    prefix = f"{delivery}.{timestamp}.".encode("latin-1")
    return SignatureClaim(provider, event, delivery, delivery.encode(), signatures, prefix, int(timestamp))


def _read_body_claim(headers: Mapping[str, str], host: _HostHeaders) -> SignatureClaim | None:
    signature = headers[host.signature]
    if not re.fullmatch(f"{host.prefix}[0-9a-fA-F]{{64}}", signature):
        return None
    digest = bytes.fromhex(signature.removeprefix(host.prefix))
    delivery = _get_first(headers, host.deliveries)
    return SignatureClaim(host.provider, headers.get(host.event, ""), delivery, digest, (digest,))


def _read_token_claim(headers: Mapping[str, str]) -> SignatureClaim:
    # GitLab sends the same `idempotency-key` with all attempts of one delivery. Older versions do not send this header.
    delivery = _get_first(headers, ("idempotency-key", "x-gitlab-event-uuid"))
    token = headers["x-gitlab-token"].encode("latin-1")
    event = headers.get("x-gitlab-event", "")
    return SignatureClaim("gitlab", event, delivery, delivery.encode(), (token,), is_plain_token=True)


def _get_first(headers: Mapping[str, str], names: Sequence[str]) -> str:
    return next((headers[name] for name in names if name in headers), "")


class SignatureCheck:
    """Verifies the signatures of a request with all secrets. The body is processed in chunks and not stored."""

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
        """Return whether one of the secrets verifies one of the signatures.

        The method compares all secrets, so that its duration does not depend on the result.
        """
        expected = [*self._tokens, *(body_hmac.digest() for body_hmac in self._hmacs)]
        matches = [hmac.compare_digest(signature, value) for signature in self._claim.signatures for value in expected]
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
