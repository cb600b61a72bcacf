"""The ID of a request, which commits, log events, responses and messages about failed parts of pages contain."""

from __future__ import annotations

import secrets

from starlette.requests import Request

REQUEST_ID_HEADER = "X-Request-Id"
_ATTRIBUTE = "request_id"
_MAX_CHARACTERS = 100
_RANDOM_BYTES = 8


def read_request_id(request: Request) -> str:
    """Return the value of the header `X-Request-Id`, or a random ID if there is no such header.

    All calls for one request return the same ID.
    """
    if not hasattr(request.state, _ATTRIBUTE):
        sent = "".join(filter(str.isprintable, request.headers.get(REQUEST_ID_HEADER, "")))[:_MAX_CHARACTERS]
        setattr(request.state, _ATTRIBUTE, sent or secrets.token_hex(_RANDOM_BYTES))
    return str(getattr(request.state, _ATTRIBUTE))
