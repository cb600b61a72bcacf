"""Reading a PackageVariantSet: every fault at once, in the order and words of porch 11.1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from reconciler.expressions import Limits
from reconciler.krm.names import package_path_fault
from reconciler.krm.selectors import SELECTOR_FIELDS, LabelSelector, read_label_selector
from reconciler.rules.variants.fields import Faults, Fields
from reconciler.rules.variants.inputs import expression_fault
from reconciler.rules.variants.model import Head, Upstream
from reconciler.rules.variants.read_parts import (
    UPSTREAM_FIELDS,
    build_upstream,
    count_references,
    read_references,
    read_upstream_aliases,
)
from reconciler.rules.variants.read_template import read_template
from reconciler.rules.variants.read_variant import OBJECT_FIELDS, VARIANT_API_VERSION, read_name
from reconciler.rules.variants.set_model import (
    ObjectSelection,
    PackageVariantSetSpec,
    RepositoryEntry,
    RepositoryList,
    Target,
    Template,
)

SET_API_VERSION = "config.porch.kpt.dev/v1alpha2"
REVISION_SET_API_VERSION = "reconciler.dev/v1alpha1"
_SELECTIONS = ("repositories", "repositorySelector", "objectSelector")
_ONE_SELECTION = "must specify one of `repositories`, `repositorySelector`, or `objectSelector`"


class ReadSet(NamedTuple):
    """A valid spec and no errors, or None and all of them; warnings are aliases that were read (porch 2.4)."""

    spec: PackageVariantSetSpec | None
    errors: tuple[str, ...]
    warnings: tuple[str, ...]


class ReadRevisionSet(NamedTuple):
    """The upstreams of a PackageRevisionSet and no errors, or none and all errors."""

    upstreams: tuple[Upstream, ...]
    errors: tuple[str, ...]


def read_package_variant_set(data: Mapping[str, Any], cel: Limits) -> ReadSet:
    """Read a whole PackageVariantSet object; v1alpha1 was another API and is refused (porch 1).

    Its expressions are checked here, before any target is seen; `cel` says how long and deep they may be.
    """
    version = data.get("apiVersion")
    if version != SET_API_VERSION:
        return ReadSet(None, (f"unsupported PackageVariantSet apiVersion {version}; use v1alpha2",), ())
    faults = Faults()
    spec = _read_spec(Fields("spec", data.get("spec"), faults))
    faults.add(*_expression_faults(spec, cel))
    whole = Fields("", data, faults)
    whole.refuse_unknown(*OBJECT_FIELDS)
    read_name(whole)
    return ReadSet(None if faults.all() else spec, faults.all(), tuple(faults.warnings))


def read_revision_set(data: Mapping[str, Any]) -> ReadRevisionSet:
    """Read a whole PackageRevisionSet object: upstreams that several sets share (porch 14.3)."""
    faults = Faults()
    whole = Fields("", data, faults)
    whole.refuse_unknown(*OBJECT_FIELDS)
    spec = whole.fields("spec")
    spec.refuse_unknown("upstreams")
    upstreams = tuple(_read_upstream(entry, UPSTREAM_FIELDS) for entry in spec.entries("upstreams"))
    if not upstreams:
        faults.add("must specify at least one item in spec.upstreams")
    return ReadRevisionSet(() if faults.all() else upstreams, faults.all())


def _read_spec(spec: Fields) -> PackageVariantSetSpec:
    spec.refuse_unknown("upstream", "upstreams", "upstreamSets", "targets", "errorPolicy")
    upstreams, upstream_sets = _read_upstreams(spec)
    targets = tuple(_read_target(target, spec) for target in spec.entries("targets"))
    if not targets:
        spec.faults.add("must specify at least one item in spec.targets")
    policy = spec.choice("errorPolicy", ("stopAll", "skipTarget"))
    return PackageVariantSetSpec(
        upstreams, targets, upstream_sets, "skipTarget" if policy == "skipTarget" else "stopAll"
    )


def _expression_faults(spec: PackageVariantSetSpec, cel: Limits) -> Iterator[str]:
    for target in spec.targets:
        faults = tuple(_template_faults(target.template, cel))
        yield from faults
        # what the template has is in its changed forms, too, and is told once
        for template in target.overlaid.values() if not faults else ():
            yield from _template_faults(template, cel)


def _template_faults(template: Template, cel: Limits) -> Iterator[str]:
    for text in template.texts():
        if fault := expression_fault(text, cel):
            yield f"{text.path}: {fault}"


def _read_upstreams(spec: Fields) -> tuple[tuple[Upstream, ...], tuple[str, ...]]:
    if not spec.has("upstreams") and not spec.has("upstreamSets"):
        if spec.has("upstream"):
            return (_read_upstream(spec.fields("upstream"), UPSTREAM_FIELDS),), ()
        spec.faults.add("spec.upstream is a required field")
        return (), ()
    if spec.has("upstream"):
        spec.faults.add("spec.upstream must not be specified together with spec.upstreams or spec.upstreamSets")
    upstreams = tuple(_read_upstream(entry, (*UPSTREAM_FIELDS, "template")) for entry in spec.entries("upstreams"))
    names = spec.texts("upstreamSets")
    if not upstreams and not names:
        spec.faults.add("must specify at least one item in spec.upstreams or spec.upstreamSets")
    return upstreams, names


def _read_upstream(upstream: Fields, known: tuple[str, ...]) -> Upstream:
    upstream = read_upstream_aliases(upstream)
    upstream.refuse_unknown(*known)
    package, repo = _required(upstream, "package"), _required(upstream, "repo")
    references = read_references(upstream)
    match count_references(upstream):
        case 0:
            names = " or ".join(upstream.at(name) for name in ("revision", "workspaceName", "tag"))
            upstream.faults.add(f"either {names} must be specified")
        case 1:
            pass
        case _:
            upstream.faults.add(f"{upstream.path} must specify only one of revision, workspaceName and tag")
    if package and (fault := package_path_fault(package)):
        upstream.faults.add(f"{upstream.at('package')} is not a valid package path: {fault}")
    return build_upstream(upstream, repo, package, references[0] if references else Head())


def _required(upstream: Fields, name: str) -> str:
    if upstream.raw(name) in (None, ""):
        upstream.faults.add(f"{upstream.at(name)} is a required field")
    return upstream.text(name)


def _read_target(target: Fields, spec: Fields) -> Target:
    target.refuse_unknown(*_SELECTIONS, "packageNames", "template")
    selection = _read_selection(target)
    before = len(target.faults.all())
    template = read_template(target.fields("template"))
    sound = len(target.faults.all()) == before
    return Target(selection, template, _read_overlaid(target, spec) if sound else {})


def _read_overlaid(target: Fields, spec: Fields) -> dict[int, Template]:
    """Read the template as the upstreams with a template of their own change it (porch 14.3)."""
    overlaid = {}
    for index, upstream in enumerate(spec.entries("upstreams")):
        if upstream.has("template"):
            path = f"{target.at('template')} with {upstream.at('template')}"
            merged = _overlay(target.raw("template") or {}, upstream.raw("template"))
            overlaid[index] = read_template(Fields(path, merged, target.faults))
    return overlaid


def _overlay(below: Any, above: Any) -> Any:
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    return {**below, **{name: _overlay(below.get(name), value) for name, value in above.items()}}


def _read_selection(target: Fields) -> RepositoryList | ObjectSelection:
    if sum(target.has(name) for name in _SELECTIONS) != 1:
        target.faults.add(f"{target.path} {_ONE_SELECTION}")
    if target.has("repositories"):
        return _read_repositories(target)
    if target.has("repositorySelector"):
        return _read_repository_selector(target)
    return _read_object_selector(target)


def _read_repositories(target: Fields) -> RepositoryList:
    if target.has("packageNames"):
        target.faults.add(f"{target.at('packageNames')} may only stand beside a selector")
    entries = tuple(_read_repository(entry) for entry in target.entries("repositories"))
    if target.raw("repositories") in ([], ()):
        target.faults.add(f"{target.at('repositories')} must not be an empty list if specified")
    return RepositoryList(entries)


def _read_repository(entry: Fields) -> RepositoryEntry:
    entry.refuse_unknown("name", "packageNames")
    name = entry.text("name")
    if not name:
        entry.faults.add(f"{entry.at('name')} cannot be empty")
    return RepositoryEntry(name, _read_package_names(entry))


def _read_repository_selector(target: Fields) -> ObjectSelection:
    selector = target.fields("repositorySelector")
    selector.refuse_unknown(*SELECTOR_FIELDS, "packageNames")
    names = _read_selected_names(target, selector)
    return ObjectSelection(VARIANT_API_VERSION, "Repository", _read_labels(selector), "", names)


def _read_object_selector(target: Fields) -> ObjectSelection:
    selector = target.fields("objectSelector")
    selector.refuse_unknown(*SELECTOR_FIELDS, "packageNames", "apiVersion", "kind", "name")
    if target.has("objectSelector"):
        for name in ("apiVersion", "kind"):
            if selector.raw(name) in (None, ""):
                target.faults.add(f"{target.path}.objectselector.{name} cannot be empty")
    api_version, kind, name = (selector.text(field) for field in ("apiVersion", "kind", "name"))
    return ObjectSelection(api_version, kind, _read_labels(selector), name, _read_selected_names(target, selector))


def _read_labels(selector: Fields) -> LabelSelector:
    labels = {name: selector.raw(name) for name in SELECTOR_FIELDS if selector.has(name)}
    read, faults = read_label_selector(labels)
    selector.faults.add(*(f"{selector.path}: {fault}" for fault in faults))
    return read or LabelSelector()


def _read_selected_names(target: Fields, selector: Fields) -> tuple[str, ...]:
    beside, inside = _read_package_names(target), _read_package_names(selector)
    if target.has("packageNames"):
        target.faults.warn(f"{target.at('packageNames')} is read as {selector.at('packageNames')}")
    if beside and inside and beside != inside:
        target.faults.add(f"{target.path}: packageNames stands in two places with different names")
    return inside or beside


def _read_package_names(fields: Fields) -> tuple[str, ...]:
    names = fields.texts("packageNames")
    empty = (index for index, name in enumerate(names) if not name)
    fields.faults.add(*(f"{fields.at('packageNames')}[{index}] cannot be empty" for index in empty))
    return names
