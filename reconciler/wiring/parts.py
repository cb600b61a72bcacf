"""Parts: what a command drives, built of settings and an address."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from reconciler import __version__
from reconciler.daemon.backoff import Backoff
from reconciler.daemon.config import ConfigHistory, ConfigSnapshot, FolderConfig, RepositoryConfig
from reconciler.daemon.events import log_rebuild
from reconciler.daemon.first_seen import FirstSeen
from reconciler.daemon.known_heads import KnownHeads
from reconciler.daemon.lanes import Flow
from reconciler.daemon.proposals import STATE_NAME, FolderProposals, Proposals, RepositoryProposals
from reconciler.daemon.remotes import Remotes
from reconciler.daemon.request_board import Forges, RequestBoard
from reconciler.daemon.request_round import RequestOptions
from reconciler.daemon.requests import Requests
from reconciler.daemon.settled import InCache
from reconciler.daemon.tools import ConfigSource, Tools
from reconciler.expressions import load_parser
from reconciler.gitio.errors import GitError, RepositoryMissingError
from reconciler.gitio.folder import FolderLimits
from reconciler.gitio.history import MirrorHistory, find_here_or_there, history_around
from reconciler.gitio.mirror import Mirror
from reconciler.gitio.pace import Paces
from reconciler.gitio.packages import UpstreamPackages
from reconciler.gitio.private_folder import prepare_private_folder
from reconciler.gitio.source import FolderSource, RepositorySource, Source, open_source, resolve_repository
from reconciler.gitio.url import parse_url
from reconciler.krm.digest import digest
from reconciler.krm.merge3 import Winner
from reconciler.krm.yaml import YamlFile, parse
from reconciler.packages.update import MergeOptions
from reconciler.planning.destination import Destination
from reconciler.planning.drafts import Words
from reconciler.planning.outcome import Draft, Leaving
from reconciler.planning.shard import read_shard
from reconciler.reporting.changes import compare
from reconciler.reporting.commit_message import draft_message, removal_message
from reconciler.reporting.status_file import status_file
from reconciler.runners.functions import AllFunctions
from reconciler.settings import Settings
from reconciler.snapshot.catalog import PORCH_GROUP, Catalog, ParseMemory, read_catalog
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import CommitId
from reconciler.wiring.forges import KnownForges
from reconciler.wiring.kitchen import build_executor
from reconciler.wiring.options import FIRST_REST_SECONDS, cache_file, conflict_policy, git_options, merging, yaml_limits
from reconciler.wiring.options import functions as functions_of
from reconciler.wiring.rooms import Catalogs

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Parts:
    """What a command drives: where the config is, the remotes, the tools of a pass, folders worth watching.

    `history` opens the config at other commits; it raises GitError for a folder that no repository is around. `names`
    finds commits of remotes by the names that people give them.
    """

    source: ConfigSource
    remotes: Remotes
    backoff: Backoff
    tools: Tools
    folders: tuple[Path, ...]
    history: Callable[[], ConfigHistory]
    names: Callable[[Mirror, str], CommitId]


def build_parts(
    settings: Settings,
    config: str,
    *,
    missing_is_empty: bool = False,
    at: str = "",
    offline: bool = False,
    fetches: bool = True,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.time,
    steady: Callable[[], float] = time.monotonic,
    wake: Callable[[], None] | None = None,
) -> Parts:
    """Build the parts of a pass over `config`. Raises GitError when the config's address cannot be used.

    The cache must belong to this user alone (CacheRefusedError).

    `at` names the commit that the config is read at, "" for as it is now: on disk, or at the head of its branch.

    `clock` gives seconds since 1970, and `steady` seconds of a clock that nobody sets: they decide when something is
    done, never what is written. `offline`: clusters
    without a Repository have a place though no fleet is set, for nothing goes there. `fetches`: False for no remote
    and no forge to be asked for anything: what was fetched before is looked at. `wake` is for who runs one pass after
    the other: a pass does not wait for slow remotes, and this is called when one of them can be taken.
    """
    _allow_many_files()
    prepare_private_folder(Path(settings.cache).expanduser())
    backoff = Backoff(FIRST_REST_SECONDS, settings.max_backoff_seconds, steady)
    functions = functions_of(settings, backoff)
    source = open_source(config, options=git_options(settings))
    flow = _flow(settings, steady, wake)
    paces = Paces(flow.patience_seconds, _pushing(progress) if progress else None, steady)
    builder = _Builder(settings, source, clock, functions, backoff, paces, fetches=fetches)
    prefix = settings.state_ref.partition("{repository}")[0]
    remotes = Remotes(
        builder.open_mirror, prefix, backoff, builder.forges.close, flow,
        keeps_earlier_refs=builder.known_heads.is_empty,
    )  # fmt: skip
    tools = builder.tools(missing_is_empty, offline, progress)
    names = partial(_find_commit, prefix)
    return Parts(builder.config(at), remotes, backoff, tools, builder.folders(), builder.history, names)


def _flow(settings: Settings, steady: Callable[[], float], wake: Callable[[], None] | None) -> Flow:
    flow = Flow(settings.git.max_fetches, settings.git.max_pushes, clock=steady)
    return replace(flow, patience_seconds=settings.git.patience_seconds, wake=wake) if wake else flow


def _pushing(progress: Progress) -> Callable[[str, float], None]:
    return lambda url, seconds: progress(f"waiting to push to {url}", int(not seconds), 1)


def build_memory(settings: Settings, config: str) -> InCache:
    """Build the memory of passes over `config` by these settings, for processes that come one after the other."""
    key = digest([__version__, settings.model_dump(mode="json"), str(Path(config).absolute())])
    return InCache(Path(settings.cache).expanduser() / "settled" / f"{key.removeprefix('sha256:')}.json")


def _allow_many_files() -> None:
    # every remote keeps a reading process during a pass, three descriptors each; many systems start at 1,024
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@dataclass(frozen=True)
class PackageParts:
    """What commands on one package drive: where upstreams come from, how a merge is done, which functions there are."""

    upstreams: UpstreamPackages
    merge: MergeOptions
    functions: AllFunctions


def build_package_parts(
    settings: Settings, folder: Path, root: str, policy: str = "", fetching: Callable[[str], None] = lambda url: None
) -> PackageParts:
    """Build the parts of a command on the package in `folder`, whose own upstream is `root`, "" for none.

    `policy` goes before the setting merge.conflict_policy; `fetching` is told each address. Raises GitError.
    """
    options = git_options(settings)
    # addresses are as in a config: what came over the network must not name repositories of this machine
    source = RepositorySource(parse_url(root or ".", str(folder.absolute())))

    def open_mirror(repo: str) -> Mirror:
        url = resolve_repository(repo, source, options, str(folder.absolute()))
        fetching(url.text)
        return Mirror.open(Path(settings.cache).expanduser(), url, options, on_rebuild=log_rebuild)

    merge = merging(settings)
    winner: Winner = "local" if (policy or conflict_policy(settings)) == "local" else "upstream"
    merge = replace(merge, rules=replace(merge.rules, winner=winner))
    backoff = Backoff(FIRST_REST_SECONDS, settings.max_backoff_seconds, time.monotonic)
    return PackageParts(UpstreamPackages(open_mirror), merge, functions_of(settings, backoff))


class _Builder:
    """Builds the tools of a pass; remembers what stays the same between passes."""

    def __init__(
        self,
        settings: Settings,
        source: Source,
        clock: Callable[[], float],
        functions: AllFunctions,
        backoff: Backoff,
        paces: Paces,
        *,
        fetches: bool,
    ) -> None:
        self._settings = settings
        self._paces = paces
        self._backoff = backoff
        self._source = source
        self._clock = clock
        self._fetches = fetches
        self._options = replace(git_options(settings), offline=not fetches)
        self._cache = Path(settings.cache).expanduser()
        self._memory: ParseMemory = {}
        self._catalog: Catalog | None = None
        self._limits = yaml_limits(settings)
        self._functions = functions

    def config(self, at: str) -> ConfigSource:
        if at:
            history = self.history()
            return history.at(history.find(at))
        directory = self._settings.config.directory
        if isinstance(self._source, FolderSource):
            return FolderConfig(self._source.path, directory, FolderLimits(files=self._settings.limits.folder_files))
        names = (self._settings.config.branch, directory, self._settings.drafts.config_branch, self._state_prefix)
        return RepositoryConfig(self._config_mirror, *names)

    def history(self) -> ConfigHistory:
        """The config at other commits; of a folder, those of the repository around it. Raises GitError."""
        directory = self._settings.config.directory
        if isinstance(self._source, RepositorySource):
            repository = MirrorHistory(self._config_mirror, self._state_prefix)
            return ConfigHistory(repository, directory, f"refs/heads/{self._settings.config.branch}")
        found = history_around(self._source.path / directory, self._options)
        if found is None:
            raise RepositoryMissingError(f"{self._source.path} must be in a work tree of a repository to have commits")
        return ConfigHistory(*found)

    @cached_property
    def _config_mirror(self) -> Mirror:
        return self.open_mirror(self._source.url.connect)

    @property
    def _state_prefix(self) -> str:
        return self._settings.state_ref.partition("{repository}")[0]

    @cached_property
    def known_heads(self) -> KnownHeads:
        """The last known heads of target branches."""
        config = f"{self._source.url.identity} {self._settings.config.directory.strip('/')}".strip()
        return KnownHeads(self._cache / "heads.json", config)

    def _proposals(self) -> Proposals:
        if isinstance(self._source, FolderSource):
            return FolderProposals(self._read_file)
        return RepositoryProposals(
            self._config_mirror, self._source.url.identity, self._settings.config.branch,
            self._settings.drafts.config_branch, self._settings.state_ref.format(repository=STATE_NAME),
            self._settings.config.directory, self._read_file,
        )  # fmt: skip

    @cached_property
    def forges(self) -> KnownForges:
        """The forges of the settings."""
        return KnownForges(self._settings, self._clock)

    def _requests(self) -> Requests:
        one = self._settings.forge
        forges = Forges(self.forges.of if self._fetches else lambda url: None, self.forges.kind)
        options = RequestOptions(one.draft, one.labels, one.max_open, one.check, one.merge or None)
        return Requests(RequestBoard(forges, self._backoff), options, self._backoff, self._page)

    def _page(self, repo: str, commit: str) -> str:
        try:
            url = self._source.url if not repo and isinstance(self._source, RepositorySource) else parse_url(repo)
        except GitError:
            return ""
        return self.forges.page(url, commit)

    def _read_file(self, data: bytes) -> YamlFile:
        return parse(data, self._limits)

    def folders(self) -> tuple[Path, ...]:
        """Folders whose changes are worth a pass: those of a local config."""
        return (Path(self._source.url.text),) if self._source.url.local else ()

    def open_mirror(self, url: str) -> Mirror:
        return Mirror.open(self._cache, url, self._options, self._paces.of, log_rebuild)

    def tools(self, missing_is_empty: bool, offline: bool, progress: Progress | None) -> Tools:
        catalogs = Catalogs(self._settings, self._source, self._functions, offline=offline)
        return Tools(
            read_catalog=partial(self._read_catalog, catalogs.isolated),
            load=_load,
            destinations=catalogs.destinations,
            conflicts=catalogs.conflicts,
            rivals=catalogs.rivals,
            claimed_targets=catalogs.claimed_targets,
            urls=catalogs.urls,
            places=catalogs.places,
            rooms=catalogs.rooms,
            lint=catalogs.lint,
            fleet=catalogs.fleet,
            renderer=catalogs.renderer,
            functions=self._functions,
            lock_tree=catalogs.lock_tree,
            upstreams_at=catalogs.upstreams_at,
            writer=_Writer,
            state_ref=self._settings.state_ref,
            draft_template=self._settings.drafts.branch,
            removal_template=self._settings.drafts.removals_branch,
            tagging=catalogs.tagging,
            made_kinds=catalogs.made_kinds,
            proposals=self._proposals(),
            requests=self._requests(),
            published=FirstSeen(cache_file(self._settings, "published")),
            known_heads=self.known_heads,
            clock=self._clock,
            by_annotation=self._settings.approvals.by_annotation,
            dates_actions=self._settings.review.clock == "real",
            executor=build_executor(self._settings),
            shard=read_shard(self._settings.shard),
            max_pushes=self._settings.git.max_pushes,
            max_delete_percent=self._settings.guards.max_delete_percent,
            missing_is_empty=missing_is_empty,
            progress=progress or (lambda stage, done, total: None),
        )

    def _read_catalog(self, isolated: Callable[[Catalog], Catalog], snapshot: ConfigSnapshot) -> Catalog:
        catalog = read_catalog(snapshot.files, self._memory, self._limits, snapshot.unreadable, self._catalog)
        self._catalog = catalog
        # what the last commit does not have any more need not be remembered
        wanted = {file.id for file in snapshot.files.values()}
        for forgotten in self._memory.keys() - wanted:
            del self._memory[forgotten]
        return isolated(catalog)


def _find_commit(state_prefix: str, mirror: Mirror, name: str) -> CommitId:
    return find_here_or_there(name, mirror, Path.cwd(), state_prefix)


def _load(catalog: Catalog) -> None:
    """Load what only some configs need, and what takes its time."""
    if catalog.of_kind(PORCH_GROUP, "PackageVariantSet"):
        load_parser()


class _Writer:
    """The words of drafts at one config commit."""

    def __init__(self, config: str) -> None:
        self._config = config

    def words(self, draft: Draft, destination: Destination) -> Words:
        changes = compare(draft.before, draft.rendered.files)
        message = draft_message(draft, destination, self._config, changes)
        return Words(status_file(draft, destination, self._config), message)

    def removal(self, leaving: Leaving, destination: Destination, before: FileTree | None) -> str:
        changes = compare(before, FileTree()) if before is not None else None
        return removal_message(leaving, destination, self._config, changes)
