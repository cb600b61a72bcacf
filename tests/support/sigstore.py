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


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _encode_public_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(_DER, _SPKI)


def _canonicalize(data: object) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


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
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._issue_certificate(key, subject, issuer).public_bytes(serialization.Encoding.PEM)
        signature = _encode(key.sign(payload, ec.ECDSA(hashes.SHA256())))
        body = {
            "apiVersion": "0.0.1",
            "kind": "hashedrekord",
            "spec": {
                "data": {"hash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()}},
                "signature": {"content": signature, "publicKey": {"content": _encode(certificate)}},
            },
        }
        entry = {
            "body": _encode(_canonicalize(body)),
            "integratedTime": int(self.start.timestamp()) + 60,
            "logIndex": 1,
            "logID": hashlib.sha256(_encode_public_key(self.signature_log)).hexdigest(),
        }
        promise = self.signature_log.sign(_canonicalize(entry), ec.ECDSA(hashes.SHA256()))
        return {
            "dev.cosignproject.cosign/signature": signature,
            "dev.sigstore.cosign/certificate": certificate.decode(),
            "dev.sigstore.cosign/chain": self.authority.public_bytes(serialization.Encoding.PEM).decode(),
            "dev.sigstore.cosign/bundle": json.dumps({"SignedEntryTimestamp": _encode(promise), "Payload": entry}),
        }

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
