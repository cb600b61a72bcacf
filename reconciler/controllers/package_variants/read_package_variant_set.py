"""Reader of PackageVariantSets and PackageRevisionSets. It reports all errors of an object, with the texts of Porch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from reconciler.cel import ExpressionLimits
from reconciler.controllers.package_variants.fields import VariantFieldErrors, VariantFieldReader
from reconciler.controllers.package_variants.model import (
    BranchHeadReference,
    FunctionTemplate,
    InjectorTemplate,
    MapTemplate,
    MapTemplateEntry,
    ObjectSelection,
    PackageVariantSetSpec,
    RepositoryEntry,
    RepositoryList,
    SetTarget,
    TemplateText,
    UpstreamSpec,
    VariantTemplate,
)
from reconciler.controllers.package_variants.read_package_variant import (
    FUNCTION_FIELDS,
    OBJECT_FIELDS,
    UPSTREAM_FIELDS,
    VARIANT_API_VERSION,
    build_upstream,
    check_function_config,
    check_name,
    count_references,
    read_function,
    read_merge_choices,
    read_references,
    read_upstream_aliases,
)
from reconciler.controllers.package_variants.set_targets import check_expression
from reconciler.krm.names import validate_package_path
from reconciler.krm.selectors import SELECTOR_FIELDS, LabelSelector, read_label_selector

_TEMPLATE_FIELDS = (
    "downstream", "adoptionPolicy", "deletionPolicy", "labels", "labelExprs", "annotations", "annotationExprs",
    "packageContext", "pipeline", "injectors", "updateStrategy", "conflictPolicy",
)  # fmt: skip
_SELECTIONS = ("repositories", "repositorySelector", "objectSelector")
_ONE_SELECTION = "must specify one of `repositories`, `repositorySelector`, or `objectSelector`"
SET_API_VERSION = "config.porch.kpt.dev/v1alpha2"
REVISION_SET_API_VERSION = "reconciler.dev/v1alpha1"


def read_template(template: VariantFieldReader) -> VariantTemplate:
    """Return the template of a target. Errors contain the full path of the field."""
    template = _read_aliases(template)
    template.report_unknown_fields(*_TEMPLATE_FIELDS)
    adoption = _read_policy(template, "adoptionPolicy", "adoptNone", "adoptExisting")
    deletion = _read_policy(template, "deletionPolicy", "orphan", "delete")
    downstream = template.read_mapping("downstream")
    downstream.report_unknown_fields("repo", "repoExpr", "package", "packageExpr")
    repo = _read_downstream(template, downstream, "repo", can_use_repository=False)
    package = _read_downstream(template, downstream, "package")
    labels = _read_map(template, "labels", "labelExprs")
    annotations = _read_map(template, "annotations", "annotationExprs")
    context = template.read_mapping("packageContext")
    context.report_unknown_fields("data", "dataExprs", "removeKeys", "removeKeyExprs")
    data, remove_keys = _read_map(context, "data", "dataExprs"), _read_remove_keys(context)
    injectors = tuple(_read_injector(entry) for entry in template.iterate_mappings("injectors"))
    pipeline = template.read_mapping("pipeline")
    pipeline.report_unknown_fields("mutators", "validators")
    mutators, validators = _read_functions(pipeline, "mutators"), _read_functions(pipeline, "validators")
    strategy, conflicts = read_merge_choices(template)
    return VariantTemplate(
        repo, package, adoption, deletion, labels, annotations, data, remove_keys, injectors, validators, mutators,
        strategy, conflicts,
    )  # fmt: skip


def _read_aliases(template: VariantFieldReader) -> VariantFieldReader:
    template = template.convert_to_list("injectors").convert_to_list("injectorExprs")
    if not template.has_value("injectorExprs"):
        return template
    template.errors.warn(
        f"the items of {template.get_path('injectorExprs')} are read as items of {template.get_path('injectors')}"
    )
    injectors = [item for name in ("injectors", "injectorExprs") for _, item in template.iterate_items(name)]
    return template.replace_fields({"injectors": injectors, "injectorExprs": None})


def _read_policy(template: VariantFieldReader, name: str, first: str, second: str) -> str | None:
    return template.read_choice(name, (first, second), f'{template.get_path(name)} can only be "{first}" or "{second}"')


def _read_downstream(
    template: VariantFieldReader, downstream: VariantFieldReader, name: str, *, can_use_repository: bool = True
) -> TemplateText | None:
    literal, expression = downstream.read_text(name), downstream.read_text(f"{name}Expr")
    if literal and expression:
        names = f"`downstream.{name}` and `downstream.{name}Expr`"
        template.errors.add(f"{template.path} may specify only one of {names}")
    if expression:
        return _create_expression(downstream, f"{name}Expr", can_use_repository=can_use_repository)
    return TemplateText(literal) if literal else None


def _read_map(fields: VariantFieldReader, name: str, expressions: str) -> MapTemplate:
    return MapTemplate(fields.read_string_map(name), read_map_entries(fields, expressions))


def read_map_entries(fields: VariantFieldReader, name: str) -> tuple[MapTemplateEntry, ...]:
    """Return a list of MapExprs. Add an error unless each has one of `key` and `keyExpr`, and one of `value` and
    `valueExpr`.
    """
    return tuple(_read_map_entry(entry) for entry in fields.convert_to_list(name).iterate_mappings(name))


def _read_map_entry(entry: VariantFieldReader) -> MapTemplateEntry:
    entry.report_unknown_fields("key", "keyExpr", "value", "valueExpr")
    return MapTemplateEntry(_read_either(entry, "key"), _read_either(entry, "value"))


def _read_either(entry: VariantFieldReader, name: str) -> TemplateText:
    literal, expression = entry.read_text(name), entry.read_text(f"{name}Expr")
    # Accept an empty value but not an empty key, because Kubernetes labels and ConfigMaps can have empty values.
    has_literal = entry.has_value(name) if name == "value" else bool(literal)
    if has_literal and expression:
        entry.errors.add(f"{entry.path} may specify only one of `{name}` and `{name}Expr`")
    if not has_literal and not expression:
        entry.errors.add(f"{entry.path} must specify `{name}` or `{name}Expr`")
    return _create_expression(entry, f"{name}Expr") if expression else TemplateText(literal)


def _read_remove_keys(context: VariantFieldReader) -> tuple[TemplateText, ...]:
    literals = tuple(TemplateText(key) for key in context.read_texts("removeKeys"))
    expressions = context.read_texts("removeKeyExprs")
    entries = VariantFieldReader(
        context.path, {f"removeKeyExprs[{index}]": text for index, text in enumerate(expressions)}, context.errors
    )
    return literals + tuple(_create_expression(entries, name) for name in entries.data)


def _read_injector(entry: VariantFieldReader) -> InjectorTemplate:
    entry.report_unknown_fields("group", "version", "kind", "name", "nameExpr")
    literal, expression = entry.read_text("name"), entry.read_text("nameExpr")
    if literal and expression:
        entry.errors.add(f"{entry.path} may specify only one of `name` and `nameExpr`")
    if not literal and not expression:
        entry.errors.add(f"{entry.path} must specify either `name` or `nameExpr`")
    name = _create_expression(entry, "nameExpr") if expression else TemplateText(literal)
    group, version, kind = (entry.read_optional_text(field) for field in ("group", "version", "kind"))
    return InjectorTemplate(name, group, version, kind)


def _read_functions(pipeline: VariantFieldReader, name: str) -> tuple[FunctionTemplate, ...]:
    functions = []
    for entry in pipeline.iterate_mappings(name):
        entry.report_unknown_fields(*FUNCTION_FIELDS, "configMapExprs")
        function, config = read_function(entry), read_map_entries(entry, "configMapExprs")
        check_function_config(entry, function, has_config_expressions=bool(config))
        functions.append(FunctionTemplate(function, config))
    return tuple(functions)


def _create_expression(fields: VariantFieldReader, name: str, *, can_use_repository: bool = True) -> TemplateText:
    return TemplateText(fields.read_text(name), fields.get_path(name), True, can_use_repository)


class ReadSet(NamedTuple):
    """Spec, errors and deprecation warnings of a PackageVariantSet. `spec` is None if there are errors."""

    spec: PackageVariantSetSpec | None
    errors: tuple[str, ...]
    warnings: tuple[str, ...]


class ReadRevisionSet(NamedTuple):
    """Upstreams and errors of a PackageRevisionSet. `upstreams` is empty if there are errors."""

    upstreams: tuple[UpstreamSpec, ...]
    errors: tuple[str, ...]


def read_package_variant_set(data: Mapping[str, Any], cel_limits: ExpressionLimits) -> ReadSet:
    """Read a complete PackageVariantSet of the version v1alpha2. Every other version is an error.

    This function also checks the syntax of all CEL expressions. `cel_limits` limits their length and depth.
    """
    version = data.get("apiVersion")
    if version != SET_API_VERSION:
        return ReadSet(None, (f"unsupported PackageVariantSet apiVersion {version}; use v1alpha2",), ())
    errors = VariantFieldErrors()
    spec = _read_spec(VariantFieldReader("spec", data.get("spec"), errors))
    errors.add(*_check_expressions(spec, cel_limits))
    reader = VariantFieldReader("", data, errors)
    reader.report_unknown_fields(*OBJECT_FIELDS)
    check_name(reader)
    return ReadSet(None if errors.list_all() else spec, errors.list_all(), tuple(errors.warnings))


def read_revision_set(data: Mapping[str, Any]) -> ReadRevisionSet:
    """Read a complete PackageRevisionSet, which is a list of upstreams that several PackageVariantSets can use."""
    errors = VariantFieldErrors()
    reader = VariantFieldReader("", data, errors)
    reader.report_unknown_fields(*OBJECT_FIELDS)
    spec = reader.read_mapping("spec")
    spec.report_unknown_fields("upstreams")
    upstreams = tuple(_read_upstream(entry, UPSTREAM_FIELDS) for entry in spec.iterate_mappings("upstreams"))
    if not upstreams:
        errors.add("must specify at least one item in spec.upstreams")
    return ReadRevisionSet(() if errors.list_all() else upstreams, errors.list_all())


def _read_spec(spec: VariantFieldReader) -> PackageVariantSetSpec:
    spec.report_unknown_fields("upstream", "upstreams", "upstreamSets", "targets", "errorPolicy")
    upstreams, upstream_sets = _read_upstreams(spec)
    targets = tuple(_read_target(target, spec) for target in spec.iterate_mappings("targets"))
    if not targets:
        spec.errors.add("must specify at least one item in spec.targets")
    policy = spec.read_choice("errorPolicy", ("stopAll", "skipTarget"))
    return PackageVariantSetSpec(
        upstreams, targets, upstream_sets, "skipTarget" if policy == "skipTarget" else "stopAll"
    )


def _check_expressions(spec: PackageVariantSetSpec, cel_limits: ExpressionLimits) -> Iterator[str]:
    for target in spec.targets:
        messages = tuple(_check_template_expressions(target.template, cel_limits))
        yield from messages
        # Check merged templates only if the target's own template has no errors, because a merged template repeats its
        # errors.
        for template in target.upstream_templates.values() if not messages else ():
            yield from _check_template_expressions(template, cel_limits)


def _check_template_expressions(template: VariantTemplate, cel_limits: ExpressionLimits) -> Iterator[str]:
    for text in template.iterate_texts():
        if error := check_expression(text, cel_limits):
            yield f"{text.path}: {error}"


def _read_upstreams(spec: VariantFieldReader) -> tuple[tuple[UpstreamSpec, ...], tuple[str, ...]]:
    if not spec.has_value("upstreams") and not spec.has_value("upstreamSets"):
        if spec.has_value("upstream"):
            return (_read_upstream(spec.read_mapping("upstream"), UPSTREAM_FIELDS),), ()
        spec.errors.add("spec.upstream is a required field")
        return (), ()
    if spec.has_value("upstream"):
        spec.errors.add("spec.upstream must not be specified together with spec.upstreams or spec.upstreamSets")
    upstreams = tuple(
        _read_upstream(entry, (*UPSTREAM_FIELDS, "template")) for entry in spec.iterate_mappings("upstreams")
    )
    names = spec.read_texts("upstreamSets")
    if not upstreams and not names:
        spec.errors.add("must specify at least one item in spec.upstreams or spec.upstreamSets")
    return upstreams, names


def _read_upstream(upstream: VariantFieldReader, known_fields: tuple[str, ...]) -> UpstreamSpec:
    upstream = read_upstream_aliases(upstream)
    upstream.report_unknown_fields(*known_fields)
    package, repo = _read_required_text(upstream, "package"), _read_required_text(upstream, "repo")
    references = read_references(upstream)
    match count_references(upstream):
        case 0:
            names = " or ".join(upstream.get_path(name) for name in ("revision", "workspaceName", "tag"))
            upstream.errors.add(f"either {names} must be specified")
        case 1:
            pass
        case _:
            upstream.errors.add(f"{upstream.path} must specify only one of revision, workspaceName and tag")
    if package and (error := validate_package_path(package)):
        upstream.errors.add(f"{upstream.get_path('package')} is not a valid package path: {error}")
    return build_upstream(upstream, repo, package, references[0] if references else BranchHeadReference())


def _read_required_text(upstream: VariantFieldReader, name: str) -> str:
    if upstream.get_value(name) in (None, ""):
        upstream.errors.add(f"{upstream.get_path(name)} is a required field")
    return upstream.read_text(name)


def _read_target(target: VariantFieldReader, spec: VariantFieldReader) -> SetTarget:
    target.report_unknown_fields(*_SELECTIONS, "packageNames", "template")
    selection = _read_selection(target)
    error_count = len(target.errors.list_all())
    template = read_template(target.read_mapping("template"))
    is_valid = len(target.errors.list_all()) == error_count
    return SetTarget(selection, template, _read_upstream_templates(target, spec) if is_valid else {})


def _read_upstream_templates(target: VariantFieldReader, spec: VariantFieldReader) -> dict[int, VariantTemplate]:
    """Return the target's template merged with each upstream's own template, by the index of the upstream.

    Upstreams without a template are omitted.
    """
    templates = {}
    for index, upstream in enumerate(spec.iterate_mappings("upstreams")):
        if upstream.has_value("template"):
            path = f"{target.get_path('template')} with {upstream.get_path('template')}"
            merged = _merge_templates(target.get_value("template") or {}, upstream.get_value("template"))
            templates[index] = read_template(VariantFieldReader(path, merged, target.errors))
    return templates


def _merge_templates(below: Any, above: Any) -> Any:
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    return {**below, **{name: _merge_templates(below.get(name), value) for name, value in above.items()}}


def _read_selection(target: VariantFieldReader) -> RepositoryList | ObjectSelection:
    if sum(target.has_value(name) for name in _SELECTIONS) != 1:
        target.errors.add(f"{target.path} {_ONE_SELECTION}")
    if target.has_value("repositories"):
        return _read_repositories(target)
    if target.has_value("repositorySelector"):
        return _read_repository_selector(target)
    return _read_object_selector(target)


def _read_repositories(target: VariantFieldReader) -> RepositoryList:
    if target.has_value("packageNames"):
        target.errors.add(f"{target.get_path('packageNames')} requires a selector in the same target")
    entries = tuple(_read_repository(entry) for entry in target.iterate_mappings("repositories"))
    if target.get_value("repositories") in ([], ()):
        target.errors.add(f"{target.get_path('repositories')} must not be an empty list if specified")
    return RepositoryList(entries)


def _read_repository(entry: VariantFieldReader) -> RepositoryEntry:
    entry.report_unknown_fields("name", "packageNames")
    name = entry.read_text("name")
    if not name:
        entry.errors.add(f"{entry.get_path('name')} cannot be empty")
    return RepositoryEntry(name, _read_package_names(entry))


def _read_repository_selector(target: VariantFieldReader) -> ObjectSelection:
    selector = target.read_mapping("repositorySelector")
    selector.report_unknown_fields(*SELECTOR_FIELDS, "packageNames")
    names = _read_selected_names(target, selector)
    return ObjectSelection(VARIANT_API_VERSION, "Repository", _read_labels(selector), "", names)


def _read_object_selector(target: VariantFieldReader) -> ObjectSelection:
    selector = target.read_mapping("objectSelector")
    selector.report_unknown_fields(*SELECTOR_FIELDS, "packageNames", "apiVersion", "kind", "name")
    if target.has_value("objectSelector"):
        for name in ("apiVersion", "kind"):
            if selector.get_value(name) in (None, ""):
                target.errors.add(f"{target.path}.objectselector.{name} cannot be empty")
    api_version, kind, name = (selector.read_text(field) for field in ("apiVersion", "kind", "name"))
    return ObjectSelection(api_version, kind, _read_labels(selector), name, _read_selected_names(target, selector))


def _read_labels(selector: VariantFieldReader) -> LabelSelector:
    labels = {name: selector.get_value(name) for name in SELECTOR_FIELDS if selector.has_value(name)}
    label_selector, messages = read_label_selector(labels)
    selector.errors.add(*(f"{selector.path}: {message}" for message in messages))
    return label_selector or LabelSelector()


def _read_selected_names(target: VariantFieldReader, selector: VariantFieldReader) -> tuple[str, ...]:
    target_names, selector_names = _read_package_names(target), _read_package_names(selector)
    if target.has_value("packageNames"):
        target.errors.warn(f"{target.get_path('packageNames')} is read as {selector.get_path('packageNames')}")
    if target_names and selector_names and target_names != selector_names:
        target.errors.add(f"{target.path}: packageNames of the target and of its selector must not differ")
    return selector_names or target_names


def _read_package_names(fields: VariantFieldReader) -> tuple[str, ...]:
    names = fields.read_texts("packageNames")
    empty = (index for index, name in enumerate(names) if not name)
    fields.errors.add(*(f"{fields.get_path('packageNames')}[{index}] cannot be empty" for index in empty))
    return names
