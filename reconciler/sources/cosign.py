"""Signatures of cosign with a tag: the format, and the verification with keys. This module reads no files.

cosign stores the signatures of a manifest in a second manifest with the tag `sha256-<digest>.sig`. Each layer of the
second manifest is a signed text that contains the digest of the first manifest. An annotation of the layer contains the
signature.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from reconciler.krm.json_text import DIGEST_PATTERN, parse_json_object, parse_strict_json
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.source_codes import SourceCodes
from reconciler.sources.artifact_cache import parse_digest
from reconciler.sources.errors import SourceError
from reconciler.sources.verifier_program import create_unavailable_error

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    PublicKey = EllipticCurvePublicKey | Ed25519PublicKey | RSAPublicKey

_PAYLOAD_TYPE = "application/vnd.dev.cosign.simplesigning.v1+json"
_SIGNATURE_ANNOTATION = "dev.cosignproject.cosign/signature"
_KEYLESS_ANNOTATIONS = ("dev.sigstore.cosign/certificate", "dev.sigstore.cosign/bundle")
_SIGNED_TYPE = "cosign container image signature"
_MAX_SIGNATURES = 20
_MAX_SIGNATURE_CHARACTERS = 16_384
_MIN_RSA_BITS = 2_048


@dataclass(frozen=True)
class CosignSignature:
    """A signature, and the digest of the blob with the signed text.

    Attributes:
        certificate: The certificate of the signer in PEM format. "" for a signature with a key.
        log_entry: The entry of the transparency log as JSON. "" for a signature that is in no log.
    """

    signature: bytes
    payload_digest: str
    certificate: str = ""
    log_entry: str = ""


def get_signature_tag(digest: str) -> str:
    """Return the tag under which the signatures of the manifest `digest` are stored."""
    return f"sha256-{parse_digest(digest)}.sig"


def parse_signatures(manifest: bytes) -> Iterator[CosignSignature]:
    """Yield the signatures of a manifest of cosign. Layers of other types, and invalid signatures, are skipped."""
    layers = (parse_json_object(manifest) or {}).get("layers")
    for layer in layers[:_MAX_SIGNATURES] if isinstance(layers, list) else ():
        if not isinstance(layer, dict) or layer.get("mediaType") != _PAYLOAD_TYPE:
            continue
        annotations = layer.get("annotations")
        if not isinstance(annotations, dict):
            continue
        text = annotations.get(_SIGNATURE_ANNOTATION)
        if not isinstance(text, str) or len(text) > _MAX_SIGNATURE_CHARACTERS:
            continue
        digest = str(layer.get("digest"))
        if not DIGEST_PATTERN.fullmatch(digest):
            continue
        try:
            signature = base64.b64decode(text, validate=True)
        except ValueError:
            continue
        certificate, log_entry = (str(annotations.get(name, "")) for name in _KEYLESS_ANNOTATIONS)
        yield CosignSignature(signature, digest, certificate, log_entry)


def load_public_key(pem: bytes, name: str) -> PublicKey:
    """Return the key of a PEM file. `name` is the name of the file, for messages.

    Raises:
        SourceError: `VerifierUnavailable` if the Python package cryptography is missing. `SignatureInvalid` if the file
            is not an ECDSA, Ed25519 or RSA key, or the RSA key has fewer than 2048 bits.
    """
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError:
        raise create_unavailable_error(
            "signatures of cosign need the Python package cryptography: pip install 'reconciler[verify]'"
        ) from None
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise create_invalid_error(f"{name} is not a public key in PEM format") from None
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < _MIN_RSA_BITS:
        raise create_invalid_error(
            f"the RSA key {name} must have at least {_MIN_RSA_BITS} bits, but has {key.key_size}"
        )
    if isinstance(key, ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey):
        return key
    raise create_invalid_error(f"{name} must be an ECDSA, Ed25519 or RSA key")


def is_signed_by_any(signature: bytes, payload: bytes, keys: Sequence[PublicKey]) -> bool:
    """Return whether one of the keys has made a signature. cosign uses SHA-256 for ECDSA and RSA."""
    return any(_is_signed_by(signature, payload, key) for key in keys)


def _is_signed_by(signature: bytes, payload: bytes, key: PublicKey) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, payload, padding.PKCS1v15(), SHA256())
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, payload, ec.ECDSA(SHA256()))
        else:
            key.verify(signature, payload)
    except InvalidSignature:
        return False
    return True


def read_signed_digest(payload: bytes) -> str:
    """Return the digest that a signed text refers to. Return "" if the text does not have the format of cosign."""
    try:
        critical = parse_strict_json(payload)["critical"]
        return str(critical["image"]["docker-manifest-digest"]) if critical["type"] == _SIGNED_TYPE else ""
    except (ValueError, RecursionError, TypeError, KeyError):
        return ""


def create_invalid_error(message: str) -> SourceError:
    """Return the error for a signature or a key that is not valid."""
    return SourceError(SourceCodes.SIGNATURE_INVALID.name, message)
