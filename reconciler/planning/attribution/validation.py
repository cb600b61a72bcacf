"""Conformance: whether rendered resources are what their clusters take, by Kubernetes' releases and by schemas.

Lint across rooms: what can only be told of a config when all that the rooms make of it is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.files import FileTree
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.controllers.codes import FIELD_MISSPELT
from reconciler.controllers.kafka_templates.strimzi.kafka_checks import find_deprecated_fields
from reconciler.controllers.override_policies.attachment import MissingPolicyMode, find_attached_policies
from reconciler.controllers.override_policies.codes import POLICY_NOT_FOUND
from reconciler.controllers.override_policies.read_policies import OverridePolicies
from reconciler.controllers.resource_findings import ResourceIssue, create_finding
from reconciler.controllers.results import GeneratedSource, Variant
from reconciler.controllers.validation import describe_value, format_list, format_path, suggest_name
from reconciler.krm.findings import Finding, FindingCode, SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.krm.schema.custom_resources import (
    CustomResourceKinds,
    CustomResourceVersion,
    read_custom_resource_kinds,
)
from reconciler.krm.schema.kubernetes_apis import (
    BUILTIN_GROUPS,
    KubernetesRelease,
    find_api_removal,
    format_kubernetes_release,
)
from reconciler.krm.schema.validation import Violation
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.packages.functions.registry import FunctionMatch, FunctionUnavailable
from reconciler.packages.kptfile import KPTFILE, FunctionSpec
from reconciler.packages.package import Package, PackageResource
from reconciler.packages.pipeline import FunctionProvider
from reconciler.planning.model.codes import (
    API_DEPRECATED,
    API_NOT_SERVED,
    DOWNSTREAM_CONFLICT,
    FIELD_NOT_IN_SCHEMA,
    FUNCTION_UNAVAILABLE,
    RESOURCE_INVALID,
)
from reconciler.planning.model.outcomes import PackageRender
from reconciler.planning.model.targets import PackagePathIndex
from reconciler.redaction import MASK, is_secret

CRD_TYPE = ("apiextensions.k8s.io", "CustomResourceDefinition")


class SchemaSource(Protocol):
    """Schemas of kinds, by release of Kubernetes; no release means the newest of which anything is known."""

    def find_violations(
        self, release: KubernetesRelease | None, data: Mapping[str, Any]
    ) -> tuple[Violation, ...] | None:
        """Return what is wrong with a resource; None where there is no schema of its kind."""
        ...

    def is_complete(self, release: KubernetesRelease | None) -> bool:
        """Tell whether every kind that this release itself serves has a schema here."""
        ...

    def describe_release(self, release: KubernetesRelease | None) -> str:
        """Return by which release is judged, as people say it."""
        ...

    def explain_missing_schema(self, release: KubernetesRelease | None) -> str:
        """Return why a built-in kind has no schema, and what to do about it."""
        ...


@dataclass(frozen=True)
class ResourceViolation:
    """One thing that is wrong with a resource of a package, at a path in it."""

    code: FindingCode
    resource: PackageResource
    path: tuple[str | int, ...]
    message: str


@dataclass(frozen=True)
class CheckedPackage:
    """A package as it was rendered, with what is wrong with it, and its kinds that have no schema: how many of each."""

    variant: Variant
    rendered: PackageRender
    violations: tuple[ResourceViolation, ...] = ()
    unchecked: tuple[UncheckedResources, ...] = ()


@dataclass(frozen=True)
class UncheckedResources:
    """Resources of a package that were held against no schema: what they are, how many, and the first of them.

    `builtin_reason` is why there are no schemas of built-in kinds, with the next step; "" for other kinds.
    """

    description: str
    builtin_reason: str
    first_resource: PackageResource
    count: int = 1


_Found = tuple[tuple[ResourceViolation, ...], tuple[UncheckedResources, ...]]


class ConformanceChecker:
    """Checks the packages of one cluster after the other; what clusters have alike is looked at once."""

    def __init__(self, catalog: Catalog, releases: Mapping[str, KubernetesRelease], schemas: SchemaSource) -> None:
        self._releases = releases
        self._schemas = schemas
        self._of_config = read_custom_resource_kinds(one.data for one in catalog.objects_of_kind(*CRD_TYPE))
        self._known: dict[tuple[object, ...], _Found] = {}

    def check_packages(
        self, cluster: str, packages: Sequence[tuple[Variant, PackageRender]]
    ) -> Iterator[CheckedPackage]:
        """Yield each package of a cluster with what is wrong with it; custom kinds may be defined in any of them."""
        release = self._releases.get(cluster)
        defining = [rendered.files for _, rendered in packages if _defines(rendered.files)]
        customs = (
            self._of_config.with_overrides(read_custom_resource_kinds(_definitions(defining)))
            if defining
            else self._of_config
        )
        about = (release, *sorted(files.id for files in defining))
        for variant, rendered in packages:
            key = (rendered.files.id, *about)
            if key not in self._known:
                self._known[key] = self._look(rendered.files, release, customs)
            yield CheckedPackage(variant, rendered, *self._known[key])

    def _look(self, files: FileTree, release: KubernetesRelease | None, customs: CustomResourceKinds) -> _Found:
        faults: list[ResourceViolation] = []
        unknown: dict[tuple[str, str], UncheckedResources] = {}
        for resource in Package(files).resources:
            if not _is_applied(resource):
                continue
            found, is_judged = self._of_resource(resource, release, customs)
            faults += found
            if not is_judged:
                one = self._unjudged(resource, release)
                before = unknown.get((one.description, one.builtin_reason))
                unknown[one.description, one.builtin_reason] = (
                    replace(before, count=before.count + 1) if before else one
                )
        return tuple(faults), tuple(unknown.values())

    def _unjudged(self, resource: PackageResource, release: KubernetesRelease | None) -> UncheckedResources:
        if resource.group in BUILTIN_GROUPS:
            return UncheckedResources("Kubernetes' own kinds", self._schemas.explain_missing_schema(release), resource)
        return UncheckedResources(f"{resource.api_version} {resource.kind}", "", resource)

    def _of_resource(
        self, resource: PackageResource, release: KubernetesRelease | None, customs: CustomResourceKinds
    ) -> tuple[tuple[ResourceViolation, ...], bool]:
        """Return the faults of a resource, and whether it was compared to a schema or its API version is not served."""
        if customs.contains(resource.group, resource.kind):
            of_definition = _of_custom(resource, customs.versions(resource.group, resource.kind))
            return of_definition or (), of_definition is not None
        going = _going(resource, release)
        told = (going,) if going else ()
        if going and going.code is API_NOT_SERVED:
            return told, True
        violations = self._schemas.find_violations(release, resource.data)
        if violations is not None:
            by = self._schemas.describe_release(release) if resource.group in BUILTIN_GROUPS else "its schema"
            return (*told, *_violations(resource, violations, by)), True
        if resource.group in BUILTIN_GROUPS and self._schemas.is_complete(release) and not told:
            message = (
                f"is {resource.api_version}, of which {self._schemas.describe_release(release)} has no {resource.kind}"
            )
            return (ResourceViolation(API_NOT_SERVED, resource, ("apiVersion",), message),), True
        return told, False


def _is_applied(resource: PackageResource) -> bool:
    # what has no kind and name is no resource, and a List is taken apart by whoever applies it
    is_list = resource.kind.endswith("List") and isinstance(resource.data.get("items"), list)
    return not (resource.missing_krm_field or resource.is_local_config or resource.kind == KPTFILE or is_list)


def _defines(files: FileTree) -> bool:
    return any(b"CustomResourceDefinition" in file.data for file in files.values())


def _definitions(trees: Iterable[FileTree]) -> Iterator[Mapping[str, Any]]:
    for files in trees:
        yield from (one.data for one in Package(files).resources if (one.group, one.kind) == CRD_TYPE)


def _going(resource: PackageResource, release: KubernetesRelease | None) -> ResourceViolation | None:
    """Return that an API version is gone, or will be, in the release of the cluster."""
    found = find_api_removal(resource.api_version, resource.kind)
    if found is None or (release and release < found.deprecated_in):
        return None
    gone = format_kubernetes_release(found.removed_in)
    what, instead = f"is {resource.api_version}, which", f"; use {found.replacement}"
    if release and release >= found.removed_in:
        message = f"{what} is gone since Kubernetes {gone}, and the cluster runs {format_kubernetes_release(release)}{instead}"  # noqa: E501
        return ResourceViolation(API_NOT_SERVED, resource, ("apiVersion",), message)
    since = format_kubernetes_release(found.deprecated_in)
    message = f"{what} is deprecated since Kubernetes {since}, and gone from {gone} on{instead}"
    return ResourceViolation(API_DEPRECATED, resource, ("apiVersion",), message)


def _of_custom(
    resource: PackageResource, versions: Mapping[str, CustomResourceVersion]
) -> tuple[ResourceViolation, ...] | None:
    version = versions.get(resource.version)
    if version is None or not version.served:
        served = format_list(sorted(name for name, one in versions.items() if one.served)) or "none"
        message = f"is {resource.api_version}, and the definition of {resource.kind} serves {served}"
        return (ResourceViolation(API_NOT_SERVED, resource, ("apiVersion",), message),)
    violations = version.find_violations(resource.data)
    return None if violations is None else tuple(_violations(resource, violations, "its definition"))


def _violations(resource: PackageResource, violations: Iterable[Violation], by: str) -> Iterator[ResourceViolation]:
    for one in violations:
        if one.rule == "unknown":
            yield from (
                ResourceViolation(
                    FIELD_NOT_IN_SCHEMA, resource, (*one.path, name), f"is no field that there is, by {by}"
                )
                for name in one.names
            )
        else:
            words = _words(one, hides=is_secret(resource.data))
            yield ResourceViolation(RESOURCE_INVALID, resource, one.path, f"{words}, by {by}")


def _words(one: Violation, *, hides: bool) -> str:
    names, value = ", ".join(one.names), MASK if hides else describe_value(one.value)
    match one.rule:
        case "type":
            types = [name for name in one.names if name != "null"] or one.names
            return f"must be {' or '.join(types)}, not {value}"
        case "enum":
            return f"must be one of {names}, not {value}"
        case "required":
            return f"must have {names}"
        case "format":
            return f"must be of the format {names}, not {value}"
        case "one-of":
            return "must be as one of its alternatives says, and is as none or as several"
        case _:
            return "breaks a rule of its schema" if hides else f"breaks a rule of its schema: {names}"


FieldPathStep = str | int
# those that are read, and those of Porch's that need not be
_OF_REPOSITORIES = (
    "type",
    "git",
    "deployment",
    "description",
    "content",
    "oci",
    "sync",
    "upstream",
    "mutators",
    "validators",
)
_OF_GIT = ("repo", "branch", "directory", "tagPrefix", "createBranch", "secretRef", "author", "email")


def lint_places(variants: Iterable[Variant], objects: Mapping[ObjectKey, ConfigObject]) -> Iterator[Finding]:
    """Yield an error for each package that several owners want, or that lies in one of another: one of them waits."""
    taken: dict[tuple[str, str], tuple[PackagePathIndex, dict[str, Variant]]] = {}
    for one in sorted(variants, key=lambda each: (each.owner.key, each.target)):
        packages, wanted = taken.setdefault((one.target.namespace, one.target.repository), (PackagePathIndex(), {}))
        package = one.target.package
        rivals = [wanted[each] for each in (package, *packages.find_nested(package)) if each in wanted]
        if rivals:
            first = rivals[0]
            message = f"package {one.target} is also requested by {first.owner.key} as {first.target.package}"
            yield DOWNSTREAM_CONFLICT.finding(message, _of_owner(one, objects))
        else:
            wanted[package] = one
            packages.add(package)


def _of_owner(variant: Variant, objects: Mapping[ObjectKey, ConfigObject]) -> SourceLocation:
    written = objects.get(variant.owner.parent or variant.owner.key)
    return (
        replace(written.location, object=str(variant.owner.key))
        if written
        else SourceLocation(object=str(variant.owner.key))
    )


def lint_generated(
    variants: Iterable[Variant],
    policies: OverridePolicies,
    on_missing: MissingPolicyMode,
    objects: Mapping[ObjectKey, ConfigObject],
) -> Iterator[Finding]:
    """Yield what is wrong with the policies that generated resources name, and what they spell in an old way.

    It is what a pass tells of each package; here what several clusters have alike is told once.
    """
    seen: set[str] = set()
    for one in variants:
        if one.cluster and isinstance(one.source, GeneratedSource) and one.source.files.id not in seen:
            seen.add(one.source.files.id)
            for resource in Package(one.source.files).resources:
                yield from _of_resource(resource, one, policies, on_missing, objects)


def _of_resource(
    resource: PackageResource, variant: Variant, policies: OverridePolicies, on_missing: MissingPolicyMode,
    objects: Mapping[ObjectKey, ConfigObject],
) -> Iterator[Finding]:  # fmt: skip
    notes = (
        *(_guessed(one, policies) for one in find_attached_policies(resource, policies, on_missing).issues),
        *find_deprecated_fields(resource),
    )
    for found in (create_finding(resource, note) for note in notes):
        written = objects.get(resource.key)
        if written is not None:
            # a resource that is placed stands in the config as it is
            yield replace(found, location=replace(found.location, file=written.file, line=written.line))
        else:
            place = replace(found.location, package=str(variant.target), owner=str(variant.owner.key))
            yield replace(found, location=place)


def _guessed(note: ResourceIssue, policies: OverridePolicies) -> ResourceIssue:
    """Return the note; of a policy that does not exist with the name of one that may be meant."""
    if note.code is not POLICY_NOT_FOUND:
        return note
    names = sorted(map(str, policies.valid))
    wanted = note.message.partition(" names ")[2].partition(",")[0]
    return replace(note, message=f"{note.message}{suggest_name(wanted, names)}")


def lint_repositories(catalog: Catalog) -> Iterator[Finding]:
    """Yield a warning for each field of a Repository that is kept, says nothing, and is almost one that is read."""
    for one in catalog.objects_of_kind(PORCH_GROUP, "Repository"):
        spec = one.data.get("spec")
        git = spec.get("git") if isinstance(spec, dict) else None
        for path, fields, known in ((("spec",), spec, _OF_REPOSITORIES), (("spec", "git"), git, _OF_GIT)):
            for name in (str(key) for key in (fields if isinstance(fields, dict) else ()) if key not in known):
                if guess := suggest_name(name, known):
                    message = f"{format_path((*path, name))} is no field that is read{guess}"
                    yield FIELD_MISSPELT.finding(message, one.location_of((*path, name)))


def lint_functions(catalog: Catalog, functions: FunctionProvider) -> Iterator[Finding]:
    """Yield a warning for each function of a PackageVariant, or of a set, that cannot run here."""
    for kind in ("PackageVariant", "PackageVariantSet"):
        for one in catalog.objects_of_kind(PORCH_GROUP, kind):
            for path, entry in _entries(one.data.get("spec")):
                why = _why_not(entry, functions)
                if why:
                    name = entry.get("image") or entry.get("exec")
                    message = f"{format_path(path)}: function {name} cannot run here: {why}"
                    yield FUNCTION_UNAVAILABLE.finding(message, one.location_of(path))


def _entries(spec: Any) -> Iterator[tuple[tuple[FieldPathStep, ...], Mapping[str, Any]]]:
    """Yield the functions of a spec, or of the templates of its targets, as they are written."""
    holders: list[tuple[tuple[FieldPathStep, ...], Any]] = [(("spec",), spec)]
    targets = spec.get("targets") if isinstance(spec, dict) else None
    for index, target in enumerate(targets if isinstance(targets, list) else ()):
        template = target.get("template") if isinstance(target, dict) else None
        holders.append((("spec", "targets", index, "template"), template))
    for path, holder in holders:
        pipeline = holder.get("pipeline") if isinstance(holder, dict) else None
        for name in ("mutators", "validators"):
            entries = pipeline.get(name) if isinstance(pipeline, dict) else None
            for index, entry in enumerate(entries if isinstance(entries, list) else ()):
                if isinstance(entry, dict):
                    yield (*path, "pipeline", name, index), entry


def _why_not(entry: Mapping[str, Any], functions: FunctionProvider) -> str:
    texts = {name: value for name in ("image", "exec", "tag") if isinstance(value := entry.get(name), str)}
    if not texts.keys() & {"image", "exec"}:
        return ""
    try:
        found = functions.find(FunctionSpec.model_validate(texts))
    except InterruptedFunctionError:
        # the world does not say now, and a pass will ask again
        return ""
    match found:
        case FunctionMatch():
            return ""
        case FunctionUnavailable(reason):
            return reason
        case None:
            return "it is none of those that are built in, and the settings list no image or command of that name"


def deduplicate_lint(findings: Sequence[Finding], lint: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return what lint has to say of places of which nothing worse was found with the same code."""
    known = {(one.code, one.location.object, one.location.pointer) for one in findings}
    return tuple(one for one in lint if (one.code, one.location.object, one.location.pointer) not in known)
