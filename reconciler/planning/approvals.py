"""Approvals by annotation: which drafts are published without asking, and what leaves them to people (porch 9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.krm.durations import duration_seconds
from reconciler.krm.findings import Finding, Where
from reconciler.planning import lifecycle
from reconciler.planning.codes import APPROVAL_AHEAD, APPROVAL_POLICY_INVALID
from reconciler.planning.fleet import DestinationPlan
from reconciler.planning.lifecycle import Publish, Refused
from reconciler.planning.open_drafts import DraftedPackage, OpenDraft, Reason
from reconciler.planning.outcome import Blocked
from reconciler.planning.state import PackageRecord

POLICY = "approval.nephio.org/policy"
DELAY = "approval.nephio.org/delay"
_POLICIES = ("initial", "always")


@dataclass(frozen=True)
class Policy:
    """Which drafts of a package are published without asking: `initial` the first alone, `always` every one.

    `delay` is how long they must have stood, as people wrote it; "" publishes at once.
    """

    name: str
    delay: str = ""

    @property
    def seconds(self) -> int:
        """The delay in seconds."""
        return duration_seconds(self.delay) or 0

    @property
    def words(self) -> str:
        """The annotations that it was read from."""
        delay = f", {DELAY}: {self.delay}" if self.delay else ""
        return f"{POLICY}: {self.name}{delay}"

    def covers(self, record: PackageRecord) -> bool:
        """Return whether the open draft of a package is one that it publishes."""
        standing = record.ours is not None or (record.put is not None and record.put.against is not None)
        return self.name == "always" or not (record.revision or standing)


def read_policy(annotations: Mapping[str, str]) -> Policy | str | None:
    """Return the policy that annotations name, why it is none, or None where people are to be asked."""
    name, delay = annotations.get(POLICY), annotations.get(DELAY)
    if name is None:
        return None
    if name not in _POLICIES:
        return f'annotation {POLICY} must be "initial" or "always", not "{name}"'
    if delay is not None and duration_seconds(delay) is None:
        return f'annotation {DELAY} must be a duration such as "10m" or "1h30m", not "{delay}"'
    return Policy(name, delay or "")


def policy_findings(plan: DestinationPlan) -> Iterator[Finding]:
    """Yield for each draft that an annotation is about what comes of it; the clock is not asked."""
    for package, record in sorted(plan.after.packages.items()):
        policy = read_policy(record.annotations) if record.put else None
        where, place = Where(object=str(record.owner.key)), f"{plan.destination.name}/{package}"
        if isinstance(policy, str):
            yield APPROVAL_POLICY_INVALID.finding(f"{policy}; the draft of {place} waits for people", where)
        elif policy and policy.covers(record):
            message = f"the draft of {place} is published without asking once nothing is in its way ({policy.words})"
            yield APPROVAL_AHEAD.finding(message, where)


def watched(plan: DestinationPlan) -> Mapping[str, Policy]:
    """Return the policies of the packages whose draft may be published without asking, by package.

    The owner must be Ready, with the draft as it stands: one that this pass could not make is not what it wants.
    """
    found = {}
    for one in plan.outcomes:
        if isinstance(one, Blocked):
            continue
        package = one.variant.place.package
        record = plan.after.packages[package]
        policy = read_policy(record.annotations) if record.put else None
        if isinstance(policy, Policy) and policy.covers(record):
            found[package] = policy
    return found


def decide_approval(
    draft: OpenDraft, one: DraftedPackage, policy: Policy, *, is_rejected: bool = False, is_held: bool = False
) -> Publish | Reason:
    """Return how one package of a draft is published without asking, or what leaves it to people.

    What people have touched in any way is theirs: rejected, or held by its pull request, too. Gates are asked in every
    repository, as Nephio's approver does.
    """
    if is_rejected:
        return Reason("Rejected", f"{draft.branch} was rejected as it stands")
    if is_held or draft.proposed is not None:
        return Reason("Proposed", f"people have proposed {draft.branch}, or approved its pull request; it is theirs")
    if reason := _obstacle(draft, one, policy):
        return reason
    match lifecycle.approve(draft, {one.package}, at_once=True):
        case Refused(reasons):
            return reasons[0]
        case lifecycle.Nothing(why):
            return Reason("NothingOffered", why)
        case Publish() as publish:
            return publish


def _obstacle(draft: OpenDraft, one: DraftedPackage, policy: Policy) -> Reason | None:
    if one.removed or draft.is_removal:
        return Reason("RemovalDraft", f"{draft.branch}: removing what is published always takes an approval of its own")
    if policy.name == "initial" and one.published is not None:
        return Reason("PublishedBefore", f"{one.package}: {POLICY} is initial, and it is published already")
    if draft.edited or one.edited:
        return Reason("Edited", f"people changed {draft.branch}")
    if conflicts := draft.open_conflicts((one.package,)):
        return conflicts[0]
    return one.unmet[0] if one.unmet else None
