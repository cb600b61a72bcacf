"""Pushes to one remote. Each push has an expected value for every ref (a lease) and detects symbolic refs.

A push to a symbolic ref moves the branch that this ref points to, without a review. Detection depends on the remote:

- With protocol version 2, Git lists all symbolic refs to existing branches.
- With protocol version 0, Git lists only the target of HEAD. A push through another symbolic ref is detected after the
  push, because it also moves the branch that the ref points to.

Only branches are listed, because a remote may have very many tags. State refs are not checked, because the code that
reads states refuses the content of a symbolic state ref.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, suppress
from functools import partial

from reconciler.git.command import TRACKING_PREFIX, GitCommand, GitResult
from reconciler.git.errors import GitError, GitFailedError, RepositoryMissingError, SymbolicRefError
from reconciler.git.names import check_object_id, check_push_option, check_ref
from reconciler.git.options import GitOptions
from reconciler.git.push_outcomes import (
    RATE_LIMIT_MESSAGE,
    PushAttempt,
    PushDone,
    PushFailed,
    PushOutcome,
    PushPostponed,
    PushRefused,
    PushReport,
    PushUnit,
    RefUpdate,
    determine_unlisted_outcome,
    find_ref_name_conflict,
    group_units,
    list_parent_folders,
    push_in_two_steps,
    push_until_settled,
    read_porcelain,
)
from reconciler.git.rate_limit import PushRateLimiter
from reconciler.lazy_dataclasses import dataclass, replace

_SYMBOLIC = "ref: "
STAGING_PREFIX = "refs/out/"
_REVIEW_PREFIX = "refs/for/"
ATOMIC_UNSUPPORTED = "does not support --atomic"
OPTIONS_UNSUPPORTED = "does not support push options"
_TRACK_ALL_REFS = f"remote.origin.fetch=+refs/*:{TRACKING_PREFIX}*"
_REFUSED_OPTIONS = PushRefused("the host does not support push options, and a request for a review needs push options")


class _NoAtomicError(Exception):
    """The host does not support atomic pushes."""


class _NoOptionsError(Exception):
    """The host does not support push options."""


class RefPusher:
    """Pushes units from one mirror to its remote.

    If `atomic` is False, a refused ref does not affect the other refs of a push.

    If the rate limit does not allow the push of a unit, the whole unit is postponed. The next call pushes postponed
    units first. After the first refs of a unit are pushed, its other refs are pushed regardless of the limit.
    """

    def __init__(
        self,
        command: GitCommand,
        lock: Callable[[], AbstractContextManager[int]],
        options: GitOptions,
        rate_limiter: PushRateLimiter,
        *,
        atomic: bool = True,
    ) -> None:
        self._command = command
        self._lock = lock
        self._max_refs = options.max_refs_per_push
        self._rate_limiter = rate_limiter
        self._atomic = atomic
        self._can_use_options = True
        self._has_listed_refs = False
        # The names of postponed units. The next call pushes these units first, in this order.
        self._waiting: dict[str, None] = {}

    @property
    def can_use_push_options(self) -> bool:
        """Whether push options can be used. This is True until a push shows that the host does not support them."""
        return self._can_use_options

    def push(self, units: Sequence[PushUnit], known_refs: Mapping[str, str], reserved_pushes: int = 0) -> PushReport:
        """Push `units`, and return the outcome of each unit.

        Args:
            known_refs: The refs of the remote at the last fetch.
            reserved_pushes: The number of pushes per minute that this call must leave to later calls.
        """
        _check_units(units)
        try:
            before = read_remote_branches(self._command)
        except GitError as error:
            # Push nothing without the list of branches, because this list is necessary to detect symbolic refs.
            return PushReport({unit.name: PushFailed(error) for unit in units})
        outcomes = _find_conflicting_units(units, known_refs)
        outcomes |= {unit.name: PushFailed(symbolic) for unit in units if (symbolic := find_symbolic_ref(unit, before))}
        ready = [unit for unit in units if unit.name not in outcomes]
        failed, ready, started_names = self._delete_obstacles(ready, reserved_pushes)
        outcomes |= failed
        for group in group_units(ready, self._max_refs, self._waiting):
            outcomes |= self._push_group(group, reserved_pushes, started_names)
        self._update_waiting(outcomes)
        if self._has_listed_refs:
            self._has_listed_refs = False
            done_updates = [
                update for unit in units if isinstance(outcomes[unit.name], PushDone) for update in unit.updates
            ]
            # Ignore an error, because the push has succeeded. The only effect of outdated tracking refs is that
            # the next push of these refs is refused as stale.
            with suppress(GitError):
                self._update_tracking_refs(done_updates)
        outcomes |= self._find_moved_refs(units, outcomes, before)
        return PushReport({unit.name: outcomes[unit.name] for unit in units})

    def _find_moved_refs(
        self, units: Sequence[PushUnit], outcomes: Mapping[str, PushOutcome], before: RemoteBranches
    ) -> dict[str, PushOutcome]:
        """Return a failure for each pushed unit whose push also moved another branch through a symbolic ref.

        The branches are read again only if a ref of a unit can be symbolic (`can_be_symbolic`).
        """
        done = [unit for unit in units if isinstance(outcomes[unit.name], PushDone)]
        suspects = [unit for unit in done if can_be_symbolic(unit, before)]
        if not suspects:
            return {}
        try:
            after = read_remote_branches(self._command)
        except GitError as error:
            return {unit.name: PushFailed(error) for unit in suspects}
        pushed_refs = {update.ref for unit in done for update in unit.updates}
        # Without atomic pushes, the remote can accept some refs of a failed unit.
        pushed_refs |= {
            update.ref for unit in units for update in unit.updates if update.new == after.commits.get(update.ref)
        }
        errors = {unit.name: find_ref_moved_by_push(unit, before, after, pushed_refs) for unit in suspects}
        return {name: PushFailed(error) for name, error in errors.items() if error}

    def _update_waiting(self, outcomes: Mapping[str, PushOutcome]) -> None:
        for name, outcome in sorted(outcomes.items()):
            if isinstance(outcome, PushPostponed):
                self._waiting.setdefault(name)
            else:
                self._waiting.pop(name, None)

    def push_for_review(self, commit: str, ref: str, options: Sequence[str]) -> PushOutcome:
        """Push a commit to a ref below `refs/for/`. The host then creates a pull request instead of a ref.

        Because there is no ref, the push has no expected value, and its result is not read from the remote.
        """
        if not check_ref(ref).startswith(_REVIEW_PREFIX):
            raise ValueError(f"{ref!r} must start with {_REVIEW_PREFIX}")
        unit = PushUnit(ref, (RefUpdate(ref, check_object_id(commit), None),), tuple(map(check_push_option, options)))
        try:
            return self._push_alone(unit) if self._can_use_options else _REFUSED_OPTIONS
        except _NoOptionsError:
            self._can_use_options = False
        return _REFUSED_OPTIONS

    def _push_alone(self, unit: PushUnit) -> PushOutcome:
        wait = self._rate_limiter.acquire()
        if wait is not None:
            return PushPostponed(RATE_LIMIT_MESSAGE, wait)
        [update] = unit.updates
        try:
            with self._lock() as lock_descriptor:
                result = self._run_push([f"{update.new}:{update.ref}"], unit.options, lock_descriptor)
        except GitError as error:
            return PushFailed(error)
        return determine_unlisted_outcome(
            unit, self._read_attempt(result), self._command.build_error("push", result.stderr)
        )

    def _delete_obstacles(
        self, units: Sequence[PushUnit], reserved_pushes: int
    ) -> tuple[dict[str, PushOutcome], list[PushUnit], Collection[str]]:
        """Push the deletions that must be complete before other refs in `units` can be created.

        Returns:
            Three values:

            - the outcomes of the units whose deletions failed
            - all other units, without the completed deletions
            - the names of the units whose deletions succeeded
        """
        # Delete `a` in an earlier push. Git refuses to create `a/b` while `a` exists, even if the same push deletes
        # `a`.
        created = {update.ref for unit in units for update in unit.updates if update.new is not None}
        folders = {folder for ref in created for folder in list_parent_folders(ref)}
        deletions = [
            replace(unit, updates=tuple(_find_obstacles(unit, created, folders)), options=()) for unit in units
        ]
        outcomes: dict[str, PushOutcome] = {}
        for group in group_units([unit for unit in deletions if unit.updates], self._max_refs, self._waiting):
            outcomes |= self._push_group(group, reserved_pushes)
        failed: dict[str, PushOutcome] = {
            name: outcome for name, outcome in outcomes.items() if not isinstance(outcome, PushDone)
        }
        deleted = {update.ref for unit in deletions for update in unit.updates}
        remaining = [
            replace(unit, updates=tuple(update for update in unit.updates if update.ref not in deleted))
            for unit in units
            if unit.name not in failed
        ]
        return failed, remaining, outcomes.keys() - failed.keys()

    def _push_group(
        self, group: Sequence[PushUnit], reserved_pushes: int, started_units: Collection[str] = ()
    ) -> dict[str, PushOutcome]:
        # Try again without the feature that the host does not support. The loop ends, because a feature is never
        # enabled again.
        while True:
            try:
                return self._push_group_once(group, reserved_pushes, started_units)
            except _NoAtomicError:
                self._atomic = False
            except _NoOptionsError:
                self._can_use_options = False

    def _push_group_once(
        self, group: Sequence[PushUnit], reserved_pushes: int, started_units: Collection[str]
    ) -> dict[str, PushOutcome]:
        # Use the options of the first unit, because a unit with options is always alone in its group.
        options = group[0].options if self._can_use_options else ()
        complete = partial(self._try_push, options=options, reserved_pushes=None)
        start = (
            complete
            if any(unit.name in started_units for unit in group)
            else partial(complete, reserved_pushes=reserved_pushes)
        )
        return (
            push_until_settled(group, start, self._list_remote_refs)
            if self._atomic
            else push_in_two_steps(group, start, self._list_remote_refs, complete)
        )

    def _try_push(
        self, updates: Sequence[RefUpdate], options: Sequence[str], reserved_pushes: int | None
    ) -> PushAttempt:
        """Push `updates` once, or return the seconds to wait if the rate limit does not allow the push now.

        If `reserved_pushes` is None, some refs of the unit are already pushed. Then push regardless of the rate limit.
        """
        if not updates:
            return PushAttempt(is_accepted=True)
        if reserved_pushes is None:
            self._rate_limiter.acquire_unconditionally()
        elif (wait := self._rate_limiter.acquire(reserved_pushes)) is not None:
            return PushAttempt(is_accepted=False, wait_seconds=wait)
        try:
            with self._lock() as lock_descriptor:
                return self._push_if_current(updates, options, lock_descriptor)
        except GitError as error:
            # This attempt is not the outcome of the push. The caller lists the refs of the remote, because the remote
            # can have accepted the push before the error.
            return PushAttempt(is_accepted=False, error=error)

    def _push_if_current(
        self, updates: Sequence[RefUpdate], options: Sequence[str], lock_descriptor: int
    ) -> PushAttempt:
        local_refs = self._list_refs(TRACKING_PREFIX, STAGING_PREFIX)
        stale = [update.ref for update in updates if local_refs.get(_get_tracking_ref(update.ref)) != update.expected]
        if stale:
            return PushAttempt(is_accepted=False, reasons=dict.fromkeys(stale, "stale info"))
        # Delete the staged refs that a killed process has left, because this push would also send these refs.
        self._unstage([ref for ref in local_refs if ref.startswith(STAGING_PREFIX)], lock_descriptor)
        return self._push_staged(updates, options, lock_descriptor)

    def _push_staged(self, updates: Sequence[RefUpdate], options: Sequence[str], lock_descriptor: int) -> PushAttempt:
        staged = {
            STAGING_PREFIX + update.ref.removeprefix("refs/"): update.new
            for update in updates
            if update.new is not None
        }
        self._update_refs((f"create {ref} {new}" for ref, new in staged.items()), lock_descriptor)
        try:
            return self._push(updates, options, lock_descriptor)
        finally:
            self._unstage(staged, lock_descriptor)

    def _unstage(self, refs: Iterable[str], lock_descriptor: int) -> None:
        self._update_refs((f"delete {ref}" for ref in refs), lock_descriptor)

    def _push(self, updates: Sequence[RefUpdate], options: Sequence[str], lock_descriptor: int) -> PushAttempt:
        atomic = ["--atomic"] if self._atomic else []
        update_refspecs = [f"{STAGING_PREFIX}*:refs/*"] if any(update.new is not None for update in updates) else []
        delete_refspecs = [f":{update.ref}" for update in updates if update.new is None and update.expected is not None]
        if not update_refspecs and not delete_refspecs:
            # Do not run git without a refspec, because git then selects the refs to push.
            return PushAttempt(is_accepted=True)
        # Do not add "+" or --force to a refspec. Otherwise, git does not compare the refs of the remote with the
        # tracking refs, and overwrites the changes of others.
        result = self._run_push(
            [*update_refspecs, *delete_refspecs],
            options,
            lock_descriptor,
            "-c",
            _TRACK_ALL_REFS,
            flags=[*atomic, "--force-with-lease"],
        )
        return self._read_attempt(result)

    def _run_push(
        self,
        refspecs: Sequence[str],
        options: Sequence[str],
        lock_descriptor: int,
        *settings: str,
        flags: Sequence[str] = (),
    ) -> GitResult:
        return self._command.run(
            *settings, "push", "--porcelain", *flags, "--no-verify", "--no-progress", "--no-signed",
            "--recurse-submodules=no", *(f"--push-option={option}" for option in options), "origin", *refspecs,
            lock_descriptor=lock_descriptor, accepted_exit_codes=(0, 1, 128, 255),
        )  # fmt: skip

    def _read_attempt(self, result: GitResult) -> PushAttempt:
        if result.exit_code == 0:
            return PushAttempt(is_accepted=True)
        reasons = read_porcelain(result.lines)
        if self._atomic and ATOMIC_UNSUPPORTED in result.stderr:
            raise _NoAtomicError
        if self._can_use_options and OPTIONS_UNSUPPORTED in result.stderr:
            raise _NoOptionsError
        error = None if reasons else self._command.build_error("push", result.stderr)
        # Do not return a RepositoryMissingError or GitFailedError, because one of several refs may have caused it. The
        # caller lists the refs of the remote to determine the outcome of each unit.
        is_vague = isinstance(error, (RepositoryMissingError, GitFailedError))
        return PushAttempt(is_accepted=False, reasons=reasons, stderr=result.stderr, error=None if is_vague else error)

    def _list_remote_refs(self) -> dict[str, str]:
        self._has_listed_refs = True
        lines = self._command.run("ls-remote", "--quiet", "--refs", "origin").lines
        return {ref: object_id for object_id, _, ref in (line.partition("\t") for line in lines)}

    def _list_refs(self, *folders: str) -> dict[str, str]:
        lines = self._command.run("for-each-ref", "--format=%(objectname) %(refname)", *folders).lines
        return {ref: object_id for object_id, _, ref in (line.partition(" ") for line in lines)}

    def _update_tracking_refs(self, updates: Iterable[RefUpdate]) -> None:
        # If another replica has already pushed a value, update its tracking ref here. Git updates tracking refs only
        # for its own pushes.
        with self._lock() as lock_descriptor:
            local_refs = self._list_refs(TRACKING_PREFIX)
            outdated = [
                update
                for update in updates
                if update.new != update.expected and local_refs.get(_get_tracking_ref(update.ref)) == update.expected
            ]
            self._update_refs(map(_format_tracking_update, outdated), lock_descriptor)

    def _update_refs(self, commands: Iterable[str], lock_descriptor: int) -> None:
        text = "".join(f"{command}\n" for command in commands)
        if text:
            self._command.run(
                "update-ref", "--stdin", stdin=text.encode(errors="surrogateescape"), lock_descriptor=lock_descriptor
            )


def _format_tracking_update(update: RefUpdate) -> str:
    ref = _get_tracking_ref(update.ref)
    return f"delete {ref}" if update.new is None else f"update {ref} {update.new}"


def _get_tracking_ref(ref: str) -> str:
    return TRACKING_PREFIX + ref.removeprefix("refs/")


def _check_units(units: Sequence[PushUnit]) -> None:
    refs = [check_ref(update.ref) for unit in units for update in unit.updates]
    names = [unit.name for unit in units]
    for values in (refs, names):
        if len(set(values)) < len(values):
            raise ValueError("a push must not contain a push unit or a ref twice")
    for option in (option for unit in units for option in unit.options):
        check_push_option(option)
    for update in (update for unit in units for update in unit.updates):
        for object_id in (update.new, update.expected):
            if object_id is not None:
                check_object_id(object_id)


def _find_conflicting_units(units: Sequence[PushUnit], existing_refs: Mapping[str, str]) -> dict[str, PushOutcome]:
    names = set(existing_refs) - {update.ref for unit in units for update in unit.updates if update.new is None}
    folders = {folder for name in names for folder in list_parent_folders(name)}
    outcomes: dict[str, PushOutcome] = {}
    for unit in sorted(units, key=lambda unit: unit.name):
        conflicts = ((update.ref, find_ref_name_conflict(update, names, folders)) for update in unit.updates)
        conflict = next(((ref, other) for ref, other in conflicts if other), None)
        if conflict:
            outcomes[unit.name] = PushRefused(f"{conflict[0]} cannot be created while {conflict[1]} exists")
            continue
        created = {update.ref for update in unit.updates if update.new is not None}
        names |= created
        folders |= {folder for name in created for folder in list_parent_folders(name)}
    return outcomes


def _find_obstacles(unit: PushUnit, created: Set[str], folders: Set[str]) -> Iterator[RefUpdate]:
    for update in unit.updates:
        if update.new is None and (update.ref in folders or not created.isdisjoint(list_parent_folders(update.ref))):
            yield update


@dataclass(frozen=True)
class RemoteBranches:
    """The branches of a remote at one moment.

    `commits` maps full branch names to commits. `symbolic_targets` maps symbolic refs to the refs that they point to.
    """

    commits: Mapping[str, str]
    symbolic_targets: Mapping[str, str]


def read_remote_branches(command: GitCommand) -> RemoteBranches:
    """Return the current branches of the remote.

    Raises:
        GitError: The remote cannot be read.
    """
    commits: dict[str, str] = {}
    targets: dict[str, str] = {}
    for line in command.run("ls-remote", "--quiet", "--symref", "--heads", "origin").lines:
        value, _, name = line.partition("\t")
        if value.startswith(_SYMBOLIC):
            targets[name] = value.removeprefix(_SYMBOLIC)
        else:
            commits[name] = value
    return RemoteBranches(commits, targets)


def find_symbolic_ref(unit: PushUnit, refs: RemoteBranches) -> SymbolicRefError | None:
    """Return an error if a ref of the unit is symbolic, so that the unit must not be pushed. Otherwise return None."""
    ref = next((update.ref for update in unit.updates if update.ref in refs.symbolic_targets), None)
    if ref is None:
        return None
    return SymbolicRefError(
        f"{ref} is a symbolic ref to {refs.symbolic_targets[ref]} at the remote. Nothing was pushed, because "
        f"a push would move {refs.symbolic_targets[ref]} without a review. Next step: delete the symbolic ref "
        f"on the host with `git symbolic-ref --delete {ref}`"
    )


def can_be_symbolic(unit: PushUnit, refs: RemoteBranches) -> bool:
    """Return whether a ref of the unit could be symbolic. A push to a symbolic ref moves another branch.

    A ref could be symbolic if it is new, or if another branch in `refs` has the same commit.
    """
    return any(
        _is_moving(update) and (update.expected is None or _is_commit_shared(update, refs)) for update in unit.updates
    )


def find_ref_moved_by_push(
    unit: PushUnit, before: RemoteBranches, after: RemoteBranches, pushed: Collection[str]
) -> SymbolicRefError | None:
    """Return an error if the push of `unit` also moved a branch that is not in `pushed`. Otherwise return None.

    A push moves a second branch if one of the two is a symbolic ref to the other. Such a branch and a ref of `unit`
    have equal commits before the push, and equal commits after the push.
    """
    # Omit symbolic refs that Git lists, because a push cannot move the ref itself, but only its target.
    other_refs = {
        ref: value for ref, value in after.commits.items() if ref not in pushed and ref not in after.symbolic_targets
    }
    for update in filter(_is_moving, unit.updates):
        for ref, value in other_refs.items():
            previous = before.commits.get(ref)
            if (value, previous) == (update.new, update.expected):
                return SymbolicRefError(
                    f"the push to {update.ref} has also moved {ref}, because one of these refs is a symbolic "
                    f"ref to the other ref at the remote. {ref} now contains the content of {update.ref}, "
                    f"which was not reviewed. Next step: delete the symbolic ref, and restore {ref} (before "
                    f"the push: {previous or 'absent'})"
                )
    return None


def _is_moving(update: RefUpdate) -> bool:
    return update.new is not None and update.new != update.expected


def _is_commit_shared(update: RefUpdate, refs: RemoteBranches) -> bool:
    return any(value == update.expected for ref, value in refs.commits.items() if ref != update.ref)
