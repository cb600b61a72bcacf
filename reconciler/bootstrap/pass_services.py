"""Construction of the services of a pass: the controllers, the renderer, and the texts of drafts."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from reconciler.bootstrap.catalog_reader import CatalogReader
from reconciler.bootstrap.controllers import CatalogServices
from reconciler.bootstrap.fleet_services import FleetServices
from reconciler.bootstrap.inputs import SettingsInputs
from reconciler.bootstrap.options import get_cache_file
from reconciler.bootstrap.renderer_factory import build_executor
from reconciler.catalog.catalog import Catalog
from reconciler.catalog.files import CommitId, FileTree
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.cel import load_parser
from reconciler.git.object_reader import Commit
from reconciler.output.changes.package_changes import compare_packages
from reconciler.output.commit_messages import DryCommit, format_draft_message, format_removal_message
from reconciler.output.status.package_status import build_package_status
from reconciler.planning.decide.drafts import DraftTexts
from reconciler.planning.model.outcomes import Draft, RemovalOutcome
from reconciler.planning.model.shard import parse_shard
from reconciler.planning.model.targets import Target
from reconciler.reconcile.cache_files import FirstSeenTimes
from reconciler.reconcile.config_source import ConfigSnapshot
from reconciler.reconcile.pull_requests.request_updates import PullRequestOptions
from reconciler.reconcile.pull_requests.synchronizer import PullRequests
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.reconcile.services import PassServices
from reconciler.settings import Settings
from reconciler.settings.deprecations import list_deprecated_settings

_MAX_CONFIG_COMMITS = 1_000


def build_pass_services(
    settings: Settings,
    inputs: SettingsInputs,
    backoff: Backoff,
    *,
    should_treat_missing_as_empty: bool,
    is_offline: bool,
) -> PassServices:
    """Build the services of a pass. See `build_services` for the arguments."""
    functions = inputs.functions.provider
    fleets = FleetServices(settings, inputs.source, offline=is_offline)
    catalogs = CatalogServices(settings, fleets, functions, inputs.input_verifier, inputs.artifacts)
    reader, forge = CatalogReader(settings), settings.forge
    requests = PullRequestOptions(forge.draft, forge.labels, forge.max_open, forge.check, forge.merge or None)

    def read_catalog(snapshot: ConfigSnapshot) -> Catalog:
        return fleets.isolate_faulty_objects(reader.read(snapshot.files, snapshot.unreadable))

    return PassServices(
        read_catalog=read_catalog,
        preload=_preload,
        list_targets=fleets.list_targets,
        find_target_conflicts=fleets.find_target_conflicts,
        find_rival_claims=fleets.find_rival_claims,
        find_claimed_targets=fleets.find_claimed_targets,
        find_recorded_file=fleets.find_recorded_file,
        list_urls=fleets.list_urls,
        list_settings_urls=fleets.list_settings_urls,
        run_controllers=catalogs.run_controllers,
        list_requested_variants=catalogs.list_requested_variants,
        lint=catalogs.lint,
        read_cluster_versions=fleets.read_cluster_versions,
        create_renderer=catalogs.create_renderer,
        functions=functions,
        sources=inputs.source_renderers.packages,
        artifacts=inputs.artifacts,
        find_locked_tree=fleets.find_locked_tree,
        find_upstream_urls=fleets.find_upstream_urls,
        create_text_writer=_DraftTextWriter,
        state_ref=settings.state_ref,
        draft_template=settings.drafts.branch,
        removal_template=settings.drafts.removals_branch,
        create_tag_policy=fleets.create_tag_policy,
        list_generated_kinds=catalogs.list_generated_kinds,
        config_proposals=inputs.config_proposals,
        pull_requests=PullRequests(inputs.pull_request_cache, requests, backoff, inputs.get_commit_page),
        publication_times=FirstSeenTimes(get_cache_file(settings, "published")),
        draft_times=FirstSeenTimes(get_cache_file(settings, "drafts")),
        known_heads=inputs.known_heads,
        clock=inputs.clock,
        input_verifier=inputs.input_verifier,
        has_annotation_approvals=settings.approvals.by_annotation,
        should_date_actions=settings.review.clock == "real",
        read_config_commit=_build_commit_reader(inputs) if settings.review.require_other_person else None,
        required_approvals=settings.review.approvals,
        executor=build_executor(settings, inputs.search_path),
        shard=parse_shard(settings.shard),
        max_pushes=settings.git.max_pushes,
        max_delete_percent=settings.guards.max_delete_percent,
        should_treat_missing_as_empty=should_treat_missing_as_empty,
        deprecated_settings=tuple(list_deprecated_settings(settings)),
        report_progress=inputs.report_progress,
    )


def _build_commit_reader(inputs: SettingsInputs) -> Callable[[CommitId], Commit]:
    """Return a function that reads commits of the config. The function opens the history at the first call."""
    open_history = lru_cache(1)(inputs.open_history)
    return lru_cache(_MAX_CONFIG_COMMITS)(lambda commit: open_history().read_commit(commit))


def _preload(catalog: Catalog) -> None:
    """Import the expression parser now if the config uses expressions, because the import is slow."""
    if catalog.objects_of_kind(PORCH_GROUP, "PackageVariantSet"):
        load_parser()


class _DraftTextWriter:
    """Writes the commit messages and status files of drafts. All texts name the same config commit."""

    def __init__(self, config: str, dry_commit: DryCommit | None = None) -> None:
        self._config = config
        self._dry_commit = dry_commit

    def write_draft_texts(self, draft: Draft, target: Target) -> DraftTexts:
        changes = compare_packages(draft.previous_files, draft.rendered.files)
        message = format_draft_message(draft, target, self._config, changes, self._dry_commit)
        return DraftTexts(build_package_status(draft, target, self._config), message)

    def write_removal_message(self, removal: RemovalOutcome, target: Target, before: FileTree | None) -> str:
        changes = compare_packages(before, FileTree()) if before is not None else None
        return format_removal_message(removal, target, self._config, changes)
