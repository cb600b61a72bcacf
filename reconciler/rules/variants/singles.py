"""One PackageVariant, written by hand or made by a set: what becomes of it (porch 5, 10)."""

from __future__ import annotations

from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding, Where
from reconciler.rules.codes import DEPRECATED
from reconciler.rules.repository import kptfile_url, repository_missing
from reconciler.rules.variant import ConfigStatus, Owner, Place, RoomResult, Stalled, Upstream, Variant, sources_of
from reconciler.rules.variants import status
from reconciler.rules.variants.codes import (
    BY_REASON,
    DOWNSTREAM_NOT_FOUND,
    LINK_SKIPPED,
    UPSTREAM_UNREACHABLE,
    UPSTREAM_WARNING,
    VALIDATION_ERROR,
)
from reconciler.rules.variants.field_places import field_findings
from reconciler.rules.variants.model import PackageVariantSpec
from reconciler.rules.variants.mutate import mutation_of
from reconciler.rules.variants.read_variant import read_package_variant
from reconciler.rules.variants.settle import settling_of
from reconciler.rules.variants.surroundings import Surroundings, Unreachable, Upstreams
from reconciler.rules.variants.upstream import Resolved, Unresolved
from reconciler.snapshot.catalog import ConfigObject

_NAMED = 5


def result_of_variant(one: ConfigObject, around: Surroundings, upstreams: Upstreams) -> RoomResult:
    """Return the variant that a hand-written PackageVariant asks for, or why it stalls."""
    owner = Owner(one.key, one.api_version)
    spec, errors, warnings = read_package_variant(one.data)
    deprecated = field_findings(one, warnings, DEPRECATED)
    noted = (ConfigStatus(one.key, one.api_version, status.deprecated(warnings)),) if warnings else ()
    if spec is None:
        findings = field_findings(one, errors, VALIDATION_ERROR)
        placed: Variant | Stalled = Stalled(owner, status.variant_invalid(errors), findings, _written_place(one))
    else:
        placed = place_variant(owner, spec, one, around, upstreams)
    if isinstance(placed, Stalled):
        return RoomResult(stalled=(placed,), statuses=noted, findings=deprecated)
    return RoomResult((placed,), statuses=noted, findings=deprecated)


def place_variant(
    owner: Owner, spec: PackageVariantSpec, written: ConfigObject, around: Surroundings, upstreams: Upstreams
) -> Variant | Stalled:
    """Return the variant of a sound spec, or why its package cannot be made now.

    `written` is what findings point into: the PackageVariant, or the set that made it.
    """
    namespace = owner.key.namespace
    if (namespace, spec.downstream.repo) not in around.repositories:
        message = repository_missing(around.repositories, namespace, spec.downstream.repo)
        conditions = status.variant_stalled(DOWNSTREAM_NOT_FOUND.name, message)
        where = _where(owner, written, "downstream", "repo")
        return Stalled(owner, conditions, (DOWNSTREAM_NOT_FOUND.finding(message, where),), _place(owner, spec))
    where = _where(owner, written, "upstream")
    found = upstreams.resolve(namespace, spec.upstream)
    match found:
        case Unresolved(reason, message):
            conditions = status.variant_unresolved(found)
            finding = BY_REASON[reason].finding(message, where)
        case Unreachable(message):
            conditions = status.variant_failed(message)
            finding = UPSTREAM_UNREACHABLE.finding(message, where)
        case Resolved():
            return _variant(owner, spec, written, found, around)
    origin = Place(namespace, spec.upstream.repo, spec.upstream.package)
    return Stalled(owner, conditions, (finding,), _place(owner, spec), origin)


def _variant(
    owner: Owner, spec: PackageVariantSpec, written: ConfigObject, found: Resolved, around: Surroundings
) -> Variant:
    key, place = owner.key, _place(owner, spec)
    upstream = _upstream(key.namespace, found, around)
    deployment = around.repositories[key.namespace, place.repository].deployment
    facts = {
        "variant": digest({"name": key.name, "spec": spec.as_data()}),
        "upstream": upstream.fact,
        "repository": digest({"deployment": deployment}),
        "engine": around.engine,
    }
    return Variant(
        owner, place, upstream, mutation_of(spec, key.name, key.namespace), facts,
        deployment, spec.adoption_policy, spec.deletion_policy, spec.labels, spec.annotations,
        _warnings(found, written.where), settling_of(spec.upstream, found, around.now), spec.update_strategy,
        spec.conflict_policy, sources=sources_of([written]),
    )  # fmt: skip


def _warnings(found: Resolved, where: Where) -> tuple[Finding, ...]:
    told = [UPSTREAM_WARNING.finding(text, where) for text in found.warnings]
    if found.skipped:
        more = ", …" if len(found.skipped) > _NAMED else ""
        paths = ", ".join(found.skipped[:_NAMED]) + more
        told.append(LINK_SKIPPED.finding(f"links and submodules of {found.package} are not copied: {paths}", where))
    return tuple(told)


def _place(owner: Owner, spec: PackageVariantSpec) -> Place:
    return Place(owner.key.namespace, spec.downstream.repo, spec.downstream.package)


def _upstream(namespace: str, found: Resolved, around: Surroundings) -> Upstream:
    repository = around.repositories[namespace, found.repository]
    return Upstream(
        namespace, found.repository, around.upstreams.url(repository), kptfile_url(repository.url),
        found.directory, found.package, found.ref, found.commit, found.tree,
        around.upstreams.seconds(repository, found.commit), found.floating,
    )  # fmt: skip


def _where(owner: Owner, written: ConfigObject, *field: str) -> Where:
    # a set writes the fields of what it makes elsewhere, or not at all
    return written.where_at(("spec", *field)) if written.key == owner.key else written.where


def _written_place(one: ConfigObject) -> Place | None:
    """Return where an invalid PackageVariant means to go, if it says so: what stands there is then left alone."""
    spec = one.data.get("spec")
    downstream = spec.get("downstream") if isinstance(spec, dict) else None
    if not isinstance(downstream, dict):
        return None
    repo, package = downstream.get("repo"), downstream.get("package")
    return Place(one.key.namespace, repo, package) if isinstance(repo, str) and isinstance(package, str) else None
