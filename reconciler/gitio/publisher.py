"""Carrying out pushes: staged refs, one wildcard refspec, a lease on every ref."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial

from reconciler.gitio.command import TRACKING, GitCommand, Result
from reconciler.gitio.errors import GitError, GitFailedError, RepositoryMissingError
from reconciler.gitio.names import check_id, check_option, check_ref
from reconciler.gitio.options import GitOptions
from reconciler.gitio.pace import Pace
from reconciler.gitio.symbolic_refs import (
    RemoteRefs,
    find_moved_together,
    find_symbolic,
    may_be_symbolic,
    read_remote_refs,
)
from reconciler.gitio.verdicts import (
    OVER_PACE,
    Attempt,
    Done,
    Failed,
    Outcome,
    Postponed,
    PushReport,
    PushUnit,
    RefUpdate,
    Refused,
    find_clash,
    folders_of,
    judge_alone,
    pack,
    read_porcelain,
    settle,
    settle_in_steps,
)

STAGE = "refs/out/"
_REVIEW = "refs/for/"
_NO_ATOMIC = "does not support --atomic"
_NO_OPTIONS = "does not support push options"
_EVERYTHING = f"remote.origin.fetch=+refs/*:{TRACKING}*"


class _NoAtomicError(Exception):
    """The host cannot take several refs together."""


class _NoOptionsError(Exception):
    """The host does not take push options."""


_REFUSED_OPTIONS = Refused("the host takes no push options, so it cannot be asked for a review")


class Publisher:
    """Pushes units through one mirror; `lock` and `pace` are the mirror's.

    Unless `atomic`, what the host refuses holds up nothing else of the same push. What the pace puts off is
    Postponed, whole: a unit that has begun is ended, whatever the pace. Those that have waited longest go first.
    """

    def __init__(
        self,
        command: GitCommand,
        lock: Callable[[], AbstractContextManager[int]],
        options: GitOptions,
        pace: Pace,
        *,
        atomic: bool = True,
    ) -> None:
        self._command = command
        self._lock = lock
        self._most = options.max_refs_per_push
        self._pace = pace
        self._atomic = atomic
        self._takes_options = True
        self._looked = False
        # names, in the order in which they were put off
        self._waiting: dict[str, None] = {}

    @property
    def takes_options(self) -> bool:
        """Whether the host takes push options; True until it refused one."""
        return self._takes_options

    def push(self, units: Sequence[PushUnit], known: Mapping[str, str], leave: int = 0) -> PushReport:
        """Push `units`, given the remote's refs as of the last fetch, and report what became of each.

        `leave` of the pushes of a minute are left for what is pushed later.
        """
        _check(units)
        try:
            before = read_remote_refs(self._command)
        except GitError as error:
            # without this look, a push might go through a symbolic ref
            return PushReport({unit.name: Failed(error) for unit in units})
        outcomes = _find_clashes(units, known)
        outcomes |= {unit.name: Failed(found) for unit in units if (found := find_symbolic(unit, before))}
        ready = [unit for unit in units if unit.name not in outcomes]
        failed, ready, begun = self._make_room(ready, leave)
        outcomes |= failed
        for group in pack(ready, self._most, self._waiting):
            outcomes |= self._settle(group, leave, begun)
        self._take_turns(outcomes)
        if self._looked:
            self._looked = False
            done = [u for unit in units if isinstance(outcomes[unit.name], Done) for u in unit.updates]
            with suppress(GitError):  # the remote has it; with old notes the next push of these refs is merely Lost
                self._record(done)
        outcomes |= self._moved_together([unit for unit in units if isinstance(outcomes[unit.name], Done)], before)
        return PushReport({unit.name: outcomes[unit.name] for unit in units})

    def _moved_together(self, units: Sequence[PushUnit], before: RemoteRefs) -> dict[str, Outcome]:
        """Return a failure for each unit whose push moved another ref as well, as on a host that hides symbolic refs.

        The host is read again only if such a ref is possible: one at the same commit, or one that did not exist.
        """
        suspects = [unit for unit in units if may_be_symbolic(unit, before)]
        if not suspects:
            return {}
        try:
            after = read_remote_refs(self._command)
        except GitError as error:
            return {unit.name: Failed(error) for unit in suspects}
        made = {update.ref for unit in units for update in unit.updates}
        found = {unit.name: find_moved_together(unit, before, after, made) for unit in suspects}
        return {name: Failed(error) for name, error in found.items() if error}

    def _take_turns(self, outcomes: Mapping[str, Outcome]) -> None:
        for name, outcome in sorted(outcomes.items()):
            if isinstance(outcome, Postponed):
                self._waiting.setdefault(name)
            else:
                self._waiting.pop(name, None)

    def push_for_review(self, commit: str, ref: str, options: Sequence[str]) -> Outcome:
        """Push a commit to a ref below `refs/for/`, where the host makes a request for review of it and no ref.

        There is nothing to lease, and nothing to look at afterwards.
        """
        if not check_ref(ref).startswith(_REVIEW):
            raise ValueError(f"{ref!r} is not below {_REVIEW}")
        unit = PushUnit(ref, (RefUpdate(ref, check_id(commit), None),), tuple(map(check_option, options)))
        try:
            return self._push_alone(unit) if self._takes_options else _REFUSED_OPTIONS
        except _NoOptionsError:
            self._takes_options = False
        return _REFUSED_OPTIONS

    def _push_alone(self, unit: PushUnit) -> Outcome:
        wait = self._pace.wait()
        if wait is not None:
            return Postponed(OVER_PACE, wait)
        [update] = unit.updates
        try:
            with self._lock() as hold:
                result = self._run_push([f"{update.new}:{update.ref}"], unit.options, hold)
        except GitError as error:
            return Failed(error)
        return judge_alone(unit, self._read_answer(result), self._command.failure("push", result.words))

    def _make_room(
        self, units: Sequence[PushUnit], leave: int
    ) -> tuple[dict[str, Outcome], list[PushUnit], Collection[str]]:
        """Delete what is in the way; return what became of that, the units that are left, and which have begun."""
        # Git refuses `a/b` as long as `a` is there, also when the same push deletes it (finding 18)
        made = {update.ref for unit in units for update in unit.updates if update.new is not None}
        folders = {folder for ref in made for folder in folders_of(ref)}
        room = [replace(unit, updates=tuple(_in_the_way(unit, made, folders)), options=()) for unit in units]
        outcomes: dict[str, Outcome] = {}
        for group in pack([unit for unit in room if unit.updates], self._most, self._waiting):
            outcomes |= self._settle(group, leave)
        failed: dict[str, Outcome] = {
            name: outcome for name, outcome in outcomes.items() if not isinstance(outcome, Done)
        }
        gone = {update.ref for unit in room for update in unit.updates}
        rest = [
            replace(unit, updates=tuple(u for u in unit.updates if u.ref not in gone))
            for unit in units
            if unit.name not in failed
        ]
        return failed, rest, outcomes.keys() - failed.keys()

    def _settle(self, group: Sequence[PushUnit], leave: int, begun: Collection[str] = ()) -> dict[str, Outcome]:
        # what the host turns out not to know is left out for good, so this comes to an end
        while True:
            try:
                return self._settle_once(group, leave, begun)
            except _NoAtomicError:
                self._atomic = False
            except _NoOptionsError:
                self._takes_options = False

    def _settle_once(self, group: Sequence[PushUnit], leave: int, begun: Collection[str]) -> dict[str, Outcome]:
        # a unit with options is alone in its group
        options = group[0].options if self._takes_options else ()
        end = partial(self._try_push, options=options, leave=None)
        begin = end if any(unit.name in begun for unit in group) else partial(end, leave=leave)
        return settle(group, begin, self._look) if self._atomic else settle_in_steps(group, begin, self._look, end)

    def _try_push(self, updates: Sequence[RefUpdate], options: Sequence[str], leave: int | None) -> Attempt:
        """Push once; with no `leave` it ends what has begun, and is not put off."""
        if not updates:
            return Attempt(accepted=True)
        if leave is None:
            self._pace.take()
        elif (wait := self._pace.wait(leave)) is not None:
            return Attempt(accepted=False, wait=wait)
        try:
            with self._lock() as hold:
                return self._push_if_current(updates, options, hold)
        except GitError as error:
            # it may have arrived all the same, so this is not the last word
            return Attempt(accepted=False, error=error)

    def _push_if_current(self, updates: Sequence[RefUpdate], options: Sequence[str], hold: int) -> Attempt:
        here = self._list_refs(TRACKING, STAGE)
        stale = [u.ref for u in updates if here.get(_tracking(u.ref)) != u.expected]
        if stale:
            return Attempt(accepted=False, reasons=dict.fromkeys(stale, "stale info"))
        # what a killed process had staged would ride along
        self._unstage([ref for ref in here if ref.startswith(STAGE)], hold)
        return self._push_staged(updates, options, hold)

    def _push_staged(self, updates: Sequence[RefUpdate], options: Sequence[str], hold: int) -> Attempt:
        staged = {STAGE + u.ref.removeprefix("refs/"): u.new for u in updates if u.new is not None}
        self._update_refs((f"create {ref} {new}" for ref, new in staged.items()), hold)
        try:
            return self._push(updates, options, hold)
        finally:
            self._unstage(staged, hold)

    def _unstage(self, refs: Iterable[str], hold: int) -> None:
        self._update_refs((f"delete {ref}" for ref in refs), hold)

    def _push(self, updates: Sequence[RefUpdate], options: Sequence[str], hold: int) -> Attempt:
        atomic = ["--atomic"] if self._atomic else []
        moved = [f"{STAGE}*:refs/*"] if any(u.new is not None for u in updates) else []
        gone = [f":{u.ref}" for u in updates if u.new is None and u.expected is not None]
        if not moved and not gone:
            return Attempt(accepted=True)  # without a refspec git would push what it finds
        # never "+" or --force: they would cancel the lease, whose values are our tracking refs
        result = self._run_push([*moved, *gone], options, hold, "-c", _EVERYTHING, how=[*atomic, "--force-with-lease"])
        return self._read_answer(result)

    def _run_push(
        self, refspecs: Sequence[str], options: Sequence[str], hold: int, *settings: str, how: Sequence[str] = ()
    ) -> Result:
        return self._command.run(
            *settings, "push", "--porcelain", *how, "--no-verify", "--no-progress", "--no-signed",
            "--recurse-submodules=no", *(f"--push-option={option}" for option in options), "origin", *refspecs,
            hold=hold, accept=(0, 1, 128, 255),
        )  # fmt: skip

    def _read_answer(self, result: Result) -> Attempt:
        if result.code == 0:
            return Attempt(accepted=True)
        reasons = read_porcelain(result.lines)
        if self._atomic and _NO_ATOMIC in result.words:
            raise _NoAtomicError
        if self._takes_options and _NO_OPTIONS in result.words:
            raise _NoOptionsError
        error = None if reasons else self._command.failure("push", result.words)
        # these two may be about a ref or about nothing; the look at the remote that follows knows better
        vague = isinstance(error, (RepositoryMissingError, GitFailedError))
        return Attempt(accepted=False, reasons=reasons, words=result.words, error=None if vague else error)

    def _look(self) -> dict[str, str]:
        self._looked = True
        lines = self._command.run("ls-remote", "--quiet", "--refs", "origin").lines
        return {ref: object_id for object_id, _, ref in (line.partition("\t") for line in lines)}

    def _list_refs(self, *folders: str) -> dict[str, str]:
        lines = self._command.run("for-each-ref", "--format=%(objectname) %(refname)", *folders).lines
        return {ref: object_id for object_id, _, ref in (line.partition(" ") for line in lines)}

    def _record(self, updates: Iterable[RefUpdate]) -> None:
        # git does it for what it pushed itself, not for what another replica had pushed before us
        with self._lock() as hold:
            here = self._list_refs(TRACKING)
            behind = [u for u in updates if u.new != u.expected and here.get(_tracking(u.ref)) == u.expected]
            self._update_refs(map(_tracking_update, behind), hold)

    def _update_refs(self, commands: Iterable[str], hold: int) -> None:
        text = "".join(f"{command}\n" for command in commands)
        if text:
            self._command.run("update-ref", "--stdin", stdin=text.encode(errors="surrogateescape"), hold=hold)


def _tracking_update(update: RefUpdate) -> str:
    ref = _tracking(update.ref)
    return f"delete {ref}" if update.new is None else f"update {ref} {update.new}"


def _tracking(ref: str) -> str:
    return TRACKING + ref.removeprefix("refs/")


def _check(units: Sequence[PushUnit]) -> None:
    refs = [check_ref(update.ref) for unit in units for update in unit.updates]
    names = [unit.name for unit in units]
    for twice in (refs, names):
        if len(set(twice)) < len(twice):
            raise ValueError("no unit and no ref may stand in a push twice")
    for option in (option for unit in units for option in unit.options):
        check_option(option)
    for update in (update for unit in units for update in unit.updates):
        for object_id in (update.new, update.expected):
            if object_id is not None:
                check_id(object_id)


def _find_clashes(units: Sequence[PushUnit], known: Mapping[str, str]) -> dict[str, Outcome]:
    names = set(known) - {update.ref for unit in units for update in unit.updates if update.new is None}
    folders = {folder for name in names for folder in folders_of(name)}
    outcomes: dict[str, Outcome] = {}
    for unit in sorted(units, key=lambda unit: unit.name):
        found = ((update.ref, find_clash(update, names, folders)) for update in unit.updates)
        clash = next(((ref, other) for ref, other in found if other), None)
        if clash:
            outcomes[unit.name] = Refused(f"{clash[1]} stands where {clash[0]} needs a place")
            continue
        made = {update.ref for update in unit.updates if update.new is not None}
        names |= made
        folders |= {folder for name in made for folder in folders_of(name)}
    return outcomes


def _in_the_way(unit: PushUnit, made: Set[str], folders: Set[str]) -> Iterator[RefUpdate]:
    for update in unit.updates:
        if update.new is None and (update.ref in folders or not made.isdisjoint(folders_of(update.ref))):
            yield update
