"""Reading a PackageVariant: every fault at once, in the order and words of porch 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from reconciler.krm.names import dns_subdomain_fault, package_path_fault
from reconciler.rules.variants.fields import Faults, Fields, shown
from reconciler.rules.variants.model import (
    Downstream,
    Function,
    Head,
    Injector,
    PackageContext,
    PackageVariantSpec,
    Pipeline,
    Upstream,
)
from reconciler.rules.variants.read_parts import (
    FUNCTION_FIELDS,
    UPSTREAM_FIELDS,
    build_upstream,
    count_references,
    read_annotations,
    read_function,
    read_function_config,
    read_labels,
    read_merge_choices,
    read_references,
    read_upstream_aliases,
)

VARIANT_API_VERSION = "config.porch.kpt.dev/v1alpha1"
RESERVED_KEYS = ("name", "package-path")
OBJECT_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")
_SPEC_FIELDS = (
    "upstream", "downstream", "adoptionPolicy", "deletionPolicy", "labels", "annotations", "packageContext",
    "pipeline", "injectors", "updateStrategy", "conflictPolicy",
)  # fmt: skip


class ReadVariant(NamedTuple):
    """A valid spec and no errors, or None and all of them; warnings are aliases that were read (porch 2.4)."""

    spec: PackageVariantSpec | None
    errors: tuple[str, ...]
    warnings: tuple[str, ...]


def read_package_variant(data: Mapping[str, Any]) -> ReadVariant:
    """Read a whole PackageVariant object (apiVersion, kind, metadata, spec)."""
    faults = Faults()
    version = data.get("apiVersion")
    if version != VARIANT_API_VERSION:
        faults.add(f"unsupported PackageVariant apiVersion {version}; use v1alpha1")
        return ReadVariant(None, faults.all(), ())
    spec = _read_spec(Fields("spec", data.get("spec"), faults))
    whole = Fields("", data, faults)
    whole.refuse_unknown(*OBJECT_FIELDS)
    read_name(whole)
    return ReadVariant(None if faults.all() else spec, faults.all(), tuple(faults.warnings))


def read_variant_spec(spec: Mapping[str, Any]) -> ReadVariant:
    """Read the spec alone: what a set has rendered, before it has a name."""
    faults = Faults()
    read = _read_spec(Fields("spec", spec, faults))
    return ReadVariant(None if faults.all() else read, faults.all(), tuple(faults.warnings))


def read_name(whole: Fields) -> None:
    """Note a name that no Kubernetes object could have."""
    if fault := dns_subdomain_fault(whole.fields("metadata").text("name")):
        whole.faults.add(f"metadata.name is invalid: {fault}")


def _read_spec(spec: Fields) -> PackageVariantSpec:
    spec = spec.one_or_many("injectors")
    spec.refuse_unknown(*_SPEC_FIELDS)
    upstream = _read_upstream(spec)
    downstream = _read_downstream(spec)
    _read_paths(spec, upstream, downstream)
    adoption, deletion = _read_policies(spec)
    labels = read_labels(spec, "labels")
    annotations = read_annotations(spec, "annotations")
    context = _read_context(spec.fields("packageContext"))
    pipeline = _read_pipeline(spec.fields("pipeline"))
    injectors = tuple(_read_injector(entry) for entry in spec.entries("injectors"))
    strategy, conflicts = read_merge_choices(spec)
    return PackageVariantSpec(
        upstream=upstream,
        downstream=downstream,
        adoption_policy="adoptExisting" if adoption == "adoptExisting" else "adoptNone",
        deletion_policy="orphan" if deletion == "orphan" else "delete",
        labels=labels,
        annotations=annotations,
        package_context=context,
        pipeline=pipeline,
        injectors=injectors,
        update_strategy=strategy,
        conflict_policy=conflicts,
    )


def _read_upstream(spec: Fields) -> Upstream:
    if not spec.has("upstream"):
        spec.faults.add("missing required field spec.upstream")
        return Upstream("", "", Head())
    upstream = read_upstream_aliases(spec.fields("upstream"))
    upstream.refuse_unknown(*UPSTREAM_FIELDS)
    repo, package = _required(upstream, "repo"), _required(upstream, "package")
    references = read_references(upstream)
    match count_references(upstream):
        case 0:
            spec.faults.add("spec.upstream must specify one of revision, workspaceName or tag")
        case 1:
            pass
        case _:
            spec.faults.add("spec.upstream must specify only one of revision, workspaceName and tag")
    return build_upstream(upstream, repo, package, references[0] if references else Head())


def _read_downstream(spec: Fields) -> Downstream:
    if not spec.has("downstream"):
        spec.faults.add("missing required field spec.downstream")
        return Downstream("", "")
    downstream = spec.fields("downstream")
    downstream.refuse_unknown("repo", "package")
    return Downstream(_required(downstream, "repo"), _required(downstream, "package"))


def _required(fields: Fields, name: str) -> str:
    if fields.raw(name) in (None, ""):
        fields.faults.add(f"missing required field {fields.at(name)}")
    return fields.text(name)


def _read_paths(spec: Fields, upstream: Upstream, downstream: Downstream) -> None:
    for side, package in (("upstream", upstream.package), ("downstream", downstream.package)):
        if package and (fault := package_path_fault(package)):
            spec.faults.add(f"spec.{side}.package is not a valid package path: {fault}")
    if (
        upstream.repo
        and upstream.package
        and (upstream.repo, upstream.package) == (downstream.repo, downstream.package)
    ):
        spec.faults.add("spec.downstream must differ from spec.upstream")


def _read_policies(spec: Fields) -> tuple[str | None, str | None]:
    if spec.raw("adoptionPolicy") == "adopt":
        # the seed writes it once where it means adoptExisting
        spec.faults.warn('spec.adoptionPolicy "adopt" is read as "adoptExisting"')
        spec = spec.replaced({"adoptionPolicy": "adoptExisting"})
    adoption = spec.choice(
        "adoptionPolicy",
        ("adoptNone", "adoptExisting"),
        'spec.adoptionPolicy field can only be "adoptNone" or "adoptExisting"',
    )
    deletion = spec.choice(
        "deletionPolicy", ("delete", "orphan"), 'spec.deletionPolicy can only be "orphan" or "delete"'
    )
    return adoption, deletion


def _read_context(context: Fields) -> PackageContext:
    context.refuse_unknown("data", "removeKeys")
    data, remove_keys = context.string_map("data"), context.texts("removeKeys")
    for name, keys, value in (("data", set(data), data), ("removeKeys", set(remove_keys), list(remove_keys))):
        for key in RESERVED_KEYS:
            if key in keys:
                invalid = f"{context.at(name)}: Invalid value: {shown(value)}"
                context.faults.add(f'{invalid}: must not contain the key "{key}"')
    shared = sorted(set(data) & set(remove_keys))
    context.faults.add(*(f'{context.path}: key "{key}" is in both data and removeKeys' for key in shared))
    return PackageContext(data, remove_keys)


def _read_pipeline(pipeline: Fields) -> Pipeline:
    pipeline.refuse_unknown("mutators", "validators")
    return Pipeline(_read_functions(pipeline, "mutators"), _read_functions(pipeline, "validators"))


def _read_functions(pipeline: Fields, name: str) -> tuple[Function, ...]:
    functions = []
    for entry in pipeline.entries(name):
        entry.refuse_unknown(*FUNCTION_FIELDS)
        function = read_function(entry)
        read_function_config(entry, function)
        functions.append(function)
    return tuple(functions)


def _read_injector(entry: Fields) -> Injector:
    entry.refuse_unknown("group", "version", "kind", "name")
    name = entry.text("name")
    if not name:
        entry.faults.add(f"{entry.at('name')} must not be empty")
    group, version, kind = (entry.optional_text(field) for field in ("group", "version", "kind"))
    return Injector(name, group, version, kind)
