"""Transitions of a draft: propose, approve, reject, drop, and the automatic approval by annotations."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.times import parse_duration_seconds
from reconciler.lazy_dataclasses import dataclass
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.lifecycle.open_drafts import BlockingReason, DraftedFile, DraftedPackage, OpenDraft
from reconciler.planning.model.codes import PlanningCodes
from reconciler.planning.model.outcomes import APPROVAL_DELAY_ANNOTATION, APPROVAL_POLICY_ANNOTATION, Blocked
from reconciler.planning.model.state import PackageRecord


@dataclass(frozen=True)
class RefusedTransition:
    """The requested transition is not allowed."""

    reasons: tuple[BlockingReason, ...]


@dataclass(frozen=True)
class NoTransition:
    """The requested transition is not necessary, because the draft already has the requested state."""

    reason: str


@dataclass(frozen=True)
class ProposeDraft:
    """Submit the head of the draft for approval. The daemon does not change a proposed draft."""


@dataclass(frozen=True)
class PublishDraft:
    """Write packages to the target branch.

    Attributes:
        is_whole_draft: Whether `packages` and `files` contain all changes of the draft. Then the draft branch is
            deleted.
    """

    packages: tuple[DraftedPackage, ...]
    files: tuple[DraftedFile, ...]
    is_whole_draft: bool


@dataclass(frozen=True)
class RejectDraft:
    """Reject a draft: the draft is not proposed any more, and its branch is kept."""


@dataclass(frozen=True)
class DropDraft:
    """Remove packages from the draft, or delete the draft. The next pass records the removed content as declined."""

    packages: tuple[DraftedPackage, ...]
    is_whole_draft: bool


DraftTransition = RefusedTransition | NoTransition | ProposeDraft | PublishDraft | RejectDraft | DropDraft


def propose_draft(
    draft: OpenDraft, packages: Collection[str], *, accepts_conflicts: bool = False
) -> RefusedTransition | NoTransition | ProposeDraft:
    """Decide whether a draft can be proposed.

    Args:
        packages: The names of the packages to check. If empty, all packages are checked.
        accepts_conflicts: Whether packages with conflicts are allowed.
    """
    if draft.lifecycle == "Proposed":
        return NoTransition(f'"{draft.branch}" is proposed already')
    if not draft.files:
        return NoTransition(f'"{draft.branch}" has no changes compared with "{draft.target.branch}"')
    reasons = (*_list_unaccepted(draft, packages, accepts_conflicts), *draft.list_refusals(packages))
    return RefusedTransition(reasons) if reasons else ProposeDraft()


def approve_draft(
    draft: OpenDraft, packages: Collection[str], should_propose: bool, *, accepts_conflicts: bool = False
) -> RefusedTransition | NoTransition | PublishDraft:
    """Decide which content of a draft can be published.

    Readiness gates and conflicts are checked again, because they can change after the proposal.

    Args:
        packages: The names of the packages to publish. If empty, the whole draft is published.
        should_propose: Whether a draft that is not proposed is allowed.
        accepts_conflicts: Whether packages with conflicts are allowed.
    """
    files = draft.select_files(packages)
    if not files:
        name = ", ".join(sorted(packages)) or draft.branch
        return NoTransition(f'"{draft.target.branch}" already contains all changes of {name}')
    conflicts = _list_unaccepted(draft, packages, accepts_conflicts)
    reasons = (*_check_proposed(draft, should_propose), *conflicts, *draft.list_refusals(packages))
    if reasons:
        return RefusedTransition(reasons)
    is_whole_draft = not draft.list_other_files(packages)
    # Publish the metadata file only with the whole draft. The file names the config commit for GitOps Promoter. If it
    # were published too early, Promoter would not promote the remaining packages of this commit.
    metadata = (draft.metadata,) if is_whole_draft and draft.metadata else ()
    return PublishDraft(draft.select_packages(packages), (*files, *metadata), is_whole_draft)


def _check_proposed(draft: OpenDraft, should_propose: bool) -> tuple[BlockingReason, ...]:
    if should_propose or draft.lifecycle == "Proposed":
        return ()
    problem = "has changed since it was proposed" if draft.lifecycle == "Stale" else "is not proposed"
    return (
        BlockingReason("NotProposed", f'"{draft.branch}" {problem}; propose it first, or approve it with --propose'),
    )


def _list_unaccepted(
    draft: OpenDraft, packages: Collection[str], accepts_conflicts: bool
) -> tuple[BlockingReason, ...]:
    return () if accepts_conflicts else draft.list_unaccepted_conflicts(packages)


def reject_draft(draft: OpenDraft, *, should_reject_unproposed: bool = False) -> NoTransition | RejectDraft:
    """Return the rejection of a draft.

    Args:
        should_reject_unproposed: Whether a draft that is not proposed is rejected too. If False, such a draft needs no
            transition.
    """
    if draft.proposed_head or should_reject_unproposed:
        return RejectDraft()
    return NoTransition(f'"{draft.branch}" is not proposed')


def drop_draft(draft: OpenDraft, packages: Collection[str]) -> DropDraft:
    """Plan to remove packages from a draft. If `packages` is empty, delete the whole draft."""
    return DropDraft(draft.select_packages(packages), not draft.list_other_files(packages))


_POLICIES = ("initial", "always")


@dataclass(frozen=True)
class ApprovalPolicy:
    """Policy for the automatic approval of drafts, from the annotations of a package.

    Attributes:
        name: `initial`: only the first draft of a package is approved automatically. `always`: all drafts are approved
            automatically.
        delay: The minimum age of a draft as a duration, e.g. `10m`, or "" if there is no delay.
    """

    name: str
    delay: str = ""

    @property
    def delay_seconds(self) -> int:
        """The minimum age of a draft in seconds."""
        return parse_duration_seconds(self.delay) or 0

    @property
    def summary(self) -> str:
        """The annotations that define the policy, as text for messages."""
        delay = f", {APPROVAL_DELAY_ANNOTATION}: {self.delay}" if self.delay else ""
        return f"{APPROVAL_POLICY_ANNOTATION}: {self.name}{delay}"

    def applies_to(self, record: PackageRecord) -> bool:
        """Return whether the policy approves the current draft of a package."""
        draft = record.draft_version
        is_published = record.published_version is not None or (draft is not None and draft.against is not None)
        return self.name == "always" or not (record.last_revision or is_published)


def parse_approval_policy(annotations: Mapping[str, str]) -> ApprovalPolicy | str | None:
    """Return the approval policy in annotations, or an error message if an annotation is invalid.

    Return None if there is no policy, so that a person must approve the drafts.
    """
    name, delay = annotations.get(APPROVAL_POLICY_ANNOTATION), annotations.get(APPROVAL_DELAY_ANNOTATION)
    if name is None:
        return None
    if name not in _POLICIES:
        return f'the annotation {APPROVAL_POLICY_ANNOTATION} must be "initial" or "always", but is "{name}"'
    if delay is not None and parse_duration_seconds(delay) is None:
        return (
            f'the annotation {APPROVAL_DELAY_ANNOTATION} must be a duration such as "10m" or "1h30m", but is "{delay}"'
        )
    return ApprovalPolicy(name, delay or "")


def list_approval_findings(plan: TargetPlan) -> Iterator[Finding]:
    """Yield a finding for each draft whose owner has an approval annotation.

    This function does not check whether the approval delay has passed.
    """
    for package, record in sorted(plan.next_state.packages.items()):
        policy = parse_approval_policy(record.annotations) if record.draft_version else None
        location, name = SourceLocation(object=record.owner.key.reference), f"{plan.target.name}/{package}"
        if isinstance(policy, str):
            message = f"{policy}; the draft of {name} waits for an approval by a person"
            yield PlanningCodes.APPROVAL_POLICY_INVALID.finding(message, location)
        elif policy and policy.applies_to(record):
            message = (
                f"the draft of {name} is approved automatically when nothing blocks it, because an annotation"
                f" requests this ({policy.summary})"
            )
            yield PlanningCodes.APPROVAL_AHEAD.finding(message, location)


def find_approvable_packages(plan: TargetPlan) -> Mapping[str, ApprovalPolicy]:
    """Return the packages whose drafts can be approved automatically, with their approval policies.

    Blocked packages are omitted, because their drafts do not contain the requested content.
    """
    policies = {}
    for outcome in plan.outcomes:
        if isinstance(outcome, Blocked):
            continue
        package = outcome.variant.target.package
        record = plan.next_state.packages[package]
        policy = parse_approval_policy(record.annotations) if record.draft_version else None
        if isinstance(policy, ApprovalPolicy) and policy.applies_to(record):
            policies[package] = policy
    return policies


def decide_approval(
    draft: OpenDraft,
    package: DraftedPackage,
    policy: ApprovalPolicy,
    *,
    is_rejected: bool = False,
    has_approved_request: bool = False,
) -> PublishDraft | BlockingReason:
    """Decide whether a package of a draft is approved automatically.

    If a person has edited, proposed or rejected a draft, only a person can approve it. As in the approval controller of
    Nephio, readiness gates are checked in all repositories.

    Args:
        is_rejected: Whether the pull request of the draft was rejected.
        has_approved_request: Whether a person approved the pull request of the draft.

    Returns:
        The content to publish, or the reason why a person must decide.
    """
    if is_rejected:
        return BlockingReason("Rejected", f'a person rejected the current content of "{draft.branch}"')
    if has_approved_request or draft.proposed_head is not None:
        message = (
            f'a person must approve the draft on branch "{draft.branch}", because a person proposed it or approved its'
            " pull request"
        )
        return BlockingReason("Proposed", message)
    if reason := _find_approval_obstacle(draft, package, policy):
        return reason
    match approve_draft(draft, {package.package}, should_propose=True):
        case RefusedTransition(reasons):
            return reasons[0]
        case NoTransition(message):
            return BlockingReason("NothingOffered", message)
        case PublishDraft() as publish:
            return publish


def _find_approval_obstacle(draft: OpenDraft, package: DraftedPackage, policy: ApprovalPolicy) -> BlockingReason | None:
    if package.is_removed or draft.is_removal:
        return BlockingReason("RemovalDraft", f'"{draft.branch}": a person must approve the removal of a package')
    if policy.name == "initial" and package.published_tree is not None:
        return BlockingReason(
            "PublishedBefore",
            f'{package.package}: a person must approve this draft. {APPROVAL_POLICY_ANNOTATION} is "initial", so that'
            " only the first draft of the package is approved automatically",
        )
    if draft.is_edited or package.is_edited:
        return BlockingReason("Edited", f'"{draft.branch}" contains local changes, so a person must approve the draft')
    if conflicts := draft.list_unaccepted_conflicts((package.package,)):
        return conflicts[0]
    return package.unmet_gates[0] if package.unmet_gates else None
