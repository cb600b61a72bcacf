"""The ID of a request, which commits and log events contain."""

from __future__ import annotations

import secrets

from starlette.requests import Request

_MAX_CHARACTERS = 100
_RANDOM_BYTES = 8


def read_request_id(request: Request) -> str:
    """Return the value of the header `X-Request-Id`, or a random ID if there is no such header."""
    return request.headers.get("x-request-id", "")[:_MAX_CHARACTERS] or secrets.token_hex(_RANDOM_BYTES)
