"""Lint across rooms: what can only be told of a config when all that the rooms make of it is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.krm.findings import Finding, Where
from reconciler.krm.identity import ObjectKey
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.packages.functions.registry import Found, Missing
from reconciler.packages.kptfile import FunctionSpec
from reconciler.packages.package import Package, PackageResource
from reconciler.packages.pipeline import Functions
from reconciler.planning.codes import DOWNSTREAM_CONFLICT, FUNCTION_UNAVAILABLE
from reconciler.planning.destination import Packages
from reconciler.rules.codes import FIELD_MISSPELT
from reconciler.rules.fields import dotted, meant
from reconciler.rules.notes import Note, finding_of
from reconciler.rules.overrides.attach import OnMissing, attach
from reconciler.rules.overrides.codes import POLICY_NOT_FOUND
from reconciler.rules.overrides.read_policy import Policies
from reconciler.rules.templates.old_spellings import old_spellings
from reconciler.rules.variant import Generated, Variant
from reconciler.snapshot.catalog import PORCH_GROUP, Catalog, ConfigObject

Step = str | int
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
    taken: dict[tuple[str, str], tuple[Packages, dict[str, Variant]]] = {}
    for one in sorted(variants, key=lambda each: (each.owner.key, each.place)):
        packages, wanted = taken.setdefault((one.place.namespace, one.place.repository), (Packages(), {}))
        package = one.place.package
        rivals = [wanted[each] for each in (package, *packages.nested(package)) if each in wanted]
        if rivals:
            first = rivals[0]
            message = f"package {one.place} is also wanted by {first.owner.key} as {first.place.package}"
            yield DOWNSTREAM_CONFLICT.finding(message, _of_owner(one, objects))
        else:
            wanted[package] = one
            packages.add(package)


def _of_owner(variant: Variant, objects: Mapping[ObjectKey, ConfigObject]) -> Where:
    written = objects.get(variant.owner.set or variant.owner.key)
    return replace(written.where, object=str(variant.owner.key)) if written else Where(object=str(variant.owner.key))


def lint_generated(
    variants: Iterable[Variant], policies: Policies, on_missing: OnMissing, objects: Mapping[ObjectKey, ConfigObject]
) -> Iterator[Finding]:
    """Yield what is wrong with the policies that generated resources name, and what they spell in an old way.

    It is what a pass tells of each package; here what several clusters have alike is told once.
    """
    seen: set[str] = set()
    for one in variants:
        if one.cluster and isinstance(one.source, Generated) and one.source.files.id not in seen:
            seen.add(one.source.files.id)
            for resource in Package(one.source.files).resources:
                yield from _of_resource(resource, one, policies, on_missing, objects)


def _of_resource(
    resource: PackageResource, variant: Variant, policies: Policies, on_missing: OnMissing,
    objects: Mapping[ObjectKey, ConfigObject],
) -> Iterator[Finding]:  # fmt: skip
    notes = (
        *(_guessed(one, policies) for one in attach(resource, policies, on_missing).notes),
        *old_spellings(resource),
    )
    for found in (finding_of(resource, note) for note in notes):
        written = objects.get(resource.key)
        if written is not None:
            # a resource that is placed stands in the config as it is
            yield replace(found, where=replace(found.where, file=written.file, line=written.line))
        else:
            place = replace(found.where, package=str(variant.place), owner=str(variant.owner.key))
            yield replace(found, where=place)


def _guessed(note: Note, policies: Policies) -> Note:
    """Return the note; of a policy that does not exist with the name of one that may be meant."""
    if note.code is not POLICY_NOT_FOUND:
        return note
    names = sorted(map(str, policies.sound))
    wanted = note.message.partition(" names ")[2].partition(",")[0]
    return replace(note, message=f"{note.message}{meant(wanted, names)}")


def lint_repositories(catalog: Catalog) -> Iterator[Finding]:
    """Yield a warning for each field of a Repository that is kept, says nothing, and is almost one that is read."""
    for one in catalog.of_kind(PORCH_GROUP, "Repository"):
        spec = one.data.get("spec")
        git = spec.get("git") if isinstance(spec, dict) else None
        for path, fields, known in ((("spec",), spec, _OF_REPOSITORIES), (("spec", "git"), git, _OF_GIT)):
            for name in (str(key) for key in (fields if isinstance(fields, dict) else ()) if key not in known):
                if guess := meant(name, known):
                    message = f"{dotted((*path, name))} is no field that is read{guess}"
                    yield FIELD_MISSPELT.finding(message, one.where_at((*path, name)))


def lint_functions(catalog: Catalog, functions: Functions) -> Iterator[Finding]:
    """Yield a warning for each function of a PackageVariant, or of a set, that cannot run here."""
    for kind in ("PackageVariant", "PackageVariantSet"):
        for one in catalog.of_kind(PORCH_GROUP, kind):
            for path, entry in _entries(one.data.get("spec")):
                why = _why_not(entry, functions)
                if why:
                    name = entry.get("image") or entry.get("exec")
                    message = f"{dotted(path)}: function {name} cannot run here: {why}"
                    yield FUNCTION_UNAVAILABLE.finding(message, one.where_at(path))


def _entries(spec: Any) -> Iterator[tuple[tuple[Step, ...], Mapping[str, Any]]]:
    """Yield the functions of a spec, or of the templates of its targets, as they are written."""
    holders: list[tuple[tuple[Step, ...], Any]] = [(("spec",), spec)]
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


def _why_not(entry: Mapping[str, Any], functions: Functions) -> str:
    texts = {name: value for name in ("image", "exec", "tag") if isinstance(value := entry.get(name), str)}
    if not texts.keys() & {"image", "exec"}:
        return ""
    try:
        found = functions.find(FunctionSpec.model_validate(texts))
    except InterruptedFunctionError:
        # the world does not say now, and a pass will ask again
        return ""
    match found:
        case Found():
            return ""
        case Missing(reason):
            return reason
        case None:
            return "it is none of those that are built in, and the settings list no image or command of that name"


def told_once(findings: Sequence[Finding], lint: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return what lint has to say of places of which nothing worse was found with the same code."""
    known = {(one.code, one.where.object, one.where.pointer) for one in findings}
    return tuple(one for one in lint if (one.code, one.where.object, one.where.pointer) not in known)
