"""The first steps of a pass: read the config, fetch the remotes, resolve definition conflicts, and run the controllers.

`take_snapshot` reads the config and the remotes. `prepare_pass` reads the recorded states and runs the controllers.
This module does not decide about packages and writes nothing to a remote.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from reconciler.catalog.catalog import Catalog, ConfigObject, ConflictResolution, is_config_path
from reconciler.catalog.codes import CatalogCodes
from reconciler.catalog.definition_conflicts import DefinitionConflict, find_duplicates
from reconciler.controllers.components.names import GROUP as COMPONENTS
from reconciler.controllers.results import ControllerResult, format_object_id
from reconciler.git.errors import GitError
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.planning.decide.deletion_safety import (
    ACK_RESET_ANNOTATION,
    ConfigFiles,
    apply_acknowledged_deletions,
    find_unproven_deletions,
    format_reset_token,
    parse_acknowledged_resets,
)
from reconciler.planning.decide.target_inputs import (
    ConfigOrigin,
    DesiredPackages,
    PlanningContext,
    PreparedTarget,
)
from reconciler.planning.decide.target_plan import DecidedTarget, decide_target
from reconciler.planning.model.codes import PlanningCodes
from reconciler.planning.model.shard import Shard
from reconciler.planning.model.state import TargetState
from reconciler.planning.model.targets import Target
from reconciler.reconcile.cache_files import CompletedPass
from reconciler.reconcile.config_source import ConfigSnapshot
from reconciler.reconcile.failures import IsolatedSteps
from reconciler.reconcile.pass_cache import PassCache
from reconciler.reconcile.pass_context import PassContext
from reconciler.reconcile.pass_inputs import (
    ConfigSource,
    PassInputs,
    digest_heads,
    read_inputs_if_changed,
    refresh_pull_requests,
)
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX, TargetStates, read_target_states
from reconciler.reconcile.services import PassServices
from reconciler.telemetry.event_log import log
from reconciler.telemetry.phases import phase


def add_unproven_deletions(
    catalog: Catalog,
    config: ConfigSnapshot,
    targets: Sequence[Target],
    states: Collection[TargetState],
    max_percent: int,
) -> Catalog:
    """Return the catalog with an error for each missing object whose deletion is not proven. Raises GitError."""
    findings = (
        *check_config_is_not_empty(catalog, config, bool(targets)),
        *find_unproven_config_deletions(catalog, config, targets, states, max_percent),
    )
    return replace(catalog, unproven_deletions=findings) if findings else catalog


def find_unproven_config_deletions(
    catalog: Catalog,
    config: ConfigSnapshot,
    targets: Sequence[Target],
    states: Collection[TargetState],
    max_percent: int,
) -> tuple[Finding, ...]:
    """Return an error for each recorded object that is missing in the config, unless its deletion is proven.

    Also return an error if the config branch does not contain its recorded history any more.

    Raises:
        GitError: The config repository cannot be read.
    """
    files = ConfigFiles(config.files, config.directory, config.read_entry_kinds)
    return (
        *_check_history(catalog, config, targets, states),
        *find_unproven_deletions(states, files, catalog, max_percent),
    )


def check_config_is_not_empty(catalog: Catalog, config: ConfigSnapshot, has_targets: bool) -> Iterator[Finding]:
    """Yield an error if the config directory is missing, or if the config has no targets."""
    if not config.has_directory:
        yield PlanningCodes.CONFIG_DIRECTORY_MISSING.finding(
            f'the config repository has no directory "{config.directory}". No package is removed. Next step: '
            "set `config.directory` to an existing directory",
            SourceLocation(config.directory),
        )
    elif not has_targets and not any(key.group == COMPONENTS for key in catalog.objects):
        # Do not report this error for a config with objects of components. Such a config is useful without targets,
        # because the status contains the schemas of its component types.
        yield PlanningCodes.CONFIG_EMPTY.finding(
            f"the config has no Repository and no cluster. It contains {_describe_content(catalog, config)}. Nothing"
            " is reconciled or removed. Next step: correct the config branch, `config.directory` or .krmignore. "
            "To remove all packages, keep the Repository objects and delete the files of all other objects",
            SourceLocation(config.directory),
        )


def _describe_content(catalog: Catalog, config: ConfigSnapshot) -> str:
    files = [path for path in config.files if is_config_path(path)]
    ignored = sum(catalog.documents(path) is None for path in files) - len(catalog.unreadable)
    hidden = f" ({ignored} of these files are excluded by .krmignore)" if ignored > 0 else ""
    return f"{len(catalog.objects)} other objects in {len(files)} YAML and JSON files{hidden}"


def _check_history(
    catalog: Catalog, config: ConfigSnapshot, targets: Iterable[Target], states: Iterable[TargetState]
) -> Iterator[Finding]:
    root_commits = config.root_commits
    recorded = sorted({state.config_root for state in states if state.config_root})
    if root_commits is None or all(map(root_commits.contains, recorded)):
        return
    definitions = (catalog.get(target.key) for target in targets)
    acknowledged = {
        token for definition in definitions if definition for token in parse_acknowledged_resets(definition.annotations)
    }
    for root in recorded:
        if not root_commits.contains(root) and format_reset_token(root) not in acknowledged:
            yield PlanningCodes.CONFIG_HISTORY_REPLACED.finding(
                f"in earlier passes, the history of the config branch began with commit {root}, but the "
                "branch does not contain this commit any more. No package is removed. Next step: restore the "
                "branch, or merge the earlier history with 'git merge --allow-unrelated-histories "
                "--strategy=ours'. To accept the new history, annotate any Repository with "
                f'{ACK_RESET_ANNOTATION}: "{format_reset_token(root)}"'
            )


def _fetch_nothing(urls: Collection[str]) -> None:
    """Do nothing, because the caller has already fetched all targets."""


def resolve_definition_conflicts(
    catalog: Catalog,
    config: ConfigSnapshot,
    remotes: Remotes,
    services: PassServices,
    fetch: Callable[[Collection[str]], None] = _fetch_nothing,
) -> Catalog:
    """Resolve all definition conflicts in the catalog, and return the new catalog.

    If several objects conflict, the object that existed first stays in effect. To find this object, the following data
    is searched in this order: the recorded packages of the targets, the other records of the targets, the status files,
    and the config history. If the search finds nothing, `DefinitionConflict.resolve_by_tenant` resolves the conflict.

    Args:
        fetch: Fetches the targets with the given URLs. It is called only if there are conflicts.
    """
    for find in (find_duplicates, services.find_rival_claims):
        conflicts = find(catalog)
        if conflicts:
            _, target_urls = services.list_urls(catalog)
            fetch(target_urls)
            catalog = catalog.with_resolution(_resolve(conflicts, catalog, config, remotes, services))
    return catalog


def _resolve(
    conflicts: Sequence[DefinitionConflict],
    catalog: Catalog,
    config: ConfigSnapshot,
    remotes: Remotes,
    services: PassServices,
) -> ConflictResolution:
    targets = services.find_claimed_targets(catalog, conflicts)
    states = _read_valid_states({*services.list_targets(catalog), *targets.values()}, remotes, services)
    recorded = frozenset(_list_recorded_sources(states.values()))
    resolution = ConflictResolution()
    for conflict in conflicts:
        if resolution.rejected.isdisjoint(claim.key for claim in conflict.claims):
            holder = (
                _find_by_package(conflict, states.values())
                or _find_by_source(conflict, config, recorded)
                or _find_by_target(conflict, targets, states, remotes)
                or _find_by_status(conflict, remotes, services)
                or _find_by_history(conflict, config)
            )
            resolution |= conflict.resolve(holder) if holder else conflict.resolve_by_tenant(catalog.tenants)
    return resolution


def _read_valid_states(targets: Iterable[Target], remotes: Remotes, services: PassServices) -> TargetStates:
    states = read_target_states(targets, remotes, services.state_ref)
    return {target: state for target, state in states.items() if isinstance(state, TargetState)}


def _list_recorded_sources(states: Iterable[TargetState]) -> Iterator[tuple[str, str]]:
    """Yield all recorded pairs of a config file and the ID of an object in this file."""
    for state in states:
        for sources in (state.definition_sources, *state.config_sources):
            yield from ((path, object_id) for path, ids in sources.items() for object_id in ids)


def _find_by_source(
    conflict: DefinitionConflict, config: ConfigSnapshot, recorded: Collection[tuple[str, str]]
) -> ConfigObject | None:
    """Return the definition whose file and object ID are recorded in a state.

    Return None if there is no such definition, or more than one.
    """
    to_path = ConfigOrigin(config.directory).get_repository_path
    return _select_only(
        claim for claim in conflict.claims if (to_path(claim.file), format_object_id(claim.key)) in recorded
    )


def _find_by_package(conflict: DefinitionConflict, states: Iterable[TargetState]) -> ConfigObject | None:
    """Return the definition that a state records as a config source of the package `conflict.package`.

    Return None if there is no such definition, or more than one.
    """
    if not conflict.package:
        return None
    records = (state.packages.get(conflict.package) for state in states)
    recorded = {
        object_id
        for record in records
        if record and record.is_owned
        for ids in record.config_sources.values()
        for object_id in ids
    }
    return _select_only(claim for claim in conflict.claims if format_object_id(claim.key) in recorded)


def _find_by_target(
    conflict: DefinitionConflict, targets: Mapping[ConfigObject, Target], states: TargetStates, remotes: Remotes
) -> ConfigObject | None:
    """Compare each definition of a target with the recorded state of this target.

    Return the definition with the same branch and directory as the state. Return None if there is no such definition,
    or more than one.
    """
    claimed = {claim: targets[claim] for claim in conflict.claims if claim in targets}
    if any(target.url in remotes.failures for target in claimed.values()):
        return None
    recorded = [claim for claim, target in claimed.items() if _is_recorded(target, states.get(target))]
    if len(claimed) < len(conflict.claims):
        # `targets` contains only one of several definitions of a target. Therefore, compare the recorded object IDs to
        # find the other definitions.
        ids = {
            object_id
            for claim in recorded
            for source_ids in states[claimed[claim]].definition_sources.values()
            for object_id in source_ids
        }
        recorded = [claim for claim in conflict.claims if format_object_id(claim.key) in ids]
    return _select_only(recorded)


def _select_only(claims: Iterable[ConfigObject]) -> ConfigObject | None:
    candidates = list(claims)
    return candidates[0] if len(candidates) == 1 else None


def _is_recorded(target: Target, state: TargetState | None) -> bool:
    return state is not None and (state.branch, state.directory) == (target.branch, target.directory)


def _find_by_status(conflict: DefinitionConflict, remotes: Remotes, services: PassServices) -> ConfigObject | None:
    """Return the definition from the config file that is recorded in the status file of the object.

    Return None if no definition or several definitions come from this config file.
    """
    try:
        return _select_only(
            claim for claim in conflict.claims if services.find_recorded_file(claim.key, remotes) == claim.file
        )
    except GitError as error:
        log.warning("conflict_lookup_failed", object=conflict.claims[0].key.reference, message=error.message)
        return None


def _find_by_history(conflict: DefinitionConflict, config: ConfigSnapshot) -> ConfigObject | None:
    try:
        return conflict.find_first(config.list_earlier_versions(sorted({claim.file for claim in conflict.claims})))
    except GitError as error:
        log.warning("conflict_lookup_failed", object=conflict.claims[0].key.reference, message=error.message)
        return None


# The maximal time that a pass waits until another thread has imported the code that the config needs.
_MAX_PRELOAD_SECONDS = 60


_SINGLE_SHARD = Shard()


@dataclass(frozen=True)
class PassSnapshot:
    """The inputs of a pass, read after all remotes were fetched.

    Attributes:
        heads: A digest of all inputs except the config, such as the refs of all remotes.
        now: The time of the pass, in seconds since 1970.
        findings: Findings about the config commit, and about steps that an unexpected exception ended.
    """

    config: ConfigSnapshot
    catalog: Catalog
    heads: str
    now: int
    findings: tuple[Finding, ...] = ()


def take_snapshot(source: ConfigSource, remotes: Remotes, services: PassServices) -> PassSnapshot:
    """Read the config, and fetch all remotes in the config. Raises GitError if the config cannot be read."""
    return _take_one(source.read(), remotes, services)


def take_snapshot_if_changed(
    source: ConfigSource, remotes: Remotes, services: PassServices, last: CompletedPass | None
) -> PassSnapshot | CompletedPass:
    """Read the inputs of a pass. If no input has changed since the pass `last` and no pass is due, return `last`."""
    inputs = read_inputs_if_changed(source, remotes, services, last)
    return complete_snapshot(inputs, remotes, services) if isinstance(inputs, PassInputs) else inputs


def complete_snapshot(inputs: PassInputs, remotes: Remotes, services: PassServices) -> PassSnapshot:
    """Read the objects of the config. If the remotes were not fetched, fetch all remotes in the config."""
    if not inputs.heads:
        return _take_one(inputs.config, remotes, services)
    steps = IsolatedSteps()
    catalog = _resolve_isolated(inputs.config, services.read_catalog(inputs.config), remotes, services, steps)
    findings = (*inputs.config.findings, *steps.findings)
    return PassSnapshot(inputs.config, catalog, inputs.heads, inputs.now, findings)


def take_snapshots(sources: Sequence[ConfigSource], remotes: Remotes, services: PassServices) -> list[PassSnapshot]:
    """Read several configs, and fetch each remote in the configs once. Raises GitError if a config cannot be read."""
    return _take_all([source.read() for source in sources], remotes, services)


def _take_one(config: ConfigSnapshot, remotes: Remotes, services: PassServices) -> PassSnapshot:
    return _take_all([config], remotes, services)[0]


def _take_all(configs: Sequence[ConfigSnapshot], remotes: Remotes, services: PassServices) -> list[PassSnapshot]:
    services.report_progress("reading the config", 0, 1)
    with phase("snapshot"):
        catalogs = [services.read_catalog(config) for config in configs]
    services.report_progress("reading the config", 1, 1)
    services.report_progress("fetching", 0, 1)
    with ThreadPoolExecutor(1) as pool:
        # Import code in this thread while Git processes wait for remote hosts.
        preloads = [pool.submit(services.preload, catalog) for catalog in catalogs]
        urls = [services.list_urls(catalog) for catalog in catalogs]
        upstreams, targets = ({url for urls in groups for url in urls} for groups in zip(*urls, strict=True))
        with phase("fetch", remotes=len({*upstreams, *targets})):
            remotes.fetch(upstreams, targets)
        steps = IsolatedSteps()
        steps.run("the heads of mirrors", partial(_record_earlier_heads, catalogs, remotes, services), None)
        refresh_pull_requests(sorted(targets), remotes, services)
        for preload in preloads:
            steps.run("loading the parser of expressions", partial(_wait_for_preload, preload), None)
    services.report_progress("fetching", 1, 1)
    services.functions.refresh()
    config_findings = [finding for config in configs for finding in config.findings]
    heads, now = digest_heads(remotes, services, config_findings), int(services.clock())
    pairs = zip(configs, catalogs, strict=True)
    resolved = [(config, _resolve_isolated(config, catalog, remotes, services, steps)) for config, catalog in pairs]
    findings = tuple(steps.findings)
    return [PassSnapshot(config, catalog, heads, now, (*config.findings, *findings)) for config, catalog in resolved]


def _resolve_isolated(
    config: ConfigSnapshot, catalog: Catalog, remotes: Remotes, services: PassServices, steps: IsolatedSteps
) -> Catalog:
    resolve = partial(resolve_definition_conflicts, catalog, config, remotes, services)
    with phase("snapshot"):
        return steps.run("conflicting definitions", resolve, catalog)


def _wait_for_preload(preload: Future[None]) -> None:
    try:
        preload.result(_MAX_PRELOAD_SECONDS)
    except TimeoutError:
        # Do not wait any longer for the import of the parser of expressions. The code that needs the parser imports it.
        log.warning("preload_delayed", seconds=_MAX_PRELOAD_SECONDS)


def _record_earlier_heads(catalogs: Iterable[Catalog], remotes: Remotes, services: PassServices) -> None:
    """Record the heads that the mirrors contained before the first fetch of this process.

    This is necessary for mirrors of older versions, which did not record heads.
    """
    if not remotes.earlier_refs:
        return
    for target in (target for catalog in catalogs for target in services.list_targets(catalog)):
        if head := remotes.earlier_refs.get(target.url, {}).get(BRANCH_PREFIX + target.branch):
            services.known_heads.record(target, head)
    services.known_heads.store()


def collect_catalog_findings(catalog: Catalog) -> tuple[Finding, ...]:
    """Return the findings that are known before the controllers run: those about files and objects."""
    charts = (
        CatalogCodes.CHART_IN_CONFIG.finding(
            f'the folder "{folder}" contains a Helm chart, so its files are not read as config', SourceLocation(folder)
        )
        for folder in catalog.chart_folders
    )
    return (*catalog.findings, *charts, *(file.finding for file in catalog.unreadable), *catalog.unproven_deletions)


@dataclass(frozen=True)
class PreparedPass:
    """A pass after the controllers have run, and before the decisions about the targets.

    Attributes:
        snapshot: The inputs of the pass. Its catalog also contains findings about missing objects that do not
            count as deleted, because evidence of their deletion is missing.
        targets: The targets of this shard.
        all_targets: The targets of all shards, in the same order.
        known_targets: All targets in the config, including targets without packages.
    """

    snapshot: PassSnapshot
    controller_result: ControllerResult
    context: PassContext
    targets: Sequence[Target]
    all_targets: Sequence[Target]
    known_targets: Sequence[Target] = ()


def prepare_pass(
    snapshot: PassSnapshot,
    remotes: Remotes,
    services: PassServices,
    decide: Callable[[PreparedTarget, PlanningContext], DecidedTarget] = decide_target,
    only_target: Target | None = None,
    pass_cache: PassCache | None = None,
    shard: Shard = _SINGLE_SHARD,
) -> PreparedPass:
    """Read the recorded states, and run the controllers.

    Args:
        only_target: The only target to plan. Only its state is read, because the states of other targets do not affect
            its packages.
        pass_cache: Results of earlier passes of the service.
        shard: The shard. Controllers process the whole fleet in each shard, but only the targets of the shard are
            planned.
    """
    targets = [only_target] if only_target else services.list_targets(snapshot.catalog)
    with phase("snapshot", targets=len(targets)):
        states = read_target_states(targets, remotes, services.state_ref, pass_cache)
    valid_states = {target: state for target, state in states.items() if isinstance(state, TargetState)}
    catalog = add_unproven_deletions(
        snapshot.catalog, snapshot.config, targets, valid_states.values(), services.max_delete_percent
    )
    snapshot = replace(snapshot, catalog=catalog)
    with phase("plan"):
        result = services.run_controllers(snapshot.catalog, remotes, valid_states, snapshot.now)
    if not shard.is_alone:
        result = replace(result, guards=apply_acknowledged_deletions(result.guards, valid_states))
    desired = pass_cache.find_desired_state(result) if pass_cache is not None else DesiredPackages(result)
    used_targets = [target for target in targets if target in states or desired.is_downstream(target.key)]
    other_shard_targets = [target for target in used_targets if not shard.is_responsible_for(target)]
    context = PassContext(
        snapshot.config, snapshot.catalog, remotes, services, result, desired, snapshot.now, decide, pass_cache,
        other_shard_targets,
    )  # fmt: skip
    own_targets = [target for target in used_targets if shard.is_responsible_for(target)]
    return PreparedPass(snapshot, result, context, own_targets, used_targets, targets)
