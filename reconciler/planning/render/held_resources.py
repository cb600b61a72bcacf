"""Resources that a chart no longer has, and that stay in the package until a person confirms their deletion.

The deletion of a CustomResourceDefinition also deletes all resources of its kind. The deletion of other resources can
delete data. A held resource stays in the source of the package, so that local changes of the resource are kept too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from reconciler.catalog.files import File, FileTree
from reconciler.controllers.deletion_guards import ACK_DELETIONS, compute_deletion_hash
from reconciler.controllers.results import Variant
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import replace
from reconciler.packages.file_names import format_unambiguous_file_name
from reconciler.packages.package import Package, PackageResource
from reconciler.packages.source_codes import SourceCodes
from reconciler.planning.model.sources import RenderInputs

_RESOURCE_POLICY = "helm.sh/resource-policy"
_KEEP = "keep"
_MAX_LISTED = 5


def hold_removed_resources(
    variant: Variant, inputs: RenderInputs, hold_kinds: Collection[str]
) -> tuple[RenderInputs, tuple[Finding, ...]]:
    """Add held resources to the source of a chart: removed resources whose deletion no person has confirmed.

    A resource is removed if it is in the source of the published version, but not in the new source. A resource is held
    if its kind is in `hold_kinds`, or if it has the annotation `helm.sh/resource-policy: keep`. A resource that a
    person deleted on the target branch is not added.

    Args:
        hold_kinds: The kinds whose resources are held, as `Kind` or `Kind.group`.
    """
    upstream, published = variant.upstream, inputs.published
    if upstream is None or not upstream.has_chart or published is None:
        return inputs, ()
    removed = _find_removed_resources(published.base, inputs.source_files)
    if not removed:
        return inputs, ()
    existing = {resource.key for resource in Package(published.files).resources}
    removed = [resource for resource in removed if resource.key in existing]
    held = [resource for resource in removed if _is_held_kind(resource.key, hold_kinds)]
    kept = [resource for resource in removed if resource not in held and _has_keep_policy(resource)]
    held, kept = (_select_unconfirmed(variant, resources) for resources in (held, kept))
    findings = (*_report_held(variant, held), *_report_kept(variant, kept))
    return replace(inputs, source_files=_add_resources(inputs.source_files, [*held, *kept])), findings


def restore_held_resources(source: FileTree, package: FileTree, hold_kinds: Collection[str]) -> FileTree:
    """Add held resources of the rendered package to the source of a chart if the source does not contain them.

    A resource is held if its kind is in `hold_kinds`, or if it has the annotation `helm.sh/resource-policy: keep`. If
    no rule and no person changed the held resources, the result is the source from which the package was rendered.
    """
    removed = _find_removed_resources(package, source)
    return _add_resources(
        source,
        (resource for resource in removed if _is_held_kind(resource.key, hold_kinds) or _has_keep_policy(resource)),
    )


def _find_removed_resources(old: FileTree, new: FileTree) -> list[PackageResource]:
    """Return the resources in the old files that none of the new files contains."""
    changed = FileTree({path: file for path, file in old.items() if new.get(path) != file})
    candidates = [resource for resource in Package(changed).resources if not resource.missing_krm_field]
    current = {resource.key for resource in Package(new).resources} if candidates else set()
    return [resource for resource in candidates if resource.key not in current]


def _is_held_kind(key: ObjectKey, hold_kinds: Collection[str]) -> bool:
    return key.kind in hold_kinds or f"{key.kind}.{key.group}" in hold_kinds


def _has_keep_policy(resource: PackageResource) -> bool:
    return resource.annotations.get(_RESOURCE_POLICY) == _KEEP


def _select_unconfirmed(variant: Variant, resources: list[PackageResource]) -> list[PackageResource]:
    return [] if _compute_hash(variant, resources) in variant.acknowledged_hashes else resources


def _compute_hash(variant: Variant, resources: Iterable[PackageResource]) -> str:
    # Omit the target, so that one confirmation is sufficient for all clusters of a set.
    assert variant.upstream
    return compute_deletion_hash((variant.upstream.package, resource.key.reference) for resource in resources)


def _add_resources(source: FileTree, resources: Iterable[PackageResource]) -> FileTree:
    return source.with_files(dict(_iterate_files(source, resources)))


def _iterate_files(source: FileTree, resources: Iterable[PackageResource]) -> Iterator[tuple[str, File]]:
    for resource in resources:
        path = resource.file
        if path in source:
            # Use a longer file name, because another resource of the new version has the short file name.
            path = format_unambiguous_file_name(resource.key)
        yield path, File(resource.document.text.encode())


def _report_held(variant: Variant, resources: list[PackageResource]) -> Iterator[Finding]:
    if resources:
        reason = "because a deletion can delete data, or all resources of a kind"
        yield SourceCodes.CRD_REMOVAL_HELD.finding(_format_message(variant, resources, reason), _locate(variant))


def _report_kept(variant: Variant, resources: list[PackageResource]) -> Iterator[Finding]:
    if resources:
        reason = (
            f"because of the annotation `{_RESOURCE_POLICY}: {_KEEP}`. The chart does not change kept resources any"
            " more"
        )
        yield SourceCodes.RESOURCE_KEPT.finding(_format_message(variant, resources, reason), _locate(variant))


def _locate(variant: Variant) -> SourceLocation:
    return SourceLocation(object=variant.owner.key.reference)


def _format_message(variant: Variant, resources: list[PackageResource], reason: str) -> str:
    upstream, owner = variant.upstream, variant.owner
    assert upstream
    stay, deleted = (
        ("This resource stays", "the resource") if len(resources) == 1 else ("These resources stay", "these resources")
    )
    more = ", ..." if len(resources) > _MAX_LISTED else ""
    names = ", ".join(str(resource.key) for resource in resources[:_MAX_LISTED]) + more
    return (
        f'version "{upstream.ref}" of the chart "{upstream.package}" does not contain {names}.'
        f" {stay} in package {variant.target}, {reason}. Next step: to delete {deleted}, annotate"
        f' {owner.parent or owner.key} with {ACK_DELETIONS}: "{_compute_hash(variant, resources)}"'
    )
