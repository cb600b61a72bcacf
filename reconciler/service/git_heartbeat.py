"""Writes the time of the last pass to a ref of the status repository, so that Git shows whether the daemon works."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread

from reconciler.git.errors import GitError, InterruptedGitError
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit
from reconciler.git.push_outcomes import PushDone, PushUnit, RefUpdate
from reconciler.krm.internal_errors import ScopeFailedError, isolation_boundary
from reconciler.planning.model.shard import Shard
from reconciler.reconcile.commits import describe_push_outcome
from reconciler.reconcile.failures import log_failure
from reconciler.telemetry.event_log import log

_PREFIX = "refs/reconciler/heartbeat/"


class GitHeartbeat:
    """Replaces the commit of the heartbeat ref after a pass, at most once per interval.

    A thread pushes the new commit, so that no pass waits for the push.

    Args:
        open_mirror: Opens a mirror of the status repository. No other code uses this mirror.
        clock: Returns the date of the new commit, in seconds since 1970.
    """

    def __init__(
        self,
        open_mirror: Callable[[], Mirror],
        shard: Shard,
        interval_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._open_mirror = open_mirror
        self._ref = f"{_PREFIX}{shard.index}-of-{shard.count}"
        self._message = f"heartbeat: shard {shard} completed a pass with the result"
        self._interval_seconds = interval_seconds
        self._clock = clock
        self._due_at = 0.0
        self._mirror: Mirror | None = None
        self._thread: Thread | None = None

    def record_pass(self, result: str) -> None:
        """Push a new commit if the interval since the last attempt is over, and the last attempt has ended."""
        now = self._clock()
        if now < self._due_at or (self._thread and self._thread.is_alive()):
            return
        self._due_at = now + self._interval_seconds
        self._thread = Thread(target=self._push, args=(f"{self._message} {result}\n", int(now)), name="heartbeat")
        self._thread.start()

    def wait(self) -> None:
        """Wait for the end of a running push."""
        if self._thread:
            self._thread.join()

    def close(self) -> None:
        """Interrupt a running push, and wait for its end."""
        if self._mirror:
            self._mirror.interrupt()
        self.wait()

    def _push(self, message: str, seconds: int) -> None:
        try:
            with isolation_boundary("the heartbeat in Git"):
                problem = self._try_to_push(message, seconds)
        except InterruptedGitError:
            # Push no heartbeat, because the daemon stops.
            return
        except GitError as error:
            problem = error.full_message
        except ScopeFailedError as error:
            log_failure(error.failure)
            return
        if problem:
            log.warning("heartbeat_push_failed", ref=self._ref, message=problem)

    def _try_to_push(self, message: str, seconds: int) -> str:
        """Replace the commit of the ref. Return the reason of a failure, or ""."""
        mirror = self._mirror = self._mirror or self._open_mirror()
        mirror.fetch("target", _PREFIX, branches=())
        (commit,) = mirror.write_commits([NewCommit((), (), message, seconds, has_empty_base=True)])
        update = RefUpdate(self._ref, commit, mirror.refs().get(self._ref))
        outcome = mirror.push([PushUnit("heartbeat", (update,))])["heartbeat"]
        return "" if isinstance(outcome, PushDone) else describe_push_outcome(outcome)


class NoHeartbeat:
    """Writes no heartbeat, because the settings turn the heartbeat off."""

    def record_pass(self, result: str) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing, because there is no thread."""
