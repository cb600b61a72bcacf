"""Keyless signatures of cosign: a certificate names the signer, and a public log contains the signature.

The program cosign verifies the signatures. It receives only files, and has no network access. The trusted root is a
file, because the services of Sigstore are not contacted.
"""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reconciler.packages.artifacts import SignerIdentity
from reconciler.sources.cosign import CosignSignature
from reconciler.sources.sigstore_bundle import PREDICATE_TYPE
from reconciler.sources.verifier_program import VerifierProgram, create_unavailable_error

_BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle+json;version=0.1"
_MAX_REASON_CHARACTERS = 300
_SIGNATURE_COMMAND = ("verify-blob",)
# This command of cosign also compares the digest in a signed statement with the digest of the file.
_STATEMENT_COMMAND = ("verify-blob-attestation", f"--type={PREDICATE_TYPE}")


class KeylessVerifier:
    """Verifies keyless signatures with the program cosign, version 3 or newer.

    Args:
        program: The program cosign.
        trusted_root: The file `trusted_root.json` with the certificates and public keys of Sigstore. "" for none.
    """

    def __init__(self, program: VerifierProgram, trusted_root: str) -> None:
        self._program = program
        self._trusted_root = trusted_root

    def read_trusted_root(self) -> bytes:
        """Return the trusted root. Raises SourceError with the code `VerifierUnavailable`."""
        if not self._trusted_root:
            raise create_unavailable_error(
                "keyless signatures need a trusted root: set `sources.trusted_root` to a file trusted_root.json"
            )
        try:
            return Path(self._trusted_root).expanduser().read_bytes()
        except OSError as error:
            raise create_unavailable_error(
                f"the file {self._trusted_root} (setting `sources.trusted_root`) cannot be read: {error.strerror}"
            ) from None

    def find_problem(
        self, signature: CosignSignature, payload: bytes, trusted_root: bytes, identities: Sequence[SignerIdentity]
    ) -> str:
        """Return the reason why a signature is not valid for any of the identities. Return "" if it is valid.

        Raises:
            SourceError: `VerifierUnavailable` if cosign cannot be used.
        """
        bundle = _build_bundle(signature, payload)
        if bundle is None:
            return "it has no certificate, or no entry of a transparency log"
        return self._find_problem(_SIGNATURE_COMMAND, bundle, payload, trusted_root, identities)

    def find_bundle_problem(
        self,
        bundle: bytes,
        manifest: bytes,
        trusted_root: bytes,
        identities: Sequence[SignerIdentity],
        *,
        has_statement: bool,
    ) -> str:
        """Return the reason why a Sigstore bundle is not a signature of a manifest. Return "" if it is valid.

        Args:
            has_statement: Whether the bundle signs a statement with the digest of the manifest, and not the manifest.

        Raises:
            SourceError: `VerifierUnavailable` if cosign cannot be used.
        """
        command = _STATEMENT_COMMAND if has_statement else _SIGNATURE_COMMAND
        return self._find_problem(command, bundle, manifest, trusted_root, identities)

    def _find_problem(
        self,
        command: Sequence[str],
        bundle: bytes,
        payload: bytes,
        trusted_root: bytes,
        identities: Sequence[SignerIdentity],
    ) -> str:
        problem = ""
        inputs = {"bundle.json": bundle, "root.json": trusted_root, "payload": payload}
        for identity in identities:
            problem = self._run(command, identity, inputs)
            if not problem:
                break
        return problem

    def _run(self, command: Sequence[str], identity: SignerIdentity, inputs: Mapping[str, bytes]) -> str:
        arguments = (
            *command, "--bundle=bundle.json", "--trusted-root=root.json",
            f"--certificate-identity-regexp={identity.subject}",
            f"--certificate-oidc-issuer-regexp={identity.issuer}", "--", "payload",
        )  # fmt: skip
        result = self._program.run(arguments, inputs)
        if result.exit_code == 0:
            return ""
        return " ".join(result.stderr.split("\n", 1)[0].split())[:_MAX_REASON_CHARACTERS] or "cosign failed"


def _build_bundle(signature: CosignSignature, payload: bytes) -> bytes | None:
    """Convert the annotations of a signature to a Sigstore bundle.

    Return None if an annotation is missing or not valid.
    """
    try:
        certificate = ssl.PEM_cert_to_DER_cert(signature.certificate)
        log_entry: Any = json.loads(signature.log_entry)
        entry = log_entry["Payload"]
        transparency = {
            "logIndex": str(int(entry["logIndex"])),
            "logId": {"keyId": _encode(bytes.fromhex(entry["logID"]))},
            "kindVersion": {"kind": "hashedrekord", "version": "0.0.1"},
            "integratedTime": str(int(entry["integratedTime"])),
            "inclusionPromise": {"signedEntryTimestamp": str(log_entry["SignedEntryTimestamp"])},
            "canonicalizedBody": str(entry["body"]),
        }
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    material = {
        "x509CertificateChain": {"certificates": [{"rawBytes": _encode(certificate)}]},
        "tlogEntries": [transparency],
    }
    digest = {"algorithm": "SHA2_256", "digest": _encode(hashlib.sha256(payload).digest())}
    message = {"messageDigest": digest, "signature": _encode(signature.signature)}
    bundle = {"mediaType": _BUNDLE_TYPE, "verificationMaterial": material, "messageSignature": message}
    return json.dumps(bundle).encode()


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode()
