"""Construction of the services that commands use. The inputs are the settings and the location of the config."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path

from reconciler import __version__
from reconciler.bootstrap.controllers import CatalogServices
from reconciler.bootstrap.forges import ForgeRegistry
from reconciler.bootstrap.options import (
    INITIAL_BACKOFF_SECONDS,
    build_functions,
    build_git_options,
    build_yaml_limits,
    get_cache_file,
    get_conflict_policy,
    read_merge_options,
)
from reconciler.bootstrap.renderer_factory import build_executor
from reconciler.catalog.catalog import Catalog, ParseCache, read_catalog
from reconciler.catalog.files import CommitId, FileTree
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.cel import load_parser
from reconciler.git.errors import GitError, RepositoryMissingError
from reconciler.git.filesystem import prepare_private_folder
from reconciler.git.folder import FolderLimits
from reconciler.git.history import MirrorHistory, open_local_history, resolve_commit_name
from reconciler.git.mirror import Mirror
from reconciler.git.rate_limit import PushRateLimiters
from reconciler.git.source import FolderSource, RepositoryOrFolder, RepositorySource, resolve_repository, resolve_source
from reconciler.git.upstream_packages import UpstreamPackages
from reconciler.git.url import parse_url
from reconciler.krm.json_text import compute_digest
from reconciler.krm.merge3 import Winner
from reconciler.krm.yaml import YamlFile, parse_yaml
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.changes.package_changes import compare_packages
from reconciler.output.commits import DryCommit, format_draft_message, format_removal_message
from reconciler.output.status.package_status import build_package_status
from reconciler.packages.update import MergeOptions
from reconciler.planning.decide.drafts import DraftTexts
from reconciler.planning.model.outcomes import Draft, RemovalOutcome
from reconciler.planning.model.shard import parse_shard
from reconciler.planning.model.targets import Target
from reconciler.reconcile.config_proposals import (
    PROPOSAL_STATE_NAME,
    ConfigProposals,
    FolderConfigProposals,
    RepositoryConfigProposals,
)
from reconciler.reconcile.config_source import ConfigHistory, ConfigSnapshot, FolderConfigSource, RepositoryConfigSource
from reconciler.reconcile.event_log import log_mirror_rebuild
from reconciler.reconcile.pass_cache import FilePassStore, FirstSeenTimes, KnownHeads
from reconciler.reconcile.pull_requests.open_requests import ForgeLookup, PullRequestCache
from reconciler.reconcile.pull_requests.request_updates import PullRequestOptions
from reconciler.reconcile.pull_requests.synchronizer import PullRequests
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.scheduling import Backoff, RemoteLimits
from reconciler.reconcile.services import ConfigSource, PassServices
from reconciler.runners.functions import CombinedFunctionProvider
from reconciler.settings import Settings

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Services:
    """The services of a command.

    Attributes:
        watched_folders: Local folders. A change in such a folder starts a pass.
        open_config_history: Opens the history of the config. Raises GitError if a config folder is not in a Git
            repository.
        resolve_commit: Finds a commit in a mirror by a branch name, a tag name or a commit ID.
    """

    source: ConfigSource
    remotes: Remotes
    backoff: Backoff
    pass_services: PassServices
    watched_folders: tuple[Path, ...]
    open_config_history: Callable[[], ConfigHistory]
    resolve_commit: Callable[[Mirror, str], CommitId]


def build_services(
    settings: Settings,
    config: str,
    *,
    should_treat_missing_as_empty: bool = False,
    commit: str = "",
    is_offline: bool = False,
    can_fetch: bool = True,
    report_progress: Progress | None = None,
    clock: Callable[[], float] = time.time,
    monotonic_clock: Callable[[], float] = time.monotonic,
    wake_up: Callable[[], None] | None = None,
) -> Services:
    """Build the services of a pass over `config`.

    Args:
        config: The URL or path of the config.
        should_treat_missing_as_empty: Whether a target repository that does not exist is treated as an empty
            repository.
        commit: The commit of the config. "" means the files on disk, or the head of the config branch.
        is_offline: Whether a cluster can have a target even if it has no Repository and there is no fleet repository.
        can_fetch: Whether remotes and forges may be contacted. If not, the services use the data of the last fetch.
        report_progress: Receives the stage, the number of completed items, and the total number of items.
        clock: Returns seconds since 1970. The clock has an effect on the time of actions, not on rendered content.
        monotonic_clock: Returns the seconds of a monotonic clock.
        wake_up: Called when a slow remote is ready. With this argument, a pass does not wait for slow remotes.

    Raises:
        GitError: The URL of the config cannot be used.
        CacheRefusedError: Other users can write to the cache folder.
    """
    _raise_open_file_limit()
    prepare_private_folder(Path(settings.cache).expanduser())
    backoff = Backoff(INITIAL_BACKOFF_SECONDS, settings.max_backoff_seconds, monotonic_clock)
    functions = build_functions(settings, backoff)
    source = resolve_source(config, options=build_git_options(settings))
    limits = _build_remote_limits(settings, monotonic_clock, wake_up)
    rate_limiters = PushRateLimiters(
        limits.max_wait_seconds, _report_push_wait(report_progress) if report_progress else None, monotonic_clock
    )
    builder = _Builder(settings, source, clock, functions, backoff, rate_limiters, can_fetch=can_fetch)
    prefix = settings.state_ref.partition("{repository}")[0]
    remotes = Remotes(
        builder.open_mirror, prefix, backoff, builder.forges.close, limits,
        should_keep_earlier_refs=builder.known_heads.is_empty,
    )  # fmt: skip
    pass_services = builder.build_pass_services(should_treat_missing_as_empty, is_offline, report_progress)
    names = partial(_find_commit, prefix)
    return Services(
        builder.build_config_source(commit),
        remotes,
        backoff,
        pass_services,
        builder.list_watched_folders(),
        builder.open_history,
        names,
    )


def _build_remote_limits(
    settings: Settings, monotonic_clock: Callable[[], float], wake_up: Callable[[], None] | None
) -> RemoteLimits:
    limits = RemoteLimits(settings.git.max_fetches, settings.git.max_pushes, clock=monotonic_clock)
    return replace(limits, max_wait_seconds=settings.git.patience_seconds, notify=wake_up) if wake_up else limits


def _report_push_wait(report_progress: Progress) -> Callable[[str, float], None]:
    return lambda url, seconds: report_progress(f"waiting to push to {url}", int(not seconds), 1)


def build_pass_cache(settings: Settings, config: str) -> FilePassStore:
    """Build the file cache for the result of the last pass.

    Processes with the same config and settings share the file.
    """
    key = compute_digest([__version__, settings.model_dump(mode="json"), str(Path(config).absolute())])
    return FilePassStore(Path(settings.cache).expanduser() / "settled" / f"{key.removeprefix('sha256:')}.json")


def _raise_open_file_limit() -> None:
    # Raise the limit, because many systems allow 1,024 open files, and a pass uses three open files for each remote.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@dataclass(frozen=True)
class PackageServices:
    """The services of a command that works on one package: the upstreams, the merge options and the functions."""

    upstreams: UpstreamPackages
    merge: MergeOptions
    functions: CombinedFunctionProvider


def build_package_services(
    settings: Settings, folder: Path, root: str, policy: str = "", on_fetch: Callable[[str], None] = lambda url: None
) -> PackageServices:
    """Build the services of a command that works on the package in `folder`.

    Args:
        root: The URL of the package's upstream, or "" if the package has no upstream.
        policy: The conflict policy. If it is not "", it replaces the setting `merge.conflict_policy`.
        on_fetch: Receives the URL of each repository before the repository is fetched.

    Raises:
        GitError: A URL cannot be used.
    """
    options = build_git_options(settings)
    # Check URLs as in a config, because a package from a remote must not refer to repositories on this machine.
    source = RepositorySource(parse_url(root or ".", str(folder.absolute())))

    def open_mirror(repo: str) -> Mirror:
        url = resolve_repository(repo, source, options, str(folder.absolute()))
        on_fetch(url.text)
        return Mirror.open(Path(settings.cache).expanduser(), url, options, on_rebuild=log_mirror_rebuild)

    merge = read_merge_options(settings)
    winner: Winner = "local" if (policy or get_conflict_policy(settings)) == "local" else "upstream"
    merge = replace(merge, rules=replace(merge.rules, winner=winner))
    backoff = Backoff(INITIAL_BACKOFF_SECONDS, settings.max_backoff_seconds, time.monotonic)
    return PackageServices(UpstreamPackages(open_mirror), merge, build_functions(settings, backoff))


class _Builder:
    """Builds the services of a pass, and caches data that several passes use."""

    def __init__(
        self,
        settings: Settings,
        source: RepositoryOrFolder,
        clock: Callable[[], float],
        functions: CombinedFunctionProvider,
        backoff: Backoff,
        rate_limiters: PushRateLimiters,
        *,
        can_fetch: bool,
    ) -> None:
        self._settings = settings
        self._rate_limiters = rate_limiters
        self._backoff = backoff
        self._source = source
        self._clock = clock
        self._can_fetch = can_fetch
        self._options = replace(build_git_options(settings), offline=not can_fetch)
        self._cache = Path(settings.cache).expanduser()
        self._parse_cache: ParseCache = {}
        self._catalog: Catalog | None = None
        self._limits = build_yaml_limits(settings)
        self._functions = functions

    def build_config_source(self, commit: str) -> ConfigSource:
        if commit:
            history = self.open_history()
            return history.source_at(history.find_commit(commit))
        directory = self._settings.config.directory
        if isinstance(self._source, FolderSource):
            return FolderConfigSource(
                self._source.path, directory, FolderLimits(max_files=self._settings.limits.folder_files)
            )
        names = (self._settings.config.branch, directory, self._settings.drafts.config_branch, self._state_prefix)
        return RepositoryConfigSource(self._config_mirror, *names)

    def open_history(self) -> ConfigHistory:
        """Open the history of the config.

        For a folder, this is the history of the Git repository that contains the folder.

        Raises:
            RepositoryMissingError: The folder is not in a Git repository.
        """
        directory = self._settings.config.directory
        if isinstance(self._source, RepositorySource):
            repository = MirrorHistory(self._config_mirror, self._state_prefix)
            return ConfigHistory(repository, directory, f"refs/heads/{self._settings.config.branch}")
        history = open_local_history(self._source.path / directory, self._options)
        if history is None:
            raise RepositoryMissingError(f"{self._source.path} must be in the work tree of a Git repository")
        return ConfigHistory(*history)

    @cached_property
    def _config_mirror(self) -> Mirror:
        return self.open_mirror(self._source.url.connection_url)

    @property
    def _state_prefix(self) -> str:
        return self._settings.state_ref.partition("{repository}")[0]

    @cached_property
    def known_heads(self) -> KnownHeads:
        """The cached heads of all target branches at the end of the last pass."""
        config = f"{self._source.url.identity} {self._settings.config.directory.strip('/')}".strip()
        return KnownHeads(self._cache / "heads.json", config)

    def _build_config_proposals(self) -> ConfigProposals:
        if isinstance(self._source, FolderSource):
            return FolderConfigProposals(self._read_file)
        return RepositoryConfigProposals(
            self._config_mirror, self._source.url.identity, self._settings.config.branch,
            self._settings.drafts.config_branch, self._settings.state_ref.format(repository=PROPOSAL_STATE_NAME),
            self._settings.config.directory, self._read_file,
        )  # fmt: skip

    @cached_property
    def forges(self) -> ForgeRegistry:
        return ForgeRegistry(self._settings, self._clock)

    def _build_pull_requests(self) -> PullRequests:
        settings = self._settings.forge
        forges = ForgeLookup(self.forges.get_forge if self._can_fetch else lambda url: None, self.forges.get_kind)
        options = PullRequestOptions(
            settings.draft, settings.labels, settings.max_open, settings.check, settings.merge or None
        )
        return PullRequests(PullRequestCache(forges, self._backoff), options, self._backoff, self._get_commit_page)

    def _get_commit_page(self, repo: str, commit: str) -> str:
        try:
            url = self._source.url if not repo and isinstance(self._source, RepositorySource) else parse_url(repo)
        except GitError:
            return ""
        return self.forges.build_commit_url(url, commit)

    def _read_file(self, data: bytes) -> YamlFile:
        return parse_yaml(data, self._limits)

    def list_watched_folders(self) -> tuple[Path, ...]:
        """Return the folder of a local config, whose changes start a pass. Return () for a remote config."""
        return (Path(self._source.url.text),) if self._source.url.is_local else ()

    def open_mirror(self, url: str) -> Mirror:
        return Mirror.open(self._cache, url, self._options, self._rate_limiters.get, log_mirror_rebuild)

    def build_pass_services(
        self, should_treat_missing_as_empty: bool, is_offline: bool, report_progress: Progress | None
    ) -> PassServices:
        catalogs = CatalogServices(self._settings, self._source, self._functions, offline=is_offline)
        return PassServices(
            read_catalog=partial(self._read_catalog, catalogs.isolate_faulty_objects),
            preload=_preload,
            list_targets=catalogs.list_targets,
            find_target_conflicts=catalogs.find_target_conflicts,
            find_rival_claims=catalogs.find_rival_claims,
            find_claimed_targets=catalogs.find_claimed_targets,
            list_urls=catalogs.list_urls,
            list_settings_urls=catalogs.list_settings_urls,
            run_controllers=catalogs.run_controllers,
            lint=catalogs.lint,
            read_cluster_versions=catalogs.read_cluster_versions,
            create_renderer=catalogs.create_renderer,
            functions=self._functions,
            find_locked_tree=catalogs.find_locked_tree,
            find_upstream_urls=catalogs.find_upstream_urls,
            create_text_writer=_DraftTextWriter,
            state_ref=self._settings.state_ref,
            draft_template=self._settings.drafts.branch,
            removal_template=self._settings.drafts.removals_branch,
            create_tag_policy=catalogs.create_tag_policy,
            list_generated_kinds=catalogs.list_generated_kinds,
            config_proposals=self._build_config_proposals(),
            pull_requests=self._build_pull_requests(),
            publication_times=FirstSeenTimes(get_cache_file(self._settings, "published")),
            known_heads=self.known_heads,
            clock=self._clock,
            has_annotation_approvals=self._settings.approvals.by_annotation,
            should_date_actions=self._settings.review.clock == "real",
            executor=build_executor(self._settings),
            shard=parse_shard(self._settings.shard),
            max_pushes=self._settings.git.max_pushes,
            max_delete_percent=self._settings.guards.max_delete_percent,
            should_treat_missing_as_empty=should_treat_missing_as_empty,
            report_progress=report_progress or (lambda stage, done, total: None),
        )

    def _read_catalog(self, isolate: Callable[[Catalog], Catalog], snapshot: ConfigSnapshot) -> Catalog:
        catalog = read_catalog(snapshot.files, self._parse_cache, self._limits, snapshot.unreadable, self._catalog)
        self._catalog = catalog
        # Remove the parsed files of other commits from the cache, to limit its size.
        file_ids = {file.id for file in snapshot.files.values()}
        for file_id in self._parse_cache.keys() - file_ids:
            del self._parse_cache[file_id]
        return isolate(catalog)


def _find_commit(state_prefix: str, mirror: Mirror, name: str) -> CommitId:
    return resolve_commit_name(name, mirror, Path.cwd(), state_prefix)


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
