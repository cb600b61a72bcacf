"""The sessions of people who have signed in: their limits, their end, and when the rights of people are read again."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock

from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.review.people import Reviewer
from reconciler.telemetry.event_log import log

IDLE_SECONDS = 8 * 3_600
ABSOLUTE_SECONDS = 24 * 3_600
# The time of the last request is stored with this accuracy. After a restart, a session can end a minute too early.
_STORE_SECONDS = 60
CHECK_SECONDS = 15 * 60
_RETRY_SECONDS = 60
_ID_BYTES = 32


@dataclass(frozen=True)
class StoredSession:
    """The data of a session.

    Attributes:
        created_at: Seconds since 1970.
        used_at: The time of the last request of the person.
        checked_at: The time at which the provider last confirmed the person and the groups.
        provider_session: The ID of the session at the provider. "" if the provider sends none.
        refresh_token: The secret with which the groups are read again. "" if the provider sends none.
    """

    person: Reviewer
    created_at: float
    used_at: float
    checked_at: float
    provider_session: str = ""
    refresh_token: str = field(default="", repr=False)

    @property
    def ends_at(self) -> float:
        """The time at which the session ends if the person sends no further request."""
        return min(self.used_at + IDLE_SECONDS, self.created_at + ABSOLUTE_SECONDS)


def delete_session_file(file: Path) -> None:
    """Delete the file with the sessions of earlier processes. An error is logged and not raised."""
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        log.warning("sessions_store_failed", file=str(file), message=error.strerror)


class SessionStore:
    """The sessions of people. Their number is limited in total and for each person. The object is thread-safe.

    Args:
        clock: Returns seconds since 1970.
        max_sessions: The maximum number of sessions of all people. The sessions with the oldest requests end first.
        max_per_person: The maximum number of sessions of one person.
    """

    def __init__(self, clock: Callable[[], float], max_sessions: int = 10_000, max_per_person: int = 20) -> None:
        self._clock = clock
        self._max_sessions = max_sessions
        self._max_per_person = max_per_person
        self._lock = Lock()
        # All sessions, in the order of their last requests.
        self._sessions: OrderedDict[str, StoredSession] = OrderedDict()
        self._write_lock = Lock()
        self._write: Callable[[Mapping[str, StoredSession]], None] | None = None
        self._written_at = float("-inf")

    def restore(self, sessions: Mapping[str, StoredSession]) -> None:
        """Add the sessions of an earlier process."""
        with self._lock:
            self._sessions = OrderedDict(sorted(sessions.items(), key=lambda item: item[1].used_at)) | self._sessions

    def write_with(self, write: Callable[[Mapping[str, StoredSession]], None] | None) -> None:
        """Store all sessions with `write` now and after each change. If `write` is None, keep them only in memory."""
        self._write = write
        self._store()

    def create(self, person: Reviewer, provider_session: str = "", refresh_token: str = "") -> str:  # nosec B107
        """Create a session with a new ID, and return the ID."""
        identifier, now = secrets.token_urlsafe(_ID_BYTES), self._clock()
        with self._lock:
            for expired in [key for key, session in self._sessions.items() if session.ends_at <= now]:
                del self._sessions[expired]
            own = [key for key, session in self._sessions.items() if session.person.key == person.key]
            for key in own[: max(len(own) - self._max_per_person + 1, 0)]:
                del self._sessions[key]
            while len(self._sessions) >= self._max_sessions:
                self._sessions.popitem(last=False)
            self._sessions[identifier] = StoredSession(person, now, now, now, provider_session, refresh_token)
        self._store()
        return identifier

    def find(self, identifier: str, *, extends_session: bool = True) -> StoredSession | None:
        """Return a session. Return None if it does not exist, or if it has ended.

        Args:
            extends_session: Whether to record the use of the session, so that it expires later.
        """
        now = self._clock()
        with self._lock:
            session = self._sessions.get(identifier)
            if session is None or session.ends_at <= now:
                return None
            if extends_session:
                session = self._sessions[identifier] = replace(session, used_at=now)
                self._sessions.move_to_end(identifier)
        if extends_session and now - self._written_at >= _STORE_SECONDS:
            self._store()
        return session

    def count_seconds(self, identifier: str) -> int:
        """Return the seconds until a session without further requests ends. Return 0 if it has ended."""
        session = self.find(identifier, extends_session=False)
        return int(session.ends_at - self._clock()) if session else 0

    def list_current(self) -> tuple[StoredSession, ...]:
        """Return all sessions that have not ended, sorted by the time of their last request, newest first."""
        now = self._clock()
        with self._lock:
            return tuple(session for session in reversed(self._sessions.values()) if session.ends_at > now)

    def start_check(self, identifier: str) -> StoredSession | None:
        """Return a session whose person must be checked at the provider. Return None if no check is due.

        Only one caller receives the session. It must then call `complete_check`, `postpone_check` or `delete`.
        """
        now = self._clock()
        with self._lock:
            session = self._sessions.get(identifier)
            if session is None or not session.refresh_token or now - session.checked_at < CHECK_SECONDS:
                return None
            self._sessions[identifier] = replace(session, checked_at=now)
            return session

    def complete_check(self, identifier: str, person: Reviewer) -> None:
        """Store the current claims of a person, unless the session has ended meanwhile."""
        self._change(identifier, lambda session: replace(session, person=person))
        self._store()

    def replace_token(self, identifier: str, refresh_token: str) -> None:
        """Store a new refresh token, unless the session has ended meanwhile."""
        self._change(identifier, lambda session: replace(session, refresh_token=refresh_token))
        self._store()

    def postpone_check(self, identifier: str) -> None:
        """Postpone the next check of a session by a minute."""
        checked_at = self._clock() - CHECK_SECONDS + _RETRY_SECONDS
        self._change(identifier, lambda session: replace(session, checked_at=checked_at))

    def _change(self, identifier: str, change: Callable[[StoredSession], StoredSession]) -> None:
        with self._lock:
            if session := self._sessions.get(identifier):
                self._sessions[identifier] = change(session)

    def delete_matching(self, is_match: Callable[[StoredSession], bool]) -> int:
        """End all sessions for which `is_match` returns true. Return the number of ended sessions."""
        with self._lock:
            ended = [key for key, session in self._sessions.items() if is_match(session)]
            for key in ended:
                del self._sessions[key]
        if ended:
            self._store()
        return len(ended)

    def delete(self, identifier: str) -> None:
        """End a session."""
        with self._lock:
            is_known = self._sessions.pop(identifier, None)
        if is_known:
            self._store()

    def _store(self) -> None:
        # Copy the sessions after the write of another thread has ended. Otherwise, an older copy could be written last.
        with self._write_lock:
            if self._write:
                with self._lock:
                    sessions = dict(self._sessions)
                self._written_at = self._clock()
                self._write(sessions)
