"""A certificate authority and transparency logs as those of Sigstore, for tests of keyless signatures."""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_ISSUER_EXTENSION = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_TIMESTAMPS_EXTENSION = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
_DER, _SPKI = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
_PRECERTIFICATE = 1
_ECDSA_SHA256 = b"\x04\x03"
_HASH = ec.ECDSA(hashes.SHA256())
_BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
_IN_TOTO = "application/vnd.in-toto+json"


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _encode_public_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(_DER, _SPKI)


def _canonicalize(data: object) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def _describe_signature(payload: bytes, signature: str, certificate: bytes) -> dict[str, Any]:
    """Return the body of the log entry for a signature of a payload."""
    spec = {
        "data": {"hash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()}},
        "signature": {"content": signature, "publicKey": {"content": _encode(certificate)}},
    }
    return {"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": spec}


class Sigstore:
    """Issues certificates for signers, and records signatures in a log. All keys are new."""

    def __init__(self) -> None:
        self.start = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
        self.authority_key, self.certificate_log, self.signature_log = (
            ec.generate_private_key(ec.SECP256R1()) for _ in range(3)
        )
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test authority")])
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        self.authority = (
            x509.CertificateBuilder(name, name, self.authority_key.public_key(), x509.random_serial_number())
            .not_valid_before(self.start)
            .not_valid_after(self.start + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.authority_key.public_key()), critical=False)
            .sign(self.authority_key, hashes.SHA256())
        )

    def trusted_root(self) -> bytes:
        """Return the file `trusted_root.json`."""
        valid = {"start": self.start.isoformat().replace("+00:00", "Z")}

        def describe_log(key: ec.EllipticCurvePrivateKey) -> dict[str, Any]:
            public = _encode_public_key(key)
            details = {"rawBytes": _encode(public), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": valid}
            log_id = {"keyId": _encode(hashlib.sha256(public).digest())}
            return {"baseUrl": "https://log.test", "hashAlgorithm": "SHA2_256", "publicKey": details, "logId": log_id}

        chain = {"certificates": [{"rawBytes": _encode(self.authority.public_bytes(_DER))}]}
        return _canonicalize(
            {
                "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
                "tlogs": [describe_log(self.signature_log)],
                "ctlogs": [describe_log(self.certificate_log)],
                "certificateAuthorities": [
                    {"subject": {"commonName": "test"}, "uri": "https://ca.test", "certChain": chain, "validFor": valid}
                ],
                "timestampAuthorities": [],
            }
        )

    def sign(self, payload: bytes, subject: str, issuer: str) -> dict[str, str]:
        """Return the annotations of a layer that cosign writes for a keyless signature of a payload."""
        key, certificate = self._create_signer(subject, issuer)
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        signature = _encode(key.sign(payload, _HASH))
        entry, promise = self._record(_describe_signature(payload, signature, pem))
        return {
            "dev.cosignproject.cosign/signature": signature,
            "dev.sigstore.cosign/certificate": pem.decode(),
            "dev.sigstore.cosign/chain": self.authority.public_bytes(serialization.Encoding.PEM).decode(),
            "dev.sigstore.cosign/bundle": json.dumps({"SignedEntryTimestamp": _encode(promise), "Payload": entry}),
        }

    def sign_message_bundle(self, message: bytes, subject: str, issuer: str) -> dict[str, Any]:
        """Return a Sigstore bundle with a keyless signature of a message."""
        key, certificate = self._create_signer(subject, issuer)
        signature = _encode(key.sign(message, _HASH))
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        material = self._build_material(certificate, _describe_signature(message, signature, pem))
        digest = {"algorithm": "SHA2_256", "digest": _encode(hashlib.sha256(message).digest())}
        return {**material, "messageSignature": {"messageDigest": digest, "signature": signature}}

    def sign_statement_bundle(self, statement: bytes, subject: str, issuer: str) -> dict[str, Any]:
        """Return a Sigstore bundle with a keyless signature of a statement, as `cosign sign` writes it."""
        key, certificate = self._create_signer(subject, issuer)
        signed = f"DSSEv1 {len(_IN_TOTO)} {_IN_TOTO} {len(statement)} ".encode() + statement
        signature = _encode(key.sign(signed, _HASH))
        envelope = {"payload": _encode(statement), "payloadType": _IN_TOTO, "signatures": [{"sig": signature}]}
        verifier = _encode(certificate.public_bytes(serialization.Encoding.PEM))
        spec = {
            "envelopeHash": {"algorithm": "sha256", "value": hashlib.sha256(_canonicalize(envelope)).hexdigest()},
            "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(statement).hexdigest()},
            "signatures": [{"signature": signature, "verifier": verifier}],
        }
        material = self._build_material(certificate, {"apiVersion": "0.0.1", "kind": "dsse", "spec": spec})
        return {**material, "dsseEnvelope": envelope}

    def _create_signer(self, subject: str, issuer: str) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        key = ec.generate_private_key(ec.SECP256R1())
        return key, self._issue_certificate(key, subject, issuer)

    def _record(self, body: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Return the entry of the log with this body, and the signed promise of the log."""
        entry = {
            "body": _encode(_canonicalize(body)),
            "integratedTime": int(self.start.timestamp()) + 60,
            "logIndex": 0,
            "logID": hashlib.sha256(_encode_public_key(self.signature_log)).hexdigest(),
        }
        return entry, self.signature_log.sign(_canonicalize(entry), _HASH)

    def _build_material(self, certificate: x509.Certificate, body: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a bundle besides the signature. The log contains only the entry of this signature."""
        entry, promise = self._record(body)
        log_id = bytes.fromhex(entry["logID"])
        # RFC 6962: the root of a tree with one entry is the hash of this entry.
        root = _encode(hashlib.sha256(b"\0" + _canonicalize(body)).digest())
        head = f"log.test - 1\n1\n{root}\n"
        signed_head = f"{head}\n— log.test {_encode(log_id[:4] + self.signature_log.sign(head.encode(), _HASH))}\n"
        proof = {
            "logIndex": "0", "rootHash": root, "treeSize": "1", "hashes": [], "checkpoint": {"envelope": signed_head}
        }  # fmt: skip
        transparency = {
            "logIndex": "0",
            "logId": {"keyId": _encode(log_id)},
            "kindVersion": {"kind": body["kind"], "version": body["apiVersion"]},
            "integratedTime": str(entry["integratedTime"]),
            "inclusionPromise": {"signedEntryTimestamp": _encode(promise)},
            "inclusionProof": proof,
            "canonicalizedBody": entry["body"],
        }
        chain = {"rawBytes": _encode(certificate.public_bytes(_DER))}
        material = {"certificate": chain, "tlogEntries": [transparency]}
        return {"mediaType": _BUNDLE, "verificationMaterial": material}

    def _issue_certificate(self, key: ec.EllipticCurvePrivateKey, subject: str, issuer: str) -> x509.Certificate:
        usage = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
        builder = (
            x509.CertificateBuilder(
                self.authority.subject, x509.Name([]), key.public_key(), x509.random_serial_number()
            )
            .not_valid_before(self.start)
            .not_valid_after(self.start + timedelta(minutes=10))
            .add_extension(usage, critical=True)
            .add_extension(x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
            .add_extension(x509.SubjectAlternativeName([x509.RFC822Name(subject)]), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.authority_key.public_key()), critical=False
            )
            .add_extension(x509.UnrecognizedExtension(_ISSUER_EXTENSION, issuer.encode()), critical=False)
        )
        # RFC 6962: the log signs the certificate without the extension that contains its timestamp.
        content = builder.sign(self.authority_key, hashes.SHA256()).tbs_certificate_bytes
        timestamps = x509.UnrecognizedExtension(_TIMESTAMPS_EXTENSION, self._create_timestamps(content))
        return builder.add_extension(timestamps, critical=False).sign(self.authority_key, hashes.SHA256())

    def _create_timestamps(self, content: bytes) -> bytes:
        time = (int(self.start.timestamp()) * 1000).to_bytes(8, "big")
        issuer_hash = hashlib.sha256(_encode_public_key(self.authority_key)).digest()
        signed = (
            b"\0\0"
            + time
            + _PRECERTIFICATE.to_bytes(2, "big")
            + issuer_hash
            + len(content).to_bytes(3, "big")
            + content
        ) + b"\0\0"
        signature = self.certificate_log.sign(signed, ec.ECDSA(hashes.SHA256()))
        log_id = hashlib.sha256(_encode_public_key(self.certificate_log)).digest()
        timestamp = b"\0" + log_id + time + b"\0\0" + _ECDSA_SHA256 + len(signature).to_bytes(2, "big") + signature
        timestamps = (len(timestamp) + 2).to_bytes(2, "big") + len(timestamp).to_bytes(2, "big") + timestamp
        # An OCTET STRING in DER. Its length has one byte below 128, and otherwise 0x81 and one byte.
        length = bytes([len(timestamps)]) if len(timestamps) < 128 else bytes([0x81, len(timestamps)])
        return b"\x04" + length + timestamps
