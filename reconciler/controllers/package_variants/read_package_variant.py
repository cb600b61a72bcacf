"""Reader of PackageVariants. The reader of PackageVariantSets uses some of its functions for templates.

The reader reports all errors of an object together, in the order and with the texts of Porch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from reconciler.controllers.package_variants.fields import VariantFieldErrors, VariantFieldReader, format_json_value
from reconciler.controllers.package_variants.model import (
    BranchHeadReference,
    Downstream,
    Injector,
    PackageContext,
    PackageVariantSpec,
    PipelineFunction,
    PipelineSpec,
    RevisionReference,
    TagReference,
    UpstreamReference,
    UpstreamSpec,
    WorkspaceReference,
)
from reconciler.controllers.results import ConflictPolicy, UpdateStrategy
from reconciler.krm.names import (
    validate_annotation_key,
    validate_dns_subdomain,
    validate_label_key,
    validate_label_value,
    validate_package_path,
    validate_ref_name,
    validate_workspace_name,
)
from reconciler.krm.times import parse_duration_seconds

LATEST_REVISION = "kpt.dev/latest-revision"
UPSTREAM_FIELDS = ("repo", "package", "revision", "workspaceName", "tag", "tagMode", "tagPolicy")
FUNCTION_FIELDS = ("image", "exec", "configPath", "configMap", "name", "tag", "selectors", "exclude")
UPDATE_STRATEGIES = ("resource-merge", "copy-merge", "fast-forward", "force-delete-replace")
CONFLICT_POLICIES = ("upstream", "local", "block")
_SELECTOR_FIELDS = ("apiVersion", "kind", "name", "namespace", "labels", "annotations")
TAG_MODE_REWRITE = "rewrite"
_NUMBERED_REVISION = re.compile(r"v?([1-9][0-9]*)")
_REVISION_LIKE = re.compile(r"v?[0-9]+")


def read_upstream_aliases(upstream: VariantFieldReader) -> VariantFieldReader:
    """Return the upstream with the deprecated field `ref` renamed to `tag`, and add a warning."""
    if not upstream.has_value("ref"):
        return upstream
    upstream.errors.warn(f"{upstream.get_path('ref')} is read as {upstream.get_path('tag')}")
    if upstream.has_value("tag"):
        upstream.errors.add(f"{upstream.path} may specify only one of tag and ref")
    return upstream.replace_fields({"ref": None, "tag": upstream.get_value("ref")})


def read_references(upstream: VariantFieldReader) -> list[UpstreamReference]:
    """Return the references of the upstream. A valid upstream has one reference, or a revision and then a tag."""
    references = (_read_revision(upstream), _read_workspace(upstream), _read_tag(upstream))
    return [reference for reference in references if reference is not None]


def count_references(upstream: VariantFieldReader) -> int:
    """Return how many of the fields `revision`, `workspaceName` and `tag` have a value, even if the value is invalid.

    With `tagMode: rewrite`, a revision and a tag are counted as one reference.
    """
    names = [name for name in ("workspaceName", "tag") if upstream.get_value(name) not in (None, "")]
    is_pair = "tag" in names and upstream.has_value("revision") and upstream.get_value("tagMode") == TAG_MODE_REWRITE
    return upstream.has_value("revision") + len(names) - is_pair


def _read_revision(upstream: VariantFieldReader) -> UpstreamReference | None:
    revision, path = upstream.get_value("revision"), upstream.get_path("revision")
    if revision is None:
        return None
    if isinstance(revision, bool) or not isinstance(revision, int | str):
        # Reject numbers with a decimal point, because YAML reads an unquoted 1.10 as the number 1.1.
        upstream.errors.add(f"{path} must be a string or an integer, not {format_json_value(revision)}: quote it")
        return None
    if str(revision).strip() in ("", "0"):
        upstream.errors.add(f"{path} must not be 0 or empty")
        return None
    return _parse_revision(str(revision), path, upstream.errors)


def _parse_revision(text: str, path: str, errors: VariantFieldErrors) -> UpstreamReference | None:
    if text == "-1":
        return BranchHeadReference()
    if numbered := _NUMBERED_REVISION.fullmatch(text):
        return RevisionReference(f"v{numbered[1]}", int(numbered[1]))
    if error := validate_ref_name(text):
        errors.add(f"{path} is invalid: {error}")
        return None
    return RevisionReference(text, -1)


def _read_workspace(upstream: VariantFieldReader) -> UpstreamReference | None:
    name = upstream.read_text("workspaceName")
    if name and (error := validate_workspace_name(name)):
        upstream.errors.add(f"{upstream.get_path('workspaceName')} is invalid: {error}")
        return None
    return WorkspaceReference(name) if name else None


def _read_tag(upstream: VariantFieldReader) -> UpstreamReference | None:
    name = upstream.read_text("tag")
    if error := name and _validate_tag(name):
        upstream.errors.add(f"{upstream.get_path('tag')} is invalid: {error}")
        return None
    return TagReference(name) if name else None


def _validate_tag(name: str) -> str | None:
    if _REVISION_LIKE.fullmatch(name):
        # Reject a tag that looks like a revision, because it would hide the revision of this name.
        return f'"{name}" is the name of a revision; write it in the field revision'
    return validate_workspace_name(name)


def build_upstream(upstream: VariantFieldReader, repo: str, package: str, reference: UpstreamReference) -> UpstreamSpec:
    """Return the upstream spec. Read the fields `tagMode`, `tag` and `tagPolicy`, and add errors for invalid values."""
    mode = upstream.read_choice("tagMode", ("follow", TAG_MODE_REWRITE))
    tag = upstream.get_value("tag")
    if mode == TAG_MODE_REWRITE and not tag:
        upstream.errors.add(
            f'{upstream.get_path("tagMode")} "{TAG_MODE_REWRITE}" requires a tag in {upstream.get_path("tag")}'
        )
    return UpstreamSpec(
        repo, package, reference, _read_settle(upstream), str(tag or "") if mode == TAG_MODE_REWRITE else ""
    )


def _read_settle(upstream: VariantFieldReader) -> str:
    policy = upstream.read_mapping("tagPolicy")
    policy.report_unknown_fields("settle")
    settle = policy.read_text("settle")
    if settle and parse_duration_seconds(settle) is None:
        upstream.errors.add(
            f'{policy.get_path("settle")} must be a duration such as "10m" or "1h30m", not {format_json_value(settle)}'
        )
    return settle


def read_labels(fields: VariantFieldReader, name: str) -> dict[str, str]:
    """Return the labels for a package revision. Add an error for `kpt.dev/latest-revision`, which Porch sets."""
    labels = fields.read_string_map(name)
    fields.errors.add(*(f"{fields.get_path(name)}: {error}" for error in _validate_labels(labels)))
    if LATEST_REVISION in labels:
        fields.errors.add(f'{fields.get_path(name)} must not contain the key "{LATEST_REVISION}"')
    return labels


def _validate_labels(labels: Mapping[str, str]) -> Iterator[str]:
    for key, value in labels.items():
        yield from (error for error in (validate_label_key(key), validate_label_value(value)) if error)


def read_annotations(fields: VariantFieldReader, name: str) -> dict[str, str]:
    """Return the annotations for a package revision. Add an error for each invalid key."""
    annotations = fields.read_string_map(name)
    messages = (validate_annotation_key(key) for key in annotations)
    fields.errors.add(*(f"{fields.get_path(name)}: {message}" for message in messages if message))
    return annotations


def read_function(entry: VariantFieldReader) -> PipelineFunction:
    """Return one function of a pipeline. Add its validation errors to the errors of the reader."""
    function = PipelineFunction(
        image=entry.read_text("image"),
        exec=entry.read_text("exec"),
        name=entry.read_text("name"),
        tag=entry.read_text("tag"),
        config_path=entry.read_text("configPath"),
        config_map=entry.read_string_map("configMap"),
        selectors=_read_selectors(entry, "selectors"),
        exclude=_read_selectors(entry, "exclude"),
    )
    if not function.image and not function.exec:
        entry.errors.add(f"{entry.get_path('image')} must not be empty")
    if function.image and function.exec:
        entry.errors.add(f"{entry.path} may specify only one of image and exec")
    if "." in function.name:
        entry.errors.add(f"{entry.get_path('name')} must not contain '.'")
    return function


def check_function_config(
    entry: VariantFieldReader, function: PipelineFunction, *, has_config_expressions: bool = False
) -> None:
    """Add an error if a function has both `configPath` and `configMap`.

    `has_config_expressions` is True if the function has CEL expressions for `configMap`.
    """
    if function.config_path and (function.config_map or has_config_expressions):
        entry.errors.add(f"{entry.path} may specify only one of configPath and configMap")


def _read_selectors(entry: VariantFieldReader, name: str) -> tuple[dict[str, object], ...]:
    return tuple(_read_selector(selector) for selector in entry.iterate_mappings(name))


def _read_selector(selector: VariantFieldReader) -> dict[str, object]:
    selector.report_unknown_fields(*_SELECTOR_FIELDS)
    values: dict[str, object] = {}
    for name in _SELECTOR_FIELDS:
        if selector.has_value(name):
            values[name] = (
                selector.read_string_map(name) if name in ("labels", "annotations") else selector.read_text(name)
            )
    return values


def read_merge_choices(fields: VariantFieldReader) -> tuple[UpdateStrategy | None, ConflictPolicy | None]:
    """Return `updateStrategy` and `conflictPolicy`. Each is None if the object does not set it."""
    strategy = fields.read_choice("updateStrategy", UPDATE_STRATEGIES)
    conflicts = fields.read_choice("conflictPolicy", CONFLICT_POLICIES)
    return cast("UpdateStrategy | None", strategy), cast("ConflictPolicy | None", conflicts)


VARIANT_API_VERSION = "config.porch.kpt.dev/v1alpha1"
RESERVED_KEYS = ("name", "package-path")
OBJECT_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")
_SPEC_FIELDS = (
    "upstream", "downstream", "adoptionPolicy", "deletionPolicy", "labels", "annotations", "packageContext",
    "pipeline", "injectors", "updateStrategy", "conflictPolicy",
)  # fmt: skip


class ReadVariant(NamedTuple):
    """Spec, errors and deprecation warnings of a PackageVariant. `spec` is None if there are errors."""

    spec: PackageVariantSpec | None
    errors: tuple[str, ...]
    warnings: tuple[str, ...]


def read_package_variant(data: Mapping[str, Any]) -> ReadVariant:
    """Read a complete PackageVariant with the fields `apiVersion`, `kind`, `metadata` and `spec`."""
    errors = VariantFieldErrors()
    version = data.get("apiVersion")
    if version != VARIANT_API_VERSION:
        errors.add(f"unsupported PackageVariant apiVersion {version}; use v1alpha1")
        return ReadVariant(None, errors.list_all(), ())
    spec = _read_spec(VariantFieldReader("spec", data.get("spec"), errors))
    reader = VariantFieldReader("", data, errors)
    reader.report_unknown_fields(*OBJECT_FIELDS)
    check_name(reader)
    return ReadVariant(None if errors.list_all() else spec, errors.list_all(), tuple(errors.warnings))


def read_variant_spec(spec: Mapping[str, Any]) -> ReadVariant:
    """Read the spec of a PackageVariant that a set generates. Its metadata does not exist yet and is not checked."""
    errors = VariantFieldErrors()
    variant_spec = _read_spec(VariantFieldReader("spec", spec, errors))
    return ReadVariant(None if errors.list_all() else variant_spec, errors.list_all(), tuple(errors.warnings))


def check_name(reader: VariantFieldReader) -> None:
    """Add an error if `metadata.name` is not a valid Kubernetes name."""
    if error := validate_dns_subdomain(reader.read_mapping("metadata").read_text("name")):
        reader.errors.add(f"metadata.name is invalid: {error}")


def _read_spec(spec: VariantFieldReader) -> PackageVariantSpec:
    spec = spec.convert_to_list("injectors")
    spec.report_unknown_fields(*_SPEC_FIELDS)
    upstream = _read_upstream(spec)
    downstream = _read_downstream(spec)
    _check_packages(spec, upstream, downstream)
    adoption, deletion = _read_policies(spec)
    labels = read_labels(spec, "labels")
    annotations = read_annotations(spec, "annotations")
    context = _read_context(spec.read_mapping("packageContext"))
    pipeline = _read_pipeline(spec.read_mapping("pipeline"))
    injectors = tuple(_read_injector(entry) for entry in spec.iterate_mappings("injectors"))
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


def _read_upstream(spec: VariantFieldReader) -> UpstreamSpec:
    if not spec.has_value("upstream"):
        spec.errors.add("missing required field spec.upstream")
        return UpstreamSpec("", "", BranchHeadReference())
    upstream = read_upstream_aliases(spec.read_mapping("upstream"))
    upstream.report_unknown_fields(*UPSTREAM_FIELDS)
    repo, package = _read_required_text(upstream, "repo"), _read_required_text(upstream, "package")
    references = read_references(upstream)
    match count_references(upstream):
        case 0:
            spec.errors.add("spec.upstream must specify one of revision, workspaceName or tag")
        case 1:
            pass
        case _:
            spec.errors.add("spec.upstream must specify only one of revision, workspaceName and tag")
    return build_upstream(upstream, repo, package, references[0] if references else BranchHeadReference())


def _read_downstream(spec: VariantFieldReader) -> Downstream:
    if not spec.has_value("downstream"):
        spec.errors.add("missing required field spec.downstream")
        return Downstream("", "")
    downstream = spec.read_mapping("downstream")
    downstream.report_unknown_fields("repo", "package")
    return Downstream(_read_required_text(downstream, "repo"), _read_required_text(downstream, "package"))


def _read_required_text(fields: VariantFieldReader, name: str) -> str:
    if fields.get_value(name) in (None, ""):
        fields.errors.add(f"missing required field {fields.get_path(name)}")
    return fields.read_text(name)


def _check_packages(spec: VariantFieldReader, upstream: UpstreamSpec, downstream: Downstream) -> None:
    for side, package in (("upstream", upstream.package), ("downstream", downstream.package)):
        if package and (error := validate_package_path(package)):
            spec.errors.add(f"spec.{side}.package is not a valid package path: {error}")
    if (
        upstream.repo
        and upstream.package
        and (upstream.repo, upstream.package) == (downstream.repo, downstream.package)
    ):
        spec.errors.add("spec.downstream must differ from spec.upstream")


def _read_policies(spec: VariantFieldReader) -> tuple[str | None, str | None]:
    if spec.get_value("adoptionPolicy") == "adopt":
        # Accept this alias, because some Porch documentation uses it.
        spec.errors.warn('spec.adoptionPolicy "adopt" is read as "adoptExisting"')
        spec = spec.replace_fields({"adoptionPolicy": "adoptExisting"})
    adoption = spec.read_choice(
        "adoptionPolicy",
        ("adoptNone", "adoptExisting"),
        'spec.adoptionPolicy field can only be "adoptNone" or "adoptExisting"',
    )
    deletion = spec.read_choice(
        "deletionPolicy", ("delete", "orphan"), 'spec.deletionPolicy can only be "orphan" or "delete"'
    )
    return adoption, deletion


def _read_context(context: VariantFieldReader) -> PackageContext:
    context.report_unknown_fields("data", "removeKeys")
    data, remove_keys = context.read_string_map("data"), context.read_texts("removeKeys")
    for name, keys, value in (("data", set(data), data), ("removeKeys", set(remove_keys), list(remove_keys))):
        for key in RESERVED_KEYS:
            if key in keys:
                invalid = f"{context.get_path(name)}: Invalid value: {format_json_value(value)}"
                context.errors.add(f'{invalid}: must not contain the key "{key}"')
    shared = sorted(set(data) & set(remove_keys))
    context.errors.add(*(f'{context.path}: key "{key}" is in both data and removeKeys' for key in shared))
    return PackageContext(data, remove_keys)


def _read_pipeline(pipeline: VariantFieldReader) -> PipelineSpec:
    pipeline.report_unknown_fields("mutators", "validators")
    return PipelineSpec(_read_functions(pipeline, "mutators"), _read_functions(pipeline, "validators"))


def _read_functions(pipeline: VariantFieldReader, name: str) -> tuple[PipelineFunction, ...]:
    functions = []
    for entry in pipeline.iterate_mappings(name):
        entry.report_unknown_fields(*FUNCTION_FIELDS)
        function = read_function(entry)
        check_function_config(entry, function)
        functions.append(function)
    return tuple(functions)


def _read_injector(entry: VariantFieldReader) -> Injector:
    entry.report_unknown_fields("group", "version", "kind", "name")
    name = entry.read_text("name")
    if not name:
        entry.errors.add(f"{entry.get_path('name')} must not be empty")
    group, version, kind = (entry.read_optional_text(field) for field in ("group", "version", "kind"))
    return Injector(name, group, version, kind)
