"""Services that run on the catalog of one config commit: controllers, linters and renderers.

`CatalogServices` builds the inputs of all controllers and runs the controllers. Decisions about packages belong to
`reconciler/controllers`. Targets and URLs belong to `FleetServices`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial

from reconciler import __version__
from reconciler.bootstrap.controller_runs import IsolatedController, TenantControllers, run_traced
from reconciler.bootstrap.engine import build_render_engine
from reconciler.bootstrap.fleet_config import (
    FleetConfig,
    remove_targetless_variants,
)
from reconciler.bootstrap.fleet_services import FleetServices
from reconciler.bootstrap.recorded_artifacts import RecordedArtifacts
from reconciler.bootstrap.set_packages import RecordedSetPackages, SetPackages
from reconciler.catalog.catalog import Catalog
from reconciler.catalog.known_kinds import KNOWN_KINDS
from reconciler.cel import ExpressionLimits
from reconciler.controllers.catalog_checks import find_unused_objects
from reconciler.controllers.components.component_types import GeneratedKind
from reconciler.controllers.components.component_types import list_generated_kinds as list_component_kinds
from reconciler.controllers.components.controller import reconcile_components
from reconciler.controllers.components.inputs import ComponentCache, ComponentControllerInputs
from reconciler.controllers.components.lint import lint_components
from reconciler.controllers.components.names import BINDING
from reconciler.controllers.components.names import GROUP as COMPONENT_GROUP
from reconciler.controllers.kafka_templates.model import TemplateOptions
from reconciler.controllers.kafka_templates.pairing import TemplatePairs
from reconciler.controllers.keyed_cache import IdentityCache, KeyedCache
from reconciler.controllers.override_policies.containers import read_pod_spec_paths
from reconciler.controllers.override_policies.policy_usage import lint_policies
from reconciler.controllers.override_policies.resource_overrides import OverrideOptions
from reconciler.controllers.package_variants.chart_requests import ChartDefaults
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
from reconciler.controllers.repositories import Repository
from reconciler.controllers.results import (
    ControllerResult,
    PackageTarget,
    Variant,
    list_summary_commits,
    merge_results,
)
from reconciler.git.url import get_location, matches_location, parse_url
from reconciler.krm.findings import Finding
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.planning.attribution.validation import (
    lint_functions,
    lint_generated,
    lint_package_conflicts,
    lint_repositories,
)
from reconciler.planning.model.cluster_overrides import ClusterOverrides
from reconciler.planning.model.config_completeness import build_config_completeness
from reconciler.planning.model.state import TargetState
from reconciler.planning.model.targets import Target
from reconciler.planning.render.renderer import PackageRenderer
from reconciler.planning.render.templates import TemplateMerger
from reconciler.reconcile.artifact_inputs import ArtifactInputs
from reconciler.reconcile.input_verifier import InputVerifier
from reconciler.reconcile.remotes.ports import (
    FetchedUpstreams,
    OwnedPackages,
    PlacedPackages,
    PublishedPluginData,
    PublishedPlugins,
)
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.runners.functions import CombinedFunctionProvider
from reconciler.settings import Settings
from reconciler.tenancy.package_rules import PackageRules, UpstreamRules, select_owned
from reconciler.tenancy.placement_rules import exclude_foreign_resources

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


@dataclass(frozen=True)
class _PassInputs:
    """The inputs that the controllers of all tenants share in one pass.

    Attributes:
        now: The time of the pass, in seconds since 1970.
    """

    catalog: Catalog
    fleet: FleetConfig
    remotes: Remotes
    states: Mapping[Target, TargetState]
    set_packages: RecordedSetPackages
    upstreams: FetchedUpstreams
    now: int

    @cached_property
    def recorded_artifacts(self) -> RecordedArtifacts:
        """The versions of charts and artifacts that existing packages use."""
        return RecordedArtifacts(self.states.values())


class CatalogServices:
    """Services that use a catalog. The controllers of each tenant have caches."""

    def __init__(
        self,
        settings: Settings,
        fleets: FleetServices,
        functions: CombinedFunctionProvider,
        verifier: InputVerifier,
        artifacts: ArtifactInputs,
    ) -> None:
        self._artifacts = artifacts
        self._settings = settings
        self._fleets = fleets
        self._limits = ExpressionLimits(**settings.limits.cel.model_dump())
        self._functions = functions
        self._verifier = verifier
        self._placement: IsolatedController[None] = IsolatedController("placed resources", lambda: None)
        # The controllers of each tenant, by the name of the tenant. The platform team has the name "".
        self._controllers: dict[str, TenantControllers] = {}
        self._assigned_variants: IdentityCache[Variant] = IdentityCache()
        self._set_packages = SetPackages()
        self._published: KeyedCache[PublishedPluginData] = KeyedCache()
        self._pairs: KeyedCache[TemplatePairs] = KeyedCache()
        self._templates_in: KeyedCache[bool] = KeyedCache()
        self._engine = build_render_engine(settings, functions)
        self._engine_fingerprint = _fingerprint_engine(settings)

    def run_controllers(
        self, catalog: Catalog, remotes: Remotes, states: Mapping[Target, TargetState], now: int
    ) -> ControllerResult:
        """Run all controllers and merge their results. Each tenant has its own run."""
        self._artifacts.begin_pass()
        fleet = self._fleets.get_fleet_config(catalog)
        set_packages, upstreams = self._set_packages.list_packages(states), self._build_upstreams(remotes)
        inputs = _PassInputs(catalog, fleet, remotes, states, set_packages, upstreams, now)
        percent, engine = self._settings.guards.max_delete_percent, self._engine_fingerprint

        completeness = build_config_completeness(catalog, self._settings.config.directory.strip("/"))

        before = PlacedPackages(states, remotes, completeness)

        def run_placement(part: Catalog, _: None) -> ControllerResult:
            placement_inputs = PlacementInputs(before, percent, engine, before.get_blocked_counts())
            return place_resources(part, fleet.inventory, placement_inputs)

        list_existing = partial(_list_existing_packages, states)
        rules = PackageRules(
            catalog, fleet.find_labels, self._build_upstream_rules(catalog, fleet), list_existing,
            self._assigned_variants,
        )  # fmt: skip
        placeable = exclude_foreign_resources(catalog, before.find_tenants)
        placed = run_traced("placement", lambda: self._placement.run(placeable.catalog, run_placement, states))
        results = [rules.apply_to_placed(placed), ControllerResult(findings=placeable.findings)]
        # Keep only the controllers of existing tenants. This also deletes the caches of deleted tenants.
        tenants = ("", *catalog.tenants.by_name)
        self._controllers = {tenant: self._controllers.get(tenant) or TenantControllers() for tenant in tenants}
        for tenant in tenants:
            result = self._run_for_tenant(tenant, inputs, rules)
            results.append(rules.apply(result, tenant) if tenant else result)
        if self._artifacts.requests:
            self._artifacts.evict(_iterate_recorded_commits(states))
        self._published.end_pass()
        self._assigned_variants.end_pass()
        reserved = self._fleets.find_reserved_branches(catalog)
        clusters = (reserved[target.key] for target in fleet.targets if target.is_deployment and target.key in reserved)
        general = ControllerResult(findings=(*fleet.findings, *clusters, *find_unused_objects(catalog)))
        return remove_targetless_variants(merge_results([*results, general]), fleet, catalog)

    def _run_for_tenant(self, tenant: str, inputs: _PassInputs, rules: PackageRules) -> ControllerResult:
        """Run the controllers on the objects that a tenant can see. Return the results for the tenant's own objects."""
        catalog, fleet, states = inputs.catalog, inputs.fleet, inputs.states
        inventory, limits = fleet.inventory, self._get_limits(catalog, tenant)

        def run_variants(part: Catalog, cache: PackageVariantCache) -> ControllerResult:
            explain = rules.upstreams.get_check(tenant)
            return generate_package_variants(part, self._build_variant_inputs(inputs, limits, explain), cache)

        def run_plugins(part: Catalog, cache: PluginPresetCache) -> ControllerResult:
            published = PublishedPlugins(fleet.targets, states, inputs.remotes, self._published)
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

    def list_requested_variants(self, catalog: Catalog, remotes: Remotes, now: int) -> tuple[Variant, ...]:
        """Return the package variants that the PackageVariants and PackageVariantSets of a catalog request.

        The catalog can be an earlier config. The caches of the controllers are not used.
        """
        fleet, variants = self._fleets.get_fleet_config(catalog), list[Variant]()
        inputs = _PassInputs(catalog, fleet, remotes, {}, RecordedSetPackages(), self._build_upstreams(remotes), now)
        rules = self._build_upstream_rules(catalog, fleet)
        for tenant in ("", *catalog.tenants.by_name):
            view, limits = catalog.select_visible(tenant), self._get_limits(catalog, tenant)
            result = generate_package_variants(
                view, self._build_variant_inputs(inputs, limits, rules.get_check(tenant))
            )
            variants += (select_owned(result, view, tenant) if catalog.tenants else result).variants
        return tuple(variants)

    def _build_upstream_rules(self, catalog: Catalog, fleet: FleetConfig) -> UpstreamRules:
        return UpstreamRules(catalog.tenants, self._find_credential_tenant, fleet.upstream_urls)

    def _find_credential_tenant(self, url: str) -> str:
        """Return the only tenant that may use the credentials of a remote. Return "" if all tenants may use them."""
        if url.startswith("oci://"):
            # Return "" for an OCI registry, because `git.credentials` contains only credentials of Git remotes.
            return ""
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
        fleet, rules = self._fleets.get_fleet_config(catalog), self._settings.rules
        findings = [
            *lint_repositories(catalog),
            *lint_package_conflicts(result.variants, catalog.objects),
            *lint_functions(catalog, self._functions),
            *lint_generated(result.variants, fleet.policies, rules.on_missing_policy, catalog.objects),
            *lint_policies(fleet.policies.valid.values(), fleet.inventory.clusters),
        ]
        if catalog.is_complete and not fleet.inventory.uncertain_names:
            upstreams = self._build_upstreams(remotes)
            inputs = _PassInputs(catalog, fleet, remotes, {}, RecordedSetPackages(), upstreams, now)
            for tenant in ("", *catalog.tenants.by_name):
                findings += self._lint_variants_of_tenant(tenant, inputs)
            findings += lint_presets(catalog, fleet.inventory, self._limits if rules.expressions else None)
            owned = OwnedPackages({}, COMPONENT_GROUP, BINDING)
            findings += lint_components(
                catalog, fleet.inventory, self._build_component_inputs(owned, self._get_limits(catalog, ""))
            )
        return tuple(findings)

    def _lint_variants_of_tenant(self, tenant: str, inputs: _PassInputs) -> Iterator[Finding]:
        """Yield the findings about the objects of a tenant.

        The linters receive only the objects that the tenant may use.
        """
        catalog, find_owner = inputs.catalog, inputs.catalog.tenants.find_owner
        explain = self._build_upstream_rules(catalog, inputs.fleet).get_check(tenant)
        limits = self._get_limits(catalog, tenant)
        findings = lint_variants(catalog.select_visible(tenant), self._build_variant_inputs(inputs, limits, explain))
        return (finding for finding in findings if find_owner(finding.location.file) == tenant)

    def _build_upstreams(self, remotes: Remotes) -> FetchedUpstreams:
        return FetchedUpstreams(remotes, self._fleets.resolve_url, self._verifier, self._artifacts)

    def _build_variant_inputs(
        self, inputs: _PassInputs, limits: _ControllerLimits, explain_forbidden: Callable[[Repository], str]
    ) -> PackageVariantInputs:
        packages, helm = inputs.set_packages, self._settings.sources.helm
        return PackageVariantInputs(
            inputs.fleet.repositories, inputs.upstreams, packages.by_set, limits.max_delete_percent,
            self._engine_fingerprint, limits.expressions, inputs.now, packages.blocked,
            ChartDefaults(helm.kube_version, helm.hooks), self._settings.sources.max_per_package, explain_forbidden,
            inputs.recorded_artifacts.list_versions,
        )  # fmt: skip

    def _build_preset_inputs(self, before: PublishedPlugins, limits: _ControllerLimits) -> PluginPresetInputs:
        rules = self._settings.rules
        return PluginPresetInputs(
            before, limits.max_delete_percent, self._engine_fingerprint, before.get_blocked_counts(), rules.base_domain,
            rules.central_cluster, rules.expressions, limits.expressions, frozenset(rules.plugin_outputs),
        )  # fmt: skip

    def _build_component_inputs(self, before: OwnedPackages, limits: _ControllerLimits) -> ComponentControllerInputs:
        rules = self._settings.rules
        return ComponentControllerInputs(
            before,
            limits.max_delete_percent,
            self._engine_fingerprint,
            before.get_blocked_counts(),
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
        fleet = self._fleets.get_fleet_config(catalog)
        clusters = fleet.inventory.clusters
        overrides = ClusterOverrides(fleet.policies, clusters, options, strict_codes=frozenset(rules.strict))
        self._pairs.end_pass()
        self._templates_in.end_pass()
        template_options = TemplateOptions(rules.template_mode, frozenset(rules.strict))
        templates = TemplateMerger(fleet.merge_rules.rules, template_options, self._pairs, self._templates_in)
        return PackageRenderer(catalog, overrides, self._engine, templates)


def _list_existing_packages(states: Mapping[Target, TargetState]) -> frozenset[PackageTarget]:
    return frozenset(
        PackageTarget(target.key.namespace, target.name, package)
        for target, state in states.items()
        for package, _ in state.list_active_packages()
    )


def _iterate_recorded_commits(states: Mapping[Target, TargetState]) -> Iterator[str]:
    """Yield the commits and digests of the upstreams that published and drafted packages use."""
    for state in states.values():
        for _, record in state.list_active_packages():
            upstream = record.outcome.get("upstream", {})
            for entry in (upstream, *upstream.get("sources", ())):
                yield entry.get("commit", "")
                yield from (chart["digest"] for chart in entry.get("dependencies", ()))
            for version in (record.published_version, record.draft_version):
                if version:
                    yield from list_summary_commits(version.upstream)


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
    held = settings.guards.model_dump(include={"hold_kinds"}, exclude_defaults=True)
    held_part = f" held {compute_digest(held)}" if held else ""
    return f"{__version__} {settings.merge.profile}{merge_part}{rules_part}{functions_part}{limits_part}{held_part}"
