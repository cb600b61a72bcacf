"""The plan of one target: outcomes of its packages, actions on its draft branches, and its next state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from reconciler.catalog.files import CommitId, FileTree, TreeId, compute_blob_id
from reconciler.controllers.results import ConfigSources, PackageSource, Variant
from reconciler.krm.findings import Finding, serialize_finding
from reconciler.krm.internal_errors import ScopeFailedError, isolation_boundary
from reconciler.krm.objects import Condition, ObjectKey
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.planning.decide.drafts import DraftTexts, list_closed_draft_heads, plan_draft_branches
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.decide.locked_charts import serialize_required_charts
from reconciler.planning.decide.package_decision import (
    READY_CONDITION,
    VALID_CONDITION,
    DecisionInput,
    block_unexpected_failure,
)
from reconciler.planning.decide.removal_decision import (
    RemovalDecisions,
    cancel_removals,
    decide_removals,
    find_removals_of_requested_packages,
    list_heads_to_keep,
    plan_removal_branches,
    release_orphaned_drafts,
)
from reconciler.planning.decide.target_inputs import (
    PlanningContext,
    PreparedTarget,
    TargetClaims,
    build_decision_input,
    resolve_claims,
)
from reconciler.planning.decide.template_packages import decide_packages
from reconciler.planning.layout.refs import BranchAction, DeleteBranch, PushCommits
from reconciler.planning.model.outcomes import (
    Blocked,
    Draft,
    HeldRemoval,
    PackageOutcome,
    PackageRender,
    Unchanged,
    find_reconciled_owners,
)
from reconciler.planning.model.sources import PackageContentStore, PackageTooLargeError
from reconciler.planning.model.state import PackageRecord, RenderedVersion, TargetState
from reconciler.planning.model.targets import Target
from reconciler.planning.observe.target_snapshot import TargetSnapshot


@dataclass(frozen=True)
class DecidedTarget(PreparedTarget):
    """One target with the outcomes of its requested packages. Removals are decided later.

    Attributes:
        rejected_claims: The outcomes of the variants that do not get their package.
        draft_texts: The status files and commit messages of the drafts, by package.
    """

    outcomes: tuple[PackageOutcome, ...]
    rejected_claims: tuple[PackageOutcome, ...]
    draft_texts: Mapping[str, DraftTexts] = field(default_factory=dict)

    @property
    def reconciled_owners(self) -> frozenset[ObjectKey]:
        """The owners that have a published or drafted package without an error."""
        return find_reconciled_owners(self.outcomes)


def decide_target(prepared: PreparedTarget, context: PlanningContext) -> DecidedTarget:
    """Decide about the requested packages of one target."""
    return decide_requested_packages(prepared, context, build_decision_input)[0]


def decide_requested_packages(
    prepared: PreparedTarget,
    context: PlanningContext,
    build_input: Callable[[Variant, TargetClaims, TargetSnapshot], DecisionInput],
) -> tuple[DecidedTarget, Mapping[str, PackageRender]]:
    """Decide about the requested packages of one target.

    Returns:
        The decided target, and the rendered packages by package path. Unchanged packages are not rendered.
    """
    winners, losers = resolve_claims(prepared.claims, prepared.snapshot.state)
    inputs = [
        build_input(variant, prepared.claims, prepared.snapshot)
        for name, variant in winners.items()
        if name not in prepared.known_outcomes
    ]
    decisions = decide_packages(inputs, prepared.claims, prepared.snapshot, context, prepared.known_outcomes)
    outcomes = dict(decisions.outcomes)
    texts: dict[str, DraftTexts] = {}
    # Write the status files and commit messages now, because the trees that they need are still in the cache.
    for decision_input in inputs:
        package = decision_input.variant.target.package
        result = _write_texts(decision_input, outcomes[package], prepared.target, context)
        if isinstance(result, Blocked):
            outcomes[package] = result
        elif result:
            texts[package] = result
    in_order = tuple(outcomes[name] for name in winners)
    decided = DecidedTarget(
        prepared.target,
        prepared.claims,
        prepared.previous_state,
        prepared.snapshot,
        context,
        in_order,
        tuple(losers),
        texts,
        known_outcomes=prepared.known_outcomes,
    )
    return decided, decisions.renders


def _write_texts(
    decision_input: DecisionInput, outcome: PackageOutcome, target: Target, context: PlanningContext
) -> DraftTexts | Blocked | None:
    """Return the status file and the commit message of a draft. Return None if `outcome` is not a draft.

    If an unexpected exception prevents these texts, return a `Blocked` outcome that replaces the draft.
    """
    if not isinstance(outcome, Draft):
        return None
    try:
        with isolation_boundary(f"package {outcome.variant.target}"):
            return context.text_writer.write_draft_texts(outcome, target)
    except ScopeFailedError as error:
        return block_unexpected_failure(decision_input, error.failure)


def plan_target(decided: DecidedTarget, reconciled: Collection[ObjectKey]) -> TargetPlan:
    """Return the plan of one target. No branch is changed here.

    Args:
        reconciled: The owners that have, on at least one target, a package without an error. If an owner moves its
            package, the package at the old location is kept until `reconciled` contains the owner.
    """
    claims, texts = decided.claims, decided.draft_texts
    decisions = decide_removals(decided.snapshot, claims, reconciled)
    snapshot = release_orphaned_drafts(decided.snapshot, decisions)
    actions = _plan_branches(decided, snapshot, decisions, texts)
    next_state = cancel_removals(_build_next_state(decided, snapshot, decisions, actions), snapshot, claims)
    return TargetPlan(
        decided.target,
        snapshot.heads,
        decided.previous_state,
        next_state,
        (*decided.outcomes, *decided.rejected_claims),
        decisions.held,
        actions,
        removals=(*decisions.removals, *find_removals_of_requested_packages(snapshot, claims)),
        kept_heads=_collect_kept_heads(decided, decisions, actions),
    )


def _collect_kept_heads(
    decided: DecidedTarget, decisions: RemovalDecisions, actions: Collection[BranchAction]
) -> tuple[CommitId, ...]:
    heads = list_heads_to_keep(decided.snapshot, decisions, actions)
    return tuple(dict.fromkeys((*heads, *list_closed_draft_heads(decided.previous_state, decided.snapshot.heads))))


def _plan_branches(
    decided: DecidedTarget, snapshot: TargetSnapshot, decisions: RemovalDecisions, texts: Mapping[str, DraftTexts]
) -> tuple[BranchAction, ...]:
    context = decided.context
    removed = decisions.list_drafted_packages(snapshot)
    messages = {
        removal.package: context.text_writer.write_removal_message(
            removal, decided.target, _read_tree(removal.removed_tree, context.contents)
        )
        for removal in decisions.removals
        if removal.removed_tree
    }
    return (
        *plan_draft_branches(snapshot, decided.outcomes, removed, texts, context.config_seconds),
        *plan_removal_branches(snapshot, decided.claims, decisions, messages, context.config_seconds),
    )


def _read_tree(tree: TreeId, contents: PackageContentStore) -> FileTree | None:
    try:
        return contents.read_tree(tree)
    except PackageTooLargeError:
        return None


def _build_next_state(
    decided: DecidedTarget,
    snapshot: TargetSnapshot,
    decisions: RemovalDecisions,
    actions: Iterable[BranchAction],
) -> TargetState:
    records, texts, known = dict(snapshot.state.packages), decided.draft_texts, decided.known_outcomes
    for outcome in decided.outcomes:
        package = outcome.variant.target.package
        if outcome is known.get(package):
            # Keep the record of this package, because an earlier pass already recorded this outcome.
            continue
        if not _has_other_owner(outcome) and not (isinstance(outcome, Blocked) and outcome.should_retry):
            record = _record_outcome(outcome, texts.get(package), snapshot.find_draft_branch(package))
            is_complete = decided.claims.completeness.includes(record)
            sources = _prefix_config_paths(
                outcome.variant.sources, record.config_sources, decided, is_complete=is_complete
            )
            records[package] = replace(record, config_sources=sources)
    records |= {held.package: _record_held_removal(held) for held in decisions.held}
    for removal in decisions.removals:
        records[removal.package] = (
            _record_removal(removal.record, removal.kind, removal.finding) if removal.finding else removal.record
        )
    deleted = {action.branch for action in actions if isinstance(action, DeleteBranch)}
    drafts = {name: draft for name, draft in snapshot.state.drafts.items() if name not in deleted}
    # If the target branch is absent, `heads.target_branch` is the root commit that is pushed with the first draft. Do
    # not record this commit if this pass pushes no draft.
    exists = not snapshot.heads.is_absent or any(isinstance(action, PushCommits) for action in actions)
    head = snapshot.heads.target_branch if exists and snapshot.heads.target_branch else snapshot.state.observed_commit
    root = decided.context.config_origin.root_commit or snapshot.state.config_root
    packages = dict(sorted(records.items()))
    # Record no config files for a target without packages and drafts, because such a target needs no state.
    definition = decided.target.definition_sources if records or drafts else {}
    is_complete = decided.claims.completeness.includes_platform
    definition = _prefix_config_paths(definition, snapshot.state.definition_sources, decided, is_complete=is_complete)
    return replace(
        snapshot.state,
        observed_commit=head,
        packages=packages,
        drafts=drafts,
        config_root=root,
        definition_sources=definition,
    )


def _prefix_config_paths(
    sources: ConfigSources, recorded: ConfigSources, decided: DecidedTarget, *, is_complete: bool
) -> ConfigSources:
    """Return the config files with paths relative to the root of the config repository.

    If the config is incomplete, recorded files are kept, because their objects may still exist.
    """
    origin = decided.context.config_origin
    # If the config is not in a subfolder, use `sources` without a copy, because many packages share this mapping.
    current = {origin.get_repository_path(path): ids for path, ids in sources.items()} if origin.directory else sources
    if is_complete or recorded.items() <= current.items():
        return current
    return {**recorded, **current}


def _record_held_removal(held: HeldRemoval) -> PackageRecord:
    record = _record_removal(held.record, "held", held.finding)
    counts = {"existing": held.set_package_count, "onTarget": held.target_package_count}
    return replace(record, outcome={**record.outcome, **{name: count for name, count in counts.items() if count}})


def _record_removal(record: PackageRecord, kind: str, finding: Finding) -> PackageRecord:
    # Keep the previous outcome and upstream, because a package that is requested again continues with them.
    previous = record.outcome.get("before", record.outcome)
    upstream = {name: value for name, value in previous.items() if name == "upstream"}
    outcome = {"kind": kind, "findings": [serialize_finding(finding)], "before": dict(previous), **upstream}
    return replace(record, outcome=outcome)


def _has_other_owner(outcome: PackageOutcome) -> bool:
    # A blocked variant of another owner must not change the record of the package.
    record = outcome.record if isinstance(outcome, Blocked) else None
    return record is not None and record.owner.key != outcome.variant.owner.key


def _record_outcome(outcome: PackageOutcome, texts: DraftTexts | None, branch: str) -> PackageRecord:
    record = _build_record(outcome, texts, branch)
    return replace(record, deletion_policy=outcome.variant.deletion)


def _build_record(outcome: PackageOutcome, texts: DraftTexts | None, branch: str) -> PackageRecord:
    match outcome:
        case Draft():
            assert texts is not None
            return _record_draft(outcome, _build_version(outcome, texts), branch)
        case Unchanged():
            record = replace(outcome.record, draft_version=None) if outcome.should_withdraw else outcome.record
            return replace(record, outcome=_serialize_outcome(outcome.reason, outcome.variant, outcome.findings))
        case Blocked():
            record = outcome.record or _create_record(outcome.variant)
            data = _serialize_outcome("blocked", outcome.variant, outcome.findings, outcome.conditions)
            # Keep the recorded policies, because the package can still use a policy that cannot be found now.
            usage = {**record.policy_usage, **outcome.policy_usage}
            # Delete `declined_source`, because it is valid only with the previous trace, which is replaced here.
            return replace(
                record,
                trace=outcome.trace,
                observed=outcome.observed,
                outcome=data,
                declined_source=None,
                policy_usage=usage,
            )


def _create_record(variant: Variant) -> PackageRecord:
    return PackageRecord(variant.owner, labels=variant.labels, annotations=variant.annotations)


def _record_draft(draft: Draft, version: RenderedVersion, branch: str) -> PackageRecord:
    record = replace(draft.record, labels=draft.labels, annotations=draft.annotations)
    record = record.with_draft_version(version, branch)
    drafted = None if version.rendered == draft.observed.published else version.rendered
    data = _serialize_outcome("drafted", draft.variant, draft.rendered.findings)
    return replace(
        record,
        observed=replace(draft.observed, drafted=drafted),
        render_status=draft.rendered.render_status,
        outcome=data,
    )


def _build_version(draft: Draft, texts: DraftTexts) -> RenderedVersion:
    return RenderedVersion(
        rendered=draft.rendered.files.id,
        status=compute_blob_id(texts.status_file),
        base=draft.base_tree,
        merged=draft.merged_tree,
        plain=draft.plain_tree,
        review=draft.rendered.review_digest,
        against=draft.observed.published,
        upstream=draft.variant.source.summary,
        rules=draft.rendered.rule_texts,
        release=draft.variant.upstream.chart_release if draft.variant.upstream else "",
    )


def _serialize_outcome(
    kind: str,
    variant: Variant,
    findings: Iterable[Finding],
    conditions: tuple[Condition, ...] = (VALID_CONDITION, READY_CONDITION),
) -> dict[str, Any]:
    return {
        "kind": kind,
        "conditions": [condition.as_data() for condition in conditions],
        "findings": [serialize_finding(finding) for finding in findings],
        "upstream": _serialize_source(variant),
    }


def create_state(target: Target) -> TargetState:
    """Return the initial state of a target that has no recorded state."""
    return TargetState(target.display_url, target.branch, target.directory)


def list_pushes(plan: TargetPlan) -> tuple[PushCommits, ...]:
    """Return the branch actions that push commits."""
    return tuple(action for action in plan.branch_actions if isinstance(action, PushCommits))


def _serialize_source(variant: Variant) -> dict[str, Any]:
    data = {**variant.source.as_data(), "seconds": variant.source.committer_seconds}
    if variant.upstream is None:
        return data
    if variant.upstream.sources:
        sources = [{"name": source.name, **_serialize_upstream(source)} for source in variant.upstream.sources]
        return {**data, "sources": sources}
    return _serialize_upstream(PackageSource("", variant.upstream))


def _serialize_upstream(source: PackageSource) -> dict[str, Any]:
    upstream = source.upstream
    data = {**upstream.as_data(), "seconds": upstream.committer_seconds, **serialize_required_charts(upstream)}
    # Record the kind, because it cannot be determined again after a chart or artifact was deleted. Mark a source that
    # only provides values files, because its tree does not contain the whole artifact.
    files = {} if source.has_resources else {"hasOnlyValues": True}
    return {**data, "kind": upstream.kind, **files} if upstream.artifacts else data
