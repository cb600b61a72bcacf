"""Deciding what a push came to: who is done, who lost a race, whom the host refused, and who is sent again.

No process here: `settle` is handed two ways to act, so that its decisions can be tested as tables.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from reconciler.gitio.errors import GitError, GitFailedError
from reconciler.snapshot.objects import ObjectId

# what git writes beside refs that were refused because of another one, or because of nobody in particular
_INNOCENT = (
    "atomic push failed", "atomic push failure", "atomic transaction failed", "transaction failed",
    "pre-receive hook declined", "unpacker error", "failed to update ref", "failed to lock", "remote failed",
)  # fmt: skip
_STALE = ("stale info", "fetch first", "reference already exists", "incorrect old value provided")
# a lock or a disk on the far side, where the same push may go through later
_PASSING = ("transaction failed", "failed to update ref", "failed to lock", "unpacker error", "remote failed")
_HAD_ALREADY = "new commit is same with old commit"


@dataclass(frozen=True)
class RefUpdate:
    """Move `ref` from `expected` to `new`; None is absent, so new=None deletes and expected=None creates.

    With `new` equal to `expected` nothing moves, and the unit is Lost if the ref did (of an absent ref only what
    the last fetch saw is asked: a push has no words for it).
    """

    ref: str
    new: ObjectId | str | None
    expected: ObjectId | str | None


@dataclass(frozen=True)
class PushUnit:
    """Ref updates that happen together or not at all; on a host without atomic pushes the last one goes last.

    `options` are push options, words for the host that go with the push (peers.md (d): requests without a token).
    """

    name: str
    updates: tuple[RefUpdate, ...]
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Done:
    """The remote holds what the unit wanted, whoever brought it there."""


@dataclass(frozen=True)
class Lost:
    """Another writer moved this ref since the last fetch; fetch and plan again."""

    ref: str


@dataclass(frozen=True)
class Refused:
    """The host declined, in these words; the same content will be declined again."""

    words: str


@dataclass(frozen=True)
class Failed:
    """The push did not get through; `error.next_step` says what to do."""

    error: GitError


@dataclass(frozen=True)
class Postponed:
    """Nothing was sent yet, or is known of what was; the next pass goes on with it. `why` says what it waits for.

    `seconds` is in how many seconds it may go on; None where its end wakes the service.
    """

    why: str
    seconds: float | None = None


Outcome = Done | Lost | Refused | Failed | Postponed
OVER_PACE = "its remote takes no more pushes in this minute, and the rest follows"


@dataclass(frozen=True)
class PushReport:
    """What became of each unit, by its name."""

    outcomes: Mapping[str, Outcome] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Outcome:
        return self.outcomes[name]

    @property
    def done(self) -> bool:
        """Whether every unit is done."""
        return all(isinstance(outcome, Done) for outcome in self.outcomes.values())

    @property
    def lost(self) -> tuple[str, ...]:
        """Names of units that lost a race."""
        return tuple(name for name, outcome in self.outcomes.items() if isinstance(outcome, Lost))


@dataclass(frozen=True)
class Attempt:
    """How one push ended: accepted, or the reasons that porcelain gave by ref, and all that git said.

    `wait`: it was not made, and may be in so many seconds.
    """

    accepted: bool
    reasons: Mapping[str, str] = field(default_factory=dict)
    words: str = ""
    error: GitError | None = None
    wait: float | None = None


TryPush = Callable[[Sequence[RefUpdate]], Attempt]
Look = Callable[[], Mapping[str, str]]


def read_porcelain(lines: Iterable[str]) -> dict[str, str]:
    """Return the reason by remote ref for each ref that `git push --porcelain` reports as rejected."""
    rejected = (line.split("\t") for line in lines if line.startswith("!\t"))
    return {fields[1].partition(":")[2]: _reason(fields[2]) for fields in rejected if len(fields) == 3}


def _reason(summary: str) -> str:
    _, parenthesis, reason = summary.partition("(")
    return reason.removesuffix(")") if parenthesis else summary


def pack(units: Iterable[PushUnit], most: int, waiting: Iterable[str] = ()) -> Iterator[list[PushUnit]]:
    """Yield groups of whole units, sorted by name, of at most `most` refs; first those that are `waiting`, as named.

    A larger unit goes alone, and so does one with options: they belong to a push, not to a ref.
    """
    group: list[PushUnit] = []
    turn = {name: index for index, name in enumerate(waiting)}
    last = len(turn)
    for unit in sorted(units, key=lambda unit: (turn.get(unit.name, last), bool(unit.options), unit.name)):
        is_alone = bool(unit.options or (group and group[0].options))
        if group and (is_alone or sum(len(member.updates) for member in (*group, unit)) > most):
            yield group
            group = []
        group.append(unit)
    if group:
        yield group


def settle(units: Sequence[PushUnit], try_push: TryPush, look: Look) -> dict[str, Outcome]:
    """Push `units` until each has its outcome (git.md 4.9, finding 13).

    After a failure the remote is read again: what is there is done. Units that were named leave, the others are
    sent again as they are; when nobody was named, the group is halved until the guilty unit stands alone.
    """
    outcomes: dict[str, Outcome] = {}
    groups = deque([list(units)])
    while groups:
        group = groups.popleft()
        attempt = try_push([update for unit in group for update in unit.updates])
        if attempt.accepted:
            outcomes |= {unit.name: Done() for unit in group}
            continue
        if attempt.wait is not None:
            outcomes |= {unit.name: Postponed(OVER_PACE, attempt.wait) for unit in group}
            continue
        told, left = _sort_out(group, attempt, look)
        outcomes |= told
        groups.extendleft(reversed(_again(group, left)))
    return outcomes


def _sort_out(group: Sequence[PushUnit], attempt: Attempt, look: Look) -> tuple[dict[str, Outcome], list[PushUnit]]:
    try:
        remote = look()
    except GitError as error:
        return {unit.name: Failed(attempt.error or error) for unit in group}, []
    alone = len(group) == 1 and _missing(group[0], remote) == group[0]
    told: dict[str, Outcome] = {}
    left: list[PushUnit] = []
    for unit in group:
        outcome = judge(unit, attempt, remote) or (_last_word(unit, attempt) if alone else None)
        if outcome:
            told[unit.name] = outcome
        else:
            left.append(_missing(unit, remote))
    return told, left


def judge(unit: PushUnit, attempt: Attempt, remote: Mapping[str, str]) -> Outcome | None:
    """Return what is certain about a unit after a failed push, given the remote's refs; None if it may be innocent."""
    missing = _missing(unit, remote).updates
    if not missing:
        return Done()
    moved = [update.ref for update in missing if remote.get(update.ref) != update.expected]
    stale = [update.ref for update in missing if attempt.reasons.get(update.ref) in _STALE]
    if moved or stale:
        return Lost((moved or stale)[0])
    if attempt.error is not None:
        return Failed(attempt.error)
    named = [(update.ref, attempt.reasons[update.ref]) for update in missing if _names(attempt, update.ref)]
    return Refused(_sentence(f"{named[0][0]}: {named[0][1]}", unit, attempt)) if named else None


def judge_alone(unit: PushUnit, attempt: Attempt, error: GitError) -> Outcome:
    """Return what a push to a ref that the remote never lists came to; `error` is what git's own words speak of."""
    # Gitea's answer to a commit that its pull request has already
    if attempt.accepted or set(attempt.reasons.values()) == {_HAD_ALREADY}:
        return Done()
    return _last_word(unit, attempt) if attempt.reasons else Failed(error)


def _names(attempt: Attempt, ref: str) -> bool:
    reason = attempt.reasons.get(ref)
    return reason is not None and not reason.startswith(_INNOCENT)


def _missing(unit: PushUnit, remote: Mapping[str, str]) -> PushUnit:
    return replace(unit, updates=tuple(u for u in unit.updates if remote.get(u.ref) != u.new))


def _last_word(unit: PushUnit, attempt: Attempt) -> Outcome:
    reasons = sorted({attempt.reasons[update.ref] for update in unit.updates if update.ref in attempt.reasons})
    text = _sentence(", ".join(reasons) or "no reason given", unit, attempt)
    in_the_way = "exists; cannot create" in attempt.words
    passing = not reasons or all(any(sign in reason for sign in _PASSING) for reason in reasons)
    return (
        Failed(GitFailedError(f"pushing {unit.name} failed: {text}")) if passing and not in_the_way else Refused(text)
    )


def _sentence(reason: str, unit: PushUnit, attempt: Attempt) -> str:
    own = {update.ref for update in unit.updates}
    foreign = [ref for ref in attempt.reasons if ref not in own]
    said = [line.removeprefix("remote:").strip() for line in attempt.words.splitlines() if line.startswith("remote:")]
    # a hook's own lines may be about anybody; those that name somebody else are not for this unit
    about = [line for line in said if not _repeats(line) and not any(ref in line for ref in foreign)]
    return "; ".join([reason, *about])


def _repeats(line: str) -> bool:
    return not line or line.startswith("error: hook declined to update")


def _again(before: Sequence[PushUnit], left: list[PushUnit]) -> list[list[PushUnit]]:
    if not left:
        return []
    if len(left) < len(before) or left != list(before) or len(left) == 1:
        return [left]
    middle = len(left) // 2
    return [left[:middle], left[middle:]]


def settle_in_steps(
    units: Sequence[PushUnit], try_push: TryPush, look: Look, finish: TryPush | None = None
) -> dict[str, Outcome]:
    """Push `units` to a host without atomic pushes: the last update of a unit only when the others are there.

    `finish` pushes what ends a unit that is half there; it is not to be put off.

    A killed or refused push leaves drafts without their state; the next pass finds heads equal to what it would
    make, and only adds the state (finding 15).
    """
    first = [replace(unit, updates=unit.updates[:-1]) for unit in units if len(unit.updates) > 1]
    outcomes = settle(first, try_push, look) if first else {}
    ready = [unit for unit in units if isinstance(outcomes.get(unit.name, Done()), Done)]
    last = [replace(unit, updates=unit.updates[-1:]) for unit in ready]
    has_begun = any(len(unit.updates) > 1 for unit in ready)
    end = finish if finish and has_begun else try_push
    return outcomes | (settle(last, end, look) if last else {})


def find_clash(update: RefUpdate, names: Set[str], folders: Set[str]) -> str | None:
    """Return the ref or folder of refs that stands where `update` creates: Git has no `a` beside `a/b` (finding 18)."""
    if update.new is None or update.ref in names:
        return None
    if update.ref in folders:
        return f"{update.ref}/"
    return next((folder for folder in folders_of(update.ref) if folder in names), None)


def folders_of(ref: str) -> list[str]:
    """Return the folders that hold a ref, innermost last."""
    parts = ref.split("/")
    return ["/".join(parts[:count]) for count in range(2, len(parts))]
