"""Wiring: the only place that builds real parts; everything else is handed values and ports."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler import __version__
from reconciler.daemon.approvals import Approvals
from reconciler.daemon.backoff import Backoff
from reconciler.daemon.codes import NO_DESTINATION, URL_REFUSED
from reconciler.daemon.config import ConfigSnapshot, FolderConfig, RepositoryConfig
from reconciler.daemon.first_seen import FirstSeen
from reconciler.daemon.placed import Placed
from reconciler.daemon.proposals import STATE_NAME, FolderProposals, Proposals, RepositoryProposals
from reconciler.daemon.publish import Announce
from reconciler.daemon.publishers import Folder, Keep, Push
from reconciler.daemon.remotes import Remotes
from reconciler.daemon.request_board import Forges, RequestBoard
from reconciler.daemon.request_round import RequestOptions
from reconciler.daemon.requests import Requests
from reconciler.daemon.settled import InCache
from reconciler.daemon.tags import Tags
from reconciler.daemon.tools import ConfigSource, Tools
from reconciler.daemon.upstreams import RemoteUpstreams
from reconciler.expressions import Limits, load_parser
from reconciler.forge.port import Forge
from reconciler.forge.push_options import gitlab_options
from reconciler.forge.request import NewRequest
from reconciler.gitio.errors import GitError
from reconciler.gitio.mirror import Mirror
from reconciler.gitio.options import GitOptions
from reconciler.gitio.packages import UpstreamPackages
from reconciler.gitio.source import FolderSource, RepositorySource, Source, open_source, resolve_repository
from reconciler.gitio.url import GitUrl, check_allowed, parse_url, place_of
from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding, Where
from reconciler.krm.identity import ObjectKey
from reconciler.krm.merge3 import Winner
from reconciler.krm.schema import read_key_table
from reconciler.krm.yaml import YamlFile, YamlLimits, parse
from reconciler.packages.functions.registry import BUILTIN
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.packages.update import MergeOptions
from reconciler.packages.update.deviations import options_of
from reconciler.planning.destination import Destination, conflicts
from reconciler.planning.drafts import Words
from reconciler.planning.fleet import DestinationPlan, FleetPlan
from reconciler.planning.last_mile import LastMile
from reconciler.planning.outcome import Draft, Leaving
from reconciler.planning.plan import grows
from reconciler.planning.render import Engine, Renderer
from reconciler.planning.state import DestinationState, PackageRecord
from reconciler.planning.tags import Tagging
from reconciler.reporting.changes import compare
from reconciler.reporting.commit_message import draft_message, removal_message, status_commit_message
from reconciler.reporting.objects import status_files
from reconciler.reporting.pull_request import announcement
from reconciler.reporting.status_file import status_file
from reconciler.rules.clusters.inventory import Inventory, read_inventory
from reconciler.rules.overrides.apply import Options
from reconciler.rules.overrides.clusters import inventory_findings
from reconciler.rules.overrides.pod_spec import read_pod_spec_paths
from reconciler.rules.overrides.read_policy import read_policies
from reconciler.rules.placement.room import Surroundings as Around
from reconciler.rules.placement.room import placements_of
from reconciler.rules.repository import Repositories, Repository, read_repositories
from reconciler.rules.variant import Place, RoomResult, joined
from reconciler.rules.variants.naming import TargetKey
from reconciler.rules.variants.room import Surroundings, kptfile_url, variants_of
from reconciler.runners.commands import Commands
from reconciler.runners.containers import Containers
from reconciler.runners.engine import Engine as ContainerEngine
from reconciler.runners.engine import EngineOptions
from reconciler.runners.functions import AllFunctions
from reconciler.runners.process import Bounds
from reconciler.runners.spoiled import SpoiledCalls
from reconciler.settings import ForgeSettings, Settings, SettingsError
from reconciler.snapshot.catalog import PORCH_GROUP, Catalog, ConfigObject, ParseMemory, read_catalog
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import CommitId, TreeId
from reconciler.web.address import ListenError

if TYPE_CHECKING:
    from reconciler.forge.hosts import Hosts

    # a server is loaded by who serves
    from reconciler.web.webhooks import Webhooks

Progress = Callable[[str, int, int], None]
_FIRST_REST_SECONDS = 5.0
_NO_FLEET = "no-fleet.git"
_REPOSITORY = (PORCH_GROUP, "Repository")


@dataclass(frozen=True)
class _Layout:
    """Where what one config commit speaks of lies: the Repositories with an address, the clusters, the destinations.

    `urls` are by (namespace, name) of a Repository; `homeless` are clusters without a Repository while there is no
    fleet.
    """

    urls: Mapping[tuple[str, str], str]
    repositories: Repositories
    inventory: Inventory
    destinations: Sequence[Destination]
    homeless: Sequence[str]
    findings: Sequence[Finding]


class NoStatusPlaceError(Exception):
    """`sync` and `run` need a place to write status to, and the settings name none (design 10.31)."""


@dataclass(frozen=True)
class Parts:
    """What a command drives: where the config is, the remotes, the tools of a pass, folders worth watching."""

    source: ConfigSource
    remotes: Remotes
    backoff: Backoff
    tools: Tools
    folders: tuple[Path, ...]


def build_parts(
    settings: Settings,
    config: str,
    *,
    missing_is_empty: bool = False,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.time,
) -> Parts:
    """Build the parts of a pass over `config`. Raises GitError when the config's address cannot be used.

    `clock` gives seconds since 1970; it decides when something is done, never what is written.
    """
    _allow_many_files()
    backoff = Backoff(_FIRST_REST_SECONDS, settings.max_backoff_seconds, time.monotonic)
    functions = _functions(settings, backoff)
    builder = _Builder(settings, open_source(config, options=git_options(settings)), clock, functions, backoff)
    prefix = settings.state_ref.partition("{repository}")[0]
    remotes = Remotes(builder.open_mirror, prefix, backoff, builder.forges.close)
    return Parts(builder.config(), remotes, backoff, builder.tools(missing_is_empty, progress), builder.folders())


def build_memory(settings: Settings, config: str) -> InCache:
    """Build the memory of passes over `config` by these settings, for processes that come one after the other."""
    key = digest([__version__, settings.model_dump(mode="json"), str(Path(config).absolute())])
    return InCache(Path(settings.cache).expanduser() / "settled" / f"{key.removeprefix('sha256:')}.json")


def _allow_many_files() -> None:
    # every remote keeps a reading process during a pass, three descriptors each; many systems start at 1,024
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def build_push(settings: Settings) -> Push:
    """Build the publisher that pushes. Raises NoStatusPlaceError, GitError."""
    options = git_options(settings)
    url = parse_url(_status_place(settings))
    check_allowed(url, options.allowed_urls)
    tags = Tags(settings.state_ref, Backoff(_FIRST_REST_SECONDS, settings.max_backoff_seconds, time.monotonic))
    seen = FirstSeen(Path(settings.cache).expanduser() / "first_seen.json")
    approvals = Approvals(settings.state_ref, settings.drafts.branch, seen)
    return Push(
        settings.state_ref, url.connect, settings.status.branch, _status_files(settings), status_commit_message, tags,
        approvals, _announce(settings),
    )  # fmt: skip


def read_status(settings: Settings) -> dict[str, bytes]:
    """Return the files of the status branch, fetched now; {} before the first pass. Raises GitError."""
    place = _status_place(settings)
    mirror = Mirror.open(Path(settings.cache).expanduser(), parse_url(place), git_options(settings))
    mirror.fetch("config", branches=(settings.status.branch,))
    head = mirror.refs().get(f"refs/heads/{settings.status.branch}")
    if head is None:
        return {}
    with mirror.read() as reader:
        found = [(path, blob) for path, _, blob in reader.walk(reader.commit(head).tree)]
        contents = reader.blobs(blob for _, blob in found)
    return {path: contents[blob] for path, blob in found}


def _status_place(settings: Settings) -> str:
    place = settings.status.url or settings.fleet.url
    if not place:
        raise NoStatusPlaceError(
            "a place for status is missing: set status.url or fleet.url, or give --fleet; it must be a Git repository"
        )
    return place


def build_keep() -> Keep:
    """Build the publisher that only keeps what would be pushed."""
    return Keep()


def build_folder(settings: Settings, out: Path) -> Folder:
    """Build the publisher that writes to a folder."""
    return Folder(out, _status_files(settings))


def _status_files(settings: Settings) -> Callable[[FleetPlan, Mapping[str, bytes]], Mapping[str, bytes]]:
    return lambda plan, previous: status_files(plan, previous, settings.status.max_children)


def listen(webhooks: Webhooks, settings: Settings) -> None:
    """Have the webhooks listen where the settings say. Raises SettingsError."""
    one = settings.webhooks
    try:
        webhooks.listen(one.listen, Path(one.secret_file).expanduser())
    except ListenError as error:
        raise SettingsError(str(error)) from error


def git_options(settings: Settings) -> GitOptions:
    """Return the settings group `git` as the Git floor reads it."""
    git = settings.git
    name, _, mail = git.author.removesuffix(">").rpartition(" <")
    return GitOptions(
        timeout_seconds=git.timeout_seconds,
        author=(name, mail),
        allowed_urls=git.allowed_urls,
        credentials_file=git.credentials_file or None,
        ssh_key_file=git.ssh_key_file or None,
        known_hosts_file=git.known_hosts_file or None,
        max_refs_per_push=git.max_refs_per_push,
        max_pushes_per_minute=git.max_pushes_per_minute,
    )


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
        return Mirror.open(Path(settings.cache).expanduser(), url, options)

    merge = _merging(settings)
    winner: Winner = "local" if (policy or settings.merge.conflict_policy) == "local" else "upstream"
    merge = replace(merge, rules=replace(merge.rules, winner=winner))
    backoff = Backoff(_FIRST_REST_SECONDS, settings.max_backoff_seconds, time.monotonic)
    return PackageParts(UpstreamPackages(open_mirror), merge, _functions(settings, backoff))


def _functions(settings: Settings, backoff: Backoff) -> AllFunctions:
    one = settings.functions
    bounds = Bounds(one.timeout_seconds, one.memory_bytes, one.output_bytes)
    spoiled = SpoiledCalls(backoff)
    engine = ContainerEngine(EngineOptions(one.engine, one.pull), bounds)
    containers = Containers(one.containers, one.image_prefix, engine, bounds, spoiled)
    return AllFunctions(BUILTIN, Commands(one.exec, bounds, spoiled), containers, one.image_prefix)


def _engine_fact(settings: Settings) -> str:
    """Return what changes when rendering may: our version, how packages are merged, and which functions are let run."""
    listed = [*settings.functions.exec, *settings.functions.containers]
    lets_run = f" functions {digest([listed, settings.functions.image_prefix])}" if listed else ""
    merging = settings.merge.model_dump(exclude_defaults=True, exclude={"profile"})
    merges = f" merge {digest(merging)}" if merging else ""
    rules = settings.rules.model_dump(exclude_defaults=True)
    ruled = f" rules {digest(rules)}" if rules else ""
    return f"{__version__} {settings.merge.profile}{merges}{ruled}{lets_run}"


def _merging(settings: Settings) -> MergeOptions:
    options = options_of(settings.merge.profile, settings.merge.deviations)
    table, _ = read_key_table(settings.merge.list_keys)
    return replace(options, shapes=options.shapes.with_table(table)) if table else options


def _announce(settings: Settings) -> Announce:
    """Return what gives the push options by which GitLab opens merge requests, where the settings say so."""
    forges, one = _Forges(settings, time.time), settings.forge

    def announce(plan: DestinationPlan) -> tuple[str, ...]:
        if forges.kind(plan.destination.url) != "gitlab-push-options":
            return ()
        (first, *_) = grows(plan)
        title, body = announcement(plan)
        return gitlab_options(NewRequest(first.branch, plan.destination.branch, title, body, one.draft, one.labels))

    return announce


class _Forges:
    """The forges of the settings by the URL of a repository; without any, nothing of them is loaded."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._hosts = _hosts(settings.forge, clock) if settings.forge.hosts else None

    def of(self, url: str) -> Forge | None:
        return self._hosts.forge(*place_of(parse_url(url))) if self._hosts else None

    def kind(self, url: str) -> str | None:
        return self._hosts.kind(*place_of(parse_url(url))) if self._hosts else None

    def page(self, url: GitUrl, commit: str) -> str:
        return self._hosts.page(*place_of(url), commit) if self._hosts else ""

    def close(self) -> None:
        if self._hosts:
            self._hosts.close()


def _hosts(settings: ForgeSettings, clock: Callable[[], float]) -> Hosts:
    from reconciler.forge.hosts import Host, Hosts

    hosts = [
        Host(one.kind, *place_of(parse_url(one.url)), one.api, one.token_file, one.app_id, one.app_key_file,
             one.app_installation)
        for one in settings.hosts
    ]  # fmt: skip
    return Hosts(hosts, settings.writes_per_minute, settings.new_per_hour, clock)


class _Builder:
    """Builds the tools of a pass; remembers what stays the same between passes."""

    def __init__(
        self,
        settings: Settings,
        source: Source,
        clock: Callable[[], float],
        functions: AllFunctions,
        backoff: Backoff,
    ) -> None:
        self._settings = settings
        self._backoff = backoff
        self._source = source
        self._clock = clock
        self._options = git_options(settings)
        self._cache = Path(settings.cache).expanduser()
        self._memory: ParseMemory = {}
        self._last: tuple[Catalog, _Layout] | None = None
        self._missing_is_empty = False
        self._limits = YamlLimits(
            file_bytes=settings.limits.file_bytes,
            depth=settings.limits.yaml_depth,
            aliases=settings.limits.yaml_aliases,
            documents=settings.limits.yaml_documents,
        )
        self._functions = functions
        self._engine = Engine(
            settings.merge.profile,
            settings.merge.conflict_policy,
            self._functions,
            _merging(settings),
            settings.rules.secrets == "block",
        )

    def config(self) -> ConfigSource:
        directory = self._settings.config.directory
        if isinstance(self._source, FolderSource):
            return FolderConfig(self._source.path, directory)
        names = (self._settings.config.branch, directory, self._settings.drafts.config_branch, self._state_prefix)
        return RepositoryConfig(self._config_mirror, *names)

    @cached_property
    def _config_mirror(self) -> Mirror:
        return self.open_mirror(self._source.url.connect)

    @property
    def _state_prefix(self) -> str:
        return self._settings.state_ref.partition("{repository}")[0]

    def _proposals(self) -> Proposals:
        if isinstance(self._source, FolderSource):
            return FolderProposals(self._read_file)
        return RepositoryProposals(
            self._config_mirror, self._source.url.connect, self._settings.config.branch,
            self._settings.drafts.config_branch, self._settings.state_ref.format(repository=STATE_NAME),
            self._settings.config.directory, self._read_file,
        )  # fmt: skip

    @cached_property
    def forges(self) -> _Forges:
        """The forges of the settings."""
        return _Forges(self._settings, self._clock)

    def _requests(self) -> Requests:
        one, forges = self._settings.forge, Forges(self.forges.of, self.forges.kind)
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
        return Mirror.open(self._cache, url, self._options)

    def tools(self, missing_is_empty: bool, progress: Progress | None) -> Tools:
        self._missing_is_empty = missing_is_empty
        return Tools(
            read_catalog=self._read_catalog,
            load=_load,
            destinations=lambda catalog: self._layout(catalog).destinations,
            conflicts=self._conflicts,
            urls=self._urls,
            rooms=self._rooms,
            renderer=self._renderer,
            functions=self._functions,
            lock_tree=self._lock_tree,
            writer=_Writer,
            state_ref=self._settings.state_ref,
            draft_template=self._settings.drafts.branch,
            removal_template=self._settings.drafts.removals_branch,
            tagging=self._tagging,
            proposals=self._proposals(),
            requests=self._requests(),
            clock=self._clock,
            by_annotation=self._settings.approvals.by_annotation,
            missing_is_empty=missing_is_empty,
            progress=progress or (lambda stage, done, total: None),
        )

    def _read_catalog(self, snapshot: ConfigSnapshot) -> Catalog:
        catalog = read_catalog(snapshot.files, self._memory, self._limits, snapshot.unreadable)
        # what the last commit does not have any more need not be remembered
        wanted = {file.id for file in snapshot.files.values()}
        for forgotten in self._memory.keys() - wanted:
            del self._memory[forgotten]
        return catalog

    def _resolve(self, text: str) -> str:
        return resolve_repository(text, self._source, self._options).connect

    def _layout(self, catalog: Catalog) -> _Layout:
        # the same for all questions of a pass; a catalog never changes
        if self._last is None or self._last[0] is not catalog:
            self._last = (catalog, self._find_layout(catalog))
        return self._last[1]

    def _find_layout(self, catalog: Catalog) -> _Layout:
        repositories, findings = read_repositories(catalog)
        # a fleet of a thousand Repositories may spell the same few addresses
        resolve = lru_cache(None)(self._resolve)
        urls: dict[tuple[str, str], str] = {}
        refused = []
        for name, one in repositories.items():
            try:
                urls[name] = resolve(one.url)
            except GitError as error:
                refused.append(URL_REFUSED.finding(f"Repository {one.key.name}: {error.message}", one.where))
        usable = {name: one for name, one in repositories.items() if name in urls}
        inventory = read_inventory(catalog, usable)
        alone = [name for name, home in inventory.homes.items() if (home.group, home.kind) != _REPOSITORY]
        fleet = self._fleet_url() if alone else ""
        destinations = [_destination(one, urls[name]) for name, one in sorted(usable.items())]
        destinations += [_of_fleet(catalog.objects[inventory.homes[name]], fleet) for name in alone if fleet]
        found = (*findings, *refused, *inventory.findings)
        return _Layout(urls, usable, inventory, destinations, () if fleet else alone, found)

    def _fleet_url(self) -> str:
        """Return where clusters without a Repository live; "" for nowhere. Offline, that need not be anywhere."""
        if self._settings.fleet.url:
            return parse_url(self._settings.fleet.url).connect
        return str(self._cache.absolute() / _NO_FLEET) if self._missing_is_empty else ""

    def _conflicts(self, catalog: Catalog) -> Mapping[ObjectKey, Finding]:
        layout = self._layout(catalog)
        told = layout.inventory.conflicts
        twice = {one.key: told[one.name] for one in layout.destinations if one.deployment and one.name in told}
        return {**twice, **conflicts(layout.destinations)}

    def _urls(self, catalog: Catalog) -> tuple[Sequence[str], Sequence[str]]:
        layout = self._layout(catalog)
        named = {(place.namespace, place.repository) for place in _named_upstreams(catalog)}
        repositories = layout.repositories.items()
        upstreams = {layout.urls[name] for name, one in repositories if not one.deployment or name in named}
        return sorted(upstreams), sorted({one.url for one in layout.destinations})

    def _rooms(
        self, catalog: Catalog, remotes: Remotes, states: Mapping[Destination, DestinationState], now: int
    ) -> RoomResult:
        layout = self._layout(catalog)
        percent, engine = self._settings.guards.max_delete_percent, _engine_fact(self._settings)
        around = Surroundings(
            layout.repositories, RemoteUpstreams(remotes, self._resolve), _children(states), percent, engine,
            Limits(**self._settings.limits.cel.model_dump()), now, _held(states),
        )  # fmt: skip
        before = Placed(states, remotes)
        placed = placements_of(catalog, layout.inventory, Around(before, percent, engine, before.held()))
        told = RoomResult(findings=(*layout.findings, *self._policy_findings(catalog)))
        return _housed(joined([variants_of(catalog, around), placed, told]), layout)

    def _policy_findings(self, catalog: Catalog) -> tuple[Finding, ...]:
        mile = self._renderer(catalog).last_mile
        return (*mile.policies.findings, *inventory_findings(mile.policies.sound.values(), mile.clusters.values()))

    def _renderer(self, catalog: Catalog) -> Renderer:
        rules = self._settings.rules
        options = Options(rules.on_missing_policy, read_pod_spec_paths(rules.pod_spec_paths))
        clusters = self._layout(catalog).inventory.clusters
        last_mile = LastMile(read_policies(catalog), clusters, options, strict=frozenset(rules.strict))
        return Renderer(catalog, last_mile, self._engine)

    def _tagging(self, catalog: Catalog) -> Tagging:
        return Tagging(self._settings.git.revision_tags, frozenset(_named_upstreams(catalog)))

    def _lock_tree(self, files: FileTree, catalog: Catalog, remotes: Remotes) -> TreeId | None:
        kptfile = read_kptfile(files[KPTFILE].data) if KPTFILE in files else ()
        lock = kptfile.upstream_lock.git if isinstance(kptfile, Kptfile) and kptfile.upstream_lock else None
        if lock is None:
            return None
        layout = self._layout(catalog)
        for name, one in layout.repositories.items():
            remote = remotes.get(layout.urls[name]) if kptfile_url(one.url) == kptfile_url(lock.repo) else None
            if remote is not None:
                return remote.tree_if_known(CommitId(lock.commit), lock.directory.strip("/"))
        return None


def _load(catalog: Catalog) -> None:
    """Load what only some configs need, and what takes its time."""
    if catalog.of_kind(PORCH_GROUP, "PackageVariantSet"):
        load_parser()


def _named_upstreams(catalog: Catalog) -> Iterator[Place]:
    """Yield the place of each package that somebody's upstream may be: its tags are wanted, too."""
    for kind in ("PackageVariant", "PackageVariantSet", "PackageRevisionSet"):
        for one in (*catalog.of_kind(PORCH_GROUP, kind), *catalog.of_kind("reconciler.dev", kind)):
            spec = one.data.get("spec")
            listed = [spec.get("upstream"), *_list(spec.get("upstreams"))] if isinstance(spec, dict) else []
            named = (up for up in listed if isinstance(up, dict))
            yield from (Place(one.key.namespace, str(up.get("repo")), str(up.get("package"))) for up in named)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _destination(one: Repository, url: str) -> Destination:
    return Destination(
        one.key, url, kptfile_url(one.url), one.branch, one.directory, one.deployment, one.where, one.tag_prefix
    )


def _housed(result: RoomResult, layout: _Layout) -> RoomResult:
    """Return the result without packages for clusters that have no place: no Repository, and no fleet (design 10.3)."""
    lost = sorted({one.place.repository for one in result.variants} & set(layout.homeless))
    findings = (_no_destination(layout.inventory.homes[name], name) for name in lost)
    variants = tuple(one for one in result.variants if one.place.repository not in layout.homeless)
    return replace(result, variants=variants, findings=(*result.findings, *findings))


def _no_destination(home: ObjectKey, name: str) -> Finding:
    message = f"cluster {name} has no Repository, and without fleet.url there is nowhere else for what goes to it"
    return NO_DESTINATION.finding(message, Where(object=str(home)))


def _of_fleet(one: ConfigObject, url: str) -> Destination:
    """Return the destination of a cluster that has no Repository: a branch of the fleet's (design 3)."""
    name = one.key.name
    return Destination(
        one.key, url, kptfile_url(url), f"clusters/{name}", "", True, one.where, f"{name}/", one.api_version
    )


def _children(states: Mapping[Destination, DestinationState]) -> dict[ObjectKey, list[TargetKey]]:
    children: dict[ObjectKey, list[TargetKey]] = {}
    for maker, key, _ in _made_by_sets(states):
        children.setdefault(maker, []).append(key)
    return children


def _held(states: Mapping[Destination, DestinationState]) -> dict[ObjectKey, dict[TargetKey, int]]:
    held: dict[ObjectKey, dict[TargetKey, int]] = {}
    for maker, key, record in _made_by_sets(states):
        if count := record.outcome.get("existing"):
            held.setdefault(maker, {})[key] = count
    return held


def _made_by_sets(
    states: Mapping[Destination, DestinationState],
) -> Iterator[tuple[ObjectKey, TargetKey, PackageRecord]]:
    for destination, state in states.items():
        for package, record in state.packages.items():
            # what is on its way out was let go before, and must not be counted again
            if record.owned and record.owner.set and record.removal is None:
                yield record.owner.set, TargetKey(destination.name, package), record


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
