"""Forms of the console: their fields, and the checks that a form was sent by a page of the console."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from hashlib import sha256
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request

from reconciler.lazy_dataclasses import dataclass

TOKEN_FIELD = "csrf"  # noqa: S105 - the name of a form field
_FORM_TYPE = "application/x-www-form-urlencoded"
_MAX_FIELDS = 2_000
_KEY_BYTES = 32


@dataclass(frozen=True)
class Form:
    """The fields of a form. A field can have several values."""

    fields: Mapping[str, Sequence[str]]

    def get(self, name: str) -> str:
        """Return the first value of a field. Return "" if the form does not have the field."""
        values = self.fields.get(name, ())
        return values[0] if values else ""

    def get_all(self, name: str) -> tuple[str, ...]:
        """Return all values of a field."""
        return tuple(self.fields.get(name, ()))


async def read_form(request: Request) -> Form:
    """Return the form in the body of a request.

    Raises:
        HTTPException: The body is not a form.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM_TYPE:
        raise HTTPException(HTTPStatus.FORBIDDEN)
    try:
        fields = parse_qs((await request.body()).decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise HTTPException(HTTPStatus.BAD_REQUEST) from None
    return Form(fields)


class CsrfTokens:
    """The tokens that pages add to their forms. A page of another site cannot read the token of a session.

    Each page gets a different token of the same session. With equal tokens, the size of a compressed page could reveal
    the token to a person who can change a part of the page (the BREACH attack).

    Args:
        key: The key of an earlier process, so that its pages stay valid. None creates a new key.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self.key = key or secrets.token_bytes(_KEY_BYTES)

    def create(self, session_id: str) -> str:
        """Return a new token of a session."""
        mask = secrets.token_bytes(_KEY_BYTES)
        return (mask + _combine(mask, self._compute_secret(session_id))).hex()

    def check(self, request: Request, form: Form, session_id: str) -> None:
        """Check that a page of the console with this session has sent a form.

        Raises:
            HTTPException: The form comes from a different site or session.
        """
        has_token = hmac.compare_digest(_read_secret(form.get(TOKEN_FIELD)), self._compute_secret(session_id))
        if not (has_token and is_same_origin(request)):
            raise HTTPException(HTTPStatus.FORBIDDEN)

    def compute_session_digest(self, session_id: str) -> str:
        """Return a digest that identifies the key and the session.

        `check` refuses a form if the digest has changed since the page with the form was created.
        """
        return sha256(self._compute_secret(session_id)).hexdigest()

    def _compute_secret(self, session_id: str) -> bytes:
        return hmac.digest(self.key, session_id.encode(), sha256)


def _combine(mask: bytes, secret: bytes) -> bytes:
    return bytes(left ^ right for left, right in zip(mask, secret, strict=True))


def _read_secret(token: str) -> bytes:
    """Return the secret in a token. Return b"" if the text is not a token."""
    try:
        data = bytes.fromhex(token)
    except ValueError:
        return b""
    return _combine(data[:_KEY_BYTES], data[_KEY_BYTES:]) if len(data) == 2 * _KEY_BYTES else b""


def is_same_origin(request: Request) -> bool:
    """Return whether the browser reports that a page with the same origin sent the request."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    # Use `Origin`, because browsers without the header `Sec-Fetch-Site` send `Origin` with each POST request.
    origin = urlsplit(request.headers.get("origin", ""))
    return origin.netloc != "" and origin.netloc == request.headers.get("host", "")
