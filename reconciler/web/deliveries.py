"""Deliveries of webhooks: who is let in, what came before, and the poke that is all that becomes of them.

A webhook says that something may have moved, not what: the pass looks for itself (design 4.1).
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from threading import Lock

from reconciler.daemon.events import log
from reconciler.web.signatures import Check, Claim, read_claim

REMEMBERED = 10_000
FRESH_SECONDS = 300
_MAX_WORD = 80


class Deliveries:
    """Decides on deliveries, whatever carried them here; may be asked from several threads.

    `secrets` gives those that count now, `poke` wakes the service, `clock` gives seconds since 1970.
    """

    def __init__(
        self, secrets: Callable[[], Sequence[bytes]], poke: Callable[[], None], clock: Callable[[], float]
    ) -> None:
        self.secrets = secrets
        self._poke = poke
        self._clock = clock
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._lock = Lock()

    def receive(self, headers: Mapping[str, str], body: Iterable[bytes]) -> HTTPStatus:
        """Return what to answer: 202 after a poke, 200 for a replay, 401 without a reason for all else."""
        claim = read_claim(headers)
        check = Check(claim, self.secrets()) if claim else None
        for piece in body:
            if check:
                check.update(piece)
        if claim is None or check is None or not check.holds():
            log.debug("webhook_refused")
            return HTTPStatus.UNAUTHORIZED
        told = {"kind": _word(claim.event), "delivery": _word(claim.delivery)}
        if why := self._replayed(claim):
            log.info("webhook_ignored", why=why, **told)
            return HTTPStatus.OK
        log.info("webhook", **told)
        self._poke()
        return HTTPStatus.ACCEPTED

    def _replayed(self, claim: Claim) -> str:
        if claim.signed_at is not None and abs(self._clock() - claim.signed_at) > FRESH_SECONDS:
            return f"signed more than {FRESH_SECONDS} seconds from now"
        return "seen before" if claim.mark and self._known(hashlib.sha256(claim.mark).digest()) else ""

    def _known(self, mark: bytes) -> bool:
        with self._lock:
            if mark in self._seen:
                return True
            self._seen[mark] = None
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
            return False


def _word(text: str) -> str:
    """Return a header's text as a log may hold it: short, and of plain characters."""
    return re.sub(r"[^A-Za-z0-9 ._:/{}-]", "?", text[:_MAX_WORD])
