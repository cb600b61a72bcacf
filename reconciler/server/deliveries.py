"""Verifies webhook deliveries, detects replays, and reads the webhook secrets again after a change of their file.

An accepted delivery only starts a pass. The pass fetches the remotes and does not use the content of the webhook.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterable, Callable, Mapping, Sequence
from enum import Enum
from http import HTTPStatus
from pathlib import Path
from threading import Lock

from reconciler.credential_files import SecretFileError, read_file_version, read_secrets
from reconciler.server.signatures import SignatureCheck, SignatureClaim, read_claim
from reconciler.service.fleet_view import Failure
from reconciler.telemetry.event_log import log
from reconciler.telemetry.metrics import WEBHOOKS
from reconciler.telemetry.traces import link_next_pass

MAX_DELIVERIES_KEPT = 10_000
MAX_AGE_SECONDS = 300
_MAX_LOGGED_CHARACTERS = 80
# The reasons of refused webhooks, with their texts for the log.
_NO_SIGNATURE = "signature_missing", "no header of the request contains a signature in a known format"
_NO_MATCH = "signature_invalid", "no secret in `webhooks.secret_file` matches the signature"


class _Replay(Enum):
    """The reasons why a webhook with a valid signature starts no pass, with their texts for the log."""

    EXPIRED = f"the time of the signature differs by more than {MAX_AGE_SECONDS} seconds from the current time"
    REPLAYED = "the same delivery was received before"


class WebhookDeliveries:
    """Accepts or rejects webhook deliveries, independently of the HTTP server. The object is thread-safe.

    Args:
        notify: Starts a pass.
        clock: Returns seconds since 1970.

    Attributes:
        secrets: Returns the current secrets. None if the settings contain no file with secrets.
    """

    def __init__(self, notify: Callable[[], None], clock: Callable[[], float] = time.time) -> None:
        self.secrets: Callable[[], Sequence[bytes]] | None = None
        self._notify = notify
        self._clock = clock
        self._known_digests: OrderedDict[bytes, None] = OrderedDict()
        self._lock = Lock()

    async def receive(self, headers: Mapping[str, str], body: AsyncIterable[bytes]) -> HTTPStatus:
        """Verify a delivery, and return the HTTP status of the response.

        The status is 202 if the delivery starts a pass, 200 if the delivery is a replay, and 401 if the signature is
        not valid.
        """
        claim = read_claim(headers)
        check = SignatureCheck(claim, self.secrets()) if claim and self.secrets else None
        async for chunk in body:
            if check:
                check.update(chunk)
        if claim is None or check is None or not check.is_valid():
            provider = claim.provider if claim else "other"
            reason, message = _NO_MATCH if claim else _NO_SIGNATURE
            log.debug("webhook_refused", provider=provider, reason=reason, message=message)
            WEBHOOKS.add(provider, "refused")
            return HTTPStatus.UNAUTHORIZED
        fields = {"provider": claim.provider, "kind": _sanitize(claim.event), "delivery": _sanitize(claim.delivery)}
        if ignored := self._find_replay(claim):
            log.info("webhook_ignored", reason=ignored.name.lower(), message=ignored.value, **fields)
            WEBHOOKS.add(claim.provider, ignored.name.lower())
            return HTTPStatus.OK
        log.info("webhook_accepted", **fields)
        WEBHOOKS.add(claim.provider, "accepted")
        link_next_pass()
        self._notify()
        return HTTPStatus.ACCEPTED

    def _find_replay(self, claim: SignatureClaim) -> _Replay | None:
        if claim.signed_at is not None and abs(self._clock() - claim.signed_at) > MAX_AGE_SECONDS:
            return _Replay.EXPIRED
        is_known = claim.identity and self._is_known(hashlib.sha256(claim.identity).digest())
        return _Replay.REPLAYED if is_known else None

    def _is_known(self, digest: bytes) -> bool:
        with self._lock:
            if digest in self._known_digests:
                return True
            self._known_digests[digest] = None
            if len(self._known_digests) > MAX_DELIVERIES_KEPT:
                self._known_digests.popitem(last=False)
            return False


def _sanitize(text: str) -> str:
    """Shorten the text of a header, and replace characters that must not be logged."""
    return re.sub(r"[^A-Za-z0-9 ._:/{}-]", "?", text[:_MAX_LOGGED_CHARACTERS])


class SecretFile:
    """A file with webhook secrets, one per line.

    Args:
        clock: Returns the seconds of a monotonic clock.

    Raises:
        SecretFileError: The file contains no secret or cannot be read when the object is created.
    """

    def __init__(self, file: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._clock = clock
        self._lock = Lock()
        self._failure: Failure | None = None
        self._version = read_file_version(file)
        self._secrets = read_secrets(file)

    def secrets(self) -> tuple[bytes, ...]:
        """Return the current secrets. Read the file again if it has changed.

        If the changed file cannot be used, log an error and return ().
        """
        with self._lock:
            version = read_file_version(self._file)
            if version != self._version:
                self._version = version
                self._secrets = self._reload()
            return self._secrets

    def find_failure(self) -> Failure | None:
        """Return the reason why the changed file cannot be used. Return None if it can be used."""
        self.secrets()
        return self._failure

    def _reload(self) -> tuple[bytes, ...]:
        try:
            secrets = read_secrets(self._file)
        except SecretFileError as error:
            # Do not use the old secrets any more, because an operator can have deleted the file to revoke them.
            log.error("webhook_secrets_lost", message=str(error))
            self._failure = Failure(self._clock(), str(error))
            return ()
        self._failure = None
        log.info("webhook_secrets_reloaded", secrets=len(secrets))
        return secrets
