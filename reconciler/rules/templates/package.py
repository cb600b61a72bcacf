"""The children of a package with their effective templates: the files afterwards, and what is told (strimzi 8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast, get_args

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.findings import Finding, errors, hardened, softened
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import Document, Original, YamlError
from reconciler.packages.edited_files import with_documents
from reconciler.packages.package import PackageResource
from reconciler.packages.parsing import edited_document
from reconciler.rules.edits import value_at, with_value, without
from reconciler.rules.fields import dotted, shown
from reconciler.rules.notes import Note, finding_of
from reconciler.rules.provenance import Step, steps_data
from reconciler.rules.templates.codes import (
    INVALID_TEMPLATE_TYPE,
    MATERIALISED_INPUT,
    TEMPLATE_MODE_INVALID,
    TEMPLATE_RESULT_UNWRITABLE,
    TEMPLATE_VERSION_UNKNOWN,
    UNKNOWN_TEMPLATE_PROPERTY,
)
from reconciler.rules.templates.effect import TemplateEffect, effect_of
from reconciler.rules.templates.merge import effective
from reconciler.rules.templates.model import MARK, MODE_ANNOTATION, Member, MergeRule, Mode, Options, Remark, Side
from reconciler.rules.templates.pairs import Pairs, Roles, parent_key, roles_in
from reconciler.rules.templates.steps import steps_of_template
from reconciler.snapshot.files import FileTree

_MODES = get_args(Mode)


@dataclass(frozen=True)
class Templated:
    """What became of a parent or child; with an error finding its package must not be published.

    `asked` are the parents and children on which that depends. `effect` is what a child's template comes to: it is
    there with other errors, too, so that it can be reviewed, and missing for parents and children without one.
    """

    resource: PackageResource
    document: Document
    findings: tuple[Finding, ...] = ()
    steps: tuple[Step, ...] = ()
    asked: tuple[ObjectKey, ...] = ()
    effect: TemplateEffect | None = None

    def as_data(self) -> list[dict[str, Any]]:
        """Return what was changed as `layers` of a status file (design 10.28)."""
        return steps_data(self.resource.file, str(self.resource.key), self.steps)


@dataclass(frozen=True)
class TemplatedPackage:
    """A package as a cluster is to have it; with an error finding its files are as they were, and must not be used.

    `resources` are its parents and children, in the order of its files. `asked` are all parents and children on which
    the outcome depends, here and elsewhere: it is the same while the files, the options, and what `Pairs.digest_of`
    says of each of them are.
    """

    files: FileTree
    resources: tuple[Templated, ...] = ()
    findings: tuple[Finding, ...] = ()
    asked: tuple[ObjectKey, ...] = ()

    @property
    def effects(self) -> tuple[TemplateEffect, ...]:
        """What the templates of its children come to."""
        return tuple(one.effect for one in self.resources if one.effect)

    def as_data(self) -> list[dict[str, Any]]:
        """Return what was changed as `layers` of the status file (design 10.28)."""
        return [*self._data]

    @cached_property
    def _data(self) -> tuple[dict[str, Any], ...]:
        return tuple(entry for one in self.resources for entry in one.as_data())


@dataclass
class _Told:
    """What is found out about one document."""

    resource: PackageResource
    findings: list[Finding] = field(default_factory=list)

    def note(self, notes: Iterable[Note]) -> None:
        """Note what is to be said of the document."""
        self.findings += (finding_of(self.resource, note) for note in notes)


def materialise(files: FileTree, pairs: Pairs, options: Options | None = None) -> TemplatedPackage:
    """Return a package with the effective templates of its children in the place of their own.

    Everything else stays to the byte. Where the mode is `report`, here or by the annotation of a child, the child stays
    as it is, and only what its template comes to is told. `pairs` are those of all packages of the cluster, as they are
    before templates are merged: what was inherited once cannot be told from a child's own (strimzi 8).
    """
    options = options or Options()
    resources = tuple(_each(files, pairs, options))
    findings = tuple(finding for one in resources for finding in one.findings)
    edited = () if errors(findings) else ((one.resource, one.document) for one in resources)
    asked = tuple(sorted({key for one in resources for key in one.asked}))
    return TemplatedPackage(with_documents(files, edited), resources, findings, asked)


def _each(files: FileTree, pairs: Pairs, options: Options) -> Iterator[Templated]:
    for resource, roles in roles_in(files, pairs.rules):
        yield _strictly(_done(resource, roles, pairs, options), options.strict)


def _done(resource: PackageResource, roles: Roles, pairs: Pairs, options: Options) -> Templated:
    known = [(rule, side) for rule, side in roles if side.knows(resource)]
    if not known:
        return _unknown_version(resource, roles[0][1])
    rule, side = known[0]
    if side is rule.child:
        return _child(Member(rule, "", resource), pairs, options)
    return _parent(resource, [one for one, _ in known], pairs)


def _strictly(done: Templated, strict: frozenset[str]) -> Templated:
    if all(one.code not in strict for one in done.findings):
        return done
    return replace(done, findings=tuple(hardened(one) if one.code in strict else one for one in done.findings))


def _unknown_version(resource: PackageResource, side: Side) -> Templated:
    message = f"apiVersion must be of {' or '.join(side.versions)} for templates to be merged, not {resource.version}"
    note = Note(TEMPLATE_VERSION_UNKNOWN, message, ("apiVersion",))
    return Templated(resource, resource.document, (finding_of(resource, note),))


def _parent(resource: PackageResource, rules: list[MergeRule], pairs: Pairs) -> Templated:
    told = _Told(resource)
    told.note(pairs.troubles.get(resource.key, ()))
    for rule in rules:
        told.note(_template_faults(resource, rule.parent, rule.properties))
    known = {name for rule in rules for name in (*rule.properties, *rule.parent_only)}
    for path in dict.fromkeys(rule.parent.path for rule in rules):
        template = value_at(resource.data, path)
        for name in template if isinstance(template, dict) else ():
            if name not in known:
                message = f"{dotted((*path, name))} is not known; a template may have {', '.join(sorted(known))}"
                told.note([Note(UNKNOWN_TEMPLATE_PROPERTY, message, (*path, name))])
    return Templated(resource, resource.document, tuple(told.findings), (), (resource.key,))


def _child(child: Member, pairs: Pairs, options: Options) -> Templated:
    resource, rule = child.resource, child.rule
    told, wanted = _Told(resource), parent_key(child)
    asked = (resource.key, *((wanted,) if wanted else ()))
    told.note(pairs.troubles.get(resource.key, ()))
    mode = _mode(told, options.mode)
    told.note(_mark_faults(resource))
    parent = pairs.parent_of(child)
    if parent is None or child.key not in pairs.children or resource.annotations.get(MARK) == "true":
        return Templated(resource, resource.document, tuple(told.findings), (), asked)
    told.note(_template_faults(resource, rule.child, rule.properties))
    told.note(_inherited_faults(child, parent))
    if any(one.code == INVALID_TEMPLATE_TYPE.name for one in told.findings):
        return Templated(resource, resource.document, tuple(told.findings), (), asked)
    effect = effect_of(child, parent, options.operator, mode)
    told.note(effect.notes)
    told.findings += (_finding(resource, rule, parent.key, effect, remark) for remark in effect.description.remarks)
    return _written(child, effect, told, asked)


def _mode(told: _Told, mode: Mode) -> Mode:
    said = told.resource.annotations.get(MODE_ANNOTATION, mode)
    if said in _MODES:
        return cast("Mode", said)
    message = f"{MODE_ANNOTATION} must be {' or '.join(_MODES)}, not {shown(said)}"
    told.note([Note(TEMPLATE_MODE_INVALID, message, ("metadata", "annotations", MODE_ANNOTATION))])
    return mode


def _mark_faults(resource: PackageResource) -> Iterator[Note]:
    """Yield that a child was merged already: its next template would keep what its parent does not say any more."""
    if resource.annotations.get(MARK) == "true":
        message = f"{resource.key} must have its own template alone; {MARK} says that one was merged into it already"
        yield Note(MATERIALISED_INPUT, message, ("metadata", "annotations", MARK))


def _template_faults(resource: PackageResource, side: Side, properties: tuple[str, ...]) -> Iterator[Note]:
    """Yield where a template, or a shared property of it, is no mapping."""
    template = value_at(resource.data, side.path)
    if template is ABSENT or template is None:
        return
    if not isinstance(template, dict):
        message = f"{dotted(side.path)} must be a mapping, not {shown(template)}"
        yield Note(INVALID_TEMPLATE_TYPE, message, side.path)
        return
    for name in properties:
        value = template.get(name)
        if value is not None and not isinstance(value, dict):
            path = (*side.path, name)
            yield Note(INVALID_TEMPLATE_TYPE, f"{dotted(path)} must be a mapping, not {shown(value)}", path)


def _inherited_faults(child: Member, parent: Member) -> Iterator[Note]:
    for note in _template_faults(parent.resource, child.rule.parent, child.rule.properties):
        yield Note(note.code, f"{parent.key}: {note.message}", child.rule.child.path)


def _finding(
    resource: PackageResource, rule: MergeRule, parent: ObjectKey, effect: TemplateEffect, remark: Remark
) -> Finding:
    """Return a remark as a finding at the child; one about what is inherited says where that stands."""
    path = (*rule.child.path, remark.property, *remark.path) if remark.property else remark.path
    who = dotted(path)
    if remark.property in effect.inherited:
        who = f"{parent} {dotted((*rule.parent.path, remark.property, *remark.path))}, inherited"
        path = rule.child.path
    found = finding_of(resource, Note(remark.code, remark.message, path), who)
    return softened(found) if remark.mild else found


def _written(child: Member, effect: TemplateEffect, told: _Told, asked: tuple[ObjectKey, ...]) -> Templated:
    resource = child.resource
    document = resource.document
    steps: tuple[Step, ...] = ()
    if effect.mode == "materialise":
        data = _data(child, effect)
        try:
            document = _document(child, data)
        except YamlError as error:
            told.note([Note(TEMPLATE_RESULT_UNWRITABLE, f"the result must be something that YAML can hold: {error}")])
        steps = steps_of_template(child, effect.parent, effect.properties, data)
    return Templated(resource, document, tuple(told.findings), steps, asked, effect)


def _data(child: Member, effect: TemplateEffect) -> Any:
    data, path, template = child.resource.data, child.rule.child.path, effective(effect.properties)
    if template:
        data = _with_nested(data, path, template)
    elif value_at(data, path) is not ABSENT:
        data = without(data, path)
    if effect.inherited:
        annotations = value_at(data, ("metadata", "annotations"))
        marked = {**(annotations if isinstance(annotations, Mapping) else {}), MARK: "true"}
        data = with_value(data, ("metadata", "annotations"), marked)
    return data


def _with_nested(data: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """Return the data with a value at a path whose parents are made where they are not there."""
    for length in range(1, len(path)):
        if not isinstance(value_at(data, path[:length]), dict):
            data = with_value(data, path[:length], {})
    return with_value(data, path, value)


def _document(child: Member, data: Any) -> Document:
    """Return the child's document with other data; properties that are new stand in the rule's order."""
    document, path = child.resource.document, child.rule.child.path
    own, wanted = value_at(document.data, path), value_at(data, path)
    if not (isinstance(own, dict) and isinstance(wanted, dict)):
        return edited_document(document, data)
    new = {(*path, name): Original((*path, name), whole=False) for name in wanted if name not in own}
    return document.with_data(data, document.lending(new)) if new else edited_document(document, data)
