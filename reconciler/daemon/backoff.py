"""Back-off: a remote that fails is asked again later and later, without holding up the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class _Trouble:
    failures: int
    again_at: float


class Backoff:
    """How long each remote rests; `clock` gives seconds of any steady clock.

    The first failure rests `base_seconds`, every further one twice as long, up to `max_seconds`.
    """

    def __init__(self, base_seconds: float, max_seconds: float, clock: Callable[[], float]) -> None:
        self._base = base_seconds
        self._max = max_seconds
        self._clock = clock
        self._troubled: dict[str, _Trouble] = {}

    def rests(self, remote: str) -> bool:
        """Return whether the remote is not to be asked yet."""
        trouble = self._troubled.get(remote)
        return trouble is not None and self._clock() < trouble.again_at

    def failed(self, remote: str) -> None:
        """Take note of a failure."""
        failures = self._troubled[remote].failures if remote in self._troubled else 0
        rest = min(self._base * 2.0 ** min(failures, 30), self._max)
        self._troubled[remote] = _Trouble(failures + 1, self._clock() + rest)

    def worked(self, remote: str) -> None:
        """Forget a remote's failures."""
        self._troubled.pop(remote, None)

    def forgive(self) -> None:
        """Let every remote be asked at once, keeping their counts: somebody asked for a pass now."""
        now = self._clock()
        self._troubled = {remote: replace(trouble, again_at=now) for remote, trouble in self._troubled.items()}

    @property
    def waiting(self) -> Mapping[str, float]:
        """Seconds that each troubled remote still rests."""
        now = self._clock()
        return {remote: max(trouble.again_at - now, 0.0) for remote, trouble in self._troubled.items()}
