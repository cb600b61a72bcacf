"""Conversion of resolved upstreams: the upstream package, the findings, or the failure of an unresolved upstream."""

from __future__ import annotations

from reconciler.controllers.package_variants import status
from reconciler.controllers.package_variants.codes import BY_REASON, VariantCodes
from reconciler.controllers.package_variants.inputs import PackageVariantInputs, UnreachableUpstream
from reconciler.controllers.package_variants.upstream_resolution import ResolvedRevision, UnresolvedUpstream
from reconciler.controllers.repositories import format_kptfile_url
from reconciler.controllers.results import UpstreamPackage
from reconciler.krm.findings import Finding, SourceLocation, downgrade_to_warning, upgrade_to_error
from reconciler.krm.objects import Condition
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.source_codes import SourceCodes

_MAX_LISTED = 5


@dataclass(frozen=True)
class ResolutionFailure:
    """The reason why a PackageVariant is stalled."""

    conditions: tuple[Condition, ...]
    findings: tuple[Finding, ...]


def describe_failure(failure: UnresolvedUpstream | UnreachableUpstream, location: SourceLocation) -> ResolutionFailure:
    """Return the conditions and the findings for an upstream that cannot be used."""
    match failure:
        case UnresolvedUpstream("SourceUnreachable", message):
            finding = upgrade_to_error(SourceCodes.SOURCE_UNREACHABLE.finding(message, location))
            return ResolutionFailure(status.build_unresolved_conditions(failure), (finding,))
        case UnresolvedUpstream("ValidationError", message):
            return create_validation_failure(message, location)
        case UnresolvedUpstream():
            findings = tuple(
                BY_REASON[entry.reason].finding(entry.message, location) for entry in (failure, *failure.others)
            )
            return ResolutionFailure(status.build_unresolved_conditions(failure), findings)
        case UnreachableUpstream(message):
            finding = VariantCodes.UPSTREAM_UNREACHABLE.finding(message, location)
            return ResolutionFailure(status.build_failed_conditions(message), (finding,))


def create_validation_failure(message: str, location: SourceLocation) -> ResolutionFailure:
    """Return the conditions and the finding for an invalid field."""
    finding = VariantCodes.VALIDATION_ERROR.finding(message, location)
    return ResolutionFailure(status.build_invalid_conditions((message,)), (finding,))


def build_upstream_package(namespace: str, revision: ResolvedRevision, inputs: PackageVariantInputs) -> UpstreamPackage:
    """Return the upstream package of a resolved revision, without the options of its render."""
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


def create_revision_findings(revision: ResolvedRevision, location: SourceLocation) -> tuple[Finding, ...]:
    """Return the warnings about a resolved revision."""
    findings = [VariantCodes.UPSTREAM_WARNING.finding(text, location) for text in revision.warnings]
    for problem in revision.problems:
        # Report only a warning, because the problem does not prevent the use of the revision.
        findings.append(downgrade_to_warning(BY_REASON[problem.code].finding(problem.message, location)))
    if revision.unverified:
        findings.append(revision.unverified.create_finding(location))
    if revision.skipped:
        more = ", …" if len(revision.skipped) > _MAX_LISTED else ""
        paths = ", ".join(revision.skipped[:_MAX_LISTED]) + more
        findings.append(
            VariantCodes.LINK_SKIPPED.finding(
                f"the upstream package {revision.package} contains symbolic links or submodules that are not copied:"
                f" {paths}",
                location,
            )
        )
    return tuple(findings)
