"""Conformance: whether rendered resources are what their clusters take, by Kubernetes' releases and by schemas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from reconciler.krm.findings import Code
from reconciler.krm.schema.api_removals import Release, release_words, removal
from reconciler.krm.schema.custom import CustomKinds, CustomVersion, read_custom_kinds
from reconciler.krm.schema.scopes import GROUPS
from reconciler.krm.schema.validation import Violation
from reconciler.krm.secrets import MASK, is_secret
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.package import Package, PackageResource
from reconciler.planning.codes import API_DEPRECATED, API_NOT_SERVED, FIELD_NOT_IN_SCHEMA, RESOURCE_INVALID
from reconciler.planning.outcome import Rendered
from reconciler.rules.fields import listed, named
from reconciler.rules.variant import Variant
from reconciler.snapshot.catalog import Catalog
from reconciler.snapshot.files import FileTree

CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")


class Schemas(Protocol):
    """Schemas of kinds, by release of Kubernetes; no release means the newest of which anything is known."""

    def violations(self, release: Release | None, data: Mapping[str, Any]) -> tuple[Violation, ...] | None:
        """Return what is wrong with a resource; None where there is no schema of its kind."""
        ...

    def is_whole(self, release: Release | None) -> bool:
        """Tell whether every kind that this release itself serves has a schema here."""
        ...

    def words(self, release: Release | None) -> str:
        """Return by which release is judged, as people say it."""
        ...

    def missing_reason(self, release: Release | None) -> str:
        """Return why a built-in kind has no schema, and what to do about it."""
        ...


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a resource of a package, at a path in it."""

    code: Code
    resource: PackageResource
    path: tuple[str | int, ...]
    message: str


@dataclass(frozen=True)
class Checked:
    """A package as it was rendered, with what is wrong with it, and its kinds that have no schema: how many of each."""

    variant: Variant
    rendered: Rendered
    faults: tuple[Fault, ...] = ()
    unknown: tuple[Unjudged, ...] = ()


@dataclass(frozen=True)
class Unjudged:
    """Resources of a package that were held against no schema: what they are, how many, and the first of them.

    `builtin_reason` is why there are no schemas of built-in kinds, with the next step; "" for other kinds.
    """

    what: str
    builtin_reason: str
    first: PackageResource
    count: int = 1


_Found = tuple[tuple[Fault, ...], tuple[Unjudged, ...]]


class Conformance:
    """Checks the packages of one cluster after the other; what clusters have alike is looked at once."""

    def __init__(self, catalog: Catalog, releases: Mapping[str, Release], schemas: Schemas) -> None:
        self._releases = releases
        self._schemas = schemas
        self._of_config = read_custom_kinds(one.data for one in catalog.of_kind(*CRD))
        self._known: dict[tuple[object, ...], _Found] = {}

    def check(self, cluster: str, packages: Sequence[tuple[Variant, Rendered]]) -> Iterator[Checked]:
        """Yield each package of a cluster with what is wrong with it; custom kinds may be defined in any of them."""
        release = self._releases.get(cluster)
        defining = [rendered.files for _, rendered in packages if _defines(rendered.files)]
        customs = self._of_config.overlaid(read_custom_kinds(_definitions(defining))) if defining else self._of_config
        about = (release, *sorted(files.id for files in defining))
        for variant, rendered in packages:
            key = (rendered.files.id, *about)
            if key not in self._known:
                self._known[key] = self._look(rendered.files, release, customs)
            yield Checked(variant, rendered, *self._known[key])

    def _look(self, files: FileTree, release: Release | None, customs: CustomKinds) -> _Found:
        faults: list[Fault] = []
        unknown: dict[tuple[str, str], Unjudged] = {}
        for resource in Package(files).resources:
            if not _is_applied(resource):
                continue
            found, is_judged = self._of_resource(resource, release, customs)
            faults += found
            if not is_judged:
                one = self._unjudged(resource, release)
                before = unknown.get((one.what, one.builtin_reason))
                unknown[one.what, one.builtin_reason] = replace(before, count=before.count + 1) if before else one
        return tuple(faults), tuple(unknown.values())

    def _unjudged(self, resource: PackageResource, release: Release | None) -> Unjudged:
        if resource.group in GROUPS:
            return Unjudged("Kubernetes' own kinds", self._schemas.missing_reason(release), resource)
        return Unjudged(f"{resource.api_version} {resource.kind}", "", resource)

    def _of_resource(
        self, resource: PackageResource, release: Release | None, customs: CustomKinds
    ) -> tuple[tuple[Fault, ...], bool]:
        """Return the faults of a resource, and whether it was compared to a schema or its API version is not served."""
        if customs.knows(resource.group, resource.kind):
            of_definition = _of_custom(resource, customs.versions(resource.group, resource.kind))
            return of_definition or (), of_definition is not None
        going = _going(resource, release)
        told = (going,) if going else ()
        if going and going.code is API_NOT_SERVED:
            return told, True
        violations = self._schemas.violations(release, resource.data)
        if violations is not None:
            by = self._schemas.words(release) if resource.group in GROUPS else "its schema"
            return (*told, *_violations(resource, violations, by)), True
        if resource.group in GROUPS and self._schemas.is_whole(release) and not told:
            message = f"is {resource.api_version}, of which {self._schemas.words(release)} has no {resource.kind}"
            return (Fault(API_NOT_SERVED, resource, ("apiVersion",), message),), True
        return told, False


def _is_applied(resource: PackageResource) -> bool:
    # what has no kind and name is no resource, and a List is taken apart by whoever applies it
    is_list = resource.kind.endswith("List") and isinstance(resource.data.get("items"), list)
    return not (resource.missing_krm_field or resource.is_local_config or resource.kind == KPTFILE or is_list)


def _defines(files: FileTree) -> bool:
    return any(b"CustomResourceDefinition" in file.data for file in files.values())


def _definitions(trees: Iterable[FileTree]) -> Iterator[Mapping[str, Any]]:
    for files in trees:
        yield from (one.data for one in Package(files).resources if (one.group, one.kind) == CRD)


def _going(resource: PackageResource, release: Release | None) -> Fault | None:
    """Return that an API version is gone, or will be, in the release of the cluster."""
    found = removal(resource.api_version, resource.kind)
    if found is None or (release and release < found.deprecated):
        return None
    gone = release_words(found.gone)
    what, instead = f"is {resource.api_version}, which", f"; use {found.instead}"
    if release and release >= found.gone:
        message = f"{what} is gone since Kubernetes {gone}, and the cluster runs {release_words(release)}{instead}"
        return Fault(API_NOT_SERVED, resource, ("apiVersion",), message)
    since = release_words(found.deprecated)
    message = f"{what} is deprecated since Kubernetes {since}, and gone from {gone} on{instead}"
    return Fault(API_DEPRECATED, resource, ("apiVersion",), message)


def _of_custom(resource: PackageResource, versions: Mapping[str, CustomVersion]) -> tuple[Fault, ...] | None:
    version = versions.get(resource.version)
    if version is None or not version.served:
        served = listed(sorted(name for name, one in versions.items() if one.served)) or "none"
        message = f"is {resource.api_version}, and the definition of {resource.kind} serves {served}"
        return (Fault(API_NOT_SERVED, resource, ("apiVersion",), message),)
    violations = version.violations(resource.data)
    return None if violations is None else tuple(_violations(resource, violations, "its definition"))


def _violations(resource: PackageResource, violations: Iterable[Violation], by: str) -> Iterator[Fault]:
    for one in violations:
        if one.rule == "unknown":
            yield from (
                Fault(FIELD_NOT_IN_SCHEMA, resource, (*one.path, name), f"is no field that there is, by {by}")
                for name in one.names
            )
        else:
            words = _words(one, hides=is_secret(resource.data))
            yield Fault(RESOURCE_INVALID, resource, one.path, f"{words}, by {by}")


def _words(one: Violation, *, hides: bool) -> str:
    names, value = ", ".join(one.names), MASK if hides else named(one.value)
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
