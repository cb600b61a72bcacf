"""Tokens and secrets that clients share with the service."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

_SCHEME = "bearer "


def parse_bearer_token(authorization: str) -> str:
    """Return the token in the value of the header `Authorization`. Return "" if the value has a different scheme."""
    is_bearer = authorization[: len(_SCHEME)].lower() == _SCHEME
    return authorization[len(_SCHEME) :].strip() if is_bearer else ""


def is_accepted(value: str, secrets: Iterable[bytes]) -> bool:
    """Return whether a value is one of the secrets.

    The function compares all secrets, so that its duration does not depend on the secrets.
    """
    matches = [hmac.compare_digest(value.encode(), secret) for secret in secrets]
    return any(matches)
