"""Removals of packages that are no longer requested: the decision which removals must wait, and the removal drafts.

This module decides whether a package is deleted. Controllers compute only the guards that can block a removal
(`controllers/deletion_guards.py`), and `deletion_safety.py` checks whether the evidence for removals is complete.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from reconciler.catalog.files import CommitId, TreeId
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.deletion_guards import (
    ACK_DELETIONS,
    compute_deletion_hash,
    exceeds_limit,
    format_deletion_message,
)
from reconciler.controllers.package_variants.set_targets import DownstreamKey
from reconciler.controllers.results import PackageTarget
from reconciler.krm.findings import Finding, FindingCode, SourceLocation, downgrade_to_warning
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.planning.decide.deletion_safety import is_named_in_finding
from reconciler.planning.decide.drafts import build_restore_commit, build_revert_commit
from reconciler.planning.decide.target_inputs import TargetClaims
from reconciler.planning.layout.refs import (
    BranchAction,
    DeleteBranch,
    DraftChanges,
    DraftCommit,
    KeepBranch,
    PushCommits,
    plan_closed_draft_branch,
    plan_draft_branch,
)
from reconciler.planning.model.codes import PlanningCodes
from reconciler.planning.model.outcomes import HeldRemoval, RemovalOutcome
from reconciler.planning.model.state import DraftBranch, ObservedPackage, PackageRecord, ProposedRemoval, TargetState
from reconciler.planning.model.targets import are_paths_nested
from reconciler.planning.observe.target_snapshot import TargetSnapshot

_STUCK = (
    "cannot be updated. The target branch changed files that also have local changes on this branch. Next step: merge"
    " or"
    " delete this draft"
)


@dataclass(frozen=True)
class RemovalDecisions:
    """Decisions about the packages that are no longer requested: held packages, and removals."""

    held: tuple[HeldRemoval, ...] = ()
    removals: tuple[RemovalOutcome, ...] = ()

    def list_drafted_packages(self, snapshot: TargetSnapshot) -> frozenset[str]:
        """Return the removed packages that must be deleted from their drafts.

        Orphaned packages stay on their drafts.
        """
        packages = [removal.package for removal in self.removals if removal.kind != "orphaned"]
        return frozenset(
            package
            for package in packages
            if is_on_draft(snapshot.state.packages[package], snapshot.observe_package(package))
        )


def decide_removals(
    snapshot: TargetSnapshot, claims: TargetClaims, reconciled: Collection[ObjectKey]
) -> RemovalDecisions:
    """Decide about each owned package that is no longer requested.

    If a removal is held, the pass does not change the package. A removal is held in two cases: there is no evidence
    that the package is no longer requested, or the pass would remove too many packages.

    Args:
        reconciled: The owners that have, on at least one target, a package without an error.
    """
    unrequested = {
        package: record
        for package, record in snapshot.state.packages.items()
        if record.is_owned and _is_unrequested(package, record, claims)
    }
    doubt = _explain_missing_owners(unrequested, snapshot, claims)
    outcomes = [
        _decide_removal(_UnrequestedPackage(package, record, snapshot, claims.select_for(record)), doubt, reconciled)
        for package, record in unrequested.items()
    ]
    decisions = RemovalDecisions(
        tuple(outcome for outcome in outcomes if isinstance(outcome, HeldRemoval)),
        tuple(outcome for outcome in outcomes if isinstance(outcome, RemovalOutcome)),
    )
    return _apply_target_limit(decisions, unrequested, snapshot, claims)


def _is_unrequested(package: str, record: PackageRecord, claims: TargetClaims) -> bool:
    if package in claims.accepted_packages:
        return False
    claims = claims.select_for(record)
    return not claims.is_requested(package) and not claims.is_unresolved(record.owner)


def _apply_target_limit(
    decisions: RemovalDecisions,
    unrequested: Mapping[str, PackageRecord],
    snapshot: TargetSnapshot,
    claims: TargetClaims,
) -> RemovalDecisions:
    """Block all new removals if their number exceeds the deletion limit of the target.

    Only published packages are counted, because the deletion of a draft loses no published content. A removal that a
    person confirmed on the set of its owner needs no second confirmation.

    Old program versions did not record the config file of the owner. Such a record does not prove that a person deleted
    the owner. If a removed package has such a record, all new removals need a confirmation, even below the limit.
    """
    removals = [removal for removal in decisions.removals if _is_unconfirmed_removal(removal, snapshot, claims)]
    if not removals:
        return decisions
    name = snapshot.target.name
    keys = [DownstreamKey(name, removal.package) for removal in removals]
    records = [snapshot.state.packages[removal.package] for removal in removals]
    if _is_confirmed(keys, records, unrequested, claims):
        return decisions
    recorded_counts = [record.outcome.get("onTarget") for record in records]
    published = _count_published(snapshot)
    total = min([published, *(count for count in recorded_counts if count)])
    is_recorded = all(record.config_sources for record in records)
    if is_recorded and not exceeds_limit(len(keys), total, claims.max_delete_percent):
        return decisions
    title = snapshot.target.title
    reason = format_deletion_message(keys, total, f"published packages of {title}", title)
    if not is_recorded:
        reason = (
            "the recorded state does not contain the config file of the owner, so it is unknown whether a person"
            f" deleted the owner. {reason}"
        )
    held = [replace(_hold_on_target(removal, snapshot, reason), target_package_count=total) for removal in removals]
    return RemovalDecisions(
        (*decisions.held, *held), tuple(removal for removal in decisions.removals if removal not in removals)
    )


def _is_unconfirmed_removal(removal: RemovalOutcome, snapshot: TargetSnapshot, claims: TargetClaims) -> bool:
    """Return whether a new removal deletes or orphans a published package without a confirmation."""
    record, key = snapshot.state.packages[removal.package], snapshot.target.key
    if record.removal is not None or removal.kind not in ("proposed", "orphaned"):
        return False
    guard = claims.select_for(record).guards.get(record.owner.parent or record.owner.key)
    is_confirmed = guard is not None and PackageTarget(key.namespace, key.name, removal.package) in guard.confirmed
    return not is_confirmed and snapshot.find_package_at(snapshot.heads.target_branch, removal.package)[0] is not None


def _is_confirmed(
    keys: Collection[DownstreamKey],
    records: Collection[PackageRecord],
    unrequested: Mapping[str, PackageRecord],
    claims: TargetClaims,
) -> bool:
    """Return whether an annotation of the target's object confirms these removals.

    There are three kinds of such hashes:

    - The hash of the packages in `keys`.
    - The hash of all packages in `unrequested` without a proposed removal.
    - A hash in the recorded findings of all packages in `records`. These findings requested the confirmation.
    """
    name = next(iter(keys)).repo
    all_keys = [DownstreamKey(name, package) for package, record in unrequested.items() if record.removal is None]
    if not claims.acknowledged_hashes.isdisjoint({compute_deletion_hash(keys), compute_deletion_hash(all_keys)}):
        return True
    return any(all(is_named_in_finding(record, token) for record in records) for token in claims.acknowledged_hashes)


def _count_published(snapshot: TargetSnapshot) -> int:
    """Return the number of published packages of the target. Packages with a proposed removal are not counted."""
    packages = (package for package, _ in snapshot.state.list_active_packages())
    return sum(snapshot.find_package_at(snapshot.heads.target_branch, package)[0] is not None for package in packages)


def _hold_on_target(removal: RemovalOutcome, snapshot: TargetSnapshot, reason: str) -> HeldRemoval:
    name = f"{snapshot.target.name}/{removal.package}"
    message = f"package {name} is no longer requested, because {removal.reason}. It is kept, because {reason}"
    finding = ControllerCodes.DELETION_HELD.finding(message, snapshot.target.location)
    return HeldRemoval(removal.package, snapshot.state.packages[removal.package], finding)


def _explain_missing_owners(
    unrequested: Mapping[str, PackageRecord], snapshot: TargetSnapshot, claims: TargetClaims
) -> str:
    """If the config has no owners, return the reason why new removals are held.

    Return "" if the config has owners, or if a person confirmed the removals.
    """
    new = [
        DownstreamKey(snapshot.target.name, package)
        for package, record in unrequested.items()
        if record.removal is None
    ]
    token = compute_deletion_hash(new)
    if not claims.has_no_owners or not new or token in claims.acknowledged_hashes:
        return ""
    return (
        "the config has no object that requests packages. Next step: check `config.directory`. To confirm "
        f'the removal, annotate {snapshot.target.title} with {ACK_DELETIONS}: "{token}"'
    )


@dataclass(frozen=True)
class _UnrequestedPackage:
    """A package that is no longer requested, with the inputs of the decision about its removal."""

    package: str
    record: PackageRecord
    snapshot: TargetSnapshot
    claims: TargetClaims

    @property
    def name(self) -> str:
        return f"{self.snapshot.target.name}/{self.package}"

    @property
    def reason(self) -> str:
        owner = self.record.owner
        if target := self.claims.find_only_target(owner):
            return f"{owner.key} requests package {target} instead"
        if owner.key in self.claims.targets_by_owner:
            return f"{owner.key} does not request the package any more"
        if owner.parent in self.claims.guards:
            return f"{owner.parent} does not create {owner.key} any more"
        return f"{owner.key} does not exist any more"

    @property
    def explanation(self) -> str:
        """The end of a sentence about the package, with the reason why it is not requested."""
        return f"is no longer requested, because {self.reason}."

    def create_finding(self, code: FindingCode, message: str) -> Finding:
        return code.finding(message, SourceLocation(object=self.record.owner.key.reference))

    def hold(self, code: FindingCode, message: str) -> HeldRemoval:
        return HeldRemoval(self.package, self.record, self.create_finding(code, message))


def _decide_removal(
    package: _UnrequestedPackage, doubt: str, reconciled: Collection[ObjectKey]
) -> HeldRemoval | RemovalOutcome:
    owner = package.record.owner
    if reason := package.claims.explain_uncertainty(package.record):
        message = f"package {package.name} is kept, because it is unknown whether an object still requests it. {reason}"
        held = package.hold(ControllerCodes.DELETION_HELD, message)
        # Report only a warning, because another finding reports the config error that makes the owner unknown.
        return replace(held, finding=downgrade_to_warning(held.finding))
    if reason := doubt or package.claims.explain_similar_object(owner):
        return package.hold(ControllerCodes.DELETION_HELD, f"package {package.name} is kept, because {reason}")
    observed = package.snapshot.observe_package(package.package)
    exists = observed.published is not None or is_on_draft(package.record, observed)
    # Check the deletion limit and the use of the package only before the removal is proposed. A person can already
    # approve a proposed removal.
    if (
        exists
        and package.record.removal is None
        and (held_removal := _check_guard(package) or _check_dependents(package, reconciled))
    ):
        return held_removal
    if package.record.deletion_policy == "orphan":
        return RemovalOutcome(package.package, owner, "orphaned", package.record.to_tombstone(), package.reason)
    if is_on_draft(package.record, observed) and (observed.is_frozen or observed.is_stuck):
        reason = (
            "is proposed. Next step: approve or reject this draft"
            if observed.is_frozen
            else "has local changes that an update would revert. Next step: merge or delete this draft"
        )
        message = f"package {package.name} {package.explanation} It is not removed yet, because its draft {reason}"
        return package.hold(PlanningCodes.REMOVAL_WAITS, message)
    if observed.published is None:
        return RemovalOutcome(package.package, owner, "withdrawn", package.record.to_tombstone(), package.reason)
    return _propose_removal(package, observed.published)


def is_on_draft(record: PackageRecord, observed: ObservedPackage) -> bool:
    """Return whether a draft installs or updates the package.

    If the package is published and the draft branch contains only local changes of it, return False.
    """
    return record.draft_version is not None or (observed.drafted is not None and observed.published is None)


def _check_guard(package: _UnrequestedPackage) -> HeldRemoval | None:
    owner = package.record.owner
    parent = owner.parent or owner.key
    guard = package.claims.guards.get(parent)
    target = package.snapshot.target.key
    if guard is None or guard.allows_deletion(PackageTarget(target.namespace, target.name, package.package)):
        return None
    reason = guard.reason or f"the deletion limit of {parent} was not checked yet"
    held = package.hold(
        ControllerCodes.DELETION_HELD, f"package {package.name} {package.explanation} It is kept, because {reason}"
    )
    return replace(held, set_package_count=guard.existing_count)


def _check_dependents(package: _UnrequestedPackage, reconciled: Collection[ObjectKey]) -> HeldRemoval | None:
    """Hold the removal while the package is still needed. Return None if it is not needed.

    The package is still needed in three cases:

    - Its owner now requests a different package, which does not exist yet.
    - An owner that is not ready may request the package.
    - The package is the upstream of other packages.
    """
    owner, key = package.record.owner, package.record.owner.key
    new_target = package.claims.find_only_target(owner)
    if (
        new_target
        and key not in reconciled
        and not _are_nested_targets(package, new_target.repository, new_target.package)
    ):
        return package.hold(
            PlanningCodes.REMOVAL_WAITS,
            f"package {package.name} is kept until the new package {new_target} of {key} has no errors",
        )
    target = package.snapshot.target.key
    package_target = PackageTarget(target.namespace, target.name, package.package)
    claims = package.claims
    if claimant := claims.unready_owners.find_claimant(package_target, owner, is_gone=claims.is_owner_gone(owner)):
        message = (
            f"package {package.name} {package.explanation} It is kept, because {claimant} is not ready, and may request"
            f" this package. Next step: correct the errors of {claimant}"
        )
        return package.hold(PlanningCodes.REMOVAL_WAITS, message)
    if dependent := claims.dependents.get(package.package):
        message = (
            f"package {package.name} {package.explanation} It is kept, because it is the upstream of {dependent}."
            f" Next step: delete {dependent}, or set a different upstream there"
        )
        return package.hold(PlanningCodes.REMOVAL_WAITS, message)
    return None


def _are_nested_targets(package: _UnrequestedPackage, repository: str, other: str) -> bool:
    # If the new package contains the old package, or is inside it, the new package can be created only after the
    # removal of the old package. Therefore, the removal must not wait for the new package.
    return repository == package.snapshot.target.name and are_paths_nested(other, package.package)


def _propose_removal(package: _UnrequestedPackage, published: TreeId) -> HeldRemoval | RemovalOutcome:
    """Propose the removal of a published package on a removal draft. A person must approve the removal."""
    known, owner = package.record.removal, package.record.owner
    record = replace(package.record, draft_version=None)
    if known and known.is_declined and known.against == published:
        message = (
            f"package {package.name} {package.explanation} A person rejected its removal. The removal is proposed again"
            " when the package changes on the target branch, or after an object has requested the package again"
        )
        finding = package.create_finding(PlanningCodes.REMOVAL_DECLINED, message)
        return RemovalOutcome(package.package, owner, "declined", record, package.reason, finding=finding)
    known_branch = known.branch if known and not known.is_declined else ""
    branch = known_branch or package.snapshot.find_removal_branch(package.package)
    if not known_branch and (error := _find_branch_error(branch, package.snapshot)):
        message = f"package {package.name} {package.explanation} It cannot be removed yet, because {error}"
        return package.hold(PlanningCodes.REMOVAL_WAITS, message)
    message = f'package {package.name} {package.explanation} Next step: merge branch "{branch}" to approve its removal'
    record = replace(record, removal=ProposedRemoval(branch, published))
    finding = package.create_finding(PlanningCodes.REMOVAL_PROPOSED, message)
    removed_tree = None if known_branch else published
    return RemovalOutcome(package.package, owner, "proposed", record, package.reason, removed_tree, finding)


def _find_branch_error(branch: str, snapshot: TargetSnapshot) -> str:
    if snapshot.is_frozen(branch):
        return f'branch "{branch}" is proposed. Next step: approve or reject this draft'
    if _is_stuck(snapshot, branch):
        return f'branch "{branch}" {_STUCK}'
    drafts = [name for name, draft in snapshot.state.drafts.items() if not draft.is_removal]
    nested = next((name for name in (*drafts, snapshot.target.branch) if are_paths_nested(name, branch)), "")
    return f'Git cannot create the branch "{branch}" while the branch "{nested}" exists' if nested else ""


def release_orphaned_drafts(snapshot: TargetSnapshot, decisions: RemovalDecisions) -> TargetSnapshot:
    """Return the snapshot, with the drafts of orphaned packages marked as edited.

    The reconciler never rebuilds edited drafts, so that the content of orphaned packages stays on the drafts.
    """
    orphans = [removal.package for removal in decisions.removals if removal.kind == "orphaned"]
    released = {
        snapshot.find_draft_branch(package) for package in orphans if snapshot.state.packages[package].draft_version
    }
    drafts = {
        name: replace(draft, is_edited=True) if name in released else draft
        for name, draft in snapshot.state.drafts.items()
    }
    return replace(snapshot, state=replace(snapshot.state, drafts=drafts))


def plan_removal_branches(
    snapshot: TargetSnapshot,
    claims: TargetClaims,
    decisions: RemovalDecisions,
    messages: Mapping[str, str],
    config_seconds: int,
) -> tuple[BranchAction, ...]:
    """Return the actions for all removal drafts of a target.

    Args:
        messages: Maps a package with a new removal to the commit message of the removal.
        config_seconds: The date of the config commit in seconds since 1970. Draft commits have this date or a later
            date.
    """
    published = snapshot.heads.target_branch
    if published is None:
        return ()
    branches = {name for name, draft in snapshot.state.drafts.items() if draft.is_removal}
    branches |= snapshot.heads.closed_drafts & snapshot.heads.removal_branches
    new = {
        removal.package: removal.record.removal.branch
        for removal in decisions.removals
        if removal.is_new and removal.record.removal
    }
    actions = []
    for branch in sorted(branches | {*new.values()}):
        if _is_locked(snapshot, branch):
            actions.append(_plan_locked_branch(snapshot, branch, published))
            continue
        commits = {
            package: DraftCommit(package, None, None, messages[package], config_seconds)
            for package, name in new.items()
            if name == branch
        }
        changes = _collect_changes(snapshot, claims, branch, published, commits)
        head = snapshot.heads.drafts.get(branch)
        if branch in snapshot.heads.closed_drafts:
            actions.append(plan_closed_draft_branch(branch, head, published, changes))
        else:
            actions.append(plan_draft_branch(branch, head, snapshot.state, published, changes, snapshot.objects))
    return tuple(actions)


def _is_locked(snapshot: TargetSnapshot, branch: str) -> bool:
    """Return whether a removal draft must not be changed, because it is proposed or has conflicting local changes."""
    return snapshot.is_frozen(branch) or _is_stuck(snapshot, branch)


def _is_stuck(snapshot: TargetSnapshot, branch: str) -> bool:
    # Ignore local changes of a draft with a closed pull request, because this pass deletes or rebuilds its branch.
    return branch not in snapshot.heads.closed_drafts and snapshot.is_stuck(branch)


def _plan_locked_branch(snapshot: TargetSnapshot, branch: str, published: CommitId) -> BranchAction:
    head = snapshot.heads.drafts[branch]
    is_used = any(record.removal and record.removal.branch == branch for record in snapshot.state.packages.values())
    has_content = snapshot.objects.has_unpublished_changes(head, snapshot.state.drafts[branch].base, published)
    return KeepBranch(branch) if is_used or has_content else DeleteBranch(branch, head)


def _collect_changes(
    snapshot: TargetSnapshot,
    claims: TargetClaims,
    branch: str,
    published: CommitId,
    commits: Mapping[str, DraftCommit],
) -> DraftChanges:
    draft, head = snapshot.state.drafts.get(branch), snapshot.heads.drafts.get(branch)
    removed = {
        package
        for package, record in snapshot.state.packages.items()
        if record.removal and not record.removal.is_declined and record.removal.branch == branch
    }
    reverts = {
        package: build_revert_commit(snapshot, package, "The package is requested again.")
        for package in sorted(removed)
        if claims.is_requested(package)
    }
    moved = _find_moved_packages(snapshot, draft, head, published, {*removed, *commits}) if draft else set()
    restores = {
        package: build_restore_commit(snapshot, package, None, None) for package in moved & removed - reverts.keys()
    }
    return DraftChanges(commits, reverts, frozenset(removed), frozenset(moved), frozenset(), restores)


def _find_moved_packages(
    snapshot: TargetSnapshot,
    draft: DraftBranch,
    head: CommitId | None,
    published: CommitId,
    removed: Collection[str],
) -> set[str]:
    """Return the packages that the target branch changed after the start of a removal draft.

    The result includes packages whose removal was merged.
    """
    return {
        package
        for package in snapshot.state.packages
        if (at_base := snapshot.find_package_at(draft.base, package)) != snapshot.find_package_at(published, package)
        and (package in removed or snapshot.find_package_at(head, package) != at_base)
    }


def list_heads_to_keep(
    snapshot: TargetSnapshot, decisions: RemovalDecisions, actions: Collection[BranchAction]
) -> tuple[CommitId, ...]:
    """Return draft heads that must be kept, because they contain local changes that the removals delete."""
    rebuilt = {
        action.branch
        for action in actions
        if isinstance(action, DeleteBranch)
        or (isinstance(action, PushCommits) and action.start_commit != action.expected_head)
    }
    heads: dict[CommitId, None] = {}
    for removal in decisions.removals:
        branch, record = snapshot.find_draft_branch(removal.package), snapshot.state.packages[removal.package]
        draft, observed = snapshot.state.drafts.get(branch), snapshot.observe_package(removal.package)
        if removal.kind == "orphaned" or draft is None or not draft.is_edited or not is_on_draft(record, observed):
            continue
        if branch in rebuilt or _has_draft_changes(record, observed):
            heads[snapshot.heads.drafts[branch]] = None
    heads |= dict.fromkeys(_find_changed_removal_heads(snapshot, decisions))
    return tuple(heads)


def _find_changed_removal_heads(snapshot: TargetSnapshot, decisions: RemovalDecisions) -> Iterator[CommitId]:
    """Yield the head of each removal draft that contains local changes of a package that this pass now removes."""
    for removal in decisions.removals:
        branch = removal.record.removal.branch if removal.is_new and removal.record.removal else ""
        draft = snapshot.state.drafts.get(branch)
        if draft is None or not draft.is_edited:
            continue
        head = snapshot.heads.drafts[branch]
        (drafted, _), *known = (
            snapshot.find_package_at(commit, removal.package)
            for commit in (head, draft.base, snapshot.heads.target_branch)
        )
        if drafted is not None and drafted not in [tree for tree, _ in known]:
            yield head


def _has_draft_changes(record: PackageRecord, observed: ObservedPackage) -> bool:
    """Return whether the draft has local changes to the package.

    Either `draft_version` contains the local changes, or someone pushed them after the reconciler wrote
    `draft_version`. If the record has no `draft_version`, all changes of the draft are local, and the result is True.
    """
    version = record.draft_version
    return version is None or observed.drafted not in (None, version.rendered) or version.merged != version.plain


def cancel_removals(state: TargetState, snapshot: TargetSnapshot, claims: TargetClaims) -> TargetState:
    """Cancel the proposed removals of packages that are requested again.

    A removal is kept if the reconciler must not change its removal draft (see `_is_locked`).
    """
    packages = {
        package: replace(record, removal=None)
        if record.removal and claims.is_requested(package) and not _is_locked(snapshot, record.removal.branch)
        else record
        for package, record in state.packages.items()
    }
    return replace(state, packages=packages)


def find_removals_of_requested_packages(snapshot: TargetSnapshot, claims: TargetClaims) -> tuple[RemovalOutcome, ...]:
    """Return the removals of packages that are requested again, but still have a removal draft.

    Only removal drafts that the reconciler must not change are included.
    """
    return tuple(
        _report_locked_removal(package, record, record.removal, snapshot)
        for package, record in snapshot.state.packages.items()
        if record.removal and claims.is_requested(package) and _is_locked(snapshot, record.removal.branch)
    )


def _report_locked_removal(
    package: str, record: PackageRecord, removal: ProposedRemoval, snapshot: TargetSnapshot
) -> RemovalOutcome:
    name = f"{snapshot.target.name}/{package}"
    if snapshot.is_frozen(removal.branch):
        reason = (
            f'its removal is proposed on branch "{removal.branch}". Next step: reject this draft. If you'
            " merge the draft,"
            " the package is removed and then drafted again"
        )
    else:
        reason = f'its removal draft on branch "{removal.branch}" {_STUCK}'
    message = f"package {name} is requested again, but {reason}"
    finding = PlanningCodes.REMOVAL_WAITS.finding(message, SourceLocation(object=record.owner.key.reference))
    return RemovalOutcome(package, record.owner, "recalled", record, "it is requested again", finding=finding)
