"""Rooms: what one config commit comes to with the rooms of rules, and where on the fleet that lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Generic, TypeVar

from reconciler import __version__
from reconciler.daemon.codes import URL_REFUSED
from reconciler.daemon.owned import Owned
from reconciler.daemon.placed import Placed
from reconciler.daemon.plugins import Plugins, Published
from reconciler.daemon.publish import HEADS
from reconciler.daemon.remotes import Remotes
from reconciler.daemon.upstreams import RemoteUpstreams
from reconciler.expressions import Limits
from reconciler.gitio.errors import GitError
from reconciler.gitio.source import Source, resolve_repository
from reconciler.gitio.url import check_allowed, parse_url
from reconciler.krm.codes import internal_error
from reconciler.krm.conditions import Condition
from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.krm.isolation import ScopeFailedError
from reconciler.krm.repository_url import repository_id
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.planning.destination import Destination, clashes
from reconciler.planning.destination import conflicts as destination_conflicts
from reconciler.planning.last_mile import LastMile
from reconciler.planning.lint import lint_functions, lint_generated, lint_places, lint_repositories
from reconciler.planning.render import Renderer
from reconciler.planning.reserved import ReservedBranches
from reconciler.planning.state import DestinationState
from reconciler.planning.tags import Tagging
from reconciler.planning.templates import Templating
from reconciler.rules.clusters.inventory import CLUSTER_KINDS, Inventory, read_inventory
from reconciler.rules.clusters.versions import KnownClusters, read_known_clusters
from reconciler.rules.codes import NAME_NOT_USABLE, NO_DESTINATION
from reconciler.rules.composition.kinds import MadeKind, made_kinds
from reconciler.rules.composition.lint import lint_components
from reconciler.rules.composition.model import BINDING
from reconciler.rules.composition.model import GROUP as COMPONENTS
from reconciler.rules.composition.room import Memory as ComponentMemory
from reconciler.rules.composition.room import Surroundings as ComponentSurroundings
from reconciler.rules.composition.room import components_of
from reconciler.rules.overrides.apply import Options
from reconciler.rules.overrides.clusters import inventory_findings
from reconciler.rules.overrides.lint import lint_policies
from reconciler.rules.overrides.model import CLUSTER_KIND, NAMESPACED_KIND
from reconciler.rules.overrides.model import GROUP as OVERRIDES
from reconciler.rules.overrides.pod_spec import read_pod_spec_paths
from reconciler.rules.overrides.read_policy import Policies, read_policies
from reconciler.rules.placement.room import Surroundings as Around
from reconciler.rules.placement.room import placements_of
from reconciler.rules.presets.lint import lint_presets
from reconciler.rules.presets.room import Memory as PresetMemory
from reconciler.rules.presets.room import Surroundings as PresetSurroundings
from reconciler.rules.presets.room import presets_of
from reconciler.rules.remembered import Remembered, Unmoved, same_objects
from reconciler.rules.repository import Repositories, Repository, read_repositories, read_repository
from reconciler.rules.rivals import find_rivals
from reconciler.rules.templates.model import GROUP as TEMPLATE_RULES
from reconciler.rules.templates.model import KIND as TEMPLATE_RULE
from reconciler.rules.templates.model import Options as TemplateOptions
from reconciler.rules.templates.pairs import Pairs
from reconciler.rules.templates.read_rule import MergeRules, read_merge_rules
from reconciler.rules.unused_objects import unused_findings
from reconciler.rules.variant import ConfigSources, ConfigStatus, Place, RoomResult, joined, sources_of
from reconciler.rules.variants.lint import lint_variants
from reconciler.rules.variants.naming import TargetKey
from reconciler.rules.variants.room import Memory as SetMemory
from reconciler.rules.variants.room import Surroundings, kptfile_url, variants_of
from reconciler.runners.functions import AllFunctions
from reconciler.settings import Settings
from reconciler.snapshot.catalog import PORCH_GROUP, Catalog, ConfigObject
from reconciler.snapshot.claims import Conflict, find_duplicates, git_place
from reconciler.snapshot.faulty_objects import FaultyObjectSearch
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import CommitId, TreeId
from reconciler.wiring.options import engine, git_options

_NO_FLEET = "no-fleet.git"
_REPOSITORY = (PORCH_GROUP, "Repository")
_LAID_OUT = (
    *CLUSTER_KINDS, (OVERRIDES, CLUSTER_KIND), (OVERRIDES, NAMESPACED_KIND), (TEMPLATE_RULES, TEMPLATE_RULE),
)  # fmt: skip
# no component type may make a kind that rooms read, of whatever group (design 10.22)
_READ_KINDS = frozenset({
    "Build", "Cluster", "ClusterOverridePolicy", "ClusterPluginDefinition", "ClusterPropagationPolicy", "Environment",
    "FederatedCluster", "Kafka", "KafkaNodePool", "Kptfile", "Organization", "OverridePolicy", "PackageRevisionSet",
    "PackageStatus", "PackageVariant", "PackageVariantSet", "Placement", "Plugin", "PluginDefinition", "PluginOverride",
    "PluginPreset", "PropagationPolicy", "Repository", "Team", "TemplateMergeRule",
})  # fmt: skip


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
    policies: Policies
    merge_rules: MergeRules
    findings: Sequence[Finding]


_Memory = TypeVar("_Memory")


class _Controller(Generic[_Memory]):
    """One controller with the results that it may reuse, isolated from the others and from the objects it fails for."""

    def __init__(self, scope: str, make_memory: Callable[[], _Memory]) -> None:
        self._scope = scope
        self._make_memory = make_memory
        self._memory = make_memory()
        self._search: FaultyObjectSearch[RoomResult] = FaultyObjectSearch(scope)

    def result_of(
        self,
        catalog: Catalog,
        control: Callable[[Catalog, _Memory], RoomResult],
        states: Mapping[Destination, DestinationState],
    ) -> RoomResult:
        """Return the result for a catalog; where the controller fails altogether, every recorded owner is kept."""

        def again(part: Catalog) -> RoomResult:
            self._memory = self._make_memory()
            return control(part, self._memory)

        try:
            found = self._search.run(catalog, lambda whole: control(whole, self._memory), again)
        except ScopeFailedError as error:
            recorded = (record.owner for state in states.values() for record in state.packages.values())
            kept = frozenset(key for owner in recorded for key in (owner.key, owner.set) if key)
            return RoomResult(findings=(internal_error(error.failure),), kept=kept)
        kept = found.result.kept.union(one.key for one in found.excluded)
        statuses = map(_internal_status, found.excluded, found.findings)
        return replace(
            found.result,
            kept=kept,
            findings=(*found.result.findings, *found.findings),
            statuses=(*found.result.statuses, *statuses),
        )


def _internal_status(one: ConfigObject, finding: Finding) -> ConfigStatus:
    return ConfigStatus(one.key, one.api_version, (Condition("Ready", "False", finding.code, finding.message),))


@dataclass(frozen=True)
class _Controllers:
    """The controllers of one process."""

    variants: _Controller[SetMemory] = field(
        default_factory=lambda: _Controller("PackageVariants and PackageVariantSets", SetMemory)
    )
    placed: _Controller[None] = field(default_factory=lambda: _Controller("placed resources", lambda: None))
    plugins: _Controller[PresetMemory] = field(
        default_factory=lambda: _Controller("PluginPresets and Plugins", PresetMemory)
    )
    components: _Controller[ComponentMemory] = field(
        default_factory=lambda: _Controller("Components and EnvBindings", ComponentMemory)
    )


class Catalogs:
    """What planning asks of a catalog besides its objects; two layouts are remembered, and what rooms made of one."""

    def __init__(self, settings: Settings, source: Source, functions: AllFunctions, *, offline: bool = False) -> None:
        self._settings = settings
        self._source = source
        self._options = git_options(settings)
        self._limits = Limits(**settings.limits.cel.model_dump())
        self._offline = offline
        self._functions = functions
        self._layouts: list[tuple[Catalog, _Layout]] = []
        self._controllers = _Controllers()
        self._layout_search: FaultyObjectSearch[_Layout] = FaultyObjectSearch("Repositories, clusters and policies")
        self._children = _Children()
        self._published: Remembered[Published] = Remembered()
        self._pairs: Remembered[Pairs] = Remembered()
        self._templates_in: Remembered[bool] = Remembered()
        self._engine = engine(settings, functions)

    def isolated(self, catalog: Catalog) -> Catalog:
        """Return the catalog without the Repositories, clusters and policies that no layout can be made of."""
        found = self._layout_search.run(catalog, self._layout, self._find_layout)
        if not found.excluded:
            return catalog
        return replace(found.catalog, findings=(*catalog.findings, *found.findings))

    def destinations(self, catalog: Catalog) -> Sequence[Destination]:
        """Return the Repositories and clusters that can receive packages."""
        return self._layout(catalog).destinations

    def conflicts(self, catalog: Catalog) -> Mapping[ObjectKey, Finding]:
        """Return a finding for each destination that must not be written to."""
        layout = self._layout(catalog)
        told = layout.inventory.conflicts
        twice = {one.key: told[one.name] for one in layout.destinations if one.deployment and one.name in told}
        drafts = self._settings.drafts
        clashes = destination_conflicts(layout.destinations, (drafts.branch, drafts.removals_branch))
        return {**twice, **clashes, **layout.inventory.unusable, **self._reserved(layout, catalog)}

    def rivals(self, catalog: Catalog) -> Sequence[Conflict]:
        """Return the objects of different identities that claim one cluster, name or place."""
        drafts = self._settings.drafts
        destinations = self._layout(catalog).destinations
        return [
            *find_rivals(catalog),
            *(
                Conflict((catalog.objects[one.key], catalog.objects[other.key]), why, place_of=git_place)
                for one, other, why in clashes(destinations, (drafts.branch, drafts.removals_branch))
            ),
        ]

    def claimed_targets(self, catalog: Catalog, conflicts: Sequence[Conflict]) -> Mapping[ConfigObject, Destination]:
        """Return the targets that the objects of conflicts define, as far as they define one."""
        if not conflicts:
            return {}
        targets = {one.key: one for one in self._layout(catalog).destinations}
        claims = (one for conflict in conflicts for one in conflict.claims)
        found = ((one, targets.get(one.key) or self._target_of(one)) for one in claims)
        return {one: target for one, target in found if target}

    def _target_of(self, one: ConfigObject) -> Destination | None:
        if (one.key.group, one.key.kind) in CLUSTER_KINDS and (one.key.group, one.key.kind) != _REPOSITORY:
            fleet = self._fleet_url()
            return _of_fleet(one, fleet, _identity(fleet)) if fleet else None
        repository = read_repository(one) if (one.key.group, one.key.kind) == _REPOSITORY else None
        if not isinstance(repository, Repository):
            return None
        try:
            url = self._resolve(repository.url)
        except GitError:
            # the finding of the conflict reports the object
            return None
        return _destination(repository, url, _identity(url))

    def _reserved(self, layout: _Layout, catalog: Catalog) -> Mapping[ObjectKey, Finding]:
        """Return an error for each destination whose branch is one that the reconciler writes itself."""
        settings = self._settings
        names = {"status.branch": settings.status.branch, "drafts.config_branch": settings.drafts.config_branch}
        templates = {"drafts.branch": settings.drafts.branch, "drafts.removals_branch": settings.drafts.removals_branch}
        if settings.state_ref.startswith(HEADS):
            templates["state_ref"] = settings.state_ref.removeprefix(HEADS)
        uses = ReservedBranches(templates, names).uses(layout.destinations)
        branches = {one.key: one.branch for one in layout.destinations}
        return {key: _reserved_branch(catalog.objects[key], branches[key], use) for key, use in uses.items()}

    def urls(self, catalog: Catalog) -> tuple[Sequence[str], Sequence[str]]:
        """Return the addresses of upstreams, and of destinations."""
        layout = self._layout(catalog)
        named = {(place.namespace, place.repository) for place in _named_upstreams(catalog)}
        repositories = layout.repositories.items()
        # the copy that counts is known after the fetch, and an upstream needs its tags by then
        copies = self.claimed_targets(catalog, find_duplicates(catalog)).values()
        upstreams = {layout.urls[name] for name, one in repositories if not one.deployment or name in named}
        upstreams |= {
            one.url for one in copies if not one.deployment or (one.key.namespace, one.key.name) in named
        }  # fmt: skip
        return sorted(upstreams), sorted({one.url for one in (*layout.destinations, *copies)})

    def places(self) -> Mapping[str, str | GitError]:
        """Return the addresses of the repositories that settings name, by setting, or why one cannot be used."""
        written = {"fleet.url": self._settings.fleet.url, "status.url": self._settings.status.url}
        return {setting: self._address(url) for setting, url in written.items() if url}

    def _address(self, url: str) -> str | GitError:
        try:
            found = parse_url(url)
            check_allowed(found, self._options.allowed_urls)
        except GitError as error:
            return error
        return found.connect

    def rooms(
        self, catalog: Catalog, remotes: Remotes, states: Mapping[Destination, DestinationState], now: int
    ) -> RoomResult:
        """Return what the rooms make of a catalog."""
        layout = self._layout(catalog)
        percent, engine = self._settings.guards.max_delete_percent, _engine_fact(self._settings)
        inventory = layout.inventory

        def variants(part: Catalog, memory: SetMemory) -> RoomResult:
            return variants_of(part, self._variants(layout, remotes, states, now), memory)

        def placed(part: Catalog, _: None) -> RoomResult:
            before = Placed(states, remotes)
            return placements_of(part, inventory, Around(before, percent, engine, before.held()))

        def plugins(part: Catalog, memory: PresetMemory) -> RoomResult:
            there = Plugins(layout.destinations, states, remotes, self._published)
            return presets_of(part, inventory, self._presets(there, engine), memory)

        def composed(part: Catalog, memory: ComponentMemory) -> RoomResult:
            bound = Owned(states, COMPONENTS, BINDING)
            return components_of(part, inventory, self._components(bound, engine), memory)

        results = [
            self._controllers.variants.result_of(catalog, variants, states),
            self._controllers.placed.result_of(catalog, placed, states),
            self._controllers.plugins.result_of(catalog, plugins, states),
            self._controllers.components.result_of(catalog, composed, states),
        ]
        self._published.turn()
        reserved = self._reserved(layout, catalog)
        clusters = (reserved[one.key] for one in layout.destinations if one.deployment and one.key in reserved)
        told = RoomResult(findings=(*layout.findings, *clusters, *unused_findings(catalog)))
        return _housed(joined([*results, told]), layout, catalog)

    def lint(self, catalog: Catalog, remotes: Remotes, room: RoomResult, now: int) -> tuple[Finding, ...]:
        """Return what is odd about a config beside what a pass tells of it; a pass does not ask.

        What seems to be missing may be in a file that cannot be read, and then nobody is told of it.
        """
        layout, rules = self._layout(catalog), self._settings.rules
        told = [
            *lint_repositories(catalog),
            *lint_places(room.variants, catalog.objects),
            *lint_functions(catalog, self._functions),
            *lint_generated(room.variants, layout.policies, rules.on_missing_policy, catalog.objects),
            *lint_policies(layout.policies.sound.values(), layout.inventory.clusters),
        ]
        if catalog.is_whole and not layout.inventory.doubtful:
            engine, states = _engine_fact(self._settings), dict[Destination, DestinationState]()
            told += lint_variants(catalog, self._variants(layout, remotes, states, now))
            told += lint_presets(catalog, layout.inventory, self._limits if rules.expressions else None)
            owned = Owned(states, COMPONENTS, BINDING)
            told += lint_components(catalog, layout.inventory, self._components(owned, engine))
        return tuple(told)

    def fleet(self, catalog: Catalog) -> KnownClusters:
        """Return the clusters that there are, and which release of Kubernetes they run."""
        return read_known_clusters(catalog, self._layout(catalog).inventory)

    def _variants(
        self, layout: _Layout, remotes: Remotes, states: Mapping[Destination, DestinationState], now: int
    ) -> Surroundings:
        children, held = self._children.of(states)
        return Surroundings(
            layout.repositories, RemoteUpstreams(remotes, self._resolve), children,
            self._settings.guards.max_delete_percent, _engine_fact(self._settings), self._limits, now, held,
        )  # fmt: skip

    def _presets(self, before: Plugins, engine: str) -> PresetSurroundings:
        rules = self._settings.rules
        return PresetSurroundings(
            before, self._settings.guards.max_delete_percent, engine, before.held(), rules.base_domain,
            rules.central_cluster, rules.expressions, self._limits, frozenset(rules.plugin_outputs),
        )  # fmt: skip

    def _components(self, before: Owned, engine: str) -> ComponentSurroundings:
        rules = self._settings.rules
        return ComponentSurroundings(
            before, self._settings.guards.max_delete_percent, engine, before.held(), rules.runtime_composition,
            rules.crd_group, _READ_KINDS, self._limits,
        )  # fmt: skip

    def made_kinds(self, catalog: Catalog) -> tuple[tuple[MadeKind, ...], tuple[Finding, ...]]:
        """Return the kinds that component types make, and why some of them make none."""
        nobody = Owned({}, COMPONENTS, BINDING)
        return made_kinds(catalog, self._components(nobody, _engine_fact(self._settings)))

    def renderer(self, catalog: Catalog) -> Renderer:
        """Return what renders packages by a catalog."""
        rules = self._settings.rules
        options = Options(rules.on_missing_policy, read_pod_spec_paths(rules.pod_spec_paths))
        layout = self._layout(catalog)
        clusters = layout.inventory.clusters
        last_mile = LastMile(layout.policies, clusters, options, strict=frozenset(rules.strict))
        self._pairs.turn()
        self._templates_in.turn()
        told = TemplateOptions(rules.template_mode, frozenset(rules.strict))
        templating = Templating(layout.merge_rules.rules, told, self._pairs, self._templates_in)
        return Renderer(catalog, last_mile, self._engine, templating)

    def tagging(self, catalog: Catalog) -> Tagging:
        """Return which revisions get tags."""
        return Tagging(self._settings.git.revision_tags, frozenset(_named_upstreams(catalog)))

    def lock_tree(self, files: FileTree, catalog: Catalog, remotes: Remotes) -> TreeId | None:
        """Return the upstream tree that a Kptfile's lock names."""
        kptfile = read_kptfile(files[KPTFILE].data) if KPTFILE in files else ()
        lock = kptfile.upstream_lock.git if isinstance(kptfile, Kptfile) and kptfile.upstream_lock else None
        if lock is None:
            return None
        for url in self.upstreams_at(lock.repo, catalog):
            if remote := remotes.upstream(url):
                return remote.tree_if_known(CommitId(lock.commit), lock.directory.strip("/"))
        return None

    def upstreams_at(self, repo: str, catalog: Catalog) -> tuple[str, ...]:
        """Return the addresses that Kptfiles, and status files, call so."""
        layout, wanted = self._layout(catalog), repository_id(repo)
        found = (name for name, one in layout.repositories.items() if repository_id(one.url) == wanted)
        return tuple(dict.fromkeys(layout.urls[name] for name in found))

    def _layout(self, catalog: Catalog) -> _Layout:
        # the same for all questions of a pass; a catalog never changes, and two of them may be compared
        known = next((one for one in self._layouts if one[0] is catalog), None)
        if known is None:
            known = (catalog, self._layout_before(catalog) or self._find_layout(catalog))
            self._layouts = [*self._layouts[-1:], known]
        return known[1]

    def _layout_before(self, catalog: Catalog) -> _Layout | None:
        """Return the layout of another catalog that has the very same of what is laid out."""
        wanted = _laid_out(catalog)
        return next(
            (layout for other, layout in reversed(self._layouts) if same_objects(_laid_out(other), wanted)), None
        )

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
        identity = lru_cache(None)(_identity)
        destinations = [_destination(one, urls[name], identity(urls[name])) for name, one in sorted(usable.items())]
        destinations += [
            _of_fleet(catalog.objects[inventory.homes[name]], fleet, identity(fleet)) for name in alone if fleet
        ]
        definitions = _definitions(catalog)
        destinations = [replace(one, definition=definitions(one)) for one in destinations]
        policies = read_policies(catalog)
        odd = inventory_findings(policies.sound.values(), inventory.clusters.values(), inventory.doubtful)
        merge_rules = read_merge_rules(catalog)
        found = (*findings, *refused, *inventory.findings, *policies.findings, *odd, *merge_rules.findings)
        return _Layout(urls, usable, inventory, destinations, () if fleet else alone, policies, merge_rules, found)

    def _fleet_url(self) -> str:
        """Return where clusters without a Repository live; "" for nowhere. Offline, that need not be anywhere."""
        if self._settings.fleet.url:
            return parse_url(self._settings.fleet.url).connect
        return str(Path(self._settings.cache).expanduser().absolute() / _NO_FLEET) if self._offline else ""

    def _resolve(self, text: str) -> str:
        return resolve_repository(text, self._source, self._options).connect


def _engine_fact(settings: Settings) -> str:
    """Return what changes when rendering may: our version, how packages are merged, and which functions are let run."""
    listed = [*settings.functions.exec, *settings.functions.containers]
    lets_run = f" functions {digest([listed, settings.functions.image_prefix])}" if listed else ""
    merging = settings.merge.model_dump(exclude_defaults=True, exclude={"profile"})
    merges = f" merge {digest(merging)}" if merging else ""
    rules = settings.rules.model_dump(exclude_defaults=True)
    ruled = f" rules {digest(rules)}" if rules else ""
    limits = settings.limits.functions.model_dump(exclude_defaults=True)
    limited = f" limits {digest(limits)}" if limits else ""
    return f"{__version__} {settings.merge.profile}{merges}{ruled}{lets_run}{limited}"


def _laid_out(catalog: Catalog) -> tuple[object, ...]:
    """Return all of a catalog that a layout is made of."""
    if catalog.unreadable or catalog.findings or catalog.duplicates:
        # what is in doubt depends on more than objects
        return (catalog,)
    return tuple(one for kind in _LAID_OUT for one in catalog.of_kind(*kind))


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


def _destination(one: Repository, url: str, repository: str) -> Destination:
    return Destination(
        one.key, url, kptfile_url(one.url), one.branch, one.directory, one.deployment, one.where, one.tag_prefix,
        repository=repository,
    )  # fmt: skip


def _definitions(catalog: Catalog) -> Callable[[Destination], ConfigSources]:
    """Return a function that returns the files which define a destination: its own object, and those of its cluster."""
    described: dict[str, list[ConfigObject]] = {}
    for kind in CLUSTER_KINDS:
        for one in catalog.of_kind(*kind) if kind != _REPOSITORY else ():
            described.setdefault(one.key.name, []).append(one)

    def definition(target: Destination) -> ConfigSources:
        of_cluster = described.get(target.name, ()) if target.deployment else ()
        return sources_of((catalog.objects[target.key], *of_cluster))

    return definition


def _identity(url: str) -> str:
    return parse_url(url).identity


def _housed(result: RoomResult, layout: _Layout, catalog: Catalog) -> RoomResult:
    """Return the result without packages for clusters that have no place: no Repository, and no fleet (design 10.3)."""
    if not layout.homeless:
        return result
    lost = sorted({one.place.repository for one in result.variants} & set(layout.homeless))
    findings = (_no_destination(catalog.objects[layout.inventory.homes[name]], name) for name in lost)
    variants = tuple(one for one in result.variants if one.place.repository not in layout.homeless)
    return replace(result, variants=variants, findings=(*result.findings, *findings))


def _no_destination(home: ConfigObject, name: str) -> Finding:
    message = f"cluster {name} has no Repository, and without fleet.url there is nowhere else for what goes to it"
    return NO_DESTINATION.finding(message, home.where)


def _of_fleet(one: ConfigObject, url: str, repository: str) -> Destination:
    """Return the destination of a cluster that has no Repository: a branch of the fleet's (design 3)."""
    name = one.key.name
    return Destination(
        one.key, url, kptfile_url(url), f"clusters/{name}", "", True, one.where, f"{name}/", one.api_version,
        repository,
    )  # fmt: skip


def _reserved_branch(one: ConfigObject, branch: str, use: str) -> Finding:
    message = f'spec.git.branch "{branch}" is reserved: {use}; name another branch, such as clusters/{one.key.name}'
    return NAME_NOT_USABLE.finding(message, one.where_at(("spec", "git", "branch")))


@dataclass(frozen=True)
class _Made:
    """A package that a set has made; `existing` is how many it had when this one was first held, else 0."""

    maker: ObjectKey
    key: TargetKey
    existing: int


class _Children:
    """What the states of destinations say that sets have made; of a state that is the same it is not read again."""

    def __init__(self) -> None:
        self._made: Unmoved[tuple[_Made, ...]] = Unmoved()
        self._known: dict[ObjectKey, list[TargetKey]] = {}

    def of(
        self, states: Mapping[Destination, DestinationState]
    ) -> tuple[Mapping[ObjectKey, Sequence[TargetKey]], Mapping[ObjectKey, Mapping[TargetKey, int]]]:
        """Return the places of each set's packages, and how many it had, by place, of those that are held.

        What a set has had before is the same object.
        """
        children: dict[ObjectKey, list[TargetKey]] = {}
        held: dict[ObjectKey, dict[TargetKey, int]] = {}
        for destination, state in states.items():
            for one in self._made.of((state,), partial(_made_by_sets, destination.name, state)):
                children.setdefault(one.maker, []).append(one.key)
                if one.existing:
                    held.setdefault(one.maker, {})[one.key] = one.existing
        self._made.turn()
        known = ((maker, self._known.get(maker), found) for maker, found in children.items())
        self._known = {maker: before if before == found and before else found for maker, before, found in known}
        return self._known, held


def _made_by_sets(name: str, state: DestinationState) -> tuple[_Made, ...]:
    return tuple(
        _Made(record.owner.set, TargetKey(name, package), record.outcome.get("existing") or 0)
        for package, record in state.standing()
        if record.owner.set
    )
