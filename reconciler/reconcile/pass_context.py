"""The context of one pass, which plans the targets from the config, the remotes and the recorded states.

The package `reconciler.planning` makes the decisions. This module reads the data for them, isolates the targets from
each other, and stores the results until the end of the pass. It writes no commits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from reconciler.catalog.catalog import Catalog
from reconciler.catalog.files import FALLBACK_COMMIT_SECONDS, BlobId, CommitId, FileTree, TreeId
from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies.read_policies import OverridePolicies
from reconciler.controllers.results import ControllerResult, UpstreamPackage, Variant
from reconciler.executors.executor import RenderContext, RenderedPackage
from reconciler.git.errors import GitError, InternalGitError, SigningFailedError
from reconciler.krm.findings import Finding, create_internal_error_finding, select_errors
from reconciler.krm.internal_errors import ExpectedError, InternalFailure
from reconciler.krm.objects import ObjectKey
from reconciler.output.commit_messages import format_hydrator_metadata
from reconciler.planning.carry_over.checkpoint import create_checkpoint, has_same_result
from reconciler.planning.carry_over.other_shards import (
    OtherShardPlans,
    decide_from_record,
    find_owners_of_unrequested_packages,
    list_recorded_owners,
    remove_write_actions,
)
from reconciler.planning.decide.deletion_safety import (
    check_repository_reset,
    report_emptied_repository,
)
from reconciler.planning.decide.fleet_plan import (
    FleetPlan,
    TargetPlan,
    add_promoter_actions,
    find_metadata_path,
    find_promoter_branch,
)
from reconciler.planning.decide.package_decision import RenderFunction
from reconciler.planning.decide.rollouts import RolloutGates, RolloutTracker, apply_rollout_gates
from reconciler.planning.decide.target_inputs import (
    ConfigOrigin,
    DesiredPackages,
    PlanningContext,
    PreparedTarget,
    TargetClaims,
    has_other_url,
    prepare_target,
)
from reconciler.planning.decide.target_plan import (
    DecidedTarget,
    create_state,
    decide_target,
    plan_target,
)
from reconciler.planning.layout.refs import BranchAction, find_missing_tags, format_tag_prefix
from reconciler.planning.model.cluster_overrides import ClusterOverrides
from reconciler.planning.model.codes import PlanningCodes
from reconciler.planning.model.outcomes import PackageRender
from reconciler.planning.model.sources import RenderInputs
from reconciler.planning.model.state import TargetState
from reconciler.planning.model.targets import Target
from reconciler.planning.observe.target_snapshot import TargetHeads
from reconciler.planning.render.renderer import PackageRenderer
from reconciler.reconcile.claim_builder import ClaimBuilder
from reconciler.reconcile.codes import PassCodes
from reconciler.reconcile.commits import WrittenPlan
from reconciler.reconcile.config_source import ConfigSnapshot
from reconciler.reconcile.failures import repository_boundary
from reconciler.reconcile.pass_cache import CachedTarget, PassCache
from reconciler.reconcile.pull_requests.open_requests import TargetRequests
from reconciler.reconcile.remotes.ports import TargetContents
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.repository import Remote, TargetRepository
from reconciler.reconcile.remotes.targets import (
    BRANCH_PREFIX,
    TargetHeadReader,
    prefetch_branches,
    proposed_ref,
    read_target_state,
)
from reconciler.reconcile.render_batches import RenderBatches
from reconciler.reconcile.services import PassServices
from reconciler.telemetry.phases import phase
from reconciler.telemetry.render_metrics import (
    FunctionCall,
    RenderTiming,
    collect_function_calls,
    record_function_calls,
    record_render,
    trace_render,
)

if TYPE_CHECKING:
    from reconciler.reconcile.recorded_configs import RecordedConfigs

_NOT_READ = "; the result uses the content of the last fetch, and `reconciler sync` would not change the target"

# The minimal number of charts to render at the same time before the decisions. A single chart is rendered during the
# decision about its package.
_MIN_PARALLEL_CHARTS = 2
# The maximal number of charts in memory at the same time. A higher limit would not make the renders faster.
_MAX_CHARTS_PER_BATCH = 16


class PassContext:
    """The data, services and results of one pass, and the methods that plan targets.

    Attributes:
        source_files: Maps the IDs of upstream trees to their files. Contains the trees that the pass has read, and the
            trees that new states refer to.
        failures: Unexpected exceptions that did not end the planning of their target.
    """

    def __init__(
        self,
        config: ConfigSnapshot,
        catalog: Catalog,
        remotes: Remotes,
        services: PassServices,
        controller_result: ControllerResult,
        desired_state: DesiredPackages,
        now: int,
        decide: Callable[[PreparedTarget, PlanningContext], DecidedTarget] = decide_target,
        pass_cache: PassCache | None = None,
        other_shard_targets: Sequence[Target] = (),
    ) -> None:
        self.config = config
        self._catalog = catalog
        self._remotes = remotes
        self._services = services
        self._controller_result = controller_result
        self._now = now
        self._decide_target = decide
        self._text_writer = services.create_text_writer(config.id, config.dry_commit)
        self._renderer = services.create_renderer(catalog)
        self._tag_policy = services.create_tag_policy(catalog)
        self._urls_with_fetched_tags: set[str] = set()
        self._head_reader = TargetHeadReader(
            services.ref_templates,
            services.pull_requests.cache.find_target_requests,
            has_promoter=config.dry_commit is not None,
        )
        self._desired = desired_state
        self._claims = ClaimBuilder(
            catalog, controller_result, desired_state, config.directory, services.max_delete_percent
        )
        self.source_files: dict[TreeId, FileTree] = {}
        self.render_count = 0
        self.failures: list[InternalFailure] = []
        self.rollouts = RolloutGates()
        self._prepared_clusters: dict[str, PreparedTarget | None] = {}
        self._decided: dict[ObjectKey, DecidedTarget] = {}
        self._state_commits: dict[ObjectKey, CommitId | None] = {}
        # Do not use the cache during a rollout, because each cluster then depends on all other clusters.
        self._cache = pass_cache if not self._renderer.cluster_overrides.rollouts else None
        if self._cache:
            self._cache.refresh_dependencies(self._renderer.dependency_reader, services.functions.identity)
        # Targets of other shards are prepared only when their data is needed.
        self._other_shard_targets = {(target.key.namespace, target.name): target for target in other_shard_targets}
        self._prepared_other_shards: dict[ObjectKey, PreparedTarget | TargetPlan] = {}

    def report_progress(self, stage: str, done: int, total: int) -> None:
        """Report the number of completed steps of a stage to the user."""
        self._services.report_progress(stage, done, total)

    def get_remote(self, url: str) -> Remote | None:
        """Return the remote with a URL. Return None if the remote cannot be used.

        If `should_treat_missing_as_empty` is on, return an empty remote for a missing repository.
        """
        if self._services.should_treat_missing_as_empty:
            return self._remotes.get_even_if_missing(url)
        return self._remotes.get(url)

    def record_heads(self, plans: Iterable[TargetPlan]) -> None:
        """Record the heads of target branches as evidence that these branches existed."""
        for plan in plans:
            target, remote = plan.target, self.get_remote(plan.target.url)
            if remote and not plan.findings and (head := remote.refs.get(BRANCH_PREFIX + target.branch)):
                self._services.known_heads.record(target, head)

    @property
    def state_ref(self) -> str:
        """The template of state refs, which contains `{repository}`."""
        return self._services.state_ref

    @property
    def policies(self) -> OverridePolicies:
        """The override policies of the config."""
        return self._renderer.cluster_overrides.policies

    @property
    def renderer(self) -> PackageRenderer:
        """The renderer of the pass. After the targets are read, it also contains the progress of the rollouts."""
        return self._renderer

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        """The clusters of the config, by name."""
        return self._renderer.cluster_overrides.clusters

    def read_tree(self, target: Target, tree: TreeId) -> FileTree:
        """Return the files of a tree to which a plan of the target refers.

        Raises PackageTooLargeError, PackageMalformedError, GitError.
        """
        remote = self.get_remote(target.url)
        assert remote, "a target that cannot be read has no plan"
        return self._create_contents(remote).read_tree(tree)

    def read_file(self, target: Target, blob: BlobId) -> bytes:
        """Return the content of a file in the repository of a target. Raises GitError."""
        remote = self.get_remote(target.url)
        assert remote, "a target that cannot be read has no plan"
        return remote.read_blob(blob)

    def latest_commit_seconds(self) -> int:
        """Return the latest date of the config commit and the upstream commits, or 2000-01-01 if no date exists."""
        dates = [variant.source.committer_seconds for variant in self._controller_result.variants]
        return max([self.config.seconds, *dates]) or FALLBACK_COMMIT_SECONDS

    def plan_targets(self, targets: Sequence[Target], others: Iterable[TargetPlan]) -> list[TargetPlan]:
        """Return the plans of targets. An error of one target does not affect the other targets.

        The decisions about all targets are made before the first removal is planned, because a removal depends on the
        packages of all targets.

        Args:
            others: The complete plans of other targets.
        """
        cached = {target.key: plan for target in targets if (plan := self._find_cached_plan(target))}
        changed = [target for target in targets if target.key not in cached]
        if cached:
            # Prefetch the branches of targets without a cached plan. If the state of such a target was in the cache,
            # the earlier prefetch of states did not include its branches.
            prefetch_branches(changed, self._remotes, self._services.state_ref)
        prepared = [self._prepare(target) for target in changed]
        if self._renderer.cluster_overrides.rollouts:
            for target in self._other_shard_targets.values():
                self._prepare_other_shard(target)
        try:
            with repository_boundary("the rollouts of override policies"):
                self._evaluate_rollouts()
        except InternalGitError as error:
            # Report the error for each target, because no package can be rendered while the progress of rollouts is
            # unknown.
            prepared = [_create_error_plan(target, _create_read_error(target, error)) for target in changed]
        self._render_changed_charts(prepared)
        decided = []
        batches = RenderBatches(
            self._services.executor,
            self._create_render_context,
            self._decide,
            self._render_and_count,
            self._record_executor_render,
            self._services.functions.identity,
        )
        for index, decision in enumerate(batches.decide_targets(prepared)):
            self.report_progress("planning", len(cached) + index, len(targets))
            decided.append(decision)
        self.report_progress("planning", len(targets), len(targets))
        self._decided |= {decision.target.key: decision for decision in decided if isinstance(decision, DecidedTarget)}
        reconciled_owners = (
            *(plan.reconciled_owners for plan in (*others, *cached.values(), *decided)),
            self._list_owners_in_other_shards(decided),
        )
        reconciled: frozenset[ObjectKey] = frozenset().union(*reconciled_owners)
        planned = {decision.target.key: self._complete_plan(decision, reconciled) for decision in decided}
        return [cached.get(target.key) or planned[target.key] for target in targets]

    def _render_changed_charts(self, prepared: Iterable[PreparedTarget | TargetPlan]) -> None:
        """Render the charts of all changed packages on all cores. The decisions then use the results.

        This method reports no errors, because the decisions about the packages read the charts again and report the
        errors.
        """
        changed = {
            fingerprint: (target, upstream)
            for target in prepared
            if isinstance(target, PreparedTarget)
            for fingerprint, upstream in _iterate_changed_charts(target)
        }
        if len(changed) < _MIN_PARALLEL_CHARTS:
            return
        sources: list[tuple[UpstreamPackage, FileTree]] = []
        # Sort the requests by tree, so that all requests with the same chart are adjacent. Each chart is then read
        # once, and its memory is freed early.
        for target, upstream in sorted(changed.values(), key=lambda entry: entry[1].tree):
            remote = self.get_remote(target.target.url)
            with suppress(ExpectedError, GitError):
                if sources and sources[-1][0].tree == upstream.tree:
                    sources.append((upstream, sources[-1][1]))
                elif remote:
                    sources.append((upstream, self._create_contents(remote).read_unrendered_source(upstream)))
            if len(sources) >= _MAX_CHARTS_PER_BATCH:
                self._render_ahead(sources)
                sources = []
        self._render_ahead(sources)

    def _render_ahead(self, sources: Sequence[tuple[UpstreamPackage, FileTree]]) -> None:
        with phase("render"):
            self._services.sources.render_ahead(sources)

    def _find_cached_plan(self, target: Target) -> TargetPlan | None:
        """Return the cached plan of a target. Return None if the target must be planned again."""
        try:
            with repository_boundary(target.title):
                remote = self.get_remote(target.url)
                if not self._cache or remote is None or target.key in self._conflicts:
                    return None
                claims = self._claims.build(target)
                return self._cache.find_plan(target, remote.refs, claims, self._read_cached_requests)
        except InternalGitError as error:
            # Return None, so that the target is planned again. The planning reports the same error in a finding.
            self.failures.append(error.failure)
            return None

    def _read_cached_requests(self, cached: CachedTarget) -> TargetRequests:
        """Return the current reviews of the drafts of a cached target."""
        target, state = cached.target, cached.checkpoint.plan.next_state
        remote = self.get_remote(target.url)
        refs = remote.refs if remote else {}
        heads = {name: commit for name in state.drafts if (commit := refs.get(BRANCH_PREFIX + name))}
        return self._services.pull_requests.cache.find_target_requests(target, state, heads)

    def has_planned(self, target: Target) -> bool:
        """Return whether this pass has planned a target or tried to plan it. A plan from the cache does not count."""
        return target.key in self._state_commits

    def build_cached_target(self, plan: TargetPlan, written: WrittenPlan | None) -> CachedTarget | None:
        """Return the cache entry of a target after a push. Return None if the next pass must plan the target.

        If GitOps Promoter is used, each pass must plan the target, because each draft of the target contains the ID of
        the config commit.
        """
        target, remote = plan.target, self.get_remote(plan.target.url)
        decided = self._decided.get(target.key)
        if (
            decided is None
            or remote is None
            or (self.config.dry_commit and find_promoter_branch(target, self._services.draft_template))
        ):
            return None
        state = written.state if written and written.state else plan.previous_state
        commit = written.state_commit if written and written.state_commit else self._state_commits[target.key]
        state_ref = self._services.state_ref.format(repository=target.name)
        checkpoint = create_checkpoint(decided, plan, state, self._renderer.dependency_reader)
        if checkpoint is None or remote.refs.get(state_ref) != commit:
            return None
        names = self._list_draft_branches(target, state, decided.claims)
        used_refs = (
            BRANCH_PREFIX + target.branch,
            state_ref,
            *(BRANCH_PREFIX + name for name in names),
            *map(proposed_ref, names),
        )
        refs = {name: remote.refs.get(name) for name in used_refs}
        heads = self._read_heads(target, remote, state, decided.claims)
        checkpoint = replace(checkpoint, plan=replace(checkpoint.plan, heads=heads))
        requests = self._services.pull_requests.cache.find_target_requests(target, state, heads.drafts)
        return CachedTarget(target, checkpoint, refs, requests, commit)

    def release_targets(self) -> None:
        """Free the inputs of all decisions, at the end of a pass.

        These inputs and this context contain references to each other. Without this call, their memory would be used
        until the next full garbage collection.
        """
        self._decided.clear()
        self._prepared_clusters.clear()
        self._prepared_other_shards.clear()

    def plan_other_shards(self, plans: Iterable[TargetPlan]) -> OtherShardPlans:
        """Return the plans of the targets of other shards, computed from recorded states without renders.

        `plans` are all plans of this shard.
        """
        decided: list[DecidedTarget | TargetPlan] = []
        awaited: set[ObjectKey] = set()
        for prepared in map(self._prepare_other_shard, self._other_shard_targets.values()):
            target, awaited_owners = self._decide_other_shard(prepared)
            decided.append(target)
            awaited |= awaited_owners
        reconciled: frozenset[ObjectKey] = frozenset().union(*(plan.reconciled_owners for plan in (*plans, *decided)))
        other_plans = tuple(remove_write_actions(self._complete_plan(target, reconciled)) for target in decided)
        return OtherShardPlans(other_plans, frozenset(awaited))

    def _decide_other_shard(
        self, prepared: PreparedTarget | TargetPlan
    ) -> tuple[DecidedTarget | TargetPlan, frozenset[ObjectKey]]:
        if isinstance(prepared, TargetPlan):
            return prepared, frozenset()
        try:
            with repository_boundary(prepared.target.title):
                context = replace(prepared.context, dependency_reader=self._renderer.dependency_reader)
                return decide_from_record(prepared, context)
        except GitError as error:
            return _create_error_plan(prepared.target, _create_read_error(prepared.target, error)), frozenset()

    def _prepare_other_shard(self, target: Target) -> PreparedTarget | TargetPlan:
        if target.key not in self._prepared_other_shards:
            self._prepared_other_shards[target.key] = self._prepare(target)
        return self._prepared_other_shards[target.key]

    def _list_owners_in_other_shards(self, decided: Iterable[DecidedTarget | TargetPlan]) -> frozenset[ObjectKey]:
        """Return the owners whose new packages are already recorded on targets of other shards.

        Such an owner had a package on a target of this shard, and now requests one on a target of another shard.
        """
        package_targets = (
            package_target
            for owner in find_owners_of_unrequested_packages(decided)
            for package_target in self._desired.targets_by_owner.get(owner, ())
        )
        names = ((package_target.namespace, package_target.repository) for package_target in package_targets)
        targets = {target.key: target for name in names if (target := self._other_shard_targets.get(name))}
        return frozenset(
            owner for target in targets.values() for owner in list_recorded_owners(self._prepare_other_shard(target))
        )

    def plan_changed_targets(
        self, targets: Sequence[Target], other: PassContext, plans: Iterable[TargetPlan]
    ) -> list[TargetPlan]:
        """Return the plans of the targets. If a target has the same inputs with another config, reuse the other plan.

        During a rollout, no plan is reused.

        Args:
            other: The pass context with the other config.
            plans: The plans of the other config.
        """
        if self._renderer.cluster_overrides.rollouts or other._renderer.cluster_overrides.rollouts:
            return self.plan_targets(targets, ())
        other_plans = {plan.target.key: plan for plan in plans}
        reused = {
            target.key: replace(other_plans[target.key], target=target, missing_tags=())
            for target in targets
            if target.key in other_plans and self._has_same_result(target, other)
        }
        planned = self.plan_targets([target for target in targets if target.key not in reused], reused.values())
        all_plans = {**reused, **{plan.target.key: plan for plan in planned}}
        return [all_plans[target.key] for target in targets]

    def _has_same_result(self, target: Target, other: PassContext) -> bool:
        decided = other._decided.get(target.key)
        if decided is None or replace(decided.target, location=target.location) != target:
            return False
        has_conflict = target.key in self._conflicts or target.key in other._conflicts
        if has_conflict:
            return False
        return has_same_result(decided, self._claims.build(target), self._renderer.dependency_reader)

    def survey_target(self, target: Target, others: Iterable[Target]) -> PreparedTarget | TargetPlan:
        """Return the inputs for the decision about one target, or a plan with an error.

        During a rollout, also read the targets `others`, because the progress of a rollout depends on all clusters.
        """
        prepared = self._prepare(target)
        if self._renderer.cluster_overrides.rollouts:
            for other in others:
                if other.is_deployment and other != target:
                    self._prepare(other)
            self._evaluate_rollouts()
        if isinstance(prepared, TargetPlan):
            return prepared
        return replace(prepared, context=replace(prepared.context, dependency_reader=self._renderer.dependency_reader))

    def _complete_plan(self, decided: DecidedTarget | TargetPlan, reconciled: frozenset[ObjectKey]) -> TargetPlan:
        if isinstance(decided, TargetPlan):
            return decided
        try:
            with repository_boundary(decided.target.title):
                plan = plan_target(decided, reconciled)
                tags = find_missing_tags(plan.target, plan.next_state, self._tag_policy)
                return replace(plan, missing_tags=tags, branch_actions=self._add_promoter_actions(plan))
        except GitError as error:
            return _create_error_plan(decided.target, _create_read_error(decided.target, error))

    def _add_promoter_actions(self, plan: TargetPlan) -> tuple[BranchAction, ...]:
        # Skip GitOps Promoter for a plain folder, because the config has no commit ID that a draft can contain.
        if self.config.dry_commit is None:
            return plan.branch_actions
        return add_promoter_actions(plan, self._services.draft_template, self._promoter_metadata)

    @cached_property
    def _promoter_metadata(self) -> bytes:
        assert self.config.dry_commit, "the metadata names a commit"
        return format_hydrator_metadata(self.config.dry_commit)

    def _prepare(self, target: Target) -> PreparedTarget | TargetPlan:
        self._state_commits[target.key] = None
        try:
            with repository_boundary(target.title):
                prepared = self._read_target(target)
        except GitError as error:
            prepared = _create_error_plan(target, _create_read_error(target, error))
        if target.is_deployment:
            self._prepared_clusters[target.name] = prepared if isinstance(prepared, PreparedTarget) else None
        return prepared

    def _evaluate_rollouts(self) -> None:
        """Determine the progress of rollouts from the published packages of all clusters, before the first render."""
        overrides = self._renderer.cluster_overrides
        if overrides.rollouts:
            clusters = (prepared for prepared in self._prepared_clusters.values() if prepared)
            published_since = {prepared.target.name: self._read_publication_times(prepared) for prepared in clusters}
            tracker = RolloutTracker(
                self._prepared_clusters, self._renderer.dependency_reader, overrides, published_since
            )
            self.rollouts = tracker.evaluate_gates(self._now)
            self.failures += tracker.failures
            self._renderer = replace(self._renderer, cluster_overrides=apply_rollout_gates(overrides, self.rollouts))

    def _read_publication_times(self, prepared: PreparedTarget) -> Mapping[str, int]:
        target, packages = prepared.target, prepared.snapshot.state.packages
        # Identify a version by its rendered content, because a later local change is not a new publication.
        versions = {
            package: str(record.published_version.rendered)
            for package, record in packages.items()
            if record.published_version
        }
        # Use the publication time 0 if no publication of the target is recorded. If the current time were used, a
        # rollout would never continue on CI runners, where each pass starts with an empty cache.
        return self._services.publication_times.update(
            f"{target.repository_id} {target.name}", versions, self._now, start=0
        )

    def _decide(self, prepared: PreparedTarget, render: RenderFunction) -> DecidedTarget | TargetPlan:
        try:
            with repository_boundary(prepared.target.title):
                context = replace(prepared.context, dependency_reader=self._renderer.dependency_reader, render=render)
                return self._decide_target(prepared, context)
        except GitError as error:
            return _create_error_plan(prepared.target, _create_read_error(prepared.target, error))

    def _create_render_context(self) -> RenderContext:
        overrides, templates = self._renderer.cluster_overrides, self._renderer.template_merger
        # Copy the overrides without their cached data, because executors send the copy to other processes.
        plain_overrides = ClusterOverrides(
            overrides.policies, overrides.clusters, overrides.options, overrides.closed_clusters, overrides.strict_codes
        )
        return RenderContext(
            self.config.files, plain_overrides, templates.merge_rules, templates.options, self.config.unreadable,
            self._catalog.unproven_deletions, self._catalog.resolution,
        )  # fmt: skip

    def _read_target(self, target: Target) -> PreparedTarget | TargetPlan:
        remote = self.get_remote(target.url)
        conflict = self._conflicts.get(target.key)
        if conflict or remote is None:
            finding = conflict or self._create_unreachable_error(target)
            return _create_error_plan(target, finding)
        state = read_target_state(target, remote, self._services.state_ref) or create_state(target)
        self._state_commits[target.key] = remote.refs.get(self._services.state_ref.format(repository=target.name))
        if isinstance(state, Finding):
            return _create_error_plan(target, state)
        claims = self._claims.build(target)
        if remote.mirror.is_read_only and (target.is_deployment or claims.variants or state.packages):
            return _create_error_plan(target, create_read_only_finding(target))
        heads = self._read_heads(target, remote, state, claims)
        if (
            self._state_commits[target.key] is None
            and heads.is_absent
            and (reset_error := self._check_reset(target, remote))
        ):
            return _create_error_plan(target, reset_error)
        if not (state.packages or heads.is_absent):
            self._fetch_tags(target.url, remote)
        context = PlanningContext(
            self._renderer.dependency_reader, self._create_contents(remote), self._render_and_count, self._text_writer,
            self._services.draft_template, self.config.seconds, self._services.removal_template,
            self._renderer.template_merger, self._origin, self._renderer.engine.hold_kinds,
            self._find_recorded_variant,
        )  # fmt: skip
        promoter_branch = find_promoter_branch(target, self._services.draft_template)
        metadata_path = find_metadata_path(target, promoter_branch) if promoter_branch else None
        repository = TargetRepository(remote, target, metadata_path)
        last_known_head = self._find_head_before_move(target, state)
        prepared = prepare_target(target, claims, state, heads, repository, context, last_known_head)
        if self._cache and isinstance(prepared, PreparedTarget):
            outcomes = self._cache.find_known_outcomes(target, remote.refs, claims, self._read_cached_requests)
            return replace(prepared, known_outcomes=outcomes)
        return prepared

    def _find_recorded_variant(self, config: str, variant: Variant) -> Variant | str:
        return self._recorded_configs.find_variant(config, variant)

    @cached_property
    def _recorded_configs(self) -> RecordedConfigs:
        # Import the module here, because a pass needs it only after a state was lost.
        from reconciler.reconcile.recorded_configs import RecordedConfigs

        return RecordedConfigs(self.config, self._remotes, self._services, self._now)

    @cached_property
    def _origin(self) -> ConfigOrigin:
        root_commits = self.config.root_commits
        # If the history of the config was replaced, and no person has acknowledged this, do not record the new root
        # commit. Each target state then keeps the root commit that it already contains.
        is_replaced = any(
            finding.code == PlanningCodes.CONFIG_HISTORY_REPLACED.name for finding in self._catalog.unproven_deletions
        )
        return ConfigOrigin(self.config.directory, "" if is_replaced or root_commits is None else root_commits.first)

    @cached_property
    def _conflicts(self) -> Mapping[ObjectKey, Finding]:
        return self._services.find_target_conflicts(self._catalog)

    def _check_reset(self, target: Target, remote: Remote) -> Finding | None:
        """Return an error if the repository of a target was reset. Return None otherwise.

        Call this method only for a target that has neither a branch nor a state. The known heads show whether this
        target, or another target in the same repository, had a branch in an earlier pass.
        """
        if target.url in self._remotes.failures:
            # Do not report a reset, because the fetch failed and the current content of the repository is unknown.
            return None
        if self._services.known_heads.find(target):
            return self._check_acknowledged_reset(target)
        # Report an error if the repository is empty, but another target in the repository had a branch before. After
        # this error, the pass writes no commit, because a new commit would make it more difficult to restore the
        # repository.
        is_emptied = not remote.refs and any(
            self._check_acknowledged_reset(other)
            for other in self._services.list_targets(self._catalog)
            if other.repository_id == target.repository_id
        )
        return report_emptied_repository(target) if is_emptied else None

    def _find_head_before_move(self, target: Target, state: TargetState) -> CommitId | None:
        """Return the last known head of a target at its previous URL.

        Return None if the URL has not changed, or if no head is known.
        """
        if not has_other_url(target, state):
            return None
        known = self._services.known_heads.find(target)
        is_previous = known and known.branch == target.branch and known.repository != target.repository_id
        return known.head if known and is_previous else None

    def _check_acknowledged_reset(self, target: Target) -> Finding | None:
        known = self._services.known_heads.find(target)
        definition = self._catalog.get(target.key)
        return check_repository_reset(target, known, definition.annotations if definition else {}) if known else None

    def _create_unreachable_error(self, target: Target) -> Finding:
        return _create_read_error(target, self._remotes.failures.get(target.url))

    def _read_heads(self, target: Target, remote: Remote, state: TargetState, claims: TargetClaims) -> TargetHeads:
        return self._head_reader.read(target, remote, state, _list_packages(claims, state))

    def _list_draft_branches(self, target: Target, state: TargetState, claims: TargetClaims) -> set[str]:
        return self._head_reader.list_draft_branches(target, state, _list_packages(claims, state))

    def _fetch_tags(self, url: str, remote: Remote) -> None:
        """Fetch the revision tags of each target of a remote, if the target has a branch but no state.

        Planning restores the states of these targets from the tags. All tags are fetched in one request.
        """
        if url in self._urls_with_fetched_tags:
            return
        self._urls_with_fetched_tags.add(url)
        refs, state_ref = remote.refs, self._services.state_ref
        targets = (target for target in self._services.list_targets(self._catalog) if target.url == url)
        without_state = (
            target
            for target in targets
            if BRANCH_PREFIX + target.branch in refs and state_ref.format(repository=target.name) not in refs
        )
        remote.fetch_tags(
            format_tag_prefix(target, variant.target.package)
            for target in without_state
            for variant in self._desired.variants_by_target.get((target.key.namespace, target.name), ())
        )

    def _create_contents(self, remote: Remote) -> TargetContents:
        return TargetContents(
            self._remotes,
            remote,
            self.source_files,
            lambda files: self._services.find_locked_tree(files, self._catalog, self._remotes),
            self._services.functions.identity,
            self._services.sources,
        )

    def _render_and_count(self, variant: Variant, inputs: RenderInputs) -> PackageRender:
        self.render_count += 1
        start_time, started_at = time.time(), time.perf_counter()
        calls: list[FunctionCall] = []
        try:
            with phase("render"), collect_function_calls() as calls:
                rendered = self._renderer(variant, inputs)
        finally:
            record_function_calls(calls)
        timing = RenderTiming(start_time, time.perf_counter() - started_at, tuple(calls))
        trace_render(str(variant.target), timing)
        record_render(variant.owner.key.group, timing, has_failed=bool(select_errors(rendered.findings)))
        return rendered

    def _record_executor_render(self, variant: Variant, result: RenderedPackage) -> PackageRender:
        self.render_count += 1
        rendered = result.rendered
        record_render(variant.owner.key.group, result.timing, has_failed=bool(select_errors(rendered.findings)))
        record_function_calls(result.timing.function_calls)
        return rendered


def _iterate_changed_charts(prepared: PreparedTarget) -> Iterator[tuple[str, UpstreamPackage]]:
    """Yield the fingerprint and the upstream of each package whose chart, values or options have changed."""
    packages = prepared.snapshot.state.packages
    for variant in prepared.claims.variants:
        upstream, record = variant.upstream, packages.get(variant.target.package)
        if upstream and upstream.has_chart:
            fingerprint = upstream.fingerprint
            if record is None or record.trace.get("upstream") != fingerprint:
                yield fingerprint, upstream


def _list_packages(claims: TargetClaims, state: TargetState) -> set[str]:
    return {*(variant.target.package for variant in claims.variants), *state.packages}


def create_read_only_finding(target: Target) -> Finding:
    """Return the error for a target whose repository has credentials for reading only."""
    message = (
        f"{target.title}: {target.display_url} is read-only. Next step: add `write` to the entry of this URL in"
        " `git.credentials`"
    )
    return PassCodes.TARGET_READ_ONLY.finding(message, target.location)


def _create_read_error(target: Target, error: GitError | None, suffix: str = "") -> Finding:
    if isinstance(error, InternalGitError):
        return create_internal_error_finding(error.failure, target.location)
    message = error.full_message if error else "the repository was not fetched"
    # A read can fail with SigningFailedError: if the target branch does not exist, the read signs its first commit.
    code = PassCodes.PUSH_FAILED if isinstance(error, SigningFailedError) else PassCodes.REPOSITORY_UNREACHABLE
    return code.finding(f"{target.title}: {message}{suffix}", target.location)


def find_unread_targets(plan: FleetPlan, remotes: Remotes) -> tuple[Finding, ...]:
    """Return an error for each target that was planned although its repository could not be read."""
    planned = (target_plan.target for target_plan in plan.targets if not target_plan.findings)
    return tuple(finding for target in planned for finding in check_target_read(target, remotes))


def check_target_read(target: Target, remotes: Remotes) -> tuple[Finding, ...]:
    """Return an error if the repository of a target could not be read.

    A result about this target is then not reliable.
    """
    failure = remotes.failures.get(target.url)
    return (_create_read_error(target, failure, _NOT_READ),) if failure else ()


def _create_error_plan(target: Target, finding: Finding) -> TargetPlan:
    """Return a plan that contains one error and changes nothing."""
    state = create_state(target)
    return TargetPlan(target, TargetHeads(), state, state, findings=(finding,))
