"""`base64.encode` and `base64.decode`."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from reconciler.expressions.budget import Budget
from reconciler.expressions.errors import Fault
from reconciler.expressions.library.signatures import BYTES, STRING, Functions, overload

_ALPHABET: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def encode(budget: Budget, data: bytes) -> str:
    """`base64.encode(bytes)`: with padding."""
    budget.allocate(len(data))
    return budget.make_text(base64.b64encode(data).decode())


def encode_text(budget: Budget, text: str) -> str:
    """`base64.encode(string)`: of its UTF-8 (openchoreo 5.5 allows it; the standard does not)."""
    return encode(budget, text.encode("utf-8", "surrogatepass"))


def decode(budget: Budget, text: str) -> bytes:
    """`base64.decode(string)`: with or without padding."""
    budget.allocate(len(text))
    body = text.rstrip("=")
    padding = -len(body) % 4
    if not _ALPHABET.fullmatch(text) or padding == 3 or len(text) - len(body) not in (0, padding):
        raise _not_base64(text)
    try:
        return base64.b64decode(body + "=" * padding, validate=True)
    except binascii.Error:
        raise _not_base64(text) from None


def _not_base64(text: str) -> Fault:
    return Fault("CelConversion", f"'{text if len(text) <= 40 else text[:40] + '…'}' is no base64")


FUNCTIONS: Functions = {
    "base64.encode": (overload(encode, BYTES), overload(encode_text, STRING)),
    "base64.decode": (overload(decode, STRING),),
}
