"""People's acts carried out on many drafts: each whole or not at all, lost races decided anew (design 7, git.md 4.9).

No state is written: the next pass recognises what was done, as it does after a merge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from reconciler.daemon.acts import Act, carry_out
from reconciler.daemon.events import log
from reconciler.daemon.isolation import log_if_internal, repository_boundary
from reconciler.daemon.open_drafts import Bench
from reconciler.daemon.publish import HEADS, describe
from reconciler.daemon.review import Asked, Review, check_packages
from reconciler.forge.errors import ForgeError, ForgeRefusedError, HeadMovedError
from reconciler.gitio.errors import GitError, InternalGitError
from reconciler.gitio.verdicts import Done, Failed, Lost, Outcome, Postponed, PushReport, PushUnit, Refused
from reconciler.planning import lifecycle
from reconciler.planning.destination import Destination
from reconciler.planning.open_drafts import OpenDraft, Reason
from reconciler.reporting.acted import Acted, draft_conflict_lines
from reconciler.reporting.review_messages import approval_message
from reconciler.snapshot.objects import CommitId

MOST_TRIES = 5


@dataclass(frozen=True)
class _Task:
    """One draft branch to act on; `head` is where it was when the act began, `packages` none for all of it."""

    destination: Destination
    branch: str
    head: CommitId
    packages: frozenset[str]

    @property
    def name(self) -> str:
        return f"{self.destination.key} {self.branch}"


def act_on(review: Review, asked: Asked, act: Act) -> tuple[Acted, ...]:
    """Do it on every draft that is asked for; what is so already stays.

    A draft that lost a race is fetched and decided again, alone, five times. Raises GitError without a readable
    config, UnknownPlaceError for a name that is none.
    """
    act = replace(act, seconds=review.act_seconds())
    benches = review.open(asked)
    check_packages(asked, benches)
    acted: dict[str, Acted] = {}
    pending: list[_Task] = []
    for bench in benches:
        tasks, told = _tasks_alone(bench, asked, act)
        pending += tasks
        acted |= told
    tries = dict.fromkeys((task.name for task in pending), 0)
    while pending:
        done = dict(_round(review, _one_each(pending, act), act))
        for name in done:
            tries[name] += 1
        lost = {name for name, end in done.items() if end.outcome == "lost" and tries[name] < MOST_TRIES}
        acted |= {name: end for name, end in done.items() if name not in lost}
        review.fetch({task.destination.url for task in pending if task.name in lost})
        pending = [task for task in pending if task.name not in done or task.name in lost]
    results = tuple(acted[name] for name in sorted(acted))
    _log_action(results, act)
    return results


def _log_action(results: Iterable[Acted], act: Act) -> None:
    """Log what a person did, for audits: one event for each result, with the targets that it applies to."""
    by_result: dict[str, list[Acted]] = {}
    for one in results:
        by_result.setdefault(one.outcome, []).append(one)
    for result, members in sorted(by_result.items()):
        refusals = sorted({reason.reason for one in members for reason in one.reasons})
        emit = log.info if members[0].is_well else log.warning
        emit(
            "review_action",
            action=act.verb,
            actor=f"{act.person[0]} <{act.person[1]}>" if act.person else "",
            actor_source=act.person_from,
            targets=sorted({one.repository for one in members}),
            packages=[f"{one.repository}/{package}" for one in members for package in one.packages],
            reason=act.words,
            result=result,
            commits=[one.commit for one in members if one.commit],
            **({"refusals": refusals} if refusals else {}),
        )


def _round(review: Review, tasks: Sequence[_Task], act: Act) -> Iterator[tuple[str, Acted]]:
    groups: dict[str, list[_Task]] = {}
    for task in tasks:
        groups.setdefault(task.destination.url, []).append(task)
    # each remote is one thread's alone; a fleet of many remotes mostly waits for their hosts
    with ThreadPoolExecutor(review.max_pushes) as pool:
        for ends in pool.map(lambda group: _push(review, group, act), groups.values()):
            yield from ends.items()


def _push(review: Review, tasks: Sequence[_Task], act: Act) -> dict[str, Acted]:
    try:
        prepared = {task.name: _prepare_alone(review, task, act) for task in tasks}
        units = [unit for _, unit in prepared.values() if unit]
        with repository_boundary(f"pushing to {tasks[0].destination.url}"):
            report = review.push(tasks[0].destination, units) if units else PushReport()
    except GitError as error:
        # one remote's full disk or damaged mirror is no reason to leave the others (tenet 6)
        log_if_internal(error)
        return {task.name: _failed(task, act, error) for task in tasks}
    has_failed = any(isinstance(one, Refused | Failed) for one in report.outcomes.values())
    branches = review.branches_now(tasks[0].destination) if has_failed else None
    return {
        name: _pushed(end, report[name], _remote_state(unit, branches)) if unit else end
        for name, (end, unit) in prepared.items()
    }


def _remote_state(unit: PushUnit, branches: Mapping[str, CommitId] | None) -> str:
    """Return where the remote has the branches of a unit that did not arrive; None: it does not answer."""
    if branches is None:
        return "the state of the remote is unknown"
    names = dict.fromkeys(update.ref for update in unit.updates if update.ref.startswith(HEADS))
    found = [
        f"{ref.removeprefix(HEADS)} at {branches[ref][:12]}" if ref in branches else f"no {ref.removeprefix(HEADS)}"
        for ref in names
    ]
    return f"the remote has {', '.join(found)}" if found else ""


def _prepare_alone(review: Review, task: _Task, act: Act) -> tuple[Acted, PushUnit | None]:
    """Return the result of one draft; an unexpected exception is the result of this draft alone."""
    try:
        with repository_boundary(f"{task.destination.title}: {act.verb} {task.branch}"):
            return _prepared(review, task, act)
    except InternalGitError as error:
        log_if_internal(error)
        return _failed(task, act, error), None


def _prepared(review: Review, task: _Task, act: Act) -> tuple[Acted, PushUnit | None]:
    bench = review.look(task.destination)
    draft = next((one for one in bench.drafts if one.branch == task.branch), None)
    told = Acted(task.destination.name, task.branch, tuple(sorted(task.packages)), act.verb, "unchanged")
    if draft is None:
        why = bench.trouble or f"{task.branch} is gone"
        return replace(told, outcome="failed" if bench.trouble else "unchanged", why=why), None
    if draft.head != task.head:
        return _moved(told), None
    chosen = draft.chosen(task.packages)
    told = replace(told, packages=tuple(one.package for one in chosen))
    if act.verb in ("propose", "approve"):
        told = replace(told, conflicts=draft_conflict_lines(chosen))
    match decision := act.decide(draft, task.packages):
        case lifecycle.Refused(reasons):
            return replace(told, outcome="refused", reasons=reasons), None
        case lifecycle.Nothing(why):
            return replace(told, why=why), None
        case lifecycle.Publish(whole=True) if review.merges(draft):
            return _merged(review, told, draft, act), None
        case _:
            moves = carry_out(decision, draft, act, review.remote(draft.destination), review.state_ref)
            end = replace(told, outcome="done", commit=moves.commit or "", warnings=draft.warnings(task.packages))
            return end, PushUnit(task.name, moves.updates)


def _moved(told: Acted) -> Acted:
    reason = Reason("DraftMoved", f"{told.branch} moved on meanwhile; look at it again")
    return replace(told, outcome="refused", reasons=(reason,))


def _merged(review: Review, told: Acted, draft: OpenDraft, act: Act) -> Acted:
    """Approve a whole draft by merging its pull request: the rules of the forge decide, its account is the author."""
    try:
        url = review.merge(draft, approval_message(draft, act.words, act.person))
    except HeadMovedError:
        return _moved(told)
    except ForgeRefusedError as error:
        return replace(told, outcome="refused", reasons=(Reason("HostRefused", error.message),))
    except ForgeError as error:
        return replace(told, outcome="failed", why=error.message)
    return replace(told, outcome="done", why=f"merged {url}", warnings=draft.warnings())


def _tasks_alone(opened: Bench, request: Asked, act: Act) -> tuple[list[_Task], dict[str, Acted]]:
    """Return the drafts of a target that are meant; an unexpected exception is the result of this target alone."""
    try:
        with repository_boundary(f"{opened.destination.title}: {act.verb}"):
            return _tasks(opened, request, act)
    except InternalGitError as error:
        log_if_internal(error)
        one = opened.destination
        return [], {str(one.key): Acted(one.name, "", (), act.verb, "failed", why=error.told)}


def _tasks(bench: Bench, asked: Asked, act: Act) -> tuple[list[_Task], dict[str, Acted]]:
    """Return the drafts of a destination that are meant, and what is to be told of what is not there."""
    one, packages = bench.destination, asked.packages(bench.destination.name)
    told = Acted(one.name, "", tuple(sorted(packages)), act.verb, "unchanged")
    if bench.trouble:
        return [], {str(one.key): replace(told, outcome="failed", why=bench.trouble)}
    on = {draft.branch: _named_on(draft, packages) for draft in bench.drafts}
    meant = [draft for draft in bench.drafts if on[draft.branch] or not packages]
    left = [draft.branch for draft in meant if _needs_naming(draft, packages, asked, act)]
    tasks = [_Task(one, draft.branch, draft.head, on[draft.branch]) for draft in meant if draft.branch not in left]
    absent = packages - {package for draft in meant for package in on[draft.branch]}
    ends = {
        f"{one.key} {branch}": replace(told, branch=branch, why="it removes packages: name them, or add --removals")
        for branch in left
    }
    if absent or not meant:
        why = f"no draft offers {', '.join(sorted(absent))}" if absent else "no draft is open"
        # nothing is to be told of whole fleets of which nothing is open
        if asked.places:
            ends[str(one.key)] = replace(told, packages=tuple(sorted(absent)), why=why)
    return tasks, ends


def _named_on(draft: OpenDraft, packages: frozenset[str]) -> frozenset[str]:
    return packages & {one.package for one in draft.packages}


def _needs_naming(draft: OpenDraft, packages: frozenset[str], asked: Asked, act: Act) -> bool:
    # removing what is published takes an approval of its own (design 3)
    return draft.is_removal and not packages and not asked.removals and act.verb in ("propose", "approve")


def _one_each(pending: Iterable[_Task], act: Act) -> list[_Task]:
    """Return the tasks of one push: only one may move a cluster branch, whoever shares it."""
    first: dict[tuple[str, str], _Task] = {}
    for task in pending:
        branch = task.destination.branch if act.verb == "approve" else task.branch
        first.setdefault((task.destination.url, branch), task)
    return list(first.values())


def _failed(task: _Task, act: Act, error: GitError) -> Acted:
    packages = tuple(sorted(task.packages))
    return Acted(task.destination.name, task.branch, packages, act.verb, "failed", why=describe(Failed(error)))


def _pushed(end: Acted, outcome: Outcome, remote_state: str) -> Acted:
    match outcome:
        case Done():
            return end
        case Lost():
            return replace(end, outcome="lost", commit="", why=describe(outcome))
        case Refused():
            reasons = (Reason("HostRefused", describe(outcome)),)
            return replace(end, outcome="refused", commit="", why=remote_state, reasons=reasons)
        case Failed():
            return replace(end, outcome="failed", commit="", why=f"{describe(outcome)}; {remote_state}")
        case Postponed():
            return replace(end, outcome="failed", commit="", why=describe(outcome))
