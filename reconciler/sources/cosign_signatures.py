"""Search for a valid signature of cosign: with the tag `sha256-<digest>.sig`, and in Sigstore bundles.

One valid signature is sufficient. Invalid and unreadable signatures are ignored if another signature is valid.
Otherwise, each person who may push to the registry could block the package with an invalid signature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from reconciler.krm.json_text import compute_hash
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.artifacts import UPSTREAM_NOT_FOUND, SignerIdentity
from reconciler.packages.source_codes import SourceCodes
from reconciler.sources import cosign, sigstore_bundle
from reconciler.sources.artifact_cache import compute_content_digest
from reconciler.sources.errors import SourceError

if TYPE_CHECKING:
    from reconciler.sources.cosign import PublicKey
    from reconciler.sources.keyless import KeylessVerifier
    from reconciler.sources.registry import RegistryClient, RegistryLocation

_MAX_BUNDLES = 20
_MAX_PAYLOAD_BYTES = 1024 * 1024
_CODES_OF_ONE_SIGNATURE = frozenset(
    (UPSTREAM_NOT_FOUND, SourceCodes.SOURCE_INVALID.name, SourceCodes.DIGEST_MISMATCH.name)
)
_WRONG_KEY = "it is not made with a key of the Secret"
_KEYLESS = "it is a keyless signature, and `verify` has no `matchOIDCIdentity`"


@dataclass(frozen=True)
class CosignSigners:
    """The signers that a Repository accepts: keys, and identities in keyless signatures."""

    keys: Sequence[PublicKey]
    identities: tuple[SignerIdentity, ...]
    trusted_root: bytes

    @property
    def keyless_hash(self) -> str:
        """A hash of the identities and of the trusted root."""
        identities = [[identity.issuer, identity.subject] for identity in self.identities]
        return compute_hash([identities, compute_content_digest(self.trusted_root)])


class CosignSignatures:
    """Verifies the signatures of manifests in a registry. The object is thread-safe."""

    def __init__(self, registry: RegistryClient, keyless_verifier: KeylessVerifier) -> None:
        self._registry = registry
        self._keyless = keyless_verifier

    def check(self, location: RegistryLocation, digest: str, signers: CosignSigners) -> None:
        """Check that a manifest has a valid signature.

        Raises:
            SourceError: `SignatureMissing`, `SignatureInvalid`, `VerifierUnavailable`, or an error of the registry.
        """
        problems: list[str] = []
        for find_problems in (self._check_tag, self._check_bundles):
            for problem in find_problems(location, digest, signers):
                if not problem:
                    return
                problems.append(problem)
        if not problems:
            tag = cosign.get_signature_tag(digest)
            message = f"{location.oci_url} has no signature of {digest} (tag {tag}, or a Sigstore bundle)"
            raise SourceError(SourceCodes.SIGNATURE_MISSING.name, message)
        # Report a wrong key only if there is no other problem, because the other problems are more specific.
        problem = next((text for text in reversed(problems) if text != _WRONG_KEY), _WRONG_KEY)
        raise cosign.create_invalid_error(f"the signature of {location.oci_url}@{digest} is not valid: {problem}")

    def _check_tag(self, location: RegistryLocation, digest: str, signers: CosignSigners) -> Iterator[str]:
        """Yield one text for each signature under the signature tag of cosign: the problem, or "" if it is valid."""
        try:
            manifest_digest = self._registry.find_digest(location, cosign.get_signature_tag(digest))
        except SourceError as error:
            if error.code != UPSTREAM_NOT_FOUND:
                raise
            return
        manifest = _try_read(self._registry.read_manifest, location, manifest_digest)
        if isinstance(manifest, str):
            yield manifest
            return
        signatures = tuple(cosign.parse_signatures(manifest))
        if not signatures:
            yield "the manifest with the tag for signatures contains no signature"
        for signature in signatures:
            payload = _try_read(self._registry.read_blob, location, signature.payload_digest, _MAX_PAYLOAD_BYTES)
            yield payload if isinstance(payload, str) else self._find_problem(signature, payload, digest, signers)

    def _find_problem(
        self, signature: cosign.CosignSignature, payload: bytes, digest: str, signers: CosignSigners
    ) -> str:
        signed_digest = cosign.read_signed_digest(payload)
        is_signed = cosign.is_signed_by_any(signature.signature, payload, signers.keys)
        if signed_digest != digest:
            return _describe_digest(signed_digest) if is_signed else _WRONG_KEY
        if is_signed:
            return ""
        if signers.identities:
            return self._keyless.find_problem(signature, payload, signers.trusted_root, signers.identities)
        return _WRONG_KEY

    def _check_bundles(self, location: RegistryLocation, digest: str, signers: CosignSigners) -> Iterator[str]:
        """For each Sigstore bundle, yield the problem, or "" if the bundle is valid."""
        descriptors = self._registry.list_referrers(location, digest, sigstore_bundle.BUNDLE_TYPE)
        for manifest_digest in islice(sigstore_bundle.select_bundle_manifests(descriptors), _MAX_BUNDLES):
            content = _try_read(self._read_bundle, location, manifest_digest)
            yield content if isinstance(content, str) else self._find_bundle_problem(location, content, digest, signers)

    def _read_bundle(self, location: RegistryLocation, manifest_digest: str) -> bytes:
        blob = sigstore_bundle.find_bundle_blob(self._registry.read_manifest(location, manifest_digest))
        return self._registry.read_blob(location, blob, sigstore_bundle.MAX_BUNDLE_BYTES) if blob else b""

    def _find_bundle_problem(
        self, location: RegistryLocation, content: bytes, digest: str, signers: CosignSigners
    ) -> str:
        bundle = sigstore_bundle.parse_bundle(content)
        if bundle is None:
            return "its Sigstore bundle is not valid, or is not a signature"
        if bundle.is_keyless:
            if not signers.identities:
                return _KEYLESS
            manifest = self._registry.read_manifest(location, digest)
            return self._keyless.find_bundle_problem(
                content, manifest, signers.trusted_root, signers.identities, has_statement=bundle.signed is not None
            )
        signed = bundle.signed
        if signed is None:
            signed = self._registry.read_manifest(location, digest)
        if not cosign.is_signed_by_any(bundle.signature, signed, signers.keys):
            return _WRONG_KEY
        is_for_manifest = bundle.signed is None or bundle.signed_digest == digest
        return "" if is_for_manifest else _describe_digest(bundle.signed_digest)


def _describe_digest(signed_digest: str) -> str:
    return f"it is for {signed_digest[:100]}" if signed_digest else _WRONG_KEY


def _try_read(read: Callable[..., bytes], *arguments: object) -> bytes | str:
    """Return the result of `read`, or the reason why one signature is not usable.

    Raises:
        SourceError: The error is not about this signature.
    """
    try:
        return read(*arguments)
    except SourceError as error:
        if error.code not in _CODES_OF_ONE_SIGNATURE:
            raise
        return error.message
