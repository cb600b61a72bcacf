"""The plan of one pass: the decisions about all targets as one value, and the branch actions for GitOps Promoter.

GitOps Promoter reports an error if its proposed branch does not exist. Therefore, the reconciler keeps this branch
after the draft was deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain

from reconciler.catalog.catalog import ConfigObject
from reconciler.catalog.files import CommitId
from reconciler.catalog.tenants import NO_TENANTS, Tenants
from reconciler.controllers.override_policies.policy_usage import (
    PolicyUsage,
    check_unused_policies,
    compute_policy_usage,
)
from reconciler.controllers.override_policies.read_policies import OverridePolicies
from reconciler.controllers.override_policies.rollout import RolloutGate, RuleId
from reconciler.controllers.package_variants.codes import REFERENCE_FINDINGS
from reconciler.controllers.results import ControllerResult
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.planning.decide.locked_charts import find_changed_charts
from reconciler.planning.decide.package_decision import list_settling_findings
from reconciler.planning.decide.renamed_releases import find_renamed_releases
from reconciler.planning.decide.repeated_definitions import find_repeated_definitions
from reconciler.planning.layout.config_proposal import ConfigProposal
from reconciler.planning.layout.refs import BranchAction, KeepBranch, MissingTag, PushCommits, ResetBranch
from reconciler.planning.model.branch_names import format_draft_branch
from reconciler.planning.model.codes import ABSENCE_CODES
from reconciler.planning.model.outcomes import (
    Blocked,
    Draft,
    HeldRemoval,
    PackageOutcome,
    RemovalOutcome,
    Unchanged,
    find_reconciled_owners,
)
from reconciler.planning.model.state import PackageRecord, TargetState
from reconciler.planning.model.targets import Target
from reconciler.planning.observe.target_snapshot import TargetHeads

PACKAGE_STATES = (
    "published", "draft", "proposed", "blocked", "on_hold", "pending_deletion", "declined", "orphaned"
)  # fmt: skip
"""The states of packages in metrics and in the log.

A package is `on_hold` if nothing requests it, but a deletion limit keeps it. A package is `pending_deletion` if its
deletion waits for a review or was declined. A package is `orphaned` in the pass that keeps its files without an owner.
"""


@dataclass(frozen=True)
class TargetPlan:
    """The decisions about one target. A target that cannot be read has a finding and no outcomes, and is not changed.

    Attributes:
        findings: The findings about the target as a whole.
        kept_heads: The heads of deleted draft branches with local changes. The pass creates refs that keep these
            commits.
        missing_tags: The revision tags to create after the state was written.
    """

    target: Target
    heads: TargetHeads
    previous_state: TargetState
    next_state: TargetState
    outcomes: tuple[PackageOutcome, ...] = ()
    held: tuple[HeldRemoval, ...] = ()
    branch_actions: tuple[BranchAction, ...] = ()
    findings: tuple[Finding, ...] = ()
    removals: tuple[RemovalOutcome, ...] = ()
    kept_heads: tuple[CommitId, ...] = ()
    missing_tags: tuple[MissingTag, ...] = ()

    @cached_property
    def target_findings(self) -> tuple[Finding, ...]:
        """The findings about the target as a whole, and about removals."""
        return (
            *self.findings,
            *(held.finding for held in self.held),
            *(removal.finding for removal in self.removals if removal.finding),
        )

    @cached_property
    def package_findings(self) -> tuple[Finding, ...]:
        """The findings about the requested packages."""
        findings = (
            finding
            for outcome in self.outcomes
            for finding in (*_list_outcome_findings(outcome), *list_settling_findings(outcome.variant))
        )
        return (
            *findings,
            *find_repeated_definitions(self.outcomes),
            *find_renamed_releases(self.outcomes),
            *find_changed_charts(self.outcomes),
        )

    @cached_property
    def outcome_counts(self) -> tuple[int, int, int]:
        """The numbers of new drafts, unchanged packages and blocked packages, in this order."""
        kinds = [type(outcome) for outcome in self.outcomes]
        return kinds.count(Draft), kinds.count(Unchanged), kinds.count(Blocked)

    @cached_property
    def package_state_counts(self) -> Mapping[str, int]:
        """The number of packages in each of `PACKAGE_STATES`."""
        states = [self._get_package_state(outcome) for outcome in self.outcomes]
        kinds = [removal.kind for removal in self.removals]
        return {
            **{state: states.count(state) for state in PACKAGE_STATES},
            "on_hold": len(self.held),
            "pending_deletion": kinds.count("proposed") + kinds.count("declined"),
            "orphaned": kinds.count("orphaned"),
        }

    def _get_package_state(self, outcome: PackageOutcome) -> str:
        match outcome:
            case Draft():
                return "draft"
            case Unchanged(reason="drafted", record=record):
                return "proposed" if self.is_proposed(record.draft_branch) else "draft"
            case Unchanged(reason="declined"):
                return "declined"
            case Unchanged():
                return "published"
            case Blocked(record=PackageRecord(draft_branch=branch), findings=()) if self.is_proposed(branch):
                # Only the next update of the package is blocked, until a person approves or rejects the proposed draft.
                return "proposed"
            case Blocked():
                return "blocked"

    def is_proposed(self, draft_branch: str) -> bool:
        """Return whether a draft branch has the commit that a person proposed for review."""
        head = self.heads.drafts.get(draft_branch)
        return head is not None and self.heads.proposed.get(draft_branch) == head

    @cached_property
    def conflict_count(self) -> int:
        """The number of recorded conflicts between local changes on drafts and later updates."""
        return sum(len(record.conflicts) for _, record in self.next_state.list_active_packages())

    @cached_property
    def open_drafts(self) -> Mapping[str, str]:
        """An ID of the open draft of each package. The ID stays the same until the draft is published or deleted."""
        return {
            package: f"{record.draft_branch} {record.last_workspace}"
            for package, record in self.next_state.list_active_packages()
            if record.draft_version is not None
        }

    @property
    def has_new_drafts(self) -> bool:
        """Whether the plan writes drafts. Such a plan is not cached, because the plan of the next pass is different."""
        return self.outcome_counts[0] > 0

    @cached_property
    def has_retries(self) -> bool:
        """Whether a temporary error blocks a package."""
        return any(isinstance(outcome, Blocked) and outcome.should_retry for outcome in self.outcomes)

    @cached_property
    def reconciled_owners(self) -> frozenset[ObjectKey]:
        """The owners that have a published or drafted package without an error."""
        return find_reconciled_owners(self.outcomes)


@dataclass(frozen=True)
class FleetPlan:
    """The decisions about the fleet at one config commit.

    Attributes:
        config_id: The commit ID of the config, or `tree:<id>` for a plain folder.
        latest_commit_seconds: The latest committer date of the commits that were read, in seconds since 1970.
        uncertain_tenants: The tenants with config files or objects that cannot be read. A missing object of these
            tenants is not evidence of a deletion. The name "" means that all tenants can have such files or objects.
        rollout_gates: The progress of the override rules with a rollout.
        is_partial: Whether other shards plan some targets of the fleet.
        awaited_owners: The owners with a package that another shard must render first. Until then, their last status is
            kept.
    """

    config_id: str
    latest_commit_seconds: int
    controller_result: ControllerResult
    targets: tuple[TargetPlan, ...]
    findings: tuple[Finding, ...] = ()
    uncertain_tenants: frozenset[str] = frozenset()
    proposal: ConfigProposal = field(default_factory=ConfigProposal)
    objects: Mapping[ObjectKey, ConfigObject] = field(default_factory=dict)
    policies: OverridePolicies = field(default_factory=OverridePolicies)
    rollout_gates: Mapping[RuleId, RolloutGate] = field(default_factory=dict)
    is_partial: bool = False
    awaited_owners: frozenset[ObjectKey] = frozenset()
    tenants: Tenants = NO_TENANTS

    def list_outcomes(self) -> Iterator[tuple[Target, PackageOutcome]]:
        """Yield the outcome of each package, together with its target."""
        for plan in self.targets:
            yield from ((plan.target, outcome) for outcome in plan.outcomes)

    @cached_property
    def policy_usages(self) -> tuple[PolicyUsage, ...]:
        """The usage of every valid override policy on the clusters that could be read."""
        if not self.policies.valid:
            return ()
        usages = (
            (plan.target.name, package, record.policy_usage)
            for plan in self.targets
            for package, record in plan.next_state.list_active_packages()
            if record.policy_usage
        )
        return compute_policy_usage(self.policies, usages)

    @cached_property
    def _all_findings(self) -> tuple[Finding, ...]:
        findings = [*self.findings, *self._find_unused_policies(), *self.controller_result.findings]
        findings += chain.from_iterable(stalled.findings for stalled in self.controller_result.stalled)
        findings += chain.from_iterable(plan.target_findings for plan in self.targets)
        findings += chain.from_iterable(plan.package_findings for plan in self.targets)
        located = self._add_locations(findings)
        if self.uncertain_tenants:
            located = (value for value in located if value.code not in ABSENCE_CODES or self._is_absence_known(value))
        return tuple(dict.fromkeys(located))

    def _is_absence_known(self, finding: Finding) -> bool:
        """Return whether the object that a finding reports as missing is certainly missing.

        Return False if an object that cannot be read may be the missing object.
        """
        tenant = self.tenants.by_name.get(self.find_finding_tenant(finding))
        uncertain = [self.tenants.by_name.get(name) for name in self.uncertain_tenants]
        # Return False for a finding about an object of the platform team. Each tenant can use this object. Therefore,
        # the missing object can belong to any tenant.
        return tenant is not None and all(
            other is not None
            and other is not tenant
            and not tenant.may_reference_tenant(other.name)
            and not other.may_reference_tenant(tenant.name)
            for other in uncertain
        )

    @property
    def is_complete(self) -> bool:
        """Whether all config files and objects can be read."""
        return not self.uncertain_tenants

    def can_contain_unreadable(self, tenant: str | None) -> bool:
        """Return whether the config may contain unreadable objects of a tenant. None stands for an unknown tenant."""
        return not self.is_complete and (
            tenant is None or "" in self.uncertain_tenants or tenant in self.uncertain_tenants
        )

    def list_findings(self) -> tuple[Finding, ...]:
        """Return all findings about files, objects, targets and packages, without duplicates.

        A finding about an object contains the file and line of the object, or of the set that creates the object.

        If a config file cannot be read, findings that only report a missing object are omitted, because the file can
        contain the object. An unreadable file of a tenant affects only findings about objects that this tenant can
        define or use.
        """
        return self._all_findings

    def _find_unused_policies(self) -> tuple[Finding, ...]:
        if not self.policies.valid or self.is_partial or self.awaited_owners:
            return ()
        # Do not report unused policies if a package cannot be read or was never rendered, because the package may use
        # them.
        unrendered = (_was_never_rendered(outcome) for _, outcome in self.list_outcomes())
        is_known = not (
            self.controller_result.stalled or any(plan.findings for plan in self.targets) or any(unrendered)
        )
        return check_unused_policies(self.policy_usages, self.policies) if is_known else ()

    def _add_locations(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        owners: dict[str, ObjectKey] = {}
        for finding in findings:
            location = finding.location
            if location.file or location.package or not location.object:
                yield finding
                continue
            owners = owners or self._find_owners()
            source = self.objects.get(owners[location.object]) if location.object in owners else None
            yield (
                replace(finding, location=replace(location, file=source.file, line=source.location.line))
                if source
                else finding
            )

    def find_object_tenant(self, name: str) -> str:
        """Return the tenant of an object with the name `Kind/namespace/name`. Return "" for the platform team."""
        return self._tenants_by_object.get(name, "")

    def find_finding_tenant(self, finding: Finding) -> str:
        """Return the tenant of the file or package of a finding. Return "" for the platform team."""
        location = finding.location
        if location.file and not location.package:
            return self.tenants.find_owner(location.file)
        return self.find_object_tenant(location.owner or location.object)

    @cached_property
    def _tenants_by_object(self) -> Mapping[str, str]:
        """Maps the key of each config object and each package owner, as text, to its tenant.

        "" is the platform team. The mapping is empty if there are no tenants.
        """
        if not self.tenants:
            return {}
        result = self.controller_result
        tenants = {key.reference: self.tenants.find_owner(value.file) for key, value in self.objects.items()}
        tenants |= {variant.owner.key.reference: variant.tenant for variant in result.variants}
        return tenants | {stalled.owner.key.reference: stalled.tenant for stalled in result.stalled}

    def _find_owners(self) -> dict[str, ObjectKey]:
        owners = [
            *(variant.owner for variant in self.controller_result.variants),
            *(stalled.owner for stalled in self.controller_result.stalled),
        ]
        return {owner.key.reference: owner.parent or owner.key for owner in owners}


def _list_outcome_findings(outcome: PackageOutcome) -> tuple[Finding, ...]:
    match outcome:
        case Draft():
            return outcome.rendered.findings
        case Unchanged():
            # Omit recorded findings about the upstream. If they still apply, the controller reports them in each pass.
            return tuple(finding for finding in outcome.findings if finding.code not in REFERENCE_FINDINGS)
        case Blocked():
            return outcome.findings


METADATA_FILE_NAME = "hydrator.metadata"
_BRANCH_SUFFIX = "-next"


def find_metadata_path(target: Target, draft: str) -> str | None:
    """Return the path of the GitOps Promoter metadata file on a draft branch.

    Return None if Promoter ignores the branch.

    Promoter interprets branch names: `<branch>-next` proposes the whole branch, and `<branch>-next/<directory>`
    proposes one directory.
    """
    proposed = f"{target.branch}{_BRANCH_SUFFIX}"
    if draft == proposed:
        return METADATA_FILE_NAME
    is_directory_branch = target.directory and draft == f"{proposed}/{target.directory}"
    return target.get_package_path(METADATA_FILE_NAME) if is_directory_branch else None


def find_promoter_branch(target: Target, template: str) -> str | None:
    """Return the draft branch that GitOps Promoter uses for a target.

    Return None if the template for draft branches does not produce this branch name.
    """
    name = format_draft_branch(template, target, "")
    return name if "{package}" not in template and find_metadata_path(target, name) else None


def is_promoter_branch_idle(head: CommitId | None, published: CommitId | None, observed: CommitId | None) -> bool:
    """Return whether the branch of GitOps Promoter contains no draft.

    Args:
        head: The head of this branch. Without a draft, it is equal to a head of the target branch.
        published: The current head of the target branch.
        observed: The last known head of the target branch.
    """
    return head is not None and head in (published, observed)


def add_promoter_actions(plan: TargetPlan, template: str, content: bytes) -> tuple[BranchAction, ...]:
    """Return the branch actions of the plan, and the additional actions that GitOps Promoter requires.

    Each new commit on the draft branch for GitOps Promoter contains a metadata file with `content`. If there is no
    draft, this branch is set to the head of the target branch. If only the metadata changes, for example because of a
    new config commit, nothing is pushed.
    """
    branch = find_promoter_branch(plan.target, template)
    if branch is None or plan.heads.target_branch is None:
        return plan.branch_actions
    own = next((action for action in plan.branch_actions if action.branch == branch), None)
    others = tuple(action for action in plan.branch_actions if action.branch != branch)
    if isinstance(own, PushCommits):
        return (*others, _add_metadata(own, plan, content))
    has_draft = branch in plan.next_state.drafts or plan.heads.is_absent
    return plan.branch_actions if has_draft else (*others, _reset_branch(branch, plan.heads.target_branch, plan))


def _add_metadata(push: PushCommits, plan: TargetPlan, content: bytes) -> PushCommits:
    path = find_metadata_path(plan.target, push.branch)
    assert path, "GitOps Promoter uses this branch"
    return replace(push, expected_head=push.expected_head or plan.heads.promoter_head, metadata_file=(path, content))


def _reset_branch(branch: str, published: CommitId, plan: TargetPlan) -> BranchAction:
    head = plan.heads.drafts.get(branch, plan.heads.promoter_head)
    return KeepBranch(branch) if head == published else ResetBranch(branch, head, published)


def _was_never_rendered(outcome: PackageOutcome) -> bool:
    return isinstance(outcome, Blocked) and (outcome.record is None or outcome.record.desired_tree is None)
