"""Outcomes of pushes, and the rules that decide which units of a failed push are pushed again.

This module starts no process. Its functions receive callbacks that push and list refs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

from reconciler.catalog.files import ObjectId
from reconciler.git.errors import GitError, GitFailedError
from reconciler.lazy_dataclasses import dataclass, field, replace

# Reasons that do not name the cause: Git also reports them for refs that it refused because of another ref.
_UNSPECIFIC_REASONS = (
    "atomic push failed", "atomic push failure", "atomic transaction failed", "transaction failed",
    "pre-receive hook declined", "unpacker error", "failed to update ref", "failed to lock", "remote failed",
)  # fmt: skip
_STALE_REASONS = ("stale info", "fetch first", "reference already exists", "incorrect old value provided")
# Reasons for temporary failures of the host. The same push may succeed later.
_TEMPORARY_REASONS = ("transaction failed", "failed to update ref", "failed to lock", "unpacker error", "remote failed")
_COMMIT_ALREADY_IN_REQUEST = "new commit is same with old commit"
RATE_LIMIT_MESSAGE = "the limit of pushes per minute for the remote is reached; a later pass pushes the rest"
ListRemoteRefs = Callable[[], Mapping[str, str]]


@dataclass(frozen=True)
class RefUpdate:
    """An update that moves `ref` from `expected` to `new`.

    There are four special cases:

    - `new` is None: the ref is deleted.
    - `expected` is None: the ref is created.
    - `new` equals `expected`: the ref does not move. If another writer has moved the ref, the push has the result
      PushStale.
    - Both are None: the ref must not exist. Only the result of the last fetch is checked, because a push cannot include
      such a condition.
    """

    ref: str
    new: ObjectId | str | None
    expected: ObjectId | str | None


@dataclass(frozen=True)
class PushUnit:
    """Ref updates that are applied all together or not at all.

    If a host does not support atomic pushes, the last update is pushed after all others. `options` are push options,
    which can create a pull request without an API token.
    """

    name: str
    updates: tuple[RefUpdate, ...]
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class PushDone:
    """The remote has the new values of all refs of the unit. This writer or another writer has pushed them."""


@dataclass(frozen=True)
class PushStale:
    """Another writer has moved `ref` since the last fetch. The target must be fetched and planned again."""

    ref: str


@dataclass(frozen=True)
class PushRefused:
    """The host refused the push with this message, and would refuse a push of the same content again."""

    message: str


@dataclass(frozen=True)
class PushFailed:
    """The push failed. `error.next_step` contains the necessary reaction."""

    error: GitError


@dataclass(frozen=True)
class PushPostponed:
    """The push has not started, or its result is not known yet. A later pass pushes again.

    Attributes:
        reason: The cause, for messages.
        seconds: The time until the push is allowed. None if the end of a running operation starts the next pass.
    """

    reason: str
    seconds: float | None = None


PushOutcome = PushDone | PushStale | PushRefused | PushFailed | PushPostponed


@dataclass(frozen=True)
class PushReport:
    """The outcomes of a push, by the names of the units."""

    outcomes: Mapping[str, PushOutcome] = field(default_factory=dict)

    def __getitem__(self, name: str) -> PushOutcome:
        return self.outcomes[name]

    @property
    def is_complete(self) -> bool:
        """Whether the outcome of every unit is PushDone."""
        return all(isinstance(outcome, PushDone) for outcome in self.outcomes.values())

    @property
    def stale_units(self) -> tuple[str, ...]:
        """The names of the units with the outcome PushStale."""
        return tuple(name for name, outcome in self.outcomes.items() if isinstance(outcome, PushStale))


@dataclass(frozen=True)
class PushAttempt:
    """The result of one `git push`.

    Attributes:
        reasons: The reasons of rejected refs, by ref, from `git push --porcelain`.
        wait_seconds: The time until the rate limit allows the push. None if git was started.
    """

    is_accepted: bool
    reasons: Mapping[str, str] = field(default_factory=dict)
    stderr: str = ""
    error: GitError | None = None
    wait_seconds: float | None = None


TryPush = Callable[[Sequence[RefUpdate]], PushAttempt]


def read_porcelain(lines: Iterable[str]) -> dict[str, str]:
    """Parse the output of `git push --porcelain`, and return the rejected refs of the remote with their reasons."""
    rejected = (line.split("\t") for line in lines if line.startswith("!\t"))
    return {fields[1].partition(":")[2]: _parse_reason(fields[2]) for fields in rejected if len(fields) == 3}


def has_stale_reason(reason: str) -> bool:
    """Return whether the remote rejected a ref with this reason because another writer has moved the ref."""
    return reason in _STALE_REASONS


def _parse_reason(summary: str) -> str:
    _, parenthesis, reason = summary.partition("(")
    return reason.removesuffix(")") if parenthesis else summary


def group_units(units: Iterable[PushUnit], max_refs: int, waiting: Iterable[str] = ()) -> Iterator[list[PushUnit]]:
    """Divide units into groups with at most `max_refs` refs, and yield the groups. A unit is never divided.

    Units whose names are in `waiting` come first, in the order of `waiting`. The other units are sorted by name, first
    the units without push options. These units are alone in their group:

    - Units with more than `max_refs` refs.
    - Units with push options, because the options apply to a whole push.
    """
    group: list[PushUnit] = []
    order = {name: index for index, name in enumerate(waiting)}
    last_position = len(order)
    for unit in sorted(units, key=lambda unit: (order.get(unit.name, last_position), bool(unit.options), unit.name)):
        is_alone = bool(unit.options or (group and group[0].options))
        if group and (is_alone or sum(len(member.updates) for member in (*group, unit)) > max_refs):
            yield group
            group = []
        group.append(unit)
    if group:
        yield group


def push_until_settled(
    units: Sequence[PushUnit], try_push: TryPush, list_remote_refs: ListRemoteRefs
) -> dict[str, PushOutcome]:
    """Push `units` until each unit has an outcome.

    After a failed push, list the refs of the remote, and process each unit of the push as follows:

    - If the remote already has the new values of all refs of the unit, the unit is done.
    - If the error message contains refs of the unit, or another writer has moved them, the unit gets a failed outcome.
    - All other units are pushed again. If no unit got an outcome, they are pushed in two halves, until the failing unit
      is pushed alone.
    """
    outcomes: dict[str, PushOutcome] = {}
    groups = deque([list(units)])
    while groups:
        group = groups.popleft()
        attempt = try_push([update for unit in group for update in unit.updates])
        if attempt.is_accepted:
            outcomes |= {unit.name: PushDone() for unit in group}
            continue
        if attempt.wait_seconds is not None:
            outcomes |= {unit.name: PushPostponed(RATE_LIMIT_MESSAGE, attempt.wait_seconds) for unit in group}
            continue
        settled, remaining = _sort_group(group, attempt, list_remote_refs)
        outcomes |= settled
        groups.extendleft(reversed(_split_remaining(group, remaining)))
    return outcomes


def _sort_group(
    group: Sequence[PushUnit], attempt: PushAttempt, list_remote_refs: ListRemoteRefs
) -> tuple[dict[str, PushOutcome], list[PushUnit]]:
    try:
        remote = list_remote_refs()
    except GitError as error:
        return {unit.name: PushFailed(attempt.error or error) for unit in group}, []
    is_alone = len(group) == 1 and _remove_present_updates(group[0], remote) == group[0]
    settled: dict[str, PushOutcome] = {}
    remaining: list[PushUnit] = []
    for unit in group:
        outcome = determine_outcome(unit, attempt, remote) or (
            _determine_final_outcome(unit, attempt) if is_alone else None
        )
        if outcome:
            settled[unit.name] = outcome
        else:
            remaining.append(_remove_present_updates(unit, remote))
    return settled, remaining


def determine_outcome(unit: PushUnit, attempt: PushAttempt, remote: Mapping[str, str]) -> PushOutcome | None:
    """Return the outcome of a unit after a failed push. Return None if the unit may be pushed again.

    Args:
        remote: The refs of the remote after the push.
    """
    missing = _remove_present_updates(unit, remote).updates
    if not missing:
        return PushDone()
    moved = [update.ref for update in missing if remote.get(update.ref) != update.expected]
    stale = [update.ref for update in missing if attempt.reasons.get(update.ref) in _STALE_REASONS]
    if moved or stale:
        return PushStale((moved or stale)[0])
    if attempt.error is not None:
        return PushFailed(attempt.error)
    reasons = [(update.ref, attempt.reasons[update.ref]) for update in missing if _is_named(attempt, update.ref)]
    return PushRefused(_format_reason(f"{reasons[0][0]}: {reasons[0][1]}", unit, attempt)) if reasons else None


def determine_unlisted_outcome(unit: PushUnit, attempt: PushAttempt, error: GitError) -> PushOutcome:
    """Return the outcome of a push to a ref that the remote does not create, such as `refs/for/main`.

    Args:
        error: The error that the stderr of git describes.
    """
    # Treat this reason as success, because Gitea returns it if the pull request already contains the commit.
    if attempt.is_accepted or set(attempt.reasons.values()) == {_COMMIT_ALREADY_IN_REQUEST}:
        return PushDone()
    return _determine_final_outcome(unit, attempt) if attempt.reasons else PushFailed(error)


def _is_named(attempt: PushAttempt, ref: str) -> bool:
    reason = attempt.reasons.get(ref)
    return reason is not None and not reason.startswith(_UNSPECIFIC_REASONS)


def _remove_present_updates(unit: PushUnit, remote: Mapping[str, str]) -> PushUnit:
    return replace(unit, updates=tuple(update for update in unit.updates if remote.get(update.ref) != update.new))


def _determine_final_outcome(unit: PushUnit, attempt: PushAttempt) -> PushOutcome:
    reasons = sorted({attempt.reasons[update.ref] for update in unit.updates if update.ref in attempt.reasons})
    text = _format_reason(", ".join(reasons) or "no reason given", unit, attempt)
    is_blocked = "exists; cannot create" in attempt.stderr
    is_temporary = not reasons or all(any(sign in reason for sign in _TEMPORARY_REASONS) for reason in reasons)
    return (
        PushFailed(GitFailedError(f"pushing {unit.name} failed: {text}"))
        if is_temporary and not is_blocked
        else PushRefused(text)
    )


def _format_reason(reason: str, unit: PushUnit, attempt: PushAttempt) -> str:
    own_refs = {update.ref for update in unit.updates}
    other_refs = [ref for ref in attempt.reasons if ref not in own_refs]
    remote_lines = [
        line.removeprefix("remote:").strip() for line in attempt.stderr.splitlines() if line.startswith("remote:")
    ]
    # Omit lines that name refs of other push units, because the output of a hook covers all refs of the push.
    lines = [
        line for line in remote_lines if not _is_redundant_line(line) and not any(ref in line for ref in other_refs)
    ]
    return "; ".join([reason, *lines])


def _is_redundant_line(line: str) -> bool:
    return not line or line.startswith("error: hook declined to update")


def _split_remaining(group: Sequence[PushUnit], remaining: list[PushUnit]) -> list[list[PushUnit]]:
    if not remaining:
        return []
    if len(remaining) < len(group) or remaining != list(group) or len(remaining) == 1:
        return [remaining]
    middle = len(remaining) // 2
    return [remaining[:middle], remaining[middle:]]


def push_in_two_steps(
    units: Sequence[PushUnit], try_push: TryPush, list_remote_refs: ListRemoteRefs, finish: TryPush | None = None
) -> dict[str, PushOutcome]:
    """Push `units` to a host without atomic pushes. Push the last update of each unit after its other updates.

    If a unit has several refs, its last update moves the state ref. If this update fails, the remote has drafts without
    their state. The next pass then plans the same drafts, and pushes only the state.

    Args:
        finish: Pushes the last updates if other updates of the units are already pushed. Must ignore the rate limit.
    """
    first_updates = [replace(unit, updates=unit.updates[:-1]) for unit in units if len(unit.updates) > 1]
    outcomes = push_until_settled(first_updates, try_push, list_remote_refs) if first_updates else {}
    ready = [unit for unit in units if isinstance(outcomes.get(unit.name, PushDone()), PushDone)]
    last_updates = [replace(unit, updates=unit.updates[-1:]) for unit in ready]
    has_begun = any(len(unit.updates) > 1 for unit in ready)
    push_last = finish if finish and has_begun else try_push
    return outcomes | (push_until_settled(last_updates, push_last, list_remote_refs) if last_updates else {})


def find_ref_name_conflict(update: RefUpdate, names: Set[str], folders: Set[str]) -> str | None:
    """Return the existing ref, or folder of refs, that prevents the creation of a ref. Return None if there is none.

    For example, `a` prevents the creation of `a/b`, because Git cannot store both.
    """
    if update.new is None or update.ref in names:
        return None
    if update.ref in folders:
        return f"{update.ref}/"
    return next((folder for folder in list_parent_folders(update.ref) if folder in names), None)


def list_parent_folders(ref: str) -> list[str]:
    """Return the folders that contain a ref, e.g. "refs/heads/a/b" -> ["refs/heads", "refs/heads/a"]."""
    parts = ref.split("/")
    return ["/".join(parts[:count]) for count in range(2, len(parts))]
