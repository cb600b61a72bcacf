"""Revision pins: revisions in the config that the daemon updates for a tag or version range (`tagMode: rewrite`).

The daemon commits each update to a branch of the config repository. A person reviews and merges this branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from reconciler.api.manifest import read_manifest
from reconciler.api.porch.package_variant import PackageVariant
from reconciler.api.porch.upstream import UpstreamSpec
from reconciler.api.reconciler import PackageRevisionSet
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.catalog.manifests import DEFAULT_NAMESPACE
from reconciler.controllers.package_variants.codes import BY_REASON, VariantCodes
from reconciler.controllers.package_variants.inputs import PackageVariantInputs, UnreachableUpstream, UpstreamResolver
from reconciler.controllers.package_variants.read_set import read_package_variant_set
from reconciler.controllers.package_variants.upstream_resolution import (
    ResolvedRevision,
    UnresolvedUpstream,
    check_settling,
    is_older,
)
from reconciler.controllers.repositories import Repository
from reconciler.controllers.results import ControllerResult, RevisionPin, SettlingReference
from reconciler.krm.findings import Finding, SourceLocation, downgrade_to_warning

_KINDS = (
    (PORCH_GROUP, "PackageVariant"),
    (PORCH_GROUP, "PackageVariantSet"),
    (PackageRevisionSet.api_versions[0].partition("/")[0], "PackageRevisionSet"),
)
_Path = tuple[str | int, ...]


def find_revision_pins(catalog: Catalog, inputs: PackageVariantInputs, upstreams: UpstreamResolver) -> ControllerResult:
    """Return the revision pins of all valid objects in the config, and the findings.

    A generated PackageVariant has no pin, because the manifest of its PackageVariantSet contains the revision.
    """
    results = [
        _create_pin(manifest, path, upstream, inputs, upstreams)
        for group, kind in _KINDS
        for manifest in catalog.objects_of_kind(group, kind)
        for path, upstream in _iterate_rewritten_upstreams(manifest, inputs)
    ]
    findings = tuple(finding for _, pin_findings in results for finding in pin_findings)
    return ControllerResult(pins=tuple(pin for pin, _ in results), findings=findings)


def _iterate_rewritten_upstreams(
    manifest: ConfigObject, inputs: PackageVariantInputs
) -> Iterator[tuple[_Path, UpstreamSpec]]:
    paths = list(_iterate_upstream_paths(manifest.data))
    # First search the raw data for `tagMode: rewrite`, because few objects have this field, and the validation of an
    # object is slow.
    if not any(_get_mapping(manifest.data, path).get("tagMode") == "rewrite" for path in paths):
        return
    for path, upstream in zip(paths, _read_upstreams(manifest, inputs), strict=False):
        if upstream.is_rewritten:
            yield path, upstream


def _iterate_upstream_paths(data: Mapping[str, Any]) -> Iterator[_Path]:
    spec = data.get("spec")
    if not isinstance(spec, dict):
        return
    if isinstance(spec.get("upstream"), dict):
        yield ("spec", "upstream")
    for name in ("sources", "upstreams"):
        upstreams = spec.get(name)
        for index, upstream in enumerate(upstreams if isinstance(upstreams, list) else ()):
            if isinstance(upstream, dict):
                yield ("spec", name, index)


def _get_mapping(data: Any, path: _Path) -> dict[str, Any]:
    for step in path:
        data = data[step]
    mapping: dict[str, Any] = data
    return mapping


def _read_upstreams(manifest: ConfigObject, inputs: PackageVariantInputs) -> Sequence[UpstreamSpec]:
    """Return the upstreams of an object, in the order of their paths. Return () if the object is invalid."""
    match manifest.key.kind:
        case "PackageVariant":
            variant = read_manifest(PackageVariant, manifest.data).model
            return variant.spec.all_upstreams if variant else ()
        case "PackageVariantSet":
            variant_set = read_package_variant_set(manifest.data, inputs.cel_limits).model
            return variant_set.spec.all_upstreams if variant_set else ()
        case _:
            revision_set = read_manifest(PackageRevisionSet, manifest.data).model
            return revision_set.spec.upstreams if revision_set else ()


def _create_pin(
    manifest: ConfigObject,
    path: _Path,
    upstream: UpstreamSpec,
    inputs: PackageVariantInputs,
    upstreams: UpstreamResolver,
) -> tuple[RevisionPin, tuple[Finding, ...]]:
    namespace = manifest.key.namespace or DEFAULT_NAMESPACE
    repository = inputs.repositories.get((namespace, upstream.repo))
    field_name = _get_pinned_field(upstream, repository)
    written_revision = _get_mapping(manifest.data, path).get(field_name)
    location = manifest.location_of((*path, "tag" if written_revision is None else field_name))
    package = f"{upstream.repo}/{upstream.package_name}"

    def create_pin(tagged_revision: str | int | None = None, **fields: Any) -> RevisionPin:
        line = manifest.document.line
        return RevisionPin(
            manifest.key, manifest.file, line, (*manifest.path, *path), package, upstream.rewritten_tag,
            written_revision, tagged_revision, location, field_name=field_name, range=upstream.rewritten_range,
            is_replaced_range=bool(upstream.rewritten_range) and not upstream.tag_policy.range,
            **fields,
        )  # fmt: skip

    resolution = upstreams.resolve_pin(namespace, upstream)
    match resolution:
        case UnreachableUpstream():
            # Create no finding here, because each object that uses the repository already reports that the repository
            # cannot be read.
            return create_pin(), ()
        case UnresolvedUpstream(reason, message):
            if upstreams.resolve(namespace, upstream) == resolution:
                # Create no second finding. The object also contains a revision, and already has a finding about the
                # same problem with this revision.
                return create_pin(), ()
            return create_pin(), (downgrade_to_warning(BY_REASON[reason].finding(message, location)),)
        case ResolvedRevision() as tagged:
            current = upstreams.resolve(namespace, upstream)
            is_same_package = isinstance(current, ResolvedRevision) and current.tree == tagged.tree
            settling = (
                None
                if is_same_package
                else check_settling(upstream.with_followed_reference, tagged, inputs.now_seconds)
            )
            if settling:
                return create_pin(settling=settling), tuple(_create_settling_findings(settling, location))
            is_downgrade = isinstance(current, ResolvedRevision) and is_older(tagged.suffix, current.suffix)
            assert repository, "a resolved upstream has a Repository"
            seconds = (
                tagged.created_seconds
                if repository.artifacts
                else inputs.upstreams.get_commit_seconds(repository, tagged.commit)
            )
            return (
                create_pin(
                    tagged.commit if field_name == "digest" else _format_like(written_revision, tagged),
                    is_same_package=is_same_package,
                    is_downgrade=is_downgrade,
                    seconds=seconds,
                ),
                (),
            )


def _get_pinned_field(
    upstream: UpstreamSpec, repository: Repository | None
) -> Literal["revision", "version", "digest"]:
    """Return the name of the upstream field that contains the revision."""
    if upstream.version:
        return "version"
    return "digest" if repository and repository.artifacts else "revision"


def _create_settling_findings(settling: SettlingReference, location: SourceLocation) -> Iterable[Finding]:
    yield VariantCodes.UPSTREAM_SETTLING.finding(settling.message, location)


def _format_like(written_revision: object, revision: ResolvedRevision) -> str | int:
    """Return a revision in the notation of the current value, e.g. 3, "3" or "v3"."""
    if revision.number > 0 and isinstance(written_revision, int):
        return revision.number
    if revision.number > 0 and isinstance(written_revision, str) and written_revision.isdecimal():
        return str(revision.number)
    return revision.suffix
