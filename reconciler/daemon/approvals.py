"""Approvals by annotation: what they approve goes to its cluster branch, after all else is in (porch 9).

No state is written: the next pass recognises what was published, as it does after a merge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import ceil

from reconciler.daemon.acts import Act, carry_out, rejection
from reconciler.daemon.codes import APPROVAL_FAILED, APPROVAL_HELD, APPROVAL_REFUSED
from reconciler.daemon.events import log
from reconciler.daemon.first_seen import FirstSeen
from reconciler.daemon.isolation import repository_boundary
from reconciler.daemon.publish import HEADS, Written, describe, proposed_ref
from reconciler.daemon.remotes import DestinationObjects, Remote
from reconciler.gitio.errors import GitError, InternalGitError
from reconciler.gitio.verdicts import Done, Failed, Lost, Outcome, Postponed, PushReport, PushUnit, RefUpdate, Refused
from reconciler.krm.codes import internal_error
from reconciler.krm.findings import Finding, Where
from reconciler.planning.approvals import Policy, decide_approval, watched
from reconciler.planning.destination import Destination
from reconciler.planning.ground import Ground
from reconciler.planning.lifecycle import Publish, approve
from reconciler.planning.open_drafts import CONFLICTS_NOT_ACCEPTED, DraftedPackage, OpenDraft, Reason, open_drafts
from reconciler.planning.plan import grows
from reconciler.planning.standing import Heads
from reconciler.snapshot.objects import CommitId


@dataclass(frozen=True)
class Approved:
    """What annotations approved in a pass: the packages that were published, as `cluster/package`.

    `moved`: there is something for a next pass to find. `failed`: the world kept it from being done, and another pass
    may do it though nothing moves. `due`: when the next draft has stood long enough, in seconds since 1970.
    """

    packages: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    moved: bool = False
    failed: bool = False
    due: int | None = None


@dataclass(frozen=True)
class _Wish:
    """A package that its policy publishes, on the draft that carries it. `due`: when it will have stood long enough."""

    draft: OpenDraft
    one: DraftedPackage
    policy: Policy
    due: int


@dataclass(frozen=True)
class _Prepared:
    """One destination: commits that publish what is due, the refs to move, and when more of it is due.

    `findings` are about drafts that the annotations must not publish.
    """

    destination: Destination
    packages: tuple[str, ...] = ()
    commit: CommitId | None = None
    updates: Mapping[str, RefUpdate] = field(default_factory=dict)
    due: int | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def unit(self) -> PushUnit:
        return PushUnit(str(self.destination.key), tuple(self.updates.values()))


class Approvals:
    """Publishes what annotations approve. What a host refused is not sent again until it would be another commit."""

    def __init__(self, state_ref: str, draft_template: str, first_seen: FirstSeen, max_pushes: int = 8) -> None:
        self._state_ref = state_ref
        self._draft_template = draft_template
        self._first_seen = first_seen
        self._max_pushes = max_pushes
        self._refused: dict[CommitId, Refused] = {}

    def make(self, groups: Sequence[tuple[Remote, Sequence[Written]]], now: int) -> Approved:
        """Publish all that is due on these remotes' destinations; nothing is raised for what a remote does."""
        # each remote is one thread's alone; a fleet of many remotes mostly waits for their hosts
        with ThreadPoolExecutor(self._max_pushes) as pool:
            parts = list(pool.map(lambda group: self._on_remote_alone(group[0], group[1], now), groups))
        self._first_seen.keep()
        return _joined(parts)

    def _on_remote_alone(self, remote: Remote, written: Sequence[Written], now: int) -> Approved:
        try:
            with repository_boundary(f"the approvals of {remote.mirror.url}"):
                return self._on_remote(remote, written, now)
        except InternalGitError as error:
            return Approved(failed=True, findings=(internal_error(error.failure),))

    def _on_remote(self, remote: Remote, written: Sequence[Written], now: int) -> Approved:
        near = [(one, watched(one.plan)) for one in written]
        try:
            with repository_boundary(f"the approvals of {remote.mirror.url}"):
                prepared = [self._prepare(remote, one, policies, now) for one, policies in near]
                outcomes = self._push(remote, [one for one in prepared if one.commit])
        except GitError as error:
            # one remote's full disk or damaged mirror is no reason to leave the others (tenet 6)
            return _joined(
                _told(_Prepared(one.plan.destination), Failed(error), now) for one, policies in near if policies
            )
        return _joined(_told(one, outcomes.get(one.destination), now) for one in prepared)

    def _push(self, remote: Remote, prepared: Sequence[_Prepared]) -> Mapping[Destination, Outcome]:
        """Push one destination of each cluster branch; others that share it go with the next pass."""
        known = {one.destination: self._refused[one.commit] for one in prepared if one.commit in self._refused}
        first: dict[str, _Prepared] = {}
        for one in prepared:
            if one.destination not in known:
                first.setdefault(one.destination.branch, one)
        new = list(first.values())
        report = remote.mirror.push([one.unit for one in new]) if new else PushReport()
        outcomes = {one.destination: report[one.unit.name] for one in new}
        for one in new:
            self._take_note(one, outcomes[one.destination])
        later = {one.destination: Lost(HEADS + one.destination.branch) for one in prepared}
        return {**later, **known, **outcomes}

    def _take_note(self, one: _Prepared, outcome: Outcome) -> None:
        assert one.commit
        match outcome:
            case Done():
                name, packages = one.destination.name, list(one.packages)
                log.info("packages_approved", destination=name, packages=packages, commit=one.commit)
            case Refused():
                self._refused[one.commit] = outcome
            case Lost():
                log.info("race_lost", destinations=[one.destination.name])

    def _prepare(self, remote: Remote, one: Written, policies: Mapping[str, Policy], now: int) -> _Prepared:
        grown = {grow.branch for grow in grows(one.plan)}
        ready, later = [], []
        held: list[Finding] = []
        for wish in self._due_or_held(remote, one, policies, now):
            if isinstance(wish, Finding):
                held.append(wish)
                continue
            # people must be able to see a draft before it is published
            if wish.due <= now and wish.draft.branch not in grown:
                ready.append(wish)
            else:
                later.append(wish.due)
        return self._publish(
            remote, ready, _Prepared(one.plan.destination, due=min(later, default=None), findings=tuple(held))
        )

    def _due_or_held(
        self, remote: Remote, one: Written, policies: Mapping[str, Policy], now: int
    ) -> Iterator[_Wish | Finding]:
        held = one.plan.heads.held
        found = [
            (draft, package)
            for draft in (self._drafts(remote, one) if policies else ())
            for package in draft.packages
            if package.package in policies and package.record.draft == draft.branch
        ]
        contents = {package.package: f"{package.drafted}" for _, package in found}
        since = self._first_seen.look(f"{remote.mirror.url} {one.name}", contents, now)
        for draft, package in found:
            policy = policies[package.package]
            is_rejected = rejection(draft, remote, self._state_ref) is not None
            decision = decide_approval(draft, package, policy, is_rejected=is_rejected, is_held=draft.branch in held)
            if isinstance(decision, Reason):
                log.debug("not_approved", destination=one.name, package=package.package, why=decision.message)
                if decision.reason == CONFLICTS_NOT_ACCEPTED:
                    yield _held_by_conflicts(one.name, package, policy)
                continue
            stood = max(since[package.package], _drafted_at(draft, package.package, remote))
            yield _Wish(draft, package, policy, stood + policy.seconds)

    def _drafts(self, remote: Remote, one: Written) -> tuple[OpenDraft, ...]:
        destination, state, refs = one.plan.destination, one.state or one.plan.after, remote.refs
        drafts = {name: refs[HEADS + name] for name in state.drafts if HEADS + name in refs}
        state = replace(state, drafts={name: state.drafts[name] for name in drafts})
        proposed = {name: refs[proposed_ref(name)] for name in drafts if proposed_ref(name) in refs}
        heads = Heads(refs.get(HEADS + destination.branch), False, drafts, proposed)
        objects = DestinationObjects(remote, destination)
        return open_drafts(Ground(destination, state, heads, objects, self._draft_template), objects)

    def _publish(self, remote: Remote, wishes: Iterable[_Wish], made: _Prepared) -> _Prepared:
        """Write a commit for each package, one upon the other: the last of a draft is a merge, and ends it."""
        drafts: dict[str, OpenDraft] = {}
        for wish in wishes:
            name = wish.one.package
            draft = drafts.get(wish.draft.branch, wish.draft)
            draft = replace(draft, published=made.commit or draft.published)
            decision = approve(draft, {name}, at_once=True)
            assert isinstance(decision, Publish), "what was decided of the package does not depend on the others"
            act = Act("approve", words=f"Approved by annotation, {wish.policy.words}", via="annotation")
            moves = carry_out(decision, draft, act, remote, self._state_ref)
            drafts[draft.branch] = replace(draft, paths=draft.others({name}))
            updates = {**made.updates, **{one.ref: _since(made.updates.get(one.ref), one) for one in moves.updates}}
            made = replace(made, packages=(*made.packages, name), commit=moves.commit, updates=updates)
        return made


def _held_by_conflicts(name: str, one: DraftedPackage, policy: Policy) -> Finding:
    message = (
        f"the draft of {name}/{one.package} has conflicts ({len(one.conflicts)}) and is not published by annotation"
        f" ({policy.words}); review it: reconciler show {name}/{one.package}, then reconciler approve"
        f" {name}/{one.package} --propose --accept-conflicts"
    )
    return APPROVAL_HELD.finding(message, Where(object=str(one.record.owner.key)))


def _since(earlier: RefUpdate | None, update: RefUpdate) -> RefUpdate:
    return replace(update, expected=earlier.expected) if earlier else update


def _drafted_at(draft: OpenDraft, package: str, remote: Remote) -> int:
    steps = DestinationObjects(remote, draft.destination).steps(draft.head, draft.base)
    return max((step.seconds for step in steps if step.package == package), default=remote.commit(draft.head).seconds)


def _told(one: _Prepared, outcome: Outcome | None, now: int) -> Approved:
    done = _outcome_of(one, outcome, now)
    return replace(done, findings=(*one.findings, *done.findings))


def _outcome_of(one: _Prepared, outcome: Outcome | None, now: int) -> Approved:
    name = one.destination.name
    match outcome:
        case None:
            return Approved(due=one.due)
        case Done():
            return Approved(tuple(f"{name}/{package}" for package in one.packages), moved=True, due=one.due)
        case Lost():
            return Approved(moved=True, due=one.due)
        case Postponed(seconds=seconds):
            again = now + ceil(seconds or 0)
            return Approved(moved=True, due=again if one.due is None else min(one.due, again))
        case Refused() | Failed():
            code = APPROVAL_REFUSED if isinstance(outcome, Refused) else APPROVAL_FAILED
            finding = code.finding(f"Repository {name}: {describe(outcome)}", one.destination.where)
            return Approved(findings=(finding,), failed=isinstance(outcome, Failed), due=one.due)


def _joined(parts: Iterable[Approved]) -> Approved:
    known = list(parts)
    return Approved(
        tuple(package for one in known for package in one.packages),
        tuple(finding for one in known for finding in one.findings),
        any(one.moved for one in known),
        any(one.failed for one in known),
        min((one.due for one in known if one.due is not None), default=None),
    )
