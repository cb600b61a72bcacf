"""Rendering of one package: a pure function from a variant and its inputs to the rendered package."""

from __future__ import annotations

import operator
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial

from reconciler.api.kpt import FunctionSpec
from reconciler.api.porch.policies import ConflictPolicy
from reconciler.api.profile import Profile
from reconciler.catalog.catalog import Catalog
from reconciler.catalog.files import FileTree, SpecialEntry
from reconciler.catalog.tenants import TENANT_DEPENDENCY, Tenant
from reconciler.catalog.trace import CatalogView, DependencyReader, format_dependency
from reconciler.controllers.resource_findings import find_secrets
from reconciler.controllers.results import (
    ConfigInjection,
    MutationResult,
    UpstreamPackage,
    Variant,
)
from reconciler.krm.findings import (
    Finding,
    SourceLocation,
    downgrade_to_warning,
    select_errors,
    set_package_location,
    set_source_locations,
)
from reconciler.krm.merge3.rules import Conflict, Winner
from reconciler.krm.names import validate_tree_path
from reconciler.krm.objects import Condition, upsert_conditions
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.packages.clone import (
    SEVERAL_SOURCES,
    ResolvedUpstream,
    StoredUpstream,
    UpstreamLock,
    clone_package,
    read_upstream_lock,
)
from reconciler.packages.functions.function import Item
from reconciler.packages.functions.registry import BUILTIN_FUNCTIONS
from reconciler.packages.kptfile import KPTFILE, Kptfile, find_credentials, read_kptfile
from reconciler.packages.package_context import ensure_package_context
from reconciler.packages.parsing import masked_names
from reconciler.packages.pipeline import FunctionProvider, RenderFailure, RenderResult
from reconciler.packages.pipeline import render_pipelines as run_pipeline
from reconciler.packages.sops_files import check_sops_files
from reconciler.packages.update.options import MergeOptions
from reconciler.planning.model.adoption import build_adopted_package
from reconciler.planning.model.cluster_overrides import ClusterOverrides, PreviousOverrides, build_overridden_condition
from reconciler.planning.model.codes import PlanningCodes
from reconciler.planning.model.outcomes import FilesStage, FunctionStage, PackageRender, PolicyStage, RenderStage
from reconciler.planning.model.sources import (
    REPLACING_STRATEGIES,
    PackageSource,
    RenderInputs,
    find_local_special_entries,
    find_overruled_changes,
    locate_conflict,
    merge_source,
    remove_special_entries,
)
from reconciler.planning.model.targets import list_folders_above
from reconciler.planning.render.conflict_policy import select_conflict_policy
from reconciler.planning.render.held_resources import hold_removed_resources
from reconciler.planning.render.local_changes import LostChanges, find_lost_changes, separate_template_changes
from reconciler.planning.render.render_steps import RenderStep
from reconciler.planning.render.templates import TemplateMerger
from reconciler.tenancy.render_rules import check_functions, check_resources

# The steps of a render with an upstream package, in their order. Override policies are also applied to generated files.
CLONE_STEP = RenderStep("clone", clone_package, depends_on_cluster=False)
CONTEXT_STEP = RenderStep("context", ensure_package_context, depends_on_cluster=False)
# Do not cache mutations, because they inject objects of the config, and copy values from the previous render.
MUTATION_STEP: RenderStep[MutationResult] = RenderStep("mutation", operator.call, depends_on_cluster=True)
# Do not cache calls of external functions, because a new version of a program can return a different result. Do not
# cache failures, because a function can be available later.
FUNCTION_STEP = RenderStep(
    "functions",
    run_pipeline,
    depends_on_cluster=False,
    can_cache=lambda result: result.failure is None and not result.function_identities,
)
OVERRIDE_STEP = RenderStep("overrides", ClusterOverrides.override, depends_on_cluster=True)
RENDERED_CONDITION = "Rendered"
_SUCCESS = Condition(RENDERED_CONDITION, "True", "RenderSuccess")
CRD_GROUP, CRD_KIND = "apiextensions.k8s.io", "CustomResourceDefinition"


@dataclass(frozen=True)
class RenderEngine:
    """Settings and functions of the package engine.

    Attributes:
        profile: The merge behavior: `safe`, or `compat` for the behavior of kpt.
        conflict_policy: The policy for variants without a `conflictPolicy`. None means the default of the profile.
        merge_options: The merge options of the profile and of the other settings.
        should_block_secrets: Whether a Secret with values blocks its package.
        hold_kinds: The kinds whose resources stay in a package until a person confirms their deletion, as `Kind` or
            `Kind.group`.
        skipped_mutator: The package and the index of a mutator that is skipped, so that its effect can be explained.
    """

    profile: Profile
    conflict_policy: ConflictPolicy | None = None
    functions: FunctionProvider = BUILTIN_FUNCTIONS
    merge_options: MergeOptions = field(default_factory=MergeOptions)
    should_block_secrets: bool = False
    hold_kinds: frozenset[str] = frozenset()
    skipped_mutator: tuple[str, int] | None = None

    def resolve_conflict_policy(self, variant: Variant, *, is_generated: bool) -> ConflictPolicy:
        """Return the conflict policy of a package. In generated packages, the generated content always wins."""
        if is_generated:
            return "upstream"
        return select_conflict_policy(variant.conflict_policy, self.conflict_policy, self.profile)


@dataclass(frozen=True)
class PackageRenderer:
    """Renders packages with the objects, clusters and policies of one config commit.

    Attributes:
        should_keep_stages: Whether the result contains the package after each step. The command `explain` requires
            these packages.
        adjust_source: Function that changes a package source before its render. The command `explain` uses it to remove
            a value.
        is_tenant_view: Whether the catalog and the policies contain only what one tenant can see.
    """

    catalog: Catalog
    cluster_overrides: ClusterOverrides
    engine: RenderEngine
    template_merger: TemplateMerger = field(default_factory=TemplateMerger)
    should_keep_stages: bool = False
    adjust_source: Callable[[PackageSource, MergeOptions], PackageSource] | None = None
    is_tenant_view: bool = False

    @cached_property
    def dependency_reader(self) -> DependencyReader:
        """The reader that computes the current fingerprints of the dependencies of a render."""
        platform = self if self.is_tenant_view else self.for_tenant("")
        functions = {
            **platform.cluster_overrides.build_dependency_functions(),
            **platform.template_merger.build_dependency_functions(),
        }
        if not self.is_tenant_view:
            # Use the bound method `self._fingerprint_for_tenant` only if there are tenants. It creates a reference
            # cycle, so that Python does not free the memory of this renderer immediately at the end of the pass.
            tenants = self.catalog.tenants
            functions[TENANT_DEPENDENCY] = self._fingerprint_for_tenant if tenants else _fingerprint_unknown_tenant
        return DependencyReader(platform.catalog, functions)

    def _fingerprint_for_tenant(self, arguments: Sequence[str]) -> str:
        tenant, *dependency = arguments
        if tenant not in self.catalog.tenants.by_name:
            return ""
        return self.for_tenant(tenant).dependency_reader.read_fingerprint(format_dependency(*dependency))

    def for_tenant(self, tenant: str) -> PackageRenderer:
        """Return the renderer for the packages of a tenant. It reads only the objects that the tenant can see.

        The platform team has the name "".
        """
        if not self.catalog.tenants or self.is_tenant_view:
            return self
        if tenant not in self._tenant_renderers:
            catalog = self.catalog.select_visible(tenant)
            keys = catalog.objects.keys() | catalog.duplicates
            policies = self.cluster_overrides.policies.select(keys, is_complete=catalog.is_complete)
            overrides = replace(self.cluster_overrides, policies=policies)
            renderer = replace(self, catalog=catalog, cluster_overrides=overrides, is_tenant_view=True)
            self._tenant_renderers[tenant] = renderer
        return self._tenant_renderers[tenant]

    @cached_property
    def _tenant_renderers(self) -> dict[str, PackageRenderer]:
        return {}

    def __call__(self, variant: Variant, inputs: RenderInputs) -> PackageRender:
        """Render a package. Kafka templates of other packages are merged later.

        Raises:
            InterruptedFunctionError: A function was interrupted from outside.
        """
        with masked_names(variant.cluster, variant.owner.key.name):
            return render_package(variant, inputs, self)


def _fingerprint_unknown_tenant(arguments: Sequence[str]) -> str:
    return ""


def render_package(variant: Variant, inputs: RenderInputs, renderer: PackageRenderer) -> PackageRender:
    """Render a package: update it, add its context, mutate it, run its functions, and apply override policies.

    Kafka templates are merged later, when all packages of the cluster are rendered (module `templates`).

    If a function fails or cannot run here, the result is the package before the pipeline. Its condition `Rendered` is
    False and is a readiness gate.

    Returns:
        The rendered package. If its findings contain an error, its files must not be used. Examples are a path that
            must not be written to a branch, or a conflict with the conflict policy `block`.

    Raises:
        InterruptedFunctionError: A function was interrupted from outside.
    """
    if inputs.published and inputs.published.is_foreign:
        clean = render_package(variant, replace(inputs, published=None), renderer)
        if select_errors(clean.findings):
            return clean
        adopted = build_adopted_package(inputs.published.files, inputs.source_files, clean.files)
        inputs = replace(inputs, published=adopted)
    renderer = renderer.for_tenant(variant.tenant)
    tenant = renderer.catalog.tenants.by_name.get(variant.tenant)
    prefix = (TENANT_DEPENDENCY, tenant.name) if tenant else ()
    view, engine = CatalogView(renderer.dependency_reader, prefix), renderer.engine
    special, inputs = find_local_special_entries(inputs), remove_special_entries(inputs)
    inputs = separate_template_changes(inputs, renderer.template_merger.merge_rules) if variant.cluster else inputs
    policy = engine.resolve_conflict_policy(variant, is_generated=inputs.is_generated)
    options = _merge_options(inputs, engine, policy, view)
    inputs, held_findings = hold_removed_resources(variant, inputs, engine.hold_kinds)
    source = merge_source(inputs, variant.strategy, options)
    if renderer.adjust_source and not select_errors(source.findings):
        source = renderer.adjust_source(source, options)
    source_findings = (
        *inputs.source_findings,
        *held_findings,
        *source.findings,
        *(_iterate_blocking_conflicts(source) if policy == "block" else ()),
    )
    run = _RenderRun(variant, source, view, renderer.should_keep_stages, tenant)
    rendered = run.render(inputs, renderer) if not select_errors(source_findings) else PackageRender(source.files)
    if not select_errors((*source_findings, *rendered.findings)):
        rendered = _check_sops_files(_check_secrets(rendered, engine), inputs)
        rendered = _add_special_entries(rendered, special, variant)
        rendered = _check_tenant_resources(rendered, tenant) if tenant else rendered
    render_findings = (*source_findings, *rendered.findings)
    # Locate findings about a generated package in the config, because the user must correct them there.
    locations = view.locations if inputs.is_generated else {}
    findings = (
        *variant.findings,
        *set_package_location(
            set_source_locations(render_findings, locations), str(variant.target), variant.owner.key.reference
        ),
    )
    overruled = tuple(_iterate_overruled_changes(source, run.rule_results, options))
    if not select_errors(findings):
        source = _add_lost_changes(source, find_lost_changes(inputs, rendered.files, (*source.conflicts, *overruled)))
    return replace(
        rendered,
        has_template_roles=bool(variant.cluster) and renderer.template_merger.has_template_roles(rendered.files),
        source=source,
        overruled_changes=overruled,
        findings=findings,
        trace={**view.trace, **rendered.trace},
        input_files=view.files,
        source_locations=locations,
        merge_options=options,
        stages=tuple(run.stages),
    )


def _add_lost_changes(source: PackageSource, lost: LostChanges) -> PackageSource:
    if not lost.published_conflicts and not lost.draft_conflicts:
        return source
    return replace(
        source,
        published_conflicts=(*source.published_conflicts, *lost.published_conflicts),
        draft_conflicts=(*source.draft_conflicts, *lost.draft_conflicts),
    )


def _add_special_entries(
    rendered: PackageRender, special: Mapping[str, SpecialEntry], variant: Variant
) -> PackageRender:
    """Add the local symbolic links and submodules to a package. If their paths are occupied, add errors instead."""
    kinds = {**dict.fromkeys(rendered.files, "file"), **{path: entry.kind for path, entry in special.items()}}
    findings = [
        *_list_path_findings(variant, kinds),
        *_iterate_nested_path_findings(kinds),
        *(_create_occupied_path_finding(path, entry) for path, entry in special.items() if path in rendered.files),
    ]
    if not findings:
        files = rendered.files.with_special_entries(special)
        return rendered if files is rendered.files else replace(rendered, files=files)
    return replace(rendered, findings=(*rendered.findings, *findings), blocking_code=findings[0].code)


def _iterate_nested_path_findings(kinds: Mapping[str, str]) -> Iterator[Finding]:
    for path in kinds:
        above = next((folder for folder in list_folders_above(path) if folder in kinds), None)
        if above is not None:
            message = (
                f'the package contains "{above}" and "{path}", but "{above}" cannot be both a {kinds[above]} and a'
                " folder. Next step: rename or delete one of the two"
            )
            yield PlanningCodes.LOCAL_FILE_IN_THE_WAY.finding(message, SourceLocation(above))


def _create_occupied_path_finding(path: str, entry: SpecialEntry) -> Finding:
    message = (
        f'a file of the package has the same path as the local {entry.kind} "{path}". Next step: rename or delete the'
        f" {entry.kind}"
    )
    return PlanningCodes.LOCAL_FILE_IN_THE_WAY.finding(message, SourceLocation(path))


def _check_secrets(rendered: PackageRender, engine: RenderEngine) -> PackageRender:
    """Add findings about Secrets to a package. The findings block the package if the settings require this."""
    findings = find_secrets(rendered.files, block=engine.should_block_secrets)
    if not findings:
        return rendered
    code = findings[0].code if engine.should_block_secrets else rendered.blocking_code
    return replace(rendered, findings=(*rendered.findings, *findings), blocking_code=code)


def _check_sops_files(rendered: PackageRender, inputs: RenderInputs) -> PackageRender:
    """Add findings about SOPS documents to a package. A value that is not encrypted blocks the package."""
    branches = [branch for branch in (inputs.published, inputs.drafted) if branch]
    earlier = [inputs.source_files, *(tree for branch in branches for tree in (branch.base, branch.rendered))]
    findings = check_sops_files(rendered.files, earlier)
    if not findings:
        return rendered
    errors = select_errors(findings)
    code = errors[0].code if errors else rendered.blocking_code
    return replace(rendered, findings=(*rendered.findings, *findings), blocking_code=code)


def _check_tenant_resources(rendered: PackageRender, tenant: Tenant) -> PackageRender:
    """Add errors for the resources that the tenant may not deploy. The errors block the package."""
    findings = check_resources(rendered.files, tenant)
    code = findings[0].code if findings else rendered.blocking_code
    return replace(rendered, findings=(*rendered.findings, *findings), blocking_code=code)


class _RenderRun:
    """One render in progress.

    Attributes:
        rule_results: For each completed step that can replace local changes: the name of the step, and the package
            after the step.
        stages: The package after each step, if the renderer records the steps.
        findings: The findings of the steps until now.
    """

    def __init__(
        self,
        variant: Variant,
        source: PackageSource,
        view: CatalogView,
        should_keep_stages: bool,
        tenant: Tenant | None,
    ) -> None:
        self.tenant = tenant
        self.variant = variant
        self.source = source
        self.view = view
        self.should_keep_stages = should_keep_stages
        self.rule_results: list[tuple[str, FileTree]] = []
        self.stages: list[RenderStage] = []
        self.findings: tuple[Finding, ...] = ()

    def render(self, inputs: RenderInputs, renderer: PackageRenderer) -> PackageRender:
        engine = renderer.engine
        files, upstream = self.source.files, self.variant.upstream
        if upstream:
            files = self._add_findings(*_clone(self.variant, upstream, self.source, engine))
            self._keep(FilesStage("clone", files))
            files = (
                self._add_findings(*_add_package_context(self.variant, files))
                if not select_errors(self.findings)
                else files
            )
        if select_errors(self.findings):
            return PackageRender(files, findings=self.findings)
        self._keep(FilesStage("context", files))
        mutated = MUTATION_STEP(self.variant.mutation, files, self.view, inputs.previous_render)
        self._keep(*(FilesStage(name, changed) for name, changed in mutated.stages or (("controller", mutated.files),)))
        files = self._add_findings(mutated.files, mutated.findings)
        if select_errors(self.findings):
            return PackageRender(files, findings=self.findings)
        self.rule_results.append((self.variant.owner.key.kind, files))
        if upstream is None:
            return self._apply_overrides(PackageRender(files, (_SUCCESS,)), renderer, inputs.previous_overrides)
        rendered, has_failed = self._run_functions(files, mutated.injections, engine, inputs.charts)
        # If a function failed, this render applied no override policy. Therefore, keep the override rules of the last
        # render. With the new rules, a rollout would treat the package as already updated.
        return (
            replace(rendered, rule_texts=inputs.previous_overrides.rule_texts)
            if has_failed
            else self._apply_overrides(rendered, renderer, inputs.previous_overrides)
        )

    def _add_findings(self, files: FileTree, findings: tuple[Finding, ...]) -> FileTree:
        self.findings += findings
        return files

    def _keep(self, *stages: RenderStage) -> None:
        if self.should_keep_stages:
            self.stages += stages

    def _run_functions(
        self, files: FileTree, injected: tuple[ConfigInjection, ...], engine: RenderEngine, charts: FileTree
    ) -> tuple[PackageRender, bool]:
        """Return the package after its functions, and whether the render must stop.

        The render stops if a function failed, or if the package has errors.
        """
        stages: list[FunctionStage] = []
        if self.tenant and (forbidden := check_functions(files, self.tenant)):
            return PackageRender(files, findings=(*self.findings, *forbidden)), True
        if self.should_keep_stages or engine.skipped_mutator:
            result = run_pipeline(
                files, engine.functions, engine.profile, charts, skipped_mutator=engine.skipped_mutator,
                observer=partial(_record_stage, stages),
            )  # fmt: skip
        else:
            result = FUNCTION_STEP(files, engine.functions, engine.profile, charts)
        if findings := (*_list_path_findings(self.variant, result.files), *_iterate_credential_findings(result.files)):
            return PackageRender(
                result.files, findings=(*self.findings, *findings), trace=result.function_identities
            ), True
        self.rule_results.append(("pipeline", result.files))
        if result.failure is None:
            self._keep(*stages, *(FilesStage("function", result.files) for _ in stages[:1]))
        self.findings += _list_pipeline_findings(self.variant, result)
        conditions, gates = _build_conditions(result)
        steps = tuple(step.as_data() for step in result.steps)
        rendered = PackageRender(
            result.files, conditions, gates, injected, steps, self.findings, result.function_identities
        )
        return rendered, result.failure is not None

    def _apply_overrides(
        self, rendered: PackageRender, renderer: PackageRenderer, previous: PreviousOverrides
    ) -> PackageRender:
        """Apply the override policies of the cluster. A package without a cluster is not changed."""
        if not self.variant.cluster:
            return rendered
        result = OVERRIDE_STEP(renderer.cluster_overrides, rendered.files, self.variant.cluster, self.view, previous)
        renderer.template_merger.record_rules_dependency(result.files, self.view)
        self.findings += result.findings
        overridden = replace(rendered, findings=self.findings, policy_usage=result.usage)
        if errors := select_errors(result.findings):
            return replace(overridden, blocking_code=errors[0].code)
        self.rule_results.append(("overrides", result.files))
        self._keep(PolicyStage(result.resources), FilesStage("strip", result.files))
        conditions = upsert_conditions(rendered.conditions, *build_overridden_condition(result))
        rules = {name: text for name, text in result.rule_texts.items() if text is not None}
        overrides = tuple(result.as_data())
        return replace(overridden, files=result.files, conditions=conditions, overrides=overrides, rule_texts=rules)


def _record_stage(
    stages: list[FunctionStage], package: str, number: int, spec: FunctionSpec, items: Sequence[Item]
) -> None:
    stages.append(FunctionStage(package, number, spec, tuple(items)))


def _merge_options(
    inputs: RenderInputs, engine: RenderEngine, policy: ConflictPolicy, view: CatalogView
) -> MergeOptions:
    options = engine.merge_options
    winner: Winner = "local" if policy == "local" else "upstream"
    rules = options.rules if options.rules.winner == winner else replace(options.rules, winner=winner)
    # Record all CustomResourceDefinitions as dependencies, because a merge uses their schemas.
    definitions = view.objects_of_kind(CRD_GROUP, CRD_KIND) if inputs.needs_merge else ()
    schemas = options.schemas.with_crds(
        *(definition.data for definition in definitions), compat=engine.profile == "compat"
    )
    if rules is options.rules and schemas is options.schemas:
        return options
    return replace(options, rules=rules, schemas=schemas)


def _iterate_blocking_conflicts(source: PackageSource) -> Iterator[Finding]:
    # Ignore conflicts of strategies that replace local changes, because the user requested this replacement.
    for conflict in (entry for entry in source.conflicts if entry.rule not in REPLACING_STRATEGIES):
        field = f"the field {conflict.pointer} of " if conflict.pointer else ""
        message = (
            f"{field}{conflict.resource or conflict.file} was changed locally and upstream, and the conflictPolicy is"
            ' "block". Next step: undo one of the two changes, or set conflictPolicy to "upstream" or "local"'
        )
        yield PlanningCodes.MERGE_CONFLICT.finding(message, SourceLocation(conflict.file, pointer=conflict.pointer))


def _iterate_overruled_changes(
    source: PackageSource, rule_results: Iterable[tuple[str, FileTree]], options: MergeOptions
) -> Iterator[Conflict]:
    known = set()
    for rule, files in rule_results:
        for conflict in find_overruled_changes(source, files, rule, options):
            if (location := locate_conflict(conflict)) not in known:
                known.add(location)
                yield conflict


def _list_path_findings(variant: Variant, files: Iterable[str]) -> tuple[Finding, ...]:
    location = SourceLocation(object=variant.owner.key.reference)
    errors = filter(None, map(validate_tree_path, files))
    return tuple(
        PlanningCodes.PATH_REFUSED.finding(
            f"package {variant.target} contains a path that is not allowed: {error}", location
        )
        for error in errors
    )


def _iterate_credential_findings(files: FileTree) -> Iterator[Finding]:
    """Yield an error for each URL with credentials in a Kptfile, because a draft would copy them to another branch."""
    for path, file in files.items():
        # To save time, parse only a Kptfile that contains "@" or a backslash. Each URL with credentials contains "@",
        # and YAML can write this character as an escape with a backslash.
        if path.rpartition("/")[2] == KPTFILE and (b"@" in file.data or b"\\" in file.data):
            kptfile = read_kptfile(file.data)
            yield from find_credentials(kptfile, path) if isinstance(kptfile, Kptfile) else ()


def _clone(
    variant: Variant, upstream: UpstreamPackage, source: PackageSource, engine: RenderEngine
) -> tuple[FileTree, tuple[Finding, ...]]:
    name = variant.target.package.rpartition("/")[2]
    lock = _build_lock(upstream)
    findings: tuple[Finding, ...] = ()
    if not source.follows_upstream:
        files, findings = source.files, (_create_missing_lock_finding(variant, upstream),)
    elif read_upstream_lock(source.files) == lock:
        # Keep the files, because the package is already a clone of the requested upstream.
        files = source.files
    else:
        # Add merge comments only to the resources of kpt packages. The resources of charts and plain manifests keep
        # their text.
        files, findings = CLONE_STEP(source.files, name, lock, engine.profile, source.base, upstream.is_kpt_package)
    return files, findings


def _build_lock(upstream: UpstreamPackage) -> UpstreamLock:
    if upstream.is_git_package:
        return ResolvedUpstream(upstream.repo, upstream.directory, upstream.ref, upstream.commit)
    location, version = _format_stored(upstream)
    if upstream.sources:
        parts = [(source.name, *_format_stored(source.upstream)) for source in upstream.sources]
        location, version = (",".join(f"{part[0]}={part[index]}" for part in parts) for index in (1, 2))
        return StoredUpstream(SEVERAL_SOURCES, location, version)
    store = upstream.kind if upstream.kind in ("helm", "kustomize") else "oci"
    return StoredUpstream(store, location, version)


def _format_stored(upstream: UpstreamPackage) -> tuple[str, str]:
    """Return the location and the version of a source, as `upstreamLock.generic` of a Kptfile contains them."""
    directory = posixpath.join(upstream.directory, upstream.overlay.path) if upstream.overlay else upstream.directory
    return f"{upstream.repo}/{directory}".rstrip("/"), f"{upstream.ref}@{upstream.commit}"


def _add_package_context(variant: Variant, files: FileTree) -> tuple[FileTree, tuple[Finding, ...]]:
    """Add the package context to a package in a deployment repository. Other packages are not changed."""
    if not variant.deployment:
        return files, ()
    return CONTEXT_STEP(files, variant.target.package.rpartition("/")[2], variant.target.package)


def _create_missing_lock_finding(variant: Variant, upstream: UpstreamPackage) -> Finding:
    message = (
        f"package {variant.target} was adopted without an upstreamLock. Mutations are applied, but the package is not"
        f" updated from {upstream.title}"
    )
    return PlanningCodes.UPSTREAM_LOCK_MISSING.finding(message, SourceLocation(object=variant.owner.key.reference))


def _build_conditions(result: RenderResult) -> tuple[tuple[Condition, ...], tuple[str, ...]]:
    """Return the conditions and readiness gates of the Kptfile, with the condition `Rendered`.

    If a function failed, `Rendered` is also a readiness gate.
    """
    kptfile = read_kptfile(result.files[KPTFILE].data) if KPTFILE in result.files else ()
    conditions, gates = (kptfile.conditions, kptfile.readiness_gates) if isinstance(kptfile, Kptfile) else ((), ())
    if result.failure is None:
        return upsert_conditions(conditions, _SUCCESS), gates
    failed = Condition(RENDERED_CONDITION, "False", "RenderFailed", _format_failure_message(result.failure))
    return upsert_conditions(conditions, failed), tuple(sorted({*gates, RENDERED_CONDITION}))


def _format_failure_message(failure: RenderFailure) -> str:
    location = f" in subpackage {failure.package}" if failure.package else ""
    function = f"function {failure.function}{location}: " if failure.function else ""
    return function + failure.message


def _list_pipeline_findings(variant: Variant, result: RenderResult) -> tuple[Finding, ...]:
    # Report function errors as warnings, because the draft is still written. A readiness gate prevents its publication.
    location = SourceLocation(object=variant.owner.key.reference)
    findings = tuple(map(downgrade_to_warning, result.findings))
    if result.failure is None:
        return findings
    code = PlanningCodes.FUNCTION_UNAVAILABLE if result.failure.kind == "unavailable" else PlanningCodes.RENDER_FAILED
    return (*findings, code.finding(_format_failure(variant, result.failure), location))


def _format_failure(variant: Variant, failure: RenderFailure) -> str:
    package = (
        f"subpackage {failure.package} of package {variant.target}" if failure.package else f"package {variant.target}"
    )
    if not failure.function:
        return f"the functions of {package} cannot run: {failure.message}"
    if failure.kind == "unavailable":
        return f"function {failure.function} of {package} cannot run in this environment, because {failure.message}"
    return f"function {failure.function} of {package} failed: {failure.message}"
