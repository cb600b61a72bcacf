"""Rooms: what one config commit comes to with the rooms of rules, and where on the fleet that lies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from reconciler import __version__
from reconciler.daemon.codes import URL_REFUSED
from reconciler.daemon.owned import Owned
from reconciler.daemon.placed import Placed
from reconciler.daemon.plugins import Plugins, Published
from reconciler.daemon.remotes import Remotes
from reconciler.daemon.upstreams import RemoteUpstreams
from reconciler.expressions import Limits
from reconciler.gitio.errors import GitError
from reconciler.gitio.source import Source, resolve_repository
from reconciler.gitio.url import parse_url
from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.planning.destination import Destination
from reconciler.planning.destination import conflicts as destination_conflicts
from reconciler.planning.last_mile import LastMile
from reconciler.planning.lint import lint_functions, lint_generated, lint_places, lint_repositories
from reconciler.planning.render import Renderer
from reconciler.planning.state import DestinationState
from reconciler.planning.tags import Tagging
from reconciler.planning.templates import Templating
from reconciler.rules.clusters.inventory import CLUSTER_KINDS, Inventory, read_inventory
from reconciler.rules.clusters.versions import KnownClusters, read_known_clusters
from reconciler.rules.codes import NO_DESTINATION
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
from reconciler.rules.repository import Repositories, Repository, read_repositories
from reconciler.rules.templates.model import GROUP as TEMPLATE_RULES
from reconciler.rules.templates.model import KIND as TEMPLATE_RULE
from reconciler.rules.templates.model import Options as TemplateOptions
from reconciler.rules.templates.pairs import Pairs
from reconciler.rules.templates.read_rule import MergeRules, read_merge_rules
from reconciler.rules.variant import Place, RoomResult, joined
from reconciler.rules.variants.lint import lint_variants
from reconciler.rules.variants.naming import TargetKey
from reconciler.rules.variants.room import Memory as SetMemory
from reconciler.rules.variants.room import Surroundings, kptfile_url, variants_of
from reconciler.runners.functions import AllFunctions
from reconciler.settings import Settings
from reconciler.snapshot.catalog import PORCH_GROUP, Catalog, ConfigObject
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
        self._sets_made = SetMemory()
        self._children = _Children()
        self._presets_made = PresetMemory()
        self._components_made = ComponentMemory()
        self._published: Remembered[Published] = Remembered()
        self._pairs: Remembered[Pairs] = Remembered()
        self._templates_in: Remembered[bool] = Remembered()
        self._engine = engine(settings, functions)

    def destinations(self, catalog: Catalog) -> Sequence[Destination]:
        """Return the Repositories and clusters that can receive packages."""
        return self._layout(catalog).destinations

    def conflicts(self, catalog: Catalog) -> Mapping[ObjectKey, Finding]:
        """Return a finding for each destination that must not be written to."""
        layout = self._layout(catalog)
        told = layout.inventory.conflicts
        twice = {one.key: told[one.name] for one in layout.destinations if one.deployment and one.name in told}
        drafts = self._settings.drafts
        return {**twice, **destination_conflicts(layout.destinations, (drafts.branch, drafts.removals_branch))}

    def urls(self, catalog: Catalog) -> tuple[Sequence[str], Sequence[str]]:
        """Return the addresses of upstreams, and of destinations."""
        layout = self._layout(catalog)
        named = {(place.namespace, place.repository) for place in _named_upstreams(catalog)}
        repositories = layout.repositories.items()
        upstreams = {layout.urls[name] for name, one in repositories if not one.deployment or name in named}
        return sorted(upstreams), sorted({one.url for one in layout.destinations})

    def rooms(
        self, catalog: Catalog, remotes: Remotes, states: Mapping[Destination, DestinationState], now: int
    ) -> RoomResult:
        """Return what the rooms make of a catalog."""
        layout = self._layout(catalog)
        percent, engine = self._settings.guards.max_delete_percent, _engine_fact(self._settings)
        around = self._variants(layout, remotes, states, now)
        before = Placed(states, remotes)
        placed = placements_of(catalog, layout.inventory, Around(before, percent, engine, before.held()))
        there = Plugins(layout.destinations, states, remotes, self._published)
        plugins = presets_of(catalog, layout.inventory, self._presets(there, engine), self._presets_made)
        self._published.turn()
        bound = Owned(states, COMPONENTS, BINDING)
        composed = components_of(catalog, layout.inventory, self._components(bound, engine), self._components_made)
        told = RoomResult(findings=tuple(layout.findings))
        return _housed(
            joined([variants_of(catalog, around, self._sets_made), placed, plugins, composed, told]), layout, catalog
        )

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
        layout = self._layout(catalog)
        found = (name for name, one in layout.repositories.items() if kptfile_url(one.url) == kptfile_url(repo))
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
        destinations = [_destination(one, urls[name]) for name, one in sorted(usable.items())]
        destinations += [_of_fleet(catalog.objects[inventory.homes[name]], fleet) for name in alone if fleet]
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
    return f"{__version__} {settings.merge.profile}{merges}{ruled}{lets_run}"


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


def _destination(one: Repository, url: str) -> Destination:
    return Destination(
        one.key, url, kptfile_url(one.url), one.branch, one.directory, one.deployment, one.where, one.tag_prefix
    )


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


def _of_fleet(one: ConfigObject, url: str) -> Destination:
    """Return the destination of a cluster that has no Repository: a branch of the fleet's (design 3)."""
    name = one.key.name
    return Destination(
        one.key, url, kptfile_url(url), f"clusters/{name}", "", True, one.where, f"{name}/", one.api_version
    )


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
