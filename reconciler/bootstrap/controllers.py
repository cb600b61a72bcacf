"""Services that use the catalog of one config commit: targets, URLs, controllers, linters and renderers.

`CatalogServices` builds the inputs of all controllers and runs the controllers. Decisions about packages belong to
`reconciler/controllers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from reconciler import __version__
from reconciler.bootstrap.controller_runs import IsolatedController, TenantControllers, run_traced
from reconciler.bootstrap.engine import build_render_engine
from reconciler.bootstrap.fleet_config import (
    REPOSITORY_KIND,
    FleetConfig,
    build_fleet_config,
    build_fleet_target,
    build_repository_target,
    get_url_identity,
    list_fleet_objects,
    remove_targetless_variants,
)
from reconciler.bootstrap.options import build_git_options
from reconciler.bootstrap.set_packages import SetPackages
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.definition_conflicts import DefinitionConflict, find_duplicates, get_claimed_git_location
from reconciler.catalog.files import CommitId, FileTree, TreeId
from reconciler.catalog.known_kinds import KNOWN_KINDS, PORCH_GROUP
from reconciler.catalog.object_isolation import FaultyObjectSearch
from reconciler.cel import ExpressionLimits
from reconciler.controllers.catalog_checks import find_conflicting_objects, find_unused_objects
from reconciler.controllers.clusters.inventory import (
    CLUSTER_KINDS,
    KnownClusters,
    read_known_clusters,
)
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.components.component_types import GeneratedKind
from reconciler.controllers.components.component_types import list_generated_kinds as list_component_kinds
from reconciler.controllers.components.controller import reconcile_components
from reconciler.controllers.components.inputs import ComponentCache, ComponentControllerInputs
from reconciler.controllers.components.lint import lint_components
from reconciler.controllers.components.names import BINDING
from reconciler.controllers.components.names import GROUP as COMPONENT_GROUP
from reconciler.controllers.kafka_templates.model import TemplateOptions
from reconciler.controllers.kafka_templates.pairing import TemplatePairs
from reconciler.controllers.keyed_cache import IdentityCache, KeyedCache, are_identical
from reconciler.controllers.override_policies.containers import read_pod_spec_paths
from reconciler.controllers.override_policies.policy_usage import lint_policies
from reconciler.controllers.override_policies.resource_overrides import OverrideOptions
from reconciler.controllers.package_variants.controller import (
    PackageVariantCache,
    PackageVariantInputs,
    generate_package_variants,
)
from reconciler.controllers.package_variants.lint import lint_variants
from reconciler.controllers.placement.controller import place_resources
from reconciler.controllers.placement.model import PlacementInputs
from reconciler.controllers.plugin_presets.controller import PluginPresetCache, PluginPresetInputs, generate_plugins
from reconciler.controllers.plugin_presets.lint import lint_presets
from reconciler.controllers.repositories import Repository, read_repository
from reconciler.controllers.results import ControllerResult, PackageTarget, Variant, merge_results
from reconciler.git.errors import GitError
from reconciler.git.source import RepositoryOrFolder, resolve_repository
from reconciler.git.url import check_url_allowed, get_location, matches_location, parse_url
from reconciler.krm.findings import Finding
from reconciler.krm.git_formats import normalize_repository_url
from reconciler.krm.json_text import compute_digest
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.planning.attribution.validation import (
    lint_functions,
    lint_generated,
    lint_package_conflicts,
    lint_repositories,
)
from reconciler.planning.layout.refs import TagPolicy
from reconciler.planning.model.branch_names import ReservedBranches
from reconciler.planning.model.cluster_overrides import ClusterOverrides
from reconciler.planning.model.state import TargetState
from reconciler.planning.model.target_conflicts import find_conflicting_targets, find_target_conflicts
from reconciler.planning.model.targets import Target
from reconciler.planning.render.renderer import PackageRenderer
from reconciler.planning.render.templates import TemplateMerger
from reconciler.reconcile.input_verifier import InputVerifier
from reconciler.reconcile.remotes.ports import (
    FetchedUpstreams,
    OwnedPackages,
    PlacedPackages,
    PublishedPluginData,
    PublishedPlugins,
)
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX
from reconciler.runners.functions import CombinedFunctionProvider
from reconciler.settings import Settings
from reconciler.tenancy.package_rules import PackageRules, select_owned

_NO_FLEET = "no-fleet.git"
# Component types must not generate these kinds in any API group, because the reconciler uses the kinds itself.
_RESERVED_KINDS = frozenset(
    (
        *(kind for group, kinds in KNOWN_KINDS.items() if group != COMPONENT_GROUP for kind in kinds),
        "Kptfile",
        "Placement",
    )
)


@dataclass(frozen=True)
class _ControllerLimits:
    """Limits of the controllers, which can be smaller for a tenant.

    Attributes:
        max_delete_percent: The percentage of packages that one change may delete.
    """

    max_delete_percent: int
    expressions: ExpressionLimits


class CatalogServices:
    """Services that use a catalog. The targets, clusters and policies of the last two catalogs are cached."""

    def __init__(
        self,
        settings: Settings,
        source: RepositoryOrFolder,
        functions: CombinedFunctionProvider,
        verifier: InputVerifier,
        *,
        offline: bool = False,
    ) -> None:
        self._settings = settings
        self._source = source
        self._options = build_git_options(settings)
        self._limits = ExpressionLimits(**settings.limits.cel.model_dump())
        self._offline = offline
        self._functions = functions
        self._verifier = verifier
        self._fleet_configs: list[tuple[Catalog, FleetConfig]] = []
        self._placement: IsolatedController[None] = IsolatedController("placed resources", lambda: None)
        # The controllers of each tenant, by the name of the tenant. The platform team has the name "".
        self._controllers: dict[str, TenantControllers] = {}
        self._assigned_variants: IdentityCache[Variant] = IdentityCache()
        self._fleet_config_search: FaultyObjectSearch[FleetConfig] = FaultyObjectSearch(
            "Repositories, clusters and policies"
        )
        self._set_packages = SetPackages()
        self._published: KeyedCache[PublishedPluginData] = KeyedCache()
        self._pairs: KeyedCache[TemplatePairs] = KeyedCache()
        self._templates_in: KeyedCache[bool] = KeyedCache()
        self._engine = build_render_engine(settings, functions)
        self._engine_fingerprint = _fingerprint_engine(settings)

    def isolate_faulty_objects(self, catalog: Catalog) -> Catalog:
        """Return the catalog without the Repositories, clusters and policies that cause an unexpected exception."""
        outcome = self._fleet_config_search.run(catalog, self._get_fleet_config, self._build_fleet_config)
        if not outcome.excluded:
            return catalog
        return replace(outcome.catalog, findings=(*catalog.findings, *outcome.findings))

    def list_targets(self, catalog: Catalog) -> Sequence[Target]:
        """Return a target for each usable Repository and for each cluster with a branch in the fleet repository."""
        return self._get_fleet_config(catalog).targets

    def find_target_conflicts(self, catalog: Catalog) -> Mapping[ObjectKey, Finding]:
        """Return a finding for each target that the reconciler must not write to.

        The keys are the Repositories and cluster objects that define these targets.
        """
        fleet = self._get_fleet_config(catalog)
        conflicts = fleet.inventory.conflicts
        deployments = (target for target in fleet.targets if target.is_deployment)
        cluster_conflicts = {target.key: conflicts[target.name] for target in deployments if target.name in conflicts}
        drafts = self._settings.drafts
        branch_conflicts = find_target_conflicts(fleet.targets, (drafts.branch, drafts.removals_branch))
        return {
            **cluster_conflicts,
            **branch_conflicts,
            **fleet.inventory.invalid_objects,
            **self._find_reserved_branches(fleet, catalog),
        }

    def find_rival_claims(self, catalog: Catalog) -> Sequence[DefinitionConflict]:
        """Return the conflicts between objects with the same target, unique name, component binding or written file."""
        drafts = self._settings.drafts
        targets = self._get_fleet_config(catalog).targets
        return [
            *find_conflicting_objects(catalog),
            *(
                DefinitionConflict(
                    (catalog.objects[first.key], catalog.objects[second.key]),
                    reason,
                    claimed_location=get_claimed_git_location,
                )
                for first, second, reason in find_conflicting_targets(targets, (drafts.branch, drafts.removals_branch))
            ),
        ]

    def find_claimed_targets(
        self, catalog: Catalog, conflicts: Sequence[DefinitionConflict]
    ) -> Mapping[ConfigObject, Target]:
        """Return the targets that the conflicting objects define. Omit objects that define no target."""
        if not conflicts:
            return {}
        targets = {target.key: target for target in self._get_fleet_config(catalog).targets}
        claims = (claim for conflict in conflicts for claim in conflict.claims)
        candidates = ((claim, targets.get(claim.key) or self._build_target(claim)) for claim in claims)
        return {claim: target for claim, target in candidates if target}

    def _build_target(self, claim: ConfigObject) -> Target | None:
        kind = (claim.key.group, claim.key.kind)
        if kind in CLUSTER_KINDS and kind != REPOSITORY_KIND:
            fleet = self._get_fleet_url()
            return build_fleet_target(claim, fleet, get_url_identity(fleet)) if fleet else None
        repository = read_repository(claim) if kind == REPOSITORY_KIND else None
        if not isinstance(repository, Repository):
            return None
        try:
            url = self._resolve(repository.url)
        except GitError:
            # Do not report the invalid URL here, because the pass already reports that this object conflicts with
            # another object.
            return None
        return build_repository_target(repository, url, get_url_identity(url))

    def _find_reserved_branches(self, fleet: FleetConfig, catalog: Catalog) -> Mapping[ObjectKey, Finding]:
        """Return an error for each target whose branch name is reserved for branches that the reconciler creates."""
        settings = self._settings
        names = {"status.branch": settings.status.branch, "drafts.config_branch": settings.drafts.config_branch}
        templates = {"drafts.branch": settings.drafts.branch, "drafts.removals_branch": settings.drafts.removals_branch}
        if settings.state_ref.startswith(BRANCH_PREFIX):
            templates["state_ref"] = settings.state_ref.removeprefix(BRANCH_PREFIX)
        uses = ReservedBranches(templates, names).find_reserved_uses(fleet.targets)
        branches = {target.key: target.branch for target in fleet.targets}
        return {
            key: _create_reserved_branch_finding(catalog.objects[key], branches[key], use) for key, use in uses.items()
        }

    def list_urls(self, catalog: Catalog) -> tuple[Sequence[str], Sequence[str]]:
        """Return the URLs of all upstream repositories, and the URLs of all target repositories."""
        fleet = self._get_fleet_config(catalog)
        named = {(package.namespace, package.repository) for package in _list_named_upstreams(catalog)}
        repositories = fleet.repositories.items()
        # Include the URLs of all duplicate objects, because the pass decides only after the fetch which of the
        # duplicates has an effect.
        duplicates = self.find_claimed_targets(catalog, find_duplicates(catalog)).values()
        upstreams = {
            fleet.urls[name] for name, repository in repositories if not repository.deployment or name in named
        }
        upstreams |= {
            target.url
            for target in duplicates
            if not target.is_deployment or (target.key.namespace, target.key.name) in named
        }
        return sorted(upstreams), sorted({target.url for target in (*fleet.targets, *duplicates)})

    def list_settings_urls(self) -> Mapping[str, str | GitError]:
        """Return the URL, or the error of an invalid URL, for each setting that contains a repository URL.

        The keys are names of settings, e.g. `fleet.url`.
        """
        urls = {"fleet.url": self._settings.fleet.url, "status.url": self._settings.status.url}
        return {setting: self._resolve_settings_url(url) for setting, url in urls.items() if url}

    def _resolve_settings_url(self, text: str) -> str | GitError:
        try:
            url = parse_url(text)
            check_url_allowed(url, self._options.allowed_urls)
        except GitError as error:
            return error
        return url.connection_url

    def run_controllers(
        self, catalog: Catalog, remotes: Remotes, states: Mapping[Target, TargetState], now: int
    ) -> ControllerResult:
        """Run all controllers and merge their results. Each tenant has its own run."""
        fleet = self._get_fleet_config(catalog)
        percent, engine = self._settings.guards.max_delete_percent, self._engine_fingerprint

        def run_placement(part: Catalog, _: None) -> ControllerResult:
            before, inventory = PlacedPackages(states, remotes), fleet.inventory
            return place_resources(part, inventory, PlacementInputs(before, percent, engine, before.get_held_counts()))

        list_existing = partial(_list_existing_packages, states)
        rules = PackageRules(
            catalog, fleet.find_labels, self._find_credential_tenant, list_existing, self._assigned_variants
        )
        placed = run_traced("placement", lambda: self._placement.run(catalog, run_placement, states))
        results = [rules.apply_to_placed(placed)]
        # Delete the controllers of deleted tenants with their caches.
        tenants = ("", *catalog.tenants.by_name)
        self._controllers = {tenant: self._controllers.get(tenant) or TenantControllers() for tenant in tenants}
        for tenant in tenants:
            result = self._run_for_tenant(tenant, catalog, fleet, remotes, states, now)
            results.append(rules.apply(result, tenant) if tenant else result)
        self._published.end_pass()
        self._assigned_variants.end_pass()
        reserved = self._find_reserved_branches(fleet, catalog)
        clusters = (reserved[target.key] for target in fleet.targets if target.is_deployment and target.key in reserved)
        general = ControllerResult(findings=(*fleet.findings, *clusters, *find_unused_objects(catalog)))
        return remove_targetless_variants(merge_results([*results, general]), fleet, catalog)

    def _run_for_tenant(
        self,
        tenant: str,
        catalog: Catalog,
        fleet: FleetConfig,
        remotes: Remotes,
        states: Mapping[Target, TargetState],
        now: int,
    ) -> ControllerResult:
        """Run the controllers on the objects that a tenant can see. Return the results for the tenant's own objects."""
        inventory = fleet.inventory
        limits = self._get_limits(catalog, tenant)

        def run_variants(part: Catalog, cache: PackageVariantCache) -> ControllerResult:
            return generate_package_variants(
                part, self._build_variant_inputs(fleet, remotes, states, now, limits), cache
            )

        def run_plugins(part: Catalog, cache: PluginPresetCache) -> ControllerResult:
            published = PublishedPlugins(fleet.targets, states, remotes, self._published)
            return generate_plugins(part, inventory, self._build_preset_inputs(published, limits), cache)

        def run_components(part: Catalog, cache: ComponentCache) -> ControllerResult:
            owned = OwnedPackages(states, COMPONENT_GROUP, BINDING)
            return reconcile_components(part, inventory, self._build_component_inputs(owned, limits), cache)

        view, controllers = catalog.select_visible(tenant), self._controllers[tenant]
        result = merge_results(
            [
                run_traced("package_variants", lambda: controllers.variants.run(view, run_variants, states)),
                run_traced("plugin_presets", lambda: controllers.plugins.run(view, run_plugins, states)),
                run_traced("components", lambda: controllers.components.run(view, run_components, states)),
            ]
        )
        return select_owned(result, view, tenant) if catalog.tenants else result

    def _find_credential_tenant(self, url: str) -> str:
        """Return the only tenant that may use the credentials of a remote. Return "" if all tenants may use them."""
        location = get_location(parse_url(url))
        entries = (entry for entry in self._settings.git.credentials if entry.read or entry.write)
        return next((entry.tenant for entry in entries if matches_location(location, entry.url)), "")

    def _get_limits(self, catalog: Catalog, tenant: str) -> _ControllerLimits:
        percent, expressions = self._settings.guards.max_delete_percent, self._limits
        if not tenant:
            return _ControllerLimits(percent, expressions)
        own = catalog.tenants.by_name[tenant].spec.limits
        if own.max_delete_percent is not None:
            percent = min(percent, own.max_delete_percent)
        if own.cel_steps is not None:
            expressions = replace(expressions, steps=min(expressions.steps, own.cel_steps))
        return _ControllerLimits(percent, expressions)

    def lint(self, catalog: Catalog, remotes: Remotes, result: ControllerResult, now: int) -> tuple[Finding, ...]:
        """Return the findings of the linters. Only the command `validate` runs linters; a pass does not run linters.

        If a config file cannot be read, linters that report missing objects are skipped, because this file can define
        the missing objects.
        """
        fleet, rules = self._get_fleet_config(catalog), self._settings.rules
        findings = [
            *lint_repositories(catalog),
            *lint_package_conflicts(result.variants, catalog.objects),
            *lint_functions(catalog, self._functions),
            *lint_generated(result.variants, fleet.policies, rules.on_missing_policy, catalog.objects),
            *lint_policies(fleet.policies.valid.values(), fleet.inventory.clusters),
        ]
        if catalog.is_complete and not fleet.inventory.uncertain_names:
            states = dict[Target, TargetState]()
            limits = self._get_limits(catalog, "")
            findings += lint_variants(catalog, self._build_variant_inputs(fleet, remotes, states, now, limits))
            findings += lint_presets(catalog, fleet.inventory, self._limits if rules.expressions else None)
            owned = OwnedPackages(states, COMPONENT_GROUP, BINDING)
            findings += lint_components(catalog, fleet.inventory, self._build_component_inputs(owned, limits))
        return tuple(findings)

    def read_cluster_versions(self, catalog: Catalog) -> KnownClusters:
        """Return the clusters of the config with their Kubernetes versions."""
        return read_known_clusters(catalog, self._get_fleet_config(catalog).inventory)

    def _build_variant_inputs(
        self,
        fleet: FleetConfig,
        remotes: Remotes,
        states: Mapping[Target, TargetState],
        now: int,
        limits: _ControllerLimits,
    ) -> PackageVariantInputs:
        children, blocked = self._set_packages.list_packages(states)
        return PackageVariantInputs(
            fleet.repositories, FetchedUpstreams(remotes, self._resolve, self._verifier), children,
            limits.max_delete_percent, self._engine_fingerprint, limits.expressions, now, blocked,
        )  # fmt: skip

    def _build_preset_inputs(self, before: PublishedPlugins, limits: _ControllerLimits) -> PluginPresetInputs:
        rules = self._settings.rules
        return PluginPresetInputs(
            before, limits.max_delete_percent, self._engine_fingerprint, before.get_held_counts(), rules.base_domain,
            rules.central_cluster, rules.expressions, limits.expressions, frozenset(rules.plugin_outputs),
        )  # fmt: skip

    def _build_component_inputs(self, before: OwnedPackages, limits: _ControllerLimits) -> ComponentControllerInputs:
        rules = self._settings.rules
        return ComponentControllerInputs(
            before,
            limits.max_delete_percent,
            self._engine_fingerprint,
            before.get_held_counts(),
            rules.runtime_composition,
            rules.crd_group,
            _RESERVED_KINDS,
            limits.expressions,
        )

    def list_generated_kinds(self, catalog: Catalog) -> tuple[tuple[GeneratedKind, ...], tuple[Finding, ...]]:
        """Return the kinds that component types generate, and findings about component types that generate no kind."""
        no_packages = OwnedPackages({}, COMPONENT_GROUP, BINDING)
        return list_component_kinds(
            catalog,
            self._build_component_inputs(no_packages, self._get_limits(catalog, "")),
        )

    def create_renderer(self, catalog: Catalog) -> PackageRenderer:
        """Create the renderer for the packages of a catalog."""
        rules = self._settings.rules
        options = OverrideOptions(rules.on_missing_policy, read_pod_spec_paths(rules.pod_spec_paths))
        fleet = self._get_fleet_config(catalog)
        clusters = fleet.inventory.clusters
        overrides = ClusterOverrides(fleet.policies, clusters, options, strict_codes=frozenset(rules.strict))
        self._pairs.end_pass()
        self._templates_in.end_pass()
        template_options = TemplateOptions(rules.template_mode, frozenset(rules.strict))
        templates = TemplateMerger(fleet.merge_rules.rules, template_options, self._pairs, self._templates_in)
        return PackageRenderer(catalog, overrides, self._engine, templates)

    def create_tag_policy(self, catalog: Catalog) -> TagPolicy:
        """Return the policy that decides which packages get Git tags for their revisions."""
        return TagPolicy(self._settings.git.revision_tags, frozenset(_list_named_upstreams(catalog)))

    def find_locked_tree(self, files: FileTree, catalog: Catalog, remotes: Remotes) -> TreeId | None:
        """Return the upstream tree that the `upstreamLock` of the Kptfile in `files` names.

        Return None if there is no lock, or if the tree cannot be found.
        """
        kptfile = read_kptfile(files[KPTFILE].data) if KPTFILE in files else ()
        lock = kptfile.upstream_lock.git if isinstance(kptfile, Kptfile) and kptfile.upstream_lock else None
        if lock is None:
            return None
        for url in self.find_upstream_urls(lock.repo, catalog):
            if remote := remotes.get_upstream(url):
                return remote.find_tree(CommitId(lock.commit), lock.directory.strip("/"))
        return None

    def find_upstream_urls(self, repo: str, catalog: Catalog) -> tuple[str, ...]:
        """Return the URLs of the Repositories that match a repository URL from a Kptfile or status file."""
        fleet, normalized_url = self._get_fleet_config(catalog), normalize_repository_url(repo)
        names = (
            name
            for name, repository in fleet.repositories.items()
            if normalize_repository_url(repository.url) == normalized_url
        )
        return tuple(dict.fromkeys(fleet.urls[name] for name in names))

    def _get_fleet_config(self, catalog: Catalog) -> FleetConfig:
        # Cache the results for two catalogs, because a command can compare two catalogs.
        entry = next((cached for cached in self._fleet_configs if cached[0] is catalog), None)
        if entry is None:
            entry = (catalog, self._find_reusable_fleet_config(catalog) or self._build_fleet_config(catalog))
            self._fleet_configs = [*self._fleet_configs[-1:], entry]
        return entry[1]

    def _find_reusable_fleet_config(self, catalog: Catalog) -> FleetConfig | None:
        """Return the fleet config that was built from identical Repositories, clusters and policies.

        Return None if the cache does not contain it.
        """
        objects = list_fleet_objects(catalog)
        return next(
            (
                fleet
                for cached, fleet in reversed(self._fleet_configs)
                if are_identical(list_fleet_objects(cached), objects)
            ),
            None,
        )

    def _build_fleet_config(self, catalog: Catalog) -> FleetConfig:
        return build_fleet_config(catalog, self._resolve, self._get_fleet_url)

    def _get_fleet_url(self) -> str:
        """Return the URL of the fleet repository. Return "" if the settings contain no fleet repository.

        An offline render gets the path of a missing repository instead of "", so that each cluster has a target.
        """
        if self._settings.fleet.url:
            return parse_url(self._settings.fleet.url).connection_url
        return str(Path(self._settings.cache).expanduser().absolute() / _NO_FLEET) if self._offline else ""

    def _resolve(self, text: str) -> str:
        return resolve_repository(text, self._source, self._options).connection_url


def _list_existing_packages(states: Mapping[Target, TargetState]) -> frozenset[PackageTarget]:
    return frozenset(
        PackageTarget(target.key.namespace, target.name, package)
        for target, state in states.items()
        for package, _ in state.list_active_packages()
    )


def _fingerprint_engine(settings: Settings) -> str:
    """Return a text that changes with the program version, and with each setting that affects rendered packages."""
    allowed = [*settings.functions.exec, *settings.functions.containers]
    functions_part = f" functions {compute_digest([allowed, settings.functions.image_prefix])}" if allowed else ""
    merge = settings.merge.model_dump(exclude_defaults=True, exclude={"profile"})
    merge_part = f" merge {compute_digest(merge)}" if merge else ""
    rules = settings.rules.model_dump(exclude_defaults=True)
    rules_part = f" rules {compute_digest(rules)}" if rules else ""
    limits = settings.limits.functions.model_dump(exclude_defaults=True)
    limits_part = f" limits {compute_digest(limits)}" if limits else ""
    return f"{__version__} {settings.merge.profile}{merge_part}{rules_part}{functions_part}{limits_part}"


def _list_named_upstreams(catalog: Catalog) -> Iterator[PackageTarget]:
    """Yield each package that a PackageVariant, PackageVariantSet or PackageRevisionSet names as an upstream."""
    for kind in ("PackageVariant", "PackageVariantSet", "PackageRevisionSet"):
        objects = (*catalog.objects_of_kind(PORCH_GROUP, kind), *catalog.objects_of_kind("reconciler.dev", kind))
        for config_object in objects:
            spec = config_object.data.get("spec")
            listed = [spec.get("upstream"), *_get_list(spec.get("upstreams"))] if isinstance(spec, dict) else []
            for upstream in listed:
                if isinstance(upstream, dict):
                    repository, package = str(upstream.get("repo")), str(upstream.get("package"))
                    yield PackageTarget(config_object.key.namespace, repository, package)


def _get_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _create_reserved_branch_finding(config_object: ConfigObject, branch: str, use: str) -> Finding:
    message = (
        f'spec.git.branch "{branch}" is reserved: {use}; use another branch, such as clusters/{config_object.key.name}'
    )
    return ControllerCodes.NAME_NOT_USABLE.finding(message, config_object.location_of(("spec", "git", "branch")))
