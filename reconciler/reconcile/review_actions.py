"""Writes the commits and ref updates of review actions: propose, approve, reject and drop drafts.

Approvals by annotation use the same code. The package `reconciler.planning.lifecycle` decides whether an action is
possible. A review action writes no state, because the next pass detects published drafts like after a merge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import ceil
from typing import Literal

from reconciler.catalog.files import FILE_MODE, CommitId, ObjectId
from reconciler.git.errors import GitError, InternalGitError
from reconciler.git.object_writer import DeletePath, NewCommit, PutObject, TreeChange
from reconciler.git.push_outcomes import (
    PushDone,
    PushFailed,
    PushOutcome,
    PushPostponed,
    PushRefused,
    PushReport,
    PushStale,
    PushUnit,
    RefUpdate,
)
from reconciler.krm.findings import Finding, SourceLocation, create_internal_error_finding
from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.output.commit_messages import (
    ConsoleRequest,
    format_publish_message,
    format_recorded_approval_message,
    format_reject_message,
    format_withdraw_message,
)
from reconciler.output.review.models import ReviewVerb
from reconciler.planning.decide.target_plan import list_pushes
from reconciler.planning.lifecycle import transitions as lifecycle
from reconciler.planning.lifecycle.open_drafts import (
    CONFLICTS_NOT_ACCEPTED,
    BlockingReason,
    DraftedFile,
    DraftedPackage,
    OpenDraft,
    read_open_drafts,
)
from reconciler.planning.lifecycle.transitions import (
    ApprovalPolicy,
    DraftTransition,
    ProposeDraft,
    PublishDraft,
    RejectDraft,
    approve_draft,
    decide_approval,
    find_approvable_packages,
)
from reconciler.planning.model.targets import Target
from reconciler.planning.observe.target_snapshot import TargetHeads, TargetSnapshot
from reconciler.reconcile.cache_files import FirstSeenTimes
from reconciler.reconcile.codes import PassCodes
from reconciler.reconcile.commits import WrittenPlan, describe_push_outcome
from reconciler.reconcile.draft_approvals import RecordApproval, approvals_ref, build_approval_commit
from reconciler.reconcile.failures import repository_boundary
from reconciler.reconcile.remotes.repository import Remote, TargetRepository
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX, find_rejection, proposed_ref, rejection_ref
from reconciler.telemetry.event_log import log
from reconciler.telemetry.traces import link_next_pass, span

# Where the name of the person comes from: a command option, the Git configuration of the person, the settings, or the
# session in the console.
PersonSource = Literal["option", "git", "settings", "console"]


@dataclass(frozen=True)
class ReviewAction:
    """An action of a person, or of an annotation, on drafts.

    Attributes:
        person: Name and mail address of the author; None if no commit of a person is written.
        message: The reason that the person gives.
        should_approve_unproposed: Whether drafts that are not proposed can be approved.
        should_reject_unproposed: Whether drafts that are not proposed can be rejected.
        accepts_conflicts: Whether the person has reviewed the conflicts of the drafts.
        source: Whether a command or an annotation started the action.
        person_source: The source of the person's name.
        seconds: The time of the action, in seconds since 1970, for the commits of the action. If None, the date comes
            from the commits that the action builds on, so that two replicas write the same commit.
        request: The request of the console that started the action. None for other actions.
        approvers: The people who have approved the draft before.
    """

    verb: ReviewVerb
    person: tuple[str, str] | None = None
    message: str = ""
    should_approve_unproposed: bool = False
    accepts_conflicts: bool = False
    source: Literal["cli", "annotation"] = "cli"
    person_source: PersonSource = "settings"
    seconds: int | None = None
    should_reject_unproposed: bool = False
    request: ConsoleRequest | None = None
    approvers: tuple[tuple[str, str], ...] = ()

    @property
    def via(self) -> str:
        """The value of the trailer `Reconciler-Approved-Via`."""
        return "console" if self.request else self.source

    def decide(self, draft: OpenDraft, packages: frozenset[str]) -> DraftTransition:
        """Return the effect of the action on a draft. `packages` are the selected packages, or empty for all."""
        match self.verb:
            case "propose":
                return lifecycle.propose_draft(draft, packages, accepts_conflicts=self.accepts_conflicts)
            case "approve":
                return lifecycle.approve_draft(
                    draft, packages, self.should_approve_unproposed, accepts_conflicts=self.accepts_conflicts
                )
            case "reject":
                return lifecycle.reject_draft(draft, should_reject_unproposed=self.should_reject_unproposed)
            case "drop":
                return lifecycle.drop_draft(draft, packages)


@dataclass(frozen=True)
class RefMoves:
    """The ref updates of an action with their expected values, and the commit that the action wrote."""

    ref_updates: tuple[RefUpdate, ...]
    commit: CommitId | None = None


def apply_decision(
    decision: ProposeDraft | PublishDraft | RecordApproval | RejectDraft | lifecycle.DropDraft,
    draft: OpenDraft,
    action: ReviewAction,
    remote: Remote,
    state_ref: str,
) -> RefMoves:
    """Write the commits of a decision, and return the ref updates, which the caller must push atomically."""
    rejection = rejection_ref(state_ref, draft.branch)
    approvals = _delete_ref(approvals_ref(state_ref, draft.branch), remote)
    match decision:
        case ProposeDraft():
            proposal = RefUpdate(proposed_ref(draft.branch), draft.head, draft.proposed_head)
            return RefMoves((_expect_head(draft), proposal, *_delete_ref(rejection, remote)), draft.head)
        case RecordApproval():
            return _record_approval(decision, draft, action, remote, approvals_ref(state_ref, draft.branch))
        case PublishDraft():
            commit = _write(remote, action, draft, _build_publish_commit(draft, decision, action))
            draft_updates = (
                (*_delete_draft(draft), *_delete_ref(rejection, remote), *approvals)
                if decision.is_whole_draft
                else (_expect_head(draft),)
            )
            target_ref = BRANCH_PREFIX + draft.target.branch
            return RefMoves((RefUpdate(target_ref, commit, draft.published_head), *draft_updates), commit)
        case RejectDraft():
            return RefMoves((*_delete_proposal(draft), _write_rejection(rejection, draft, action, remote), *approvals))
        case lifecycle.DropDraft(is_whole_draft=True):
            return RefMoves((*_delete_draft(draft), _write_rejection(rejection, draft, action, remote), *approvals))
        case lifecycle.DropDraft():
            dropped = _build_withdraw_commit(draft, decision.packages, action.message, remote)
            commit = _write(remote, action, draft, dropped)
            draft_update = RefUpdate(BRANCH_PREFIX + draft.branch, commit, draft.head)
            return RefMoves((draft_update, *_delete_proposal(draft)), commit)


def _build_publish_commit(draft: OpenDraft, decision: PublishDraft, action: ReviewAction) -> NewCommit:
    """Return the commit on the target branch. It is a merge commit if the whole draft is published.

    A commit for some packages must not have the draft as its second parent, because Git would treat the other packages
    as merged.
    """
    parents = (draft.published_head, draft.head) if decision.is_whole_draft else (draft.published_head,)
    message = format_publish_message(
        draft, decision.packages, action.message, action.via, action.person, action.request, action.approvers
    )  # fmt: skip
    return NewCommit(parents, tuple(_list_file_changes(decision.files)), message, 0)


def _record_approval(
    decision: RecordApproval, draft: OpenDraft, action: ReviewAction, remote: Remote, ref: str
) -> RefMoves:
    last = remote.refs.get(ref)
    message = format_recorded_approval_message(
        draft, decision.packages, action.message, action.via, action.person, action.request
    )  # fmt: skip
    commit = _write(remote, action, draft, build_approval_commit(decision, last, message))
    return RefMoves((_expect_head(draft), RefUpdate(ref, commit, last)))


def _list_file_changes(files: Iterable[DraftedFile]) -> Iterator[TreeChange]:
    # Yield deletions first, because a folder can replace a deleted file.
    all_files = tuple(files)
    yield from (DeletePath(file.path) for file in all_files if file.object_id is None)
    yield from (PutObject(file.path, file.object_id, file.mode) for file in all_files if file.object_id is not None)


def _write_rejection(ref: str, draft: OpenDraft, action: ReviewAction, remote: Remote) -> RefUpdate:
    rejection = NewCommit((draft.head,), (), format_reject_message(draft, action.message, action.request), 0)
    commit = _write(remote, action, draft, rejection)
    return RefUpdate(ref, commit, remote.refs.get(ref))


def _write(remote: Remote, action: ReviewAction, draft: OpenDraft, commit: NewCommit) -> CommitId:
    # Use the time of the command as the date, because audits need the time of an action by a person. The date must not
    # be before the dates of the parents. The command determines the time once, so that a retry writes the same commit.
    parents = (draft.published_head, draft.head)
    seconds = max(action.seconds or 0, *(remote.read_commit(parent).seconds for parent in parents))
    return remote.mirror.write_commits([replace(commit, seconds=seconds, author=action.person)])[0]


def _build_withdraw_commit(
    draft: OpenDraft, packages: tuple[DraftedPackage, ...], message: str, remote: Remote
) -> NewCommit:
    changes = tuple(change for package in packages for change in _list_withdraw_changes(draft, package, remote))
    return NewCommit((draft.head,), changes, format_withdraw_message(draft, packages, message), 0)


def _list_withdraw_changes(draft: OpenDraft, package: DraftedPackage, remote: Remote) -> Iterator[TreeChange]:
    """Yield the changes on the draft branch that restore the package to its content before the draft.

    The next pass detects the restored content, and records the drafted version as declined.
    """
    target = draft.target
    version = package.record.draft_version
    base_tree = version.against if version else package.published_tree
    source = draft.published_head if base_tree == package.published_tree else draft.base
    status = remote.find_blob_at(source, target.get_status_file_path(package.package))
    yield DeletePath(target.get_package_path(package.package))
    yield DeletePath(target.get_status_file_path(package.package))
    if base_tree:
        yield PutObject(target.get_package_path(package.package), base_tree)
    if status:
        yield PutObject(target.get_status_file_path(package.package), ObjectId(status), FILE_MODE)


def _expect_head(draft: OpenDraft) -> RefUpdate:
    # Update the branch to its current head, so that the push fails if another writer has moved the branch.
    return RefUpdate(BRANCH_PREFIX + draft.branch, draft.head, draft.head)


def _delete_proposal(draft: OpenDraft) -> tuple[RefUpdate, ...]:
    return (RefUpdate(proposed_ref(draft.branch), None, draft.proposed_head),) if draft.proposed_head else ()


def _delete_draft(draft: OpenDraft) -> tuple[RefUpdate, ...]:
    return (RefUpdate(BRANCH_PREFIX + draft.branch, None, draft.head), *_delete_proposal(draft))


def _delete_ref(ref: str, remote: Remote) -> tuple[RefUpdate, ...]:
    return (RefUpdate(ref, None, remote.refs[ref]),) if ref in remote.refs else ()


@dataclass(frozen=True)
class ApprovalResult:
    """The result of the approvals by annotation in a pass.

    Attributes:
        packages: The published packages, as `CLUSTER/PACKAGE`.
        has_changed_refs: Whether refs moved, so that the next pass must not be skipped.
        has_failed: Whether a push failed, so that a retry with the same refs can succeed.
        due_at: When the delay of the next approval ends, in seconds since 1970.
    """

    packages: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    has_changed_refs: bool = False
    has_failed: bool = False
    due_at: int | None = None


@dataclass(frozen=True)
class _Approval:
    """The approval of a package that an annotation requests.

    The package is published at `due_at`, when the delay of the approval has ended.
    """

    draft: OpenDraft
    package: DraftedPackage
    policy: ApprovalPolicy
    due_at: int


@dataclass(frozen=True)
class _TargetApprovals:
    """The approvals of one target: the commits that publish packages, and the ref updates.

    Attributes:
        commit: The new head of the target branch. None if no package is published.
        due_at: When the delay of the next approval ends, in seconds since 1970.
        findings: The reasons why drafts with approval annotations must not be published.
    """

    target: Target
    packages: tuple[str, ...] = ()
    commit: CommitId | None = None
    updates: Mapping[str, RefUpdate] = field(default_factory=dict)
    due_at: int | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def unit(self) -> PushUnit:
        return PushUnit(self.target.key.reference, tuple(self.updates.values()))


class AnnotationApprovals:
    """Publishes packages that annotations approve. A commit that the remote refused is not pushed again."""

    def __init__(self, state_ref: str, draft_template: str, first_seen: FirstSeenTimes, max_pushes: int = 8) -> None:
        self._state_ref = state_ref
        self._draft_template = draft_template
        self._first_seen = first_seen
        self._max_pushes = max_pushes
        self._refused: dict[CommitId, PushRefused] = {}

    def push_due_approvals(self, groups: Sequence[tuple[Remote, Sequence[WrittenPlan]]], now: int) -> ApprovalResult:
        """Publish all due packages of the given plans. Errors of a remote become findings."""
        # Use one thread per remote, because pushes mostly wait for remote hosts.
        with ThreadPoolExecutor(self._max_pushes) as pool:
            results = list(pool.map(lambda group: self._approve_isolated(group[0], group[1], now), groups))
        self._first_seen.store()
        return _merge_results(results)

    def _approve_isolated(self, remote: Remote, plans: Sequence[WrittenPlan], now: int) -> ApprovalResult:
        try:
            with repository_boundary(f"the approvals of {remote.mirror.url}"):
                return self._approve(remote, plans, now)
        except InternalGitError as error:
            return ApprovalResult(has_failed=True, findings=(create_internal_error_finding(error.failure),))

    def _approve(self, remote: Remote, plans: Sequence[WrittenPlan], now: int) -> ApprovalResult:
        policies_by_plan = [(written, find_approvable_packages(written.plan)) for written in plans]
        try:
            with repository_boundary(f"the approvals of {remote.mirror.url}"):
                prepared = [self._prepare(remote, written, policies, now) for written, policies in policies_by_plan]
                due = [approvals for approvals in prepared if approvals.commit]
                outcomes = self._push_traced(remote, due) if due else {}
        except GitError as error:
            # Convert the error into findings, because a full disk or a damaged mirror of one remote must not stop the
            # others.
            return _merge_results(
                _build_result(_TargetApprovals(written.plan.target), PushFailed(error), now)
                for written, policies in policies_by_plan
                if policies
            )
        return _merge_results(_build_result(approvals, outcomes.get(approvals.target), now) for approvals in prepared)

    def _push_traced(self, remote: Remote, prepared: Sequence[_TargetApprovals]) -> Mapping[Target, PushOutcome]:
        with span("reconciler.review approve", {"review.targets": len(prepared)}):
            outcomes = self._push(remote, prepared)
            if any(isinstance(outcome, PushDone) for outcome in outcomes.values()):
                link_next_pass()
        return outcomes

    def _push(self, remote: Remote, prepared: Sequence[_TargetApprovals]) -> Mapping[Target, PushOutcome]:
        """Push the approvals. If targets share a branch, push only the first target, because its push moves the branch.

        The next pass pushes the approvals of the other targets.
        """
        refused = {
            approvals.target: self._refused[approvals.commit]
            for approvals in prepared
            if approvals.commit in self._refused
        }
        first: dict[str, _TargetApprovals] = {}
        for approvals in prepared:
            if approvals.target not in refused:
                first.setdefault(approvals.target.branch, approvals)
        new = list(first.values())
        report = remote.mirror.push([approvals.unit for approvals in new]) if new else PushReport()
        outcomes = {approvals.target: report[approvals.unit.name] for approvals in new}
        for approvals in new:
            self._record_outcome(approvals, outcomes[approvals.target])
        later = {approvals.target: PushStale(BRANCH_PREFIX + approvals.target.branch) for approvals in prepared}
        return {**later, **refused, **outcomes}

    def _record_outcome(self, approvals: _TargetApprovals, outcome: PushOutcome) -> None:
        assert approvals.commit
        match outcome:
            case PushRefused():
                self._refused[approvals.commit] = outcome
            case PushStale():
                log.info("race_lost", targets=[approvals.target.name])

    def _prepare(
        self, remote: Remote, written: WrittenPlan, policies: Mapping[str, ApprovalPolicy], now: int
    ) -> _TargetApprovals:
        pushed_branches = {push.branch for push in list_pushes(written.plan)}
        due, later = [], []
        findings: list[Finding] = []
        for approval in self._list_approvals(remote, written, policies, now):
            if isinstance(approval, Finding):
                findings.append(approval)
                continue
            # Do not publish a draft in the pass that pushes it, because people must be able to see the draft first.
            if approval.due_at <= now and approval.draft.branch not in pushed_branches:
                due.append(approval)
            else:
                later.append(approval.due_at)
        prepared = _TargetApprovals(written.plan.target, due_at=min(later, default=None), findings=tuple(findings))
        return self._write_commits(remote, due, prepared)

    def _list_approvals(
        self, remote: Remote, written: WrittenPlan, policies: Mapping[str, ApprovalPolicy], now: int
    ) -> Iterator[_Approval | Finding]:
        approved_branches = written.plan.heads.approved
        packages = [
            (draft, package)
            for draft in (self._read_drafts(remote, written) if policies else ())
            for package in draft.packages
            if package.package in policies and package.record.draft_branch == draft.branch
        ]
        contents = {package.package: f"{package.drafted_tree}" for _, package in packages}
        first_seen = self._first_seen.update(f"{remote.mirror.url} {written.name}", contents, now)
        for draft, package in packages:
            policy = policies[package.package]
            is_rejected = find_rejection(draft, remote, self._state_ref) is not None
            has_approved_request = draft.branch in approved_branches
            decision = decide_approval(
                draft, package, policy, is_rejected=is_rejected, has_approved_request=has_approved_request
            )
            if isinstance(decision, BlockingReason):
                log.debug("approval_skipped", target=written.name, package=package.package, message=decision.message)
                if decision.reason == CONFLICTS_NOT_ACCEPTED:
                    yield _create_conflict_finding(written.name, package, policy)
                continue
            start = max(first_seen[package.package], _read_draft_seconds(draft, package.package, remote))
            yield _Approval(draft, package, policy, start + policy.delay_seconds)

    def _read_drafts(self, remote: Remote, written: WrittenPlan) -> tuple[OpenDraft, ...]:
        target, state, refs = written.plan.target, written.state or written.plan.next_state, remote.refs
        drafts = {name: refs[BRANCH_PREFIX + name] for name in state.drafts if BRANCH_PREFIX + name in refs}
        state = replace(state, drafts={name: state.drafts[name] for name in drafts})
        proposed = {name: refs[proposed_ref(name)] for name in drafts if proposed_ref(name) in refs}
        heads = TargetHeads(refs.get(BRANCH_PREFIX + target.branch), False, drafts, proposed)
        repository = TargetRepository(remote, target)
        return read_open_drafts(TargetSnapshot(target, state, heads, repository, self._draft_template), repository)

    def _write_commits(
        self, remote: Remote, approvals: Iterable[_Approval], prepared: _TargetApprovals
    ) -> _TargetApprovals:
        """Write one commit for each approved package. The first parent of each commit is the commit before it.

        The commit for the last package of a draft is a merge commit.
        """
        drafts: dict[str, OpenDraft] = {}
        for approval in approvals:
            package = approval.package.package
            draft = drafts.get(approval.draft.branch, approval.draft)
            draft = replace(draft, published_head=prepared.commit or draft.published_head)
            decision = approve_draft(draft, {package}, should_propose=True)
            assert isinstance(decision, PublishDraft), "the decision about a package does not depend on other packages"
            message = f"Approved by annotation, {approval.policy.summary}"
            action = ReviewAction("approve", message=message, source="annotation")
            moves = apply_decision(decision, draft, action, remote, self._state_ref)
            drafts[draft.branch] = replace(draft, files=draft.list_other_files({package}))
            new_updates = {
                update.ref: _with_first_expected(prepared.updates.get(update.ref), update)
                for update in moves.ref_updates
            }
            prepared = replace(
                prepared,
                packages=(*prepared.packages, package),
                commit=moves.commit,
                updates={**prepared.updates, **new_updates},
            )
        return prepared


def _create_conflict_finding(name: str, package: DraftedPackage, policy: ApprovalPolicy) -> Finding:
    message = (
        f"the draft of {name}/{package.package} has {format_count(len(package.conflicts), 'conflict')}. Therefore, it"
        f" is not approved automatically, although an annotation requests this ({policy.summary}). Next step: review"
        f" the draft with `reconciler show {name}/{package.package}`, then run `reconciler approve"
        f" {name}/{package.package} --propose --accept-conflicts`"
    )
    return PassCodes.APPROVAL_HELD.finding(message, SourceLocation(object=package.record.owner.key.reference))


def _with_first_expected(earlier: RefUpdate | None, update: RefUpdate) -> RefUpdate:
    return replace(update, expected=earlier.expected) if earlier else update


def _read_draft_seconds(draft: OpenDraft, package: str, remote: Remote) -> int:
    commits = TargetRepository(remote, draft.target).list_draft_commits(draft.head, draft.base)
    return max(
        (commit.min_seconds for commit in commits if commit.package == package),
        default=remote.read_commit(draft.head).seconds,
    )


def _build_result(approvals: _TargetApprovals, outcome: PushOutcome | None, now: int) -> ApprovalResult:
    result = _build_outcome_result(approvals, outcome, now)
    return replace(result, findings=(*approvals.findings, *result.findings))


def _build_outcome_result(approvals: _TargetApprovals, outcome: PushOutcome | None, now: int) -> ApprovalResult:
    target = approvals.target
    match outcome:
        case None:
            return ApprovalResult(due_at=approvals.due_at)
        case PushDone():
            packages = tuple(f"{target.name}/{package}" for package in approvals.packages)
            return ApprovalResult(packages, has_changed_refs=True, due_at=approvals.due_at)
        case PushStale():
            return ApprovalResult(has_changed_refs=True, due_at=approvals.due_at)
        case PushPostponed(seconds=seconds):
            retry_at = now + ceil(seconds or 0)
            due_at = retry_at if approvals.due_at is None else min(approvals.due_at, retry_at)
            return ApprovalResult(has_changed_refs=True, due_at=due_at)
        case PushRefused() | PushFailed():
            code = PassCodes.APPROVAL_REFUSED if isinstance(outcome, PushRefused) else PassCodes.APPROVAL_FAILED
            finding = code.finding(f"{target.title}: {describe_push_outcome(outcome)}", target.location)
            return ApprovalResult(
                findings=(finding,), has_failed=isinstance(outcome, PushFailed), due_at=approvals.due_at
            )


def _merge_results(results: Iterable[ApprovalResult]) -> ApprovalResult:
    all_results = list(results)
    return ApprovalResult(
        tuple(package for result in all_results for package in result.packages),
        tuple(finding for result in all_results for finding in result.findings),
        any(result.has_changed_refs for result in all_results),
        any(result.has_failed for result in all_results),
        min((result.due_at for result in all_results if result.due_at is not None), default=None),
    )
