"""Component controller: converts the catalog into one package for each component, environment and cluster.

This module also limits the deletions of packages by an EnvBinding. Other modules render and build the packages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.controllers.cluster_packages import build_deletion_guard, get_package_target, keep_uncertain_packages
from reconciler.controllers.clusters.inventory import ClusterInventory
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.components.bindings import (
    ComponentBindings,
    Components,
    Environments,
    ResolvedBinding,
    UnresolvedBinding,
    get_requested_packages,
    read_components,
    read_environments,
    resolve_bindings,
)
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.compilation import CompilationResult, compile_untyped_component
from reconciler.controllers.components.component_renderer import (
    NO_INJECTED_VALUES,
    RenderedComponent,
    build_injected_values,
    find_build,
    render_component,
)
from reconciler.controllers.components.component_types import (
    ComponentTypeResult,
    compile_component_types,
    index_by_kind,
)
from reconciler.controllers.components.definition_index import DefinitionIndex, build_definition_index
from reconciler.controllers.components.definitions import read_addon, read_component_definition
from reconciler.controllers.components.inputs import ComponentCache, ComponentControllerInputs
from reconciler.controllers.components.model import Build, Component, read_build
from reconciler.controllers.components.names import BUILD, KINDS, RECONCILER_GROUP
from reconciler.controllers.components.package_builder import ComponentPackages, PackageBuilder, compute_manifest_digest
from reconciler.controllers.components.status import (
    build_binding_status,
    build_component_status,
    build_definition_statuses,
    build_environment_statuses,
    build_rejected_status,
    build_type_status,
)
from reconciler.controllers.deletion_guards import PackageLocation, decide_deletions, read_acknowledged_hashes
from reconciler.controllers.results import (
    ConfigStatus,
    ControllerResult,
    DeletionGuard,
    PackageOwner,
    StalledVariant,
)
from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.objects import Condition, ObjectKey
from reconciler.lazy_dataclasses import dataclass, field


def guard_binding(
    manifest: ConfigObject,
    existing: Sequence[PackageLocation],
    requested: Collection[PackageLocation],
    inventory: ClusterInventory,
    inputs: ComponentControllerInputs,
) -> DeletionGuard:
    """Return the deletion guard for the packages that an EnvBinding no longer requests."""
    obsolete = [location for location in existing if location not in requested]
    confirmed = read_acknowledged_hashes(manifest.annotations)
    held, labels = inputs.blocked_counts.get(manifest.key, {}), ("packages", manifest.key.reference)
    decision = decide_deletions(obsolete, len(existing), held, confirmed, inputs.max_delete_percent, labels)
    targets = frozenset(get_package_target(location, inventory) for location in obsolete)
    return build_deletion_guard(decision, targets, confirmed)


def reconcile_components(
    catalog: Catalog,
    inventory: ClusterInventory,
    inputs: ComponentControllerInputs,
    cache: ComponentCache | None = None,
) -> ControllerResult:
    """Return one package for each component, environment and cluster that an EnvBinding requests, with all findings.

    Packages that cannot be computed are stalled: their published content stays unchanged. If the inputs of a result
    have not changed since the previous pass, the result comes from the cache.
    """
    cache = cache or ComponentCache()
    cache.begin_pass(inputs)
    controller_pass = _ComponentPass(
        read_component_snapshot(catalog, inventory, inputs, cache), inventory, inputs, cache
    )
    controller_pass.process()
    controller_pass.keep_uncertain_packages()
    guards = controller_pass.build_guards()
    result = ControllerResult(
        tuple(variant for packages in controller_pass.packages for variant in packages.variants),
        tuple(controller_pass.stalled),
        tuple(controller_pass.build_statuses()),
        tuple(
            dict.fromkeys(
                (*controller_pass.snapshot.findings, *controller_pass.findings, *controller_pass.check_guards(guards))
            )
        ),
        frozenset(controller_pass.kept_objects),
        guards=guards,
    )
    cache.end_pass()
    return result


@dataclass(frozen=True, eq=False)
class ComponentSnapshot:
    """Compiled config objects that the component controller uses in one pass."""

    catalog: Catalog
    definition_index: DefinitionIndex
    types: tuple[ComponentTypeResult, ...]
    components: Components
    environments: Environments
    builds: Mapping[tuple[str, str], Build]
    uncertain_builds: frozenset[tuple[str, str]]
    bindings: ComponentBindings
    findings: tuple[Finding, ...]


def read_component_snapshot(
    catalog: Catalog, inventory: ClusterInventory, inputs: ComponentControllerInputs, cache: ComponentCache
) -> ComponentSnapshot:
    """Read and compile all objects of a config that the component controller uses."""
    limits = inputs.cel_limits
    index = build_definition_index(
        catalog,
        partial(cache.read, read_component_definition, limits=limits),
        partial(cache.read, read_addon, limits=limits),
    )
    types = compile_component_types(catalog, index, inputs, cache)
    components = read_components(catalog, {result.kind for result in types if result.kind} - {*KINDS}, cache)
    environments = read_environments(catalog, inventory, cache)
    builds, uncertain, build_findings = _read_builds(catalog, cache)
    bindings = resolve_bindings(catalog, components, environments, cache)
    # Skip the findings of component types that are declared more than once, because the catalog already reports them.
    type_findings = (result.compilation.findings for result in types if result.manifest.key not in catalog.duplicates)
    findings = (
        *index.findings, *(finding for group in type_findings for finding in group), *components.findings,
        *environments.findings, *build_findings, *bindings.findings,
    )  # fmt: skip
    return ComponentSnapshot(catalog, index, types, components, environments, builds, uncertain, bindings, findings)


def _read_builds(
    catalog: Catalog, cache: ComponentCache
) -> tuple[dict[tuple[str, str], Build], frozenset[tuple[str, str]], list[Finding]]:
    builds: dict[tuple[str, str], Build] = {}
    duplicates = (key for key in catalog.duplicates if (key.group, key.kind) == (RECONCILER_GROUP, BUILD))
    uncertain = {(key.namespace, key.name) for key in duplicates}
    findings: list[Finding] = []
    for manifest in catalog.objects_of_kind(RECONCILER_GROUP, BUILD):
        build, build_findings = cache.read(read_build, manifest)
        findings += build_findings
        if build:
            builds[manifest.key.namespace, manifest.key.name] = build
        else:
            uncertain.add((manifest.key.namespace, manifest.key.name))
    return builds, frozenset(uncertain), findings


@dataclass
class _ComponentPass:
    """One pass of the component controller, which collects packages, stalled EnvBindings, findings and statuses."""

    snapshot: ComponentSnapshot
    inventory: ClusterInventory
    inputs: ComponentControllerInputs
    cache: ComponentCache
    packages: list[ComponentPackages] = field(default_factory=list)
    stalled: list[StalledVariant] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    kept_objects: set[ObjectKey] = field(default_factory=set)
    _statuses: list[ConfigStatus] = field(default_factory=list)
    _validations: dict[ObjectKey, RenderedComponent | None] = field(default_factory=dict)
    _rendered: dict[ObjectKey, list[RenderedComponent]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._owners = self.inputs.records.get_owned_packages()
        self._types_by_kind = index_by_kind(self.snapshot.types)
        self._package_builder = PackageBuilder(
            self.inventory, partial(self.cache.read, compute_manifest_digest), self.inputs.engine
        )

    def process(self) -> None:
        """Process every EnvBinding, and then validate every component."""
        for resolved in self.snapshot.bindings.resolved:
            self._process_binding(resolved)
        for unresolved in self.snapshot.bindings.unresolved:
            self._process_unresolved(unresolved)
        for component in self.snapshot.components.by_name.values():
            self._validate_component(component)

    def _process_binding(self, resolved: ResolvedBinding) -> None:
        compilation = self._compile(resolved.component)
        if compilation.plan is None:
            self._stall(resolved.binding.manifest, self._check_readiness(resolved, compilation))
            return
        build = find_build(self.snapshot.builds, resolved.component, resolved.binding.environment)
        if reason := self._explain_uncertainty(resolved, build):
            self._stall(resolved.binding.manifest, (), reason)
            return
        key = (
            *compilation.plan.iter_dependencies(resolved.component),
            resolved.component,
            resolved.binding,
            resolved.environment,
            build,
        )
        plan, values = compilation.plan, build_injected_values(resolved.binding, resolved.environment, build)
        rendered = self.cache.get_or_create(
            key, lambda: render_component(plan, resolved.component, resolved.binding, values, self.inputs.cel_limits)
        )
        self._rendered.setdefault(resolved.component.key, []).append(rendered)
        if rendered.errors:
            self._stall(resolved.binding.manifest, rendered.findings)
            return
        targets = self._package_builder.list_targets(resolved)
        packages = self.cache.get_or_create(
            (rendered, *targets), lambda: self._package_builder.build(resolved, plan, build, rendered)
        )
        self.packages.append(packages)
        self._statuses.append(build_binding_status(packages))

    def _compile(self, component: Component) -> CompilationResult:
        """Return the compiled type of a component. If the component has no type, compile the component itself."""
        if component.has_type:
            return self._types_by_kind[component.key.kind].compilation
        if not self.inputs.runtime_composition:
            message = (
                f"{component.key} has no component type, but the setting `rules.runtime_composition` is false; use a"
                " kind that a ComponentType generates, or set `rules.runtime_composition` to true"
            )
            return CompilationResult(
                None, (ComponentCodes.RUNTIME_COMPOSITION_DISABLED.finding(message, component.manifest.location),)
            )
        index = self.snapshot.definition_index
        return self.cache.get_or_create(
            (component, *index.list_used(component.definition, component.addon_names)),
            lambda: compile_untyped_component(component, index),
        )

    def _check_readiness(self, resolved: ResolvedBinding, compilation: CompilationResult) -> tuple[Finding, ...]:
        if not resolved.component.has_type:
            return select_errors(compilation.findings)
        component_type = self._types_by_kind[resolved.component.key.kind]
        reason = component_type.not_ready_reason
        message = f"{resolved.component.key} uses {component_type.manifest.key}, which is not ready, because {reason}"
        return (ComponentCodes.COMPONENT_TYPE_NOT_READY.finding(message, resolved.component.manifest.location),)

    def _explain_uncertainty(self, resolved: ResolvedBinding, build: Build | None) -> str:
        """Return the reason why the Build of the component is unknown. Return "" if the Build is known.

        A Build is unknown if it is invalid, declared more than once, or in a file that cannot be read.
        """
        namespace, name = resolved.component.key.namespace, resolved.component.key.name
        names = [(namespace, f"{name}.{resolved.binding.environment}"), (namespace, name)]
        candidates = names[: names.index((build.manifest.key.namespace, build.manifest.key.name))] if build else names
        # An unusable Build can have no namespace. It may belong to this component. Therefore, check the keys with and
        # without the namespace.
        for key in (
            key_or_unscoped_key for candidate in candidates for key_or_unscoped_key in (candidate, ("", candidate[1]))
        ):
            if key in self.snapshot.uncertain_builds:
                return f"the package is kept, because Build {'/'.join(key)} cannot be used"
        if self._is_catalog_complete:
            return ""
        locations = [(cluster, resolved.package) for cluster in resolved.clusters]
        references = (reference for location in locations for reference in self._list_recorded_builds(location))
        if missing := sorted(reference for reference in references if reference not in self._object_names):
            kind, _, name = missing[0].partition("/")
            return f"the package is kept, because {kind} {name} may be in a file that cannot be read"
        return ""

    def _list_recorded_builds(self, location: PackageLocation) -> Iterator[str]:
        yield from (name for name in self._recorded_inputs.get(location, ()) if name.partition("/")[0] == BUILD)

    @cached_property
    def _is_catalog_complete(self) -> bool:
        return self.snapshot.catalog.is_complete

    @cached_property
    def _object_names(self) -> Collection[str]:
        return frozenset(key.reference for key in self.snapshot.catalog.objects)

    @cached_property
    def _recorded_inputs(self) -> Mapping[PackageLocation, Collection[str]]:
        return self.inputs.records.get_recorded_inputs()

    def _process_unresolved(self, unresolved: UnresolvedBinding) -> None:
        if unresolved.is_component_missing:
            self.findings += unresolved.findings
            self._statuses.append(build_rejected_status(unresolved.manifest, select_errors(unresolved.findings)[0]))
        else:
            self._stall(unresolved.manifest, unresolved.findings)

    def _stall(self, manifest: ConfigObject, findings: Sequence[Finding], reason: str = "") -> None:
        """Keep the packages of an EnvBinding unchanged.

        The status contains the errors in `findings`. If there are no errors, the status contains `reason`.
        """
        # An EnvBinding without a namespace can be the owner of packages in any namespace. Therefore, keep the packages
        # of all recorded owners with the same name.
        if not manifest.key.namespace:
            self.kept_objects |= {owner.key for owner in self._owners.values() if owner.key.name == manifest.key.name}
        stall_errors = select_errors(tuple(findings))
        code = stall_errors[0].code if stall_errors else "InDoubt"
        message = "; ".join(error.message for error in stall_errors) or reason
        ready = Condition("Ready", "False", code, message)
        owner = PackageOwner(manifest.key, manifest.api_version)
        self.stalled.append(StalledVariant(owner, (ready,), tuple(findings), packages=get_requested_packages(manifest)))

    def _validate_component(self, component: Component) -> None:
        """Validate the values of a component, and record the result for the status of the component.

        A component can omit required values if the EnvBindings of all its environments set these values. Errors in an
        environment are reported for the EnvBinding, and not for the component.
        """
        compilation = self._compile(component)
        if compilation.plan is None:
            self._validations[component.key] = None
            # Do not report errors of the component type again for each component.
            self.findings += () if component.has_type else compilation.findings
            return
        plan = compilation.plan
        validation = self.cache.get_or_create(
            (*plan.iter_dependencies(component), component),
            lambda: render_component(plan, component, None, NO_INJECTED_VALUES, self.inputs.cel_limits),
        )
        environments = self._rendered.get(component.key, [])
        is_valid = bool(environments) and not any(rendered.errors for rendered in environments)
        self._validations[component.key] = environments[0] if is_valid else validation
        self.findings += () if component.has_type else compilation.findings
        self.findings += () if environments else validation.findings

    def keep_uncertain_packages(self) -> None:
        """Keep the packages on each cluster whose config object may be unusable or declared more than once."""
        self.stalled += keep_uncertain_packages(self._owners, self._list_requested_packages(), self.inventory)

    def _list_requested_packages(self) -> set[PackageLocation]:
        """Return all packages that EnvBindings request, including stalled packages."""
        targets = [variant.target for packages in self.packages for variant in packages.variants]
        targets += (stalled.target for stalled in self.stalled if stalled.target)
        return {(target.repository, target.package) for target in targets}

    def build_guards(self) -> dict[ObjectKey, DeletionGuard]:
        """Return a deletion guard for each EnvBinding that was processed or whose component is missing."""
        requested, existing = self._list_requested_packages(), dict[ObjectKey, list[PackageLocation]]()
        for location, owner in sorted(self._owners.items()):
            existing.setdefault(owner.key, []).append(location)
        manifests = [packages.resolved_binding.binding.manifest for packages in self.packages]
        manifests += (binding.manifest for binding in self.snapshot.bindings.unresolved if binding.is_component_missing)
        return {
            manifest.key: guard_binding(
                manifest, existing.get(manifest.key, ()), requested, self.inventory, self.inputs
            )
            for manifest in manifests
        }

    def check_guards(self, guards: Mapping[ObjectKey, DeletionGuard]) -> Iterator[Finding]:
        """Yield a finding for each EnvBinding whose deletions wait for a confirmation."""
        for key, guard in guards.items():
            if guard.reason:
                yield ControllerCodes.DELETION_HELD.finding(guard.reason, self.snapshot.catalog.objects[key].location)

    def build_statuses(self) -> Iterator[ConfigStatus]:
        """Yield the statuses of definitions, addons, environments, components, component types and EnvBindings."""
        yield from build_definition_statuses(self.snapshot.definition_index, self.snapshot.catalog)
        yield from build_environment_statuses(self.snapshot.environments, self.snapshot.catalog)
        validations_by_kind: dict[str, list[tuple[Component, RenderedComponent | None]]] = {}
        for component in self.snapshot.components.by_name.values():
            validation = self._validations[component.key]
            validations_by_kind.setdefault(component.key.kind, []).append((component, validation))
            yield build_component_status(component, self._compile(component), validation)
        for manifest, finding in self.snapshot.components.rejected:
            yield build_rejected_status(manifest, finding)
        for result in self.snapshot.types:
            yield build_type_status(result, validations_by_kind.get(result.kind, ()))
        yield from self._statuses
