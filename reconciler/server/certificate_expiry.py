"""Reads the time at which a certificate in a file expires.

Python's module `ssl` can read this time only from the certificate of a peer that it has verified.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

_END = "-----END CERTIFICATE-----"
_BEGIN = "-----BEGIN CERTIFICATE-----"
_VERSION, _UTC_TIME = 0xA0, 0x17
_FIELDS_BEFORE_VALIDITY = 3


def read_expiry(file: Path) -> float | None:
    """Return the expiry of the first certificate in a file (PEM), in seconds since 1970, or None if it is unknown."""
    try:
        chain = file.read_text("latin-1")
        first = chain[chain.find(_BEGIN) : chain.find(_END) + len(_END)]
        return _find_expiry(ssl.PEM_cert_to_DER_cert(first))
    except (OSError, ValueError, IndexError):
        return None


def _find_expiry(certificate: bytes) -> float:
    """Return the field `notAfter` of a certificate (DER, RFC 5280)."""
    signed_part = _read_values(_read_values(certificate)[0][1])[0][1]
    fields = [value for tag, value in _read_values(signed_part) if tag != _VERSION]
    # RFC 5280: the fields before `validity` are the serial number, the signature algorithm and the issuer. The second
    # value of `validity` is `notAfter`.
    tag, value = _read_values(fields[_FIELDS_BEFORE_VALIDITY])[1]
    text = value.decode("ascii")
    if tag == _UTC_TIME:
        text = f"{'20' if text < '50' else '19'}{text}"
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _read_values(data: bytes) -> list[tuple[int, bytes]]:
    """Return the tags and the contents of consecutive values (DER)."""
    values, position = [], 0
    while position < len(data):
        tag, length, position = data[position], data[position + 1], position + 2
        if length & 0x80:
            size = length & 0x7F
            length, position = int.from_bytes(data[position : position + size], "big"), position + size
        values.append((tag, data[position : position + length]))
        position += length
    return values
