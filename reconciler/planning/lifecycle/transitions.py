"""The life of a draft as people move it: proposed, approved, rejected, dropped (porch 7).

Approvals by annotation: which drafts are published without asking, and what leaves them to people (porch 9).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.times import parse_duration_seconds
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.lifecycle.open_drafts import BlockingReason, DraftedFile, DraftedPackage, OpenDraft
from reconciler.planning.model.codes import APPROVAL_AHEAD, APPROVAL_POLICY_INVALID
from reconciler.planning.model.outcomes import APPROVAL_DELAY_ANNOTATION, APPROVAL_POLICY_ANNOTATION, Blocked
from reconciler.planning.model.state import PackageRecord


@dataclass(frozen=True)
class RefusedTransition:
    """It may not be done."""

    reasons: tuple[BlockingReason, ...]


@dataclass(frozen=True)
class NoTransition:
    """It is so already."""

    reason: str


@dataclass(frozen=True)
class ProposeDraft:
    """Point the draft's proposal at its head; the draft is frozen from then on."""


@dataclass(frozen=True)
class PublishDraft:
    """Bring packages onto the cluster branch. `whole`: nothing is left of the draft, which ends (git.md finding 6)."""

    packages: tuple[DraftedPackage, ...]
    files: tuple[DraftedFile, ...]
    is_whole_draft: bool


@dataclass(frozen=True)
class RejectDraft:
    """Delete the proposal: the draft is a draft again."""


@dataclass(frozen=True)
class DropDraft:
    """Take packages out of the draft, or end it; the next pass remembers what was offered as declined."""

    packages: tuple[DraftedPackage, ...]
    is_whole_draft: bool


DraftTransition = RefusedTransition | NoTransition | ProposeDraft | PublishDraft | RejectDraft | DropDraft


def propose_draft(
    draft: OpenDraft, packages: Collection[str], *, accepts_conflicts: bool = False
) -> RefusedTransition | NoTransition | ProposeDraft:
    """Return whether a draft is proposed: of the named packages no gate may be unmet, or of all without names.

    A package with conflicts is refused unless the person accepts them.
    """
    if draft.lifecycle == "Proposed":
        return NoTransition(f"{draft.branch} is proposed as it stands")
    if not draft.files:
        return NoTransition(f"{draft.branch} offers nothing that {draft.destination.branch} does not have")
    reasons = (*_unaccepted(draft, packages, accepts_conflicts), *draft.list_refusals(packages))
    return RefusedTransition(reasons) if reasons else ProposeDraft()


def approve_draft(
    draft: OpenDraft, packages: Collection[str], should_propose: bool, *, accepts_conflicts: bool = False
) -> RefusedTransition | NoTransition | PublishDraft:
    """Return what of a draft is published. Only what is proposed may be, or what is to be proposed `at_once`.

    Gates and conflicts are checked again: a gate may have closed since, and another person may have proposed it.
    """
    paths = draft.select_files(packages)
    if not paths:
        what = ", ".join(sorted(packages)) or draft.branch
        return NoTransition(f"{draft.destination.branch} has everything that {what} offers")
    conflicts = _unaccepted(draft, packages, accepts_conflicts)
    reasons = (*_unproposed(draft, should_propose), *conflicts, *draft.list_refusals(packages))
    if reasons:
        return RefusedTransition(reasons)
    whole = not draft.list_other_files(packages)
    # a branch that has not all of a config's packages must not say that it has: Promoter would leave the rest
    told = (draft.metadata,) if whole and draft.metadata else ()
    return PublishDraft(draft.select_packages(packages), (*paths, *told), whole)


def _unproposed(draft: OpenDraft, at_once: bool) -> tuple[BlockingReason, ...]:
    if at_once or draft.lifecycle == "Proposed":
        return ()
    why = "has moved on since it was proposed" if draft.lifecycle == "Stale" else "is not proposed"
    return (BlockingReason("NotProposed", f"{draft.branch} {why}; propose it first, or approve it with --propose"),)


def _unaccepted(draft: OpenDraft, packages: Collection[str], accepts_conflicts: bool) -> tuple[BlockingReason, ...]:
    return () if accepts_conflicts else draft.list_unaccepted_conflicts(packages)


def reject_draft(draft: OpenDraft) -> NoTransition | RejectDraft:
    """Return whether there is a proposal to take back."""
    return RejectDraft() if draft.proposed_head else NoTransition(f"{draft.branch} is not proposed")


def drop_draft(draft: OpenDraft, packages: Collection[str]) -> DropDraft:
    """Return what of a draft is dropped, proposed or not."""
    return DropDraft(draft.select_packages(packages), not draft.list_other_files(packages))


_POLICIES = ("initial", "always")


@dataclass(frozen=True)
class ApprovalPolicy:
    """Which drafts of a package are published without asking: `initial` the first alone, `always` every one.

    `delay` is how long they must have stood, as people wrote it; "" publishes at once.
    """

    name: str
    delay: str = ""

    @property
    def delay_seconds(self) -> int:
        """The delay in seconds."""
        return parse_duration_seconds(self.delay) or 0

    @property
    def summary(self) -> str:
        """The annotations that it was read from."""
        delay = f", {APPROVAL_DELAY_ANNOTATION}: {self.delay}" if self.delay else ""
        return f"{APPROVAL_POLICY_ANNOTATION}: {self.name}{delay}"

    def applies_to(self, record: PackageRecord) -> bool:
        """Return whether the open draft of a package is one that it publishes."""
        standing = record.published_version is not None or (
            record.draft_version is not None and record.draft_version.against is not None
        )
        return self.name == "always" or not (record.last_revision or standing)


def parse_approval_policy(annotations: Mapping[str, str]) -> ApprovalPolicy | str | None:
    """Return the policy that annotations name, why it is none, or None where people are to be asked."""
    name, delay = annotations.get(APPROVAL_POLICY_ANNOTATION), annotations.get(APPROVAL_DELAY_ANNOTATION)
    if name is None:
        return None
    if name not in _POLICIES:
        return f'annotation {APPROVAL_POLICY_ANNOTATION} must be "initial" or "always", not "{name}"'
    if delay is not None and parse_duration_seconds(delay) is None:
        return f'annotation {APPROVAL_DELAY_ANNOTATION} must be a duration such as "10m" or "1h30m", not "{delay}"'
    return ApprovalPolicy(name, delay or "")


def list_approval_findings(plan: TargetPlan) -> Iterator[Finding]:
    """Yield for each draft that an annotation is about what comes of it; the clock is not asked."""
    for package, record in sorted(plan.next_state.packages.items()):
        policy = parse_approval_policy(record.annotations) if record.draft_version else None
        where, place = SourceLocation(object=str(record.owner.key)), f"{plan.target.name}/{package}"
        if isinstance(policy, str):
            yield APPROVAL_POLICY_INVALID.finding(f"{policy}; the draft of {place} waits for people", where)
        elif policy and policy.applies_to(record):
            message = f"the draft of {place} is published without asking once nothing is in its way ({policy.summary})"
            yield APPROVAL_AHEAD.finding(message, where)


def find_approvable_packages(plan: TargetPlan) -> Mapping[str, ApprovalPolicy]:
    """Return the policies of the packages whose draft may be published without asking, by package.

    The owner must be Ready, with the draft as it stands: one that this pass could not make is not what it wants.
    """
    found = {}
    for one in plan.outcomes:
        if isinstance(one, Blocked):
            continue
        package = one.variant.target.package
        record = plan.next_state.packages[package]
        policy = parse_approval_policy(record.annotations) if record.draft_version else None
        if isinstance(policy, ApprovalPolicy) and policy.applies_to(record):
            found[package] = policy
    return found


def decide_approval(
    draft: OpenDraft, one: DraftedPackage, policy: ApprovalPolicy, *, is_rejected: bool = False, is_held: bool = False
) -> PublishDraft | BlockingReason:
    """Return how one package of a draft is published without asking, or what leaves it to people.

    What people have touched in any way is theirs: rejected, or held by its pull request, too. Gates are asked in every
    repository, as Nephio's approver does.
    """
    if is_rejected:
        return BlockingReason("Rejected", f"{draft.branch} was rejected as it stands")
    if is_held or draft.proposed_head is not None:
        return BlockingReason(
            "Proposed", f"people have proposed {draft.branch}, or approved its pull request; it is theirs"
        )
    if reason := _obstacle(draft, one, policy):
        return reason
    match approve_draft(draft, {one.package}, should_propose=True):
        case RefusedTransition(reasons):
            return reasons[0]
        case NoTransition(why):
            return BlockingReason("NothingOffered", why)
        case PublishDraft() as publish:
            return publish


def _obstacle(draft: OpenDraft, one: DraftedPackage, policy: ApprovalPolicy) -> BlockingReason | None:
    if one.is_removed or draft.is_removal:
        return BlockingReason(
            "RemovalDraft", f"{draft.branch}: removing what is published always takes an approval of its own"
        )
    if policy.name == "initial" and one.published_tree is not None:
        return BlockingReason(
            "PublishedBefore", f"{one.package}: {APPROVAL_POLICY_ANNOTATION} is initial, and it is published already"
        )
    if draft.is_edited or one.is_edited:
        return BlockingReason("Edited", f"people changed {draft.branch}")
    if conflicts := draft.list_unaccepted_conflicts((one.package,)):
        return conflicts[0]
    return one.unmet_gates[0] if one.unmet_gates else None
