"""Template merges in one package: the changed files, findings and provenance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, cast, get_args

from reconciler.catalog.files import FileTree
from reconciler.controllers.kafka_templates.codes import TemplateCodes
from reconciler.controllers.kafka_templates.effective_templates import TemplateEffect, build_template_effect
from reconciler.controllers.kafka_templates.merge import TemplateProperty, build_effective_template
from reconciler.controllers.kafka_templates.model import (
    MATERIALISED_ANNOTATION,
    MODE_ANNOTATION,
    RuleSide,
    TemplateMergeRule,
    TemplateMode,
    TemplateOptions,
    TemplateRemark,
    TemplateResource,
)
from reconciler.controllers.kafka_templates.pairing import Roles, TemplatePairs, build_parent_key, find_roles
from reconciler.controllers.nested_values import copy_with_value, copy_without_value, get_value
from reconciler.controllers.provenance import ProvenanceStep, compute_steps, format_steps
from reconciler.controllers.resource_findings import ResourceIssue, create_finding
from reconciler.krm.field_text import describe_choice, format_path, quote_value
from reconciler.krm.findings import Finding, downgrade_to_warning, select_errors, upgrade_to_error
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath, Document, FormattingSource, YamlError
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.packages.package import PackageResource
from reconciler.packages.parsing import edit_document
from reconciler.packages.sops import SopsMacError, check_sops_edit
from reconciler.packages.sops_files import create_mac_finding, locate_document
from reconciler.packages.write_back import replace_documents

_MODES = get_args(TemplateMode)


@dataclass(frozen=True)
class TemplatedResource:
    """A parent or child resource after its templates are merged.

    If one of `findings` is an error, the package must not be published. `dependencies` are the parents and children
    whose content affects this resource. `effect` is the effective template of a child. For a parent, for a child
    without a parent, and for templates that cannot be merged, `effect` is None.
    """

    resource: PackageResource
    document: Document
    findings: tuple[Finding, ...] = ()
    steps: tuple[ProvenanceStep, ...] = ()
    dependencies: tuple[ObjectKey, ...] = ()
    effect: TemplateEffect | None = None

    def as_data(self) -> list[dict[str, Any]]:
        """Return the provenance in the format of the field `layers` of a status file."""
        return format_steps(self.resource.file, self.resource.key.reference, self.steps)


@dataclass(frozen=True)
class TemplatedPackage:
    """A package after its templates are merged. If a finding is an error, the files are unchanged and must not be used.

    The result can be reused if the files of the package, the options and the digests of all dependencies
    (`TemplatePairs.compute_digest`) are unchanged.

    Attributes:
        resources: The template parents and children in this package, in the order of the files.
        dependencies: The template parents and children that affect this package. They can be in other packages.
    """

    files: FileTree
    resources: tuple[TemplatedResource, ...] = ()
    findings: tuple[Finding, ...] = ()
    dependencies: tuple[ObjectKey, ...] = ()

    @property
    def effects(self) -> tuple[TemplateEffect, ...]:
        """The effective templates of the children in this package."""
        return tuple(resource.effect for resource in self.resources if resource.effect)

    def as_data(self) -> list[dict[str, Any]]:
        """Return the provenance in the format of the field `layers` of a status file."""
        return [*self._data]

    @cached_property
    def _data(self) -> tuple[dict[str, Any], ...]:
        return tuple(entry for resource in self.resources for entry in resource.as_data())


@dataclass
class _DocumentFindings:
    """Findings about one resource."""

    resource: PackageResource
    findings: list[Finding] = field(default_factory=list)

    def add(self, issues: Iterable[ResourceIssue]) -> None:
        """Add a finding for each issue of the resource."""
        self.findings += (create_finding(self.resource, issue) for issue in issues)


def apply_templates(files: FileTree, pairs: TemplatePairs, options: TemplateOptions | None = None) -> TemplatedPackage:
    """Return a package in which each child has its effective template. All other content is unchanged.

    An option or an annotation of the child can set the mode `report`. Then the child's file stays unchanged, and the
    result only describes the effective template. `pairs` must contain the parents and children with unmerged templates,
    because a merged template does not show which values are inherited.
    """
    options = options or TemplateOptions()
    resources = tuple(_apply_each(files, pairs, options))
    findings = tuple(finding for resource in resources for finding in resource.findings)
    edits = () if select_errors(findings) else ((resource.resource, resource.document) for resource in resources)
    dependencies = tuple(sorted({key for resource in resources for key in resource.dependencies}))
    return TemplatedPackage(replace_documents(files, edits), resources, findings, dependencies)


def _apply_each(files: FileTree, pairs: TemplatePairs, options: TemplateOptions) -> Iterator[TemplatedResource]:
    for resource, roles in find_roles(files, pairs.rules):
        yield _upgrade_strict_findings(_apply_to_resource(resource, roles, pairs, options), options.strict)


def _apply_to_resource(
    resource: PackageResource, roles: Roles, pairs: TemplatePairs, options: TemplateOptions
) -> TemplatedResource:
    supported = [(rule, side) for rule, side in roles if side.can_merge_version_of(resource)]
    if not supported:
        return _report_unknown_version(resource, roles[0][1])
    rule, side = supported[0]
    if side is rule.child:
        return _merge_child(TemplateResource(rule, "", resource), pairs, options)
    return _check_parent(resource, [supported_rule for supported_rule, _ in supported], pairs)


def _upgrade_strict_findings(resource: TemplatedResource, strict: frozenset[str]) -> TemplatedResource:
    if all(finding.code not in strict for finding in resource.findings):
        return resource
    return replace(
        resource,
        findings=tuple(
            upgrade_to_error(finding) if finding.code in strict else finding for finding in resource.findings
        ),
    )


def _report_unknown_version(resource: PackageResource, side: RuleSide) -> TemplatedResource:
    message = (
        f"the version in apiVersion must be {describe_choice(side.versions)}, but is"
        f" {quote_value(resource.version)}; the template is not merged"
    )
    issue = ResourceIssue(TemplateCodes.TEMPLATE_VERSION_UNKNOWN, message, ("apiVersion",))
    return TemplatedResource(resource, resource.document, (create_finding(resource, issue),))


def _check_parent(resource: PackageResource, rules: list[TemplateMergeRule], pairs: TemplatePairs) -> TemplatedResource:
    findings = _DocumentFindings(resource)
    findings.add(pairs.issues.get(resource.key, ()))
    for rule in rules:
        findings.add(_check_template(resource, rule.parent, rule.properties))
    known_names = {name for rule in rules for name in (*rule.properties, *rule.parent_only)}
    for path in dict.fromkeys(rule.parent.path for rule in rules):
        template = get_value(resource.data, path)
        for name in template if isinstance(template, dict) else ():
            if name not in known_names:
                message = (
                    f"{format_path((*path, name))} is an unknown property; allowed properties:"
                    f" {', '.join(sorted(known_names))}"
                )
                findings.add([ResourceIssue(TemplateCodes.UNKNOWN_TEMPLATE_PROPERTY, message, (*path, name))])
    return TemplatedResource(resource, resource.document, tuple(findings.findings), (), (resource.key,))


def _merge_child(child: TemplateResource, pairs: TemplatePairs, options: TemplateOptions) -> TemplatedResource:
    resource, rule = child.resource, child.rule
    findings, wanted_key = _DocumentFindings(resource), build_parent_key(child)
    dependencies = (resource.key, *((wanted_key,) if wanted_key else ()))
    findings.add(pairs.issues.get(resource.key, ()))
    mode = _read_mode(findings, options.mode)
    findings.add(_check_not_merged(resource))
    parent = pairs.find_parent(child)
    if parent is None or child.key not in pairs.children or resource.annotations.get(MATERIALISED_ANNOTATION) == "true":
        return TemplatedResource(resource, resource.document, tuple(findings.findings), (), dependencies)
    findings.add(_check_template(resource, rule.child, rule.properties))
    findings.add(_check_inherited_template(child, parent))
    if any(finding.code == TemplateCodes.INVALID_TEMPLATE_TYPE.name for finding in findings.findings):
        return TemplatedResource(resource, resource.document, tuple(findings.findings), (), dependencies)
    effect = build_template_effect(child, parent, options.operator, mode)
    findings.add(effect.issues)
    findings.findings += (
        _create_remark_finding(resource, rule, parent.key, effect, remark) for remark in effect.description.remarks
    )
    return _write_child(child, effect, findings, dependencies)


def _read_mode(findings: _DocumentFindings, mode: TemplateMode) -> TemplateMode:
    written_mode = findings.resource.annotations.get(MODE_ANNOTATION, mode)
    if written_mode in _MODES:
        return cast("TemplateMode", written_mode)
    message = f"{MODE_ANNOTATION} must be {describe_choice(_MODES)}, but is {quote_value(written_mode)}"
    findings.add(
        [ResourceIssue(TemplateCodes.TEMPLATE_MODE_INVALID, message, ("metadata", "annotations", MODE_ANNOTATION))]
    )
    return mode


def _check_not_merged(resource: PackageResource) -> Iterator[ResourceIssue]:
    """Yield an error for a child whose template is already merged.

    A second merge would treat inherited values as values of the child, and keep these values after the parent changes.
    """
    if resource.annotations.get(MATERIALISED_ANNOTATION) == "true":
        message = (
            f"{resource.key} must not have the annotation {MATERIALISED_ANNOTATION}, which only the"
            " reconciler writes to merged templates; remove the annotation and the inherited values from the template"
        )
        yield ResourceIssue(
            TemplateCodes.MATERIALISED_INPUT, message, ("metadata", "annotations", MATERIALISED_ANNOTATION)
        )


def _check_template(resource: PackageResource, side: RuleSide, properties: tuple[str, ...]) -> Iterator[ResourceIssue]:
    """Yield an error if the template of a resource or one of its `properties` is not a mapping."""
    template = get_value(resource.data, side.path)
    if template is ABSENT or template is None:
        return
    if not isinstance(template, dict):
        message = f"{format_path(side.path)} must be a mapping, but is {quote_value(template)}"
        yield ResourceIssue(TemplateCodes.INVALID_TEMPLATE_TYPE, message, side.path)
        return
    for name in properties:
        value = template.get(name)
        if value is not None and not isinstance(value, dict):
            path = (*side.path, name)
            yield ResourceIssue(
                TemplateCodes.INVALID_TEMPLATE_TYPE,
                f"{format_path(path)} must be a mapping, but is {quote_value(value)}",
                path,
            )


def _check_inherited_template(child: TemplateResource, parent: TemplateResource) -> Iterator[ResourceIssue]:
    for issue in _check_template(parent.resource, child.rule.parent, child.rule.properties):
        yield ResourceIssue(issue.code, f"in {parent.key}, {issue.message}", child.rule.child.path)


def _create_remark_finding(
    resource: PackageResource,
    rule: TemplateMergeRule,
    parent: ObjectKey,
    effect: TemplateEffect,
    remark: TemplateRemark,
) -> Finding:
    """Return a finding about the child. If a value is inherited, the message contains the location in the parent."""
    path = (*rule.child.path, remark.property, *remark.path) if remark.property else remark.path
    subject = format_path(path)
    if remark.property in effect.inherited_names:
        subject = f"{format_path((*rule.parent.path, remark.property, *remark.path))} (inherited from {parent})"
        path = rule.child.path
    finding = create_finding(resource, ResourceIssue(remark.code, f"{subject} {remark.message}", path))
    return downgrade_to_warning(finding) if remark.is_warning else finding


def _write_child(
    child: TemplateResource, effect: TemplateEffect, findings: _DocumentFindings, dependencies: tuple[ObjectKey, ...]
) -> TemplatedResource:
    resource = child.resource
    document = resource.document
    steps: tuple[ProvenanceStep, ...] = ()
    if effect.mode == "materialise":
        data = _build_data(child, effect)
        try:
            document = _build_document(child, data)
        except SopsMacError as error:
            rule = f"the template of {effect.parent}"
            findings.findings.append(create_mac_finding(error, locate_document(resource, error.path), rule))
        except YamlError as error:
            findings.add(
                [
                    ResourceIssue(
                        TemplateCodes.TEMPLATE_RESULT_UNWRITABLE,
                        f"the merged template cannot be written as YAML: {error}",
                    )
                ]
            )
        steps = build_template_steps(child, effect.parent, effect.properties, data)
    return TemplatedResource(resource, document, tuple(findings.findings), steps, dependencies, effect)


def _build_data(child: TemplateResource, effect: TemplateEffect) -> Any:
    data, path, template = child.resource.data, child.rule.child.path, build_effective_template(effect.properties)
    if template:
        data = _copy_with_nested_value(data, path, template)
    elif get_value(data, path) is not ABSENT:
        data = copy_without_value(data, path)
    if effect.inherited_names:
        annotations = get_value(data, ("metadata", "annotations"))
        marked = {**(annotations if isinstance(annotations, Mapping) else {}), MATERIALISED_ANNOTATION: "true"}
        data = copy_with_value(data, ("metadata", "annotations"), marked)
    return data


def _copy_with_nested_value(data: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """Return a copy of `data` with a new value at a path. Create missing mappings on the path."""
    for length in range(1, len(path)):
        if not isinstance(get_value(data, path[:length]), dict):
            data = copy_with_value(data, path[:length], {})
    return copy_with_value(data, path, value)


def _build_document(child: TemplateResource, data: Any) -> Document:
    """Return the YAML document of a child resource with new data.

    The order of the new template properties is the same as in the merge rule.
    """
    document, path = child.resource.document, child.rule.child.path
    check_sops_edit(document, data)
    own_template, new_template = get_value(document.data, path), get_value(data, path)
    if not (isinstance(own_template, dict) and isinstance(new_template, dict)):
        return edit_document(document, data)
    new_origins = {
        (*path, name): FormattingSource((*path, name), whole=False) for name in new_template if name not in own_template
    }
    return (
        document.with_data(data, document.reuse_formatting(new_origins))
        if new_origins
        else edit_document(document, data)
    )


def build_template_steps(
    child: TemplateResource, parent: ObjectKey, properties: tuple[TemplateProperty, ...], result: Any
) -> tuple[ProvenanceStep, ...]:
    """Return the provenance of the merged template, and of the annotation that marks the template as merged.

    The steps are inherited values, values of the child that replace inherited values, and removed values.
    """
    rule, path = child.rule, child.rule.child.path
    template = get_value(child.resource.data, path)
    steps: list[ProvenanceStep] = []
    for template_property in properties:
        if template_property.inherited is ABSENT:
            continue
        property_path = (*path, template_property.name)
        steps += _compute_value_steps(
            property_path,
            ABSENT,
            template_property.inherited,
            parent.reference,
            format_path((*rule.parent.path, template_property.name)),
        )
        if template_property.own is not ABSENT:
            steps += _compute_value_steps(
                property_path,
                template_property.inherited,
                template_property.own,
                child.key.reference,
                format_path(property_path),
            )
    for name in template if isinstance(template, dict) else ():
        if template[name] is None or name not in rule.properties:
            steps += _compute_value_steps((*path, name), template[name], ABSENT, rule.label, "spec.properties")
    annotation_path: DataPath = ("metadata", "annotations", MATERIALISED_ANNOTATION)
    steps += _compute_value_steps(
        annotation_path,
        get_value(child.resource.data, annotation_path),
        get_value(result, annotation_path),
        rule.label,
        "spec.child",
    )
    return tuple(steps)


def _compute_value_steps(
    path: DataPath, before: Any, after: Any, source_name: str, source_item: str
) -> Iterator[ProvenanceStep]:
    """Yield the provenance steps of one value at its path."""
    old, new = ({} if value is ABSENT else {"value": value} for value in (before, after))
    for step in compute_steps(old, new, source_name, source_item):
        yield ProvenanceStep((*path, *step.path[1:]), source_name, source_item, step.op, step.before, step.after)
