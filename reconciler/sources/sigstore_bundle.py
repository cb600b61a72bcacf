"""Signatures of cosign 3: Sigstore bundles. This module contains the format, and reads no files.

cosign stores a bundle in a second manifest, which refers to the signed manifest and has the artifact type of bundles.
The bundle is the only layer of the second manifest. A bundle contains one of these signatures:

- An envelope (DSSE) with a statement (in-toto), which names the digest of the signed manifest. `cosign sign` writes it.
- A signature of the content of the manifest itself.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.krm.json_text import DIGEST_PATTERN, parse_json_object, parse_strict_json
from reconciler.lazy_dataclasses import dataclass

BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
MAX_BUNDLE_BYTES = 1024 * 1024
_ENVELOPE_TYPE = "application/vnd.in-toto+json"
_STATEMENT_TYPES = ("https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1")
_PREDICATE_ANNOTATION = "dev.sigstore.bundle.predicateType"
# Only a statement of this type approves a manifest. Other types of statements can contain the result of a failed check.
PREDICATE_TYPE = "https://sigstore.dev/cosign/sign/v1"
_KEYLESS_FIELDS = ("certificate", "x509CertificateChain")


@dataclass(frozen=True)
class SigstoreBundle:
    """A signature, and the signed bytes.

    Attributes:
        signed: The signed bytes. None if the manifest itself is signed, and not a statement about the manifest.
        signed_digest: The digest in the signed statement. "" if the manifest itself is signed.
        is_keyless: Whether a certificate contains the key of the signer.
    """

    signature: bytes
    signed: bytes | None
    signed_digest: str
    is_keyless: bool


def select_bundle_manifests(descriptors: Sequence[object]) -> Iterator[str]:
    """Yield the digests of the manifests with bundles. Bundles that are not signatures are skipped."""
    for descriptor in descriptors:
        if not isinstance(descriptor, dict) or descriptor.get("artifactType") != BUNDLE_TYPE:
            continue
        annotations = descriptor.get("annotations")
        predicate = annotations.get(_PREDICATE_ANNOTATION) if isinstance(annotations, dict) else None
        digest = str(descriptor.get("digest"))
        if predicate in (None, PREDICATE_TYPE) and DIGEST_PATTERN.fullmatch(digest):
            yield digest


def find_bundle_blob(manifest: bytes) -> str:
    """Return the digest of the bundle in a manifest. Return "" if the manifest does not have exactly one bundle."""
    layers = (parse_json_object(manifest) or {}).get("layers")
    if not isinstance(layers, list) or len(layers) != 1 or not isinstance(layers[0], dict):
        return ""
    digest = str(layers[0].get("digest"))
    return digest if layers[0].get("mediaType") == BUNDLE_TYPE and DIGEST_PATTERN.fullmatch(digest) else ""


def parse_bundle(content: bytes) -> SigstoreBundle | None:
    """Return the signature in a bundle. Return None if the bundle is not valid, or is not a signature."""
    if len(content) > MAX_BUNDLE_BYTES:
        return None
    try:
        data = parse_strict_json(content)
        if data["mediaType"] != BUNDLE_TYPE:
            return None
        is_keyless = any(name in data["verificationMaterial"] for name in _KEYLESS_FIELDS)
        if "dsseEnvelope" in data:
            return _parse_envelope(data["dsseEnvelope"], is_keyless=is_keyless)
        signature = _decode(data["messageSignature"]["signature"])
        return SigstoreBundle(signature, None, "", is_keyless)
    except (ValueError, RecursionError, TypeError, KeyError):
        return None


def _parse_envelope(envelope: Mapping[str, Any], *, is_keyless: bool) -> SigstoreBundle | None:
    """Return the signature in an envelope. Raises ValueError, TypeError or KeyError if it is not valid."""
    [entry] = envelope["signatures"]
    payload = _decode(envelope["payload"])
    if envelope["payloadType"] != _ENVELOPE_TYPE:
        return None
    statement = parse_strict_json(payload)
    if statement["_type"] not in _STATEMENT_TYPES or statement["predicateType"] != PREDICATE_TYPE:
        return None
    [subject] = statement["subject"]
    # DSSE, "pre-authentication encoding": the type and the lengths are signed too.
    header = f"DSSEv1 {len(_ENVELOPE_TYPE)} {_ENVELOPE_TYPE} {len(payload)} ".encode()
    signed_digest = f"sha256:{subject['digest']['sha256']}"
    return SigstoreBundle(_decode(entry["sig"]), header + payload, signed_digest, is_keyless)


def _decode(text: str) -> bytes:
    """Return the bytes of a text in base64. Raises ValueError or TypeError."""
    return base64.b64decode(text, validate=True)
