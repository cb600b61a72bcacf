"""Sign-ins that the provider has not completed yet. Each one belongs to one browser, and can be completed once."""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from threading import Lock

from reconciler.lazy_dataclasses import dataclass

PENDING_SECONDS = 600
_ID_BYTES = 32


@dataclass(frozen=True)
class PendingSignIn:
    """A sign-in that the provider has not completed.

    Attributes:
        state: The value that the provider must send back.
        nonce: The value that the ID token must contain.
        code_verifier: The secret of PKCE (RFC 7636).
        return_path: The page to which the person returns.
        started_at: Seconds since 1970.
    """

    state: str
    nonce: str
    code_verifier: str
    return_path: str
    started_at: float

    @property
    def code_challenge(self) -> str:
        """The digest of the code verifier, for the method S256."""
        return urlsafe_b64encode(sha256(self.code_verifier.encode()).digest()).rstrip(b"=").decode()


class PendingSignIns:
    """The sign-ins that are not complete. They expire after ten minutes. The object is thread-safe.

    Args:
        clock: Returns seconds since 1970.
        max_pending: The maximum number of sign-ins. If there are more, the oldest sign-ins are deleted.
    """

    def __init__(self, clock: Callable[[], float], max_pending: int = 10_000) -> None:
        self._clock = clock
        self._max_pending = max_pending
        self._lock = Lock()
        self._pending: dict[str, PendingSignIn] = {}

    def create(self, return_path: str) -> tuple[str, PendingSignIn]:
        """Start a sign-in. Return the ID, which only the browser may know, and the sign-in."""
        identifier, state, nonce, verifier = (secrets.token_urlsafe(_ID_BYTES) for _ in range(4))
        pending = PendingSignIn(state, nonce, verifier, return_path, self._clock())
        with self._lock:
            while self._pending and (len(self._pending) >= self._max_pending or self._has_expired_first()):
                del self._pending[next(iter(self._pending))]
            self._pending[identifier] = pending
        return identifier, pending

    def take(self, identifier: str, state: str) -> PendingSignIn | None:
        """Remove and return a sign-in of this browser with this state. Return None if there is none."""
        with self._lock:
            pending = self._pending.get(identifier)
            if pending is None or not hmac.compare_digest(pending.state.encode(), state.encode()):
                return None
            del self._pending[identifier]
        return None if self._has_expired(pending) else pending

    def _has_expired_first(self) -> bool:
        return self._has_expired(next(iter(self._pending.values())))

    def _has_expired(self, pending: PendingSignIn) -> bool:
        return self._clock() - pending.started_at >= PENDING_SECONDS
