"""Processing of one PackageVariant. The PackageVariant is in the config, or a PackageVariantSet generates it.

The result is a package variant, or the reason why the PackageVariant is stalled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from reconciler.api.manifest import read_manifest
from reconciler.api.porch import PackageVariant, PackageVariantSpec
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.deletion_guards import read_acknowledged_hashes, read_annotation
from reconciler.controllers.package_variants import status
from reconciler.controllers.package_variants.chart_provenance import ChartProvenance
from reconciler.controllers.package_variants.chart_requests import (
    build_chart_request,
    find_option_error,
    read_allowed_secrets,
)
from reconciler.controllers.package_variants.chart_values import collect_values, find_option_source
from reconciler.controllers.package_variants.codes import BY_REASON, FIELD_CODES, VariantCodes
from reconciler.controllers.package_variants.inputs import PackageVariantInputs, UnreachableUpstream, UpstreamResolver
from reconciler.controllers.package_variants.kustomize_requests import build_kustomize_request
from reconciler.controllers.package_variants.mutation import build_mutation
from reconciler.controllers.package_variants.upstream_resolution import (
    ResolvedRevision,
    UnresolvedUpstream,
    check_settling,
)
from reconciler.controllers.repositories import Repositories, explain_missing_repository, format_kptfile_url
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
    downgrade_to_warning,
    join_messages,
    select_errors,
    upgrade_to_error,
)
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import replace
from reconciler.packages.source_codes import SourceCodes

_MAX_LISTED = 5
_ANY_REPOSITORY = ("repositorySelector", "objectSelector", "objects", "repoExpr")
_ANY_PACKAGE = ("packageExpr", "upstreamSets")
_REPOSITORY_FIELDS = frozenset({("downstream", "repo"), ("repositories", "name")})
_PACKAGE_FIELDS = frozenset(
    {("downstream", "package"), ("upstream", "package"), ("upstreams", "package"), ("packageNames", "")}
)


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
    location = _locate(owner, manifest, "upstream")
    revision = upstreams.resolve(namespace, spec.upstream)
    match revision:
        case UnresolvedUpstream("SourceUnreachable", message):
            conditions = status.build_unresolved_conditions(revision)
            finding = upgrade_to_error(SourceCodes.SOURCE_UNREACHABLE.finding(message, location))
        case UnresolvedUpstream("ValidationError", message, field):
            conditions = status.build_invalid_conditions((message,))
            field_location = _locate(owner, manifest, "upstream", field) if field else location
            finding = VariantCodes.VALIDATION_ERROR.finding(message, field_location)
        case UnresolvedUpstream(reason, message):
            conditions = status.build_unresolved_conditions(revision)
            finding = BY_REASON[reason].finding(message, location)
        case UnreachableUpstream(message):
            conditions = status.build_failed_conditions(message)
            finding = VariantCodes.UPSTREAM_UNREACHABLE.finding(message, location)
        case ResolvedRevision() if message := find_option_error(
            spec, revision.kind, inputs.repositories[namespace, revision.repository].type
        ):
            conditions = status.build_invalid_conditions((message,))
            field = "kustomize" if message.startswith("spec.kustomize") else "helm"
            finding = VariantCodes.VALIDATION_ERROR.finding(message, _locate(owner, manifest, field))
        case ResolvedRevision():
            return _build_chart_variant(owner, spec, manifest, catalog, revision, inputs)
    upstream_target = PackageTarget(namespace, spec.upstream.repo, spec.upstream.package_name)
    return StalledVariant(owner, conditions, (finding,), _get_target(owner, spec), upstream_target)


def _explain_unusable_target(repositories: Repositories, namespace: str, name: str) -> str:
    """Return the reason why a Repository cannot receive packages, or ""."""
    repository = repositories.get((namespace, name))
    if repository is None:
        return explain_missing_repository(repositories, namespace, name)
    if repository.artifacts:
        return f'Repository "{name}" has type {repository.type}; packages can only be written to type git'
    return ""


def _build_chart_variant(
    owner: PackageOwner,
    spec: PackageVariantSpec,
    manifest: ConfigObject,
    catalog: Catalog,
    revision: ResolvedRevision,
    inputs: PackageVariantInputs,
) -> Variant | StalledVariant:
    """Return the package variant with the values of its chart. It is stalled if values do not exist."""
    variant = _build_variant(owner, spec, manifest, revision, inputs)
    if spec.helm is None or variant.upstream is None:
        return variant
    source = find_option_source(manifest, spec.upstream, owner.target_indexes)
    collected = collect_values(spec.helm, source, catalog, owner.key.namespace)
    if errors := select_errors(collected.findings):
        conditions = status.build_stalled_conditions(errors[0].code, join_messages(error.message for error in errors))
        upstream_target = PackageTarget(owner.key.namespace, spec.upstream.repo, spec.upstream.package_name)
        return StalledVariant(owner, conditions, collected.findings, variant.target, upstream_target)
    repository = inputs.repositories[owner.key.namespace, spec.downstream.repo]
    request = build_chart_request(
        spec, spec.helm, collected.values, repository, manifest.annotations, str(variant.target), inputs.chart_defaults
    )
    release = collected.secrets if spec.helm.output == "helmRelease" else None
    upstream = replace(variant.upstream, chart=request, values=collected.values, release=release)
    acknowledged = read_acknowledged_hashes(manifest.annotations)
    confirmed = {"deletions": ",".join(sorted(acknowledged))} if acknowledged else {}
    return replace(
        variant, source=upstream, findings=(*variant.findings, *collected.findings), acknowledged_hashes=acknowledged,
        dependencies={**variant.dependencies, **collected.dependencies, **confirmed, "upstream": upstream.fingerprint},
        provenance=ChartProvenance(collected.values, collected.objects),
    )  # fmt: skip


def _build_variant(
    owner: PackageOwner,
    spec: PackageVariantSpec,
    manifest: ConfigObject,
    revision: ResolvedRevision,
    inputs: PackageVariantInputs,
) -> Variant:
    key, target = owner.key, _get_target(owner, spec)
    allowed_secrets = read_allowed_secrets(spec, manifest.annotations)
    upstream = replace(_build_upstream(key.namespace, revision, inputs), allowed_secrets=allowed_secrets)
    if revision.kind == "kustomize":
        upstream = replace(upstream, overlay=build_kustomize_request(spec.kustomize, allowed_secrets))
    deployment = inputs.repositories[key.namespace, target.repository].deployment
    dependencies = {
        "variant": compute_digest({"name": key.name, "spec": spec.as_data()}),
        "upstream": upstream.fingerprint,
        "repository": compute_digest({"deployment": deployment}),
        "engine": inputs.engine,
    }
    return Variant(
        owner, target, upstream, build_mutation(spec, key.name, key.namespace), dependencies,
        deployment, spec.adoption_policy, spec.deletion_policy, spec.labels, spec.annotations,
        _create_warnings(revision, manifest.location),
        check_settling(spec.upstream, revision, inputs.now_seconds), spec.update_strategy, spec.conflict_policy,
        sources=collect_config_sources([manifest]), accepted_bases=read_annotation(manifest.annotations, ACCEPT_BASE),
    )  # fmt: skip


def _create_warnings(revision: ResolvedRevision, location: SourceLocation) -> tuple[Finding, ...]:
    findings = [VariantCodes.UPSTREAM_WARNING.finding(text, location) for text in revision.warnings]
    for problem in revision.problems:
        # The package can be rendered, because the last known versions are used. The controller reports the error.
        findings.append(downgrade_to_warning(BY_REASON[problem.code].finding(problem.message, location)))
    if revision.unverified:
        findings.append(revision.unverified.create_finding(location))
    if revision.skipped:
        more = ", …" if len(revision.skipped) > _MAX_LISTED else ""
        paths = ", ".join(revision.skipped[:_MAX_LISTED]) + more
        findings.append(
            VariantCodes.LINK_SKIPPED.finding(
                f"symbolic links and submodules of {revision.package} are not copied: {paths}", location
            )
        )
    return tuple(findings)


def _get_target(owner: PackageOwner, spec: PackageVariantSpec) -> PackageTarget:
    return PackageTarget(owner.key.namespace, spec.downstream.repo, spec.downstream.package)


def _build_upstream(namespace: str, revision: ResolvedRevision, inputs: PackageVariantInputs) -> UpstreamPackage:
    repository = inputs.repositories[namespace, revision.repository]
    if repository.artifacts:
        return UpstreamPackage(
            namespace, revision.repository, repository.url, repository.url, revision.directory, revision.package,
            revision.ref, revision.commit, revision.tree, revision.created_seconds, revision.is_floating,
            repository.type, revision.kind, revision.app_version, artifacts=repository.artifacts,
            chart_dependencies=revision.dependencies,
        )  # fmt: skip
    return UpstreamPackage(
        namespace, revision.repository, inputs.upstreams.get_url(repository), format_kptfile_url(repository.url),
        revision.directory, revision.package, revision.ref, revision.commit, revision.tree,
        inputs.upstreams.get_commit_seconds(repository, revision.commit), revision.is_floating, kind=revision.kind,
        chart_dependencies=revision.dependencies,
    )  # fmt: skip


def _locate(owner: PackageOwner, manifest: ConfigObject, *fields: str) -> SourceLocation:
    # Use the location of the set if a set generated the PackageVariant, because the path exists only in a
    # PackageVariant.
    return manifest.location_of(("spec", *fields)) if manifest.key == owner.key else manifest.location


def _find_written_target(manifest: ConfigObject) -> PackageTarget | None:
    """Return the target that an invalid PackageVariant names, so that the package at the target stays unchanged.

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
