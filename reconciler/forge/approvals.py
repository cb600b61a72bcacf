"""Who was approved, remembered for as long as a pull request's date says that nothing happened to it."""

from __future__ import annotations

from collections.abc import Callable, Collection

from reconciler.snapshot.objects import CommitId

# dates may count whole seconds, and the clocks of two machines differ
_SETTLED_SECONDS = 60


class Approvals:
    """What was last heard of approvals, by number. `clock` gives seconds since 1970.

    A review changes the date of its pull request, but something more may come within the same second: an answer is
    kept only when the date is past for sure.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: dict[int, tuple[int, CommitId, bool]] = {}

    def are_given(self, number: int, updated: int, commit: CommitId, ask: Callable[[], bool]) -> bool:
        """Return whether this head is approved, by asking where it was changed since it was asked last."""
        known = self._known.get(number)
        if known is not None and known[:2] == (updated, commit):
            return known[2]
        given = ask()
        if self._clock() - updated > _SETTLED_SECONDS:
            self._known[number] = (updated, commit, given)
        return given

    def forget(self, number: int) -> None:
        """Ask anew the next time."""
        self._known.pop(number, None)

    def keep_only(self, numbers: Collection[int]) -> None:
        """Forget all others: they are not open any more."""
        self._known = {number: known for number, known in self._known.items() if number in numbers}
