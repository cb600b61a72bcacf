"""Findings about rendered resources that violate a schema, with the config line that set the value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.catalog.catalog import ConfigObject
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.numbers import format_count
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.explain.builder import explain
from reconciler.output.explain.model import SOURCE_LAYERS, ValueNotFoundError, ValueStep
from reconciler.output.text import format_names, format_object_reference, format_path_text
from reconciler.packages.package import PackageResource
from reconciler.planning.attribution.re_render import ReRenderedPackage
from reconciler.planning.attribution.removable_layers import ConfigField
from reconciler.planning.attribution.validation import CheckedPackage, ResourceViolation, UncheckedResources
from reconciler.planning.model.codes import PlanningCodes

_MAX_NAMES = 3
ConfigObjects = Mapping[ObjectKey, ConfigObject]
_ViolationKey = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class UnknownVersionClusters:
    """Clusters without a Kubernetes version, and the version that validation assumes for these clusters."""

    clusters: Sequence[str]
    assumed_version: str
    locations: Mapping[str, SourceLocation] = field(default_factory=dict)


def build_rendered_findings(checked: Iterable[CheckedPackage], objects: ConfigObjects) -> Iterator[Finding]:
    """Yield the findings about rendered resources. Equal violations in several packages form one finding."""
    violations: dict[_ViolationKey, list[tuple[CheckedPackage, ResourceViolation]]] = {}
    unchecked: dict[tuple[str, str], list[tuple[CheckedPackage, UncheckedResources]]] = {}
    for package in checked:
        for violation in package.violations:
            resource = violation.resource
            pointer = format_pointer(violation.path)
            key = (violation.code.name, resource.file, resource.key.reference, pointer, violation.message)
            violations.setdefault(key, []).append((package, violation))
        for resources in package.unchecked:
            unchecked.setdefault((resources.description, resources.builtin_reason), []).append((package, resources))
    for same_violations in violations.values():
        yield _build_violation_finding(
            *same_violations[0], [str(package.variant.target) for package, _ in same_violations[1:]], objects
        )
    for _, entries in sorted(unchecked.items(), key=lambda item: item[0]):
        yield _build_unchecked_finding(entries, objects)


def build_unknown_version_findings(unknown: UnknownVersionClusters) -> Iterator[Finding]:
    """Yield an info finding if there are clusters without a Kubernetes version."""
    if unknown.clusters:
        first = unknown.clusters[0]
        names = format_names(unknown.clusters, _MAX_NAMES)
        message = (
            f"the Kubernetes version of {names} is unknown, so validation uses {unknown.assumed_version}; next step:"
            " set the annotation reconciler.dev/kubernetes-version on each cluster object"
        )
        yield PlanningCodes.KUBERNETES_VERSION_UNKNOWN.finding(message, unknown.locations.get(first, SourceLocation()))


def _build_violation_finding(
    package: CheckedPackage, violation: ResourceViolation, others: Sequence[str], objects: ConfigObjects
) -> Finding:
    resource = violation.resource
    more = f"; same violation in {format_names(others, _MAX_NAMES)}" if others else ""
    path = format_path_text(violation.path)
    text = f"{resource.key}: {f'{path} ' if path else ''}{violation.message}"
    step = _find_config_step(package, violation, objects)
    if step is None or not step.line:
        location = _get_location(package, resource, violation.path, objects)
        return violation.code.finding(f"{text}{more}", location)
    keys = (key for key, manifest in objects.items() if manifest.file == step.file and _has_name(key, step.set_by))
    name = next((key.reference for key in keys), step.set_by)
    variant = package.variant
    location = SourceLocation(step.file, step.line, name, "", str(variant.target), variant.owner.key.reference)
    origin = f"{format_object_reference(step.set_by)} {step.field} sets this value in {resource.file}"
    return violation.code.finding(f"{text}; {origin}{more}", location)


def _has_name(key: ObjectKey, name: str) -> bool:
    return name in (key.reference, "/".join(part for part in (key.kind, key.namespace, key.name) if part))


def _get_location(
    package: CheckedPackage, resource: PackageResource, path: DataPath, objects: ConfigObjects
) -> SourceLocation:
    """Return the location of the config object that the resource is a copy of, or the location in the package."""
    variant = package.variant
    target, owner, pointer = str(variant.target), variant.owner.key.reference, format_pointer(path)
    manifest = objects.get(resource.key)
    if manifest is not None and variant.upstream is None:
        return SourceLocation(
            manifest.file, manifest.location_of(path).line, manifest.key.reference, pointer, target, owner
        )
    # Use line 0 for JSON files, because the JSON parser has no line numbers.
    line = 0 if resource.file.endswith(".json") else resource.document.find_line(path)
    return SourceLocation(resource.file, line, resource.key.reference, pointer, target, owner)


def _find_config_step(
    package: CheckedPackage, violation: ResourceViolation, objects: ConfigObjects
) -> ValueStep | None:
    """Return the last step that set the value or a value that contains it. Return None if no config object set it."""
    variant, pointer = package.variant, format_pointer(violation.path)
    re_rendered = ReRenderedPackage(str(variant.target), "", objects, variant.owner, variant, package.rendered)
    try:
        values = explain(re_rendered, violation.resource.key.reference, pointer).values
    except ValueNotFoundError:
        return None
    around = [value for value in values if value.file == violation.resource.file and _contains(value.pointer, pointer)]
    closest = max(around, key=lambda value: len(value.pointer), default=None)
    last = closest.steps[-1] if closest else None
    is_from_config = (
        last is not None and last.layer not in SOURCE_LAYERS and isinstance(last.removable_layer, ConfigField)
    )
    return last if is_from_config else None


def _contains(pointer: str, other: str) -> bool:
    return pointer == other or other.startswith(f"{pointer}/")


def _build_unchecked_finding(
    entries: Sequence[tuple[CheckedPackage, UncheckedResources]], objects: ConfigObjects
) -> Finding:
    package, resources = entries[0]
    total = sum(entry.count for _, entry in entries)
    count = f"{format_count(total, 'resource')} of {resources.description}"
    targets = format_names([str(entry.variant.target) for entry, _ in entries], _MAX_NAMES)
    text = f"{count} in {targets} {'was' if total == 1 else 'were'} not validated, because"
    location = _get_location(package, resources.first_resource, (), objects)
    if resources.builtin_reason:
        return PlanningCodes.NOT_VALIDATED.finding(f"{text} {resources.builtin_reason}", location)
    return PlanningCodes.SCHEMA_MISSING.finding(f"{text} no schema of this kind is known", location)
