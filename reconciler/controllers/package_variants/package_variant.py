"""Processing of one PackageVariant. The PackageVariant is in the config, or a PackageVariantSet generates it.

The result is a package variant, or the reason why the PackageVariant is stalled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from reconciler.api.manifest import read_manifest
from reconciler.api.porch.package_variant import PackageVariant, PackageVariantSpec
from reconciler.api.porch.upstream import UpstreamSpec
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.deletion_guards import read_acknowledged_hashes, read_annotation
from reconciler.controllers.package_variants import status
from reconciler.controllers.package_variants.chart_provenance import ChartProvenance
from reconciler.controllers.package_variants.chart_requests import RenderOptions, RequestedChart, find_option_error
from reconciler.controllers.package_variants.chart_values import collect_values, find_option_source
from reconciler.controllers.package_variants.codes import FIELD_CODES, VariantCodes
from reconciler.controllers.package_variants.inputs import PackageVariantInputs, UnreachableUpstream, UpstreamResolver
from reconciler.controllers.package_variants.mutation import build_mutation
from reconciler.controllers.package_variants.several_sources import FailedSource, SourcesResolver
from reconciler.controllers.package_variants.upstream_packages import (
    ResolutionFailure,
    build_upstream_package,
    create_revision_findings,
    create_validation_failure,
    describe_failure,
)
from reconciler.controllers.package_variants.upstream_resolution import (
    ResolvedRevision,
    UnresolvedUpstream,
    check_settling,
)
from reconciler.controllers.repositories import Repositories, explain_missing_repository
from reconciler.controllers.results import (
    ACCEPT_BASE,
    ConfigStatus,
    ControllerResult,
    PackageOwner,
    PackageTarget,
    StalledVariant,
    UpstreamPackage,
    Variant,
    collect_config_sources,
)
from reconciler.controllers.validation import create_field_findings
from reconciler.krm.findings import (
    Finding,
    SourceLocation,
    join_messages,
    select_errors,
)
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import replace

_ANY_REPOSITORY = ("repositorySelector", "objectSelector", "objects", "repoExpr")
_ANY_PACKAGE = ("packageExpr", "upstreamSets")
_REPOSITORY_FIELDS = frozenset({("downstream", "repo"), ("repositories", "name")})
_PACKAGE_FIELDS = frozenset(
    {
        ("downstream", "package"), ("upstream", "package"), ("upstreams", "package"), ("sources", "package"),
        ("sources", "chart"), ("packageNames", ""),
    }
)  # fmt: skip


def process_variant(
    manifest: ConfigObject, catalog: Catalog, inputs: PackageVariantInputs, upstreams: UpstreamResolver
) -> ControllerResult:
    """Return the package variant of a PackageVariant in the config, or the reason why the PackageVariant is stalled."""
    owner = PackageOwner(manifest.key, manifest.api_version)
    result = read_manifest(PackageVariant, manifest.data)
    deprecations = create_field_findings(manifest, result.warnings, ControllerCodes.DEPRECATED)
    statuses = (
        (ConfigStatus(manifest.key, manifest.api_version, status.build_deprecated_conditions(result.warning_texts)),)
        if result.warnings
        else ()
    )
    if result.model is None:
        findings = create_field_findings(manifest, result.errors, VariantCodes.VALIDATION_ERROR, FIELD_CODES)
        conditions = status.build_invalid_conditions(result.error_texts)
        variant: Variant | StalledVariant = StalledVariant(owner, conditions, findings, _find_written_target(manifest))
    else:
        variant = resolve_variant(owner, result.model.spec, manifest, catalog, inputs, upstreams)
    if isinstance(variant, StalledVariant):
        return ControllerResult(stalled=(variant,), statuses=statuses, findings=deprecations)
    return ControllerResult((variant,), statuses=statuses, findings=deprecations)


def resolve_variant(
    owner: PackageOwner,
    spec: PackageVariantSpec,
    manifest: ConfigObject,
    catalog: Catalog,
    inputs: PackageVariantInputs,
    upstreams: UpstreamResolver,
) -> Variant | StalledVariant:
    """Return the package variant for a valid spec, or the reason why `owner` is stalled.

    `manifest` is the object in the config to which the findings refer: the PackageVariant, or the PackageVariantSet
    that generated the PackageVariant.
    """
    namespace = owner.key.namespace
    if message := _explain_unusable_target(inputs.repositories, namespace, spec.downstream.repo):
        conditions = status.build_stalled_conditions(VariantCodes.DOWNSTREAM_NOT_FOUND.name, message)
        location = _locate(owner, manifest, "downstream", "repo")
        return StalledVariant(
            owner, conditions, (VariantCodes.DOWNSTREAM_NOT_FOUND.finding(message, location),), _get_target(owner, spec)
        )
    if spec.upstream is None:
        return _resolve_several(owner, spec, manifest, catalog, inputs, upstreams)
    revision = upstreams.resolve(namespace, spec.upstream)
    match revision:
        case ResolvedRevision() if message := find_option_error(
            spec, revision.kind, inputs.repositories[namespace, revision.repository].type
        ):
            field = "kustomize" if message.startswith("spec.kustomize") else "helm"
            failure = create_validation_failure(message, _locate(owner, manifest, field))
        case ResolvedRevision():
            return _resolve_single(owner, spec, manifest, catalog, revision, inputs, upstreams)
        case _:
            field_path = ("upstream", *_list_fields(revision))
            failure = describe_failure(revision, _locate(owner, manifest, *field_path))
    return _stall(owner, spec, failure, spec.upstream)


def _resolve_several(
    owner: PackageOwner,
    spec: PackageVariantSpec,
    manifest: ConfigObject,
    catalog: Catalog,
    inputs: PackageVariantInputs,
    upstreams: UpstreamResolver,
) -> Variant | StalledVariant:
    """Return the package variant for a spec with several sources, or a stalled variant if a source cannot be used."""
    resolver = SourcesResolver(owner, spec, manifest, catalog, inputs, upstreams)
    resolved = resolver.resolve()
    if isinstance(resolved, FailedSource):
        location = _locate(owner, manifest, *resolved.path, *_list_fields(resolved.reason))
        return _stall(owner, spec, resolved.create_failure(location), resolved.upstream)
    if errors := select_errors(resolved.findings):
        return _stall(owner, spec, _create_values_failure(errors, resolved.findings), spec.main_upstream)
    variant = _build_variant(owner, spec, manifest, resolved.upstream, inputs)
    has_chart = resolved.provenance is not None
    acknowledged, confirmed = _read_confirmations(manifest) if has_chart else (frozenset[str](), {})
    return replace(
        variant, findings=resolved.findings, settling=resolved.settling, provenance=resolved.provenance,
        acknowledged_hashes=acknowledged, dependencies={**variant.dependencies, **resolved.dependencies, **confirmed},
    )  # fmt: skip


def _list_fields(failure: UnresolvedUpstream | UnreachableUpstream) -> tuple[str, ...]:
    """Return the path of the upstream field that caused the failure. Return () if the failure contains no field."""
    return (failure.field,) if isinstance(failure, UnresolvedUpstream) and failure.field else ()


def _stall(
    owner: PackageOwner, spec: PackageVariantSpec, failure: ResolutionFailure, upstream: UpstreamSpec
) -> StalledVariant:
    upstream_target = PackageTarget(owner.key.namespace, upstream.repo, upstream.package_name)
    return StalledVariant(owner, failure.conditions, failure.findings, _get_target(owner, spec), upstream_target)


def _create_values_failure(errors: Sequence[Finding], findings: tuple[Finding, ...]) -> ResolutionFailure:
    conditions = status.build_stalled_conditions(errors[0].code, join_messages(error.message for error in errors))
    return ResolutionFailure(conditions, findings)


def _explain_unusable_target(repositories: Repositories, namespace: str, name: str) -> str:
    """Return the reason why a Repository cannot receive packages, or ""."""
    repository = repositories.get((namespace, name))
    if repository is None:
        return explain_missing_repository(repositories, namespace, name)
    if repository.artifacts:
        return (
            f'Repository "{name}" has the type "{repository.type}"; packages can only be written to a'
            ' Repository of the type "git"'
        )
    return ""


def _resolve_single(
    owner: PackageOwner,
    spec: PackageVariantSpec,
    manifest: ConfigObject,
    catalog: Catalog,
    revision: ResolvedRevision,
    inputs: PackageVariantInputs,
    upstreams: UpstreamResolver,
) -> Variant | StalledVariant:
    """Return the package variant for a spec with one source, or a stalled variant if values or charts are missing."""
    assert spec.upstream, "the spec has one upstream"
    namespace, target = owner.key.namespace, _get_target(owner, spec)
    chart: RequestedChart | None = None
    if spec.helm:
        source = find_option_source(manifest, spec.upstream, owner.target_indexes)
        chart = RequestedChart(spec.helm, collect_values(spec.helm, source, catalog, namespace))
        if errors := select_errors(chart.collected.findings):
            return _stall(owner, spec, _create_values_failure(errors, chart.collected.findings), spec.upstream)
    options = RenderOptions(
        spec, manifest.annotations, inputs.repositories[namespace, spec.downstream.repo], target, inputs.chart_defaults
    )
    package = options.add(build_upstream_package(namespace, revision, inputs), spec.kustomize, chart)
    upstream = upstreams.add_charts(namespace, revision, package, spec.pipeline)
    if isinstance(upstream, UnresolvedUpstream):
        fields = ("kustomize", "helmCharts") if package.overlay else ("upstream",)
        failure = describe_failure(upstream, _locate(owner, manifest, *fields))
        return _stall(owner, spec, failure, spec.upstream)
    variant = replace(
        _build_variant(owner, spec, manifest, upstream, inputs),
        findings=create_revision_findings(revision, manifest.location),
        settling=check_settling(spec.upstream, revision, inputs.now_seconds),
    )
    if chart is None:
        return variant
    collected = chart.collected
    acknowledged, confirmed = _read_confirmations(manifest)
    return replace(
        variant, findings=(*variant.findings, *collected.findings), acknowledged_hashes=acknowledged,
        dependencies={**variant.dependencies, **collected.dependencies, **confirmed},
        provenance=ChartProvenance((collected.values,), collected.objects),
    )  # fmt: skip


def _read_confirmations(manifest: ConfigObject) -> tuple[frozenset[str], dict[str, str]]:
    """Return the hashes of the deletions that an annotation confirms, as a set and as an entry of the dependencies."""
    acknowledged = read_acknowledged_hashes(manifest.annotations)
    return acknowledged, {"deletions": ",".join(sorted(acknowledged))} if acknowledged else {}


def _build_variant(
    owner: PackageOwner,
    spec: PackageVariantSpec,
    manifest: ConfigObject,
    upstream: UpstreamPackage,
    inputs: PackageVariantInputs,
) -> Variant:
    key, target = owner.key, _get_target(owner, spec)
    deployment = inputs.repositories[key.namespace, target.repository].deployment
    dependencies = {
        "variant": compute_digest({"name": key.name, "spec": spec.shared_data}),
        "upstream": upstream.fingerprint,
        "repository": compute_digest({"deployment": deployment}),
        "engine": inputs.engine,
    }
    return Variant(
        owner, target, upstream, build_mutation(spec, key.name, key.namespace), dependencies,
        deployment, spec.adoption_policy, spec.deletion_policy, spec.labels, spec.annotations,
        strategy=spec.update_strategy, conflict_policy=spec.conflict_policy,
        sources=collect_config_sources([manifest]), accepted_bases=read_annotation(manifest.annotations, ACCEPT_BASE),
    )  # fmt: skip


def _get_target(owner: PackageOwner, spec: PackageVariantSpec) -> PackageTarget:
    return PackageTarget(owner.key.namespace, spec.downstream.repo, spec.downstream.package)


def _locate(owner: PackageOwner, manifest: ConfigObject, *fields: str | int) -> SourceLocation:
    # If a set generated the PackageVariant, return the location of the whole set, because the path `fields` does not
    # exist in a set.
    return manifest.location_of(("spec", *fields)) if manifest.key == owner.key else manifest.location


def _find_written_target(manifest: ConfigObject) -> PackageTarget | None:
    """Return the target that an invalid PackageVariant refers to, so that the package at the target stays unchanged.

    Return None if the manifest does not contain a target.
    """
    spec = manifest.data.get("spec")
    downstream = spec.get("downstream") if isinstance(spec, dict) else None
    if not isinstance(downstream, dict):
        return None
    repo, package = downstream.get("repo"), downstream.get("package")
    return (
        PackageTarget(manifest.key.namespace, repo, package)
        if isinstance(repo, str) and isinstance(package, str)
        else None
    )


ClaimMatch = Literal["no", "possible", "named"]


def match_claim(data: Mapping[str, Any], repository: str, package: str) -> ClaimMatch:
    """Return whether an object that cannot be processed may request the given package in the given Repository.

    - `named`: the object contains the names of the package and the Repository.
    - `possible`: a selector or an expression of the object may match, or the object contains no names.
    - `no`: the object requests only other packages or Repositories.
    """
    spec = data.get("spec")
    if not isinstance(spec, dict):
        return "possible"
    fields = list(_iterate_fields(spec))
    names = {name for _, name, _ in fields}
    repositories = {value for parent, name, value in fields if (parent, name) in _REPOSITORY_FIELDS}
    packages = {value for parent, name, value in fields if (parent, name) in _PACKAGE_FIELDS}
    is_any_repository = not repositories or not names.isdisjoint(_ANY_REPOSITORY)
    is_any_package = not packages or not names.isdisjoint(_ANY_PACKAGE)
    if repository in repositories and package in packages:
        return "named"
    is_possible = (is_any_repository or repository in repositories) and (is_any_package or package in packages)
    return "possible" if is_possible else "no"


def _iterate_fields(data: Any, parent: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield each field of nested data: the name of its parent field, its own name, and its value.

    Only strings have a value. All other values are None. A string in a list has the name "".
    """
    if isinstance(data, dict):
        for name, value in data.items():
            yield parent, str(name), value if isinstance(value, str) else None
            yield from _iterate_fields(value, str(name))
    elif isinstance(data, list):
        for item in data:
            if isinstance(item, str):
                yield parent, "", item
            yield from _iterate_fields(item, parent)
