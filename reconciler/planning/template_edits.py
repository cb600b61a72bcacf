"""People's edits of children whose templates we had merged: what is theirs of a template, and what is not theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from reconciler.krm.conflicts import ABSENT, Conflict
from reconciler.krm.pointer import format_pointer
from reconciler.krm.yaml import Path
from reconciler.krm.yaml.same import same
from reconciler.packages.edited_files import with_documents
from reconciler.packages.package import PackageResource
from reconciler.packages.parsing import edited_document
from reconciler.planning.source import Ingredients, Standing
from reconciler.rules.edits import value_at, with_value, without
from reconciler.rules.templates.model import MARK, MergeRule
from reconciler.rules.templates.pairs import roles_in
from reconciler.snapshot.files import FileTree

Rules = tuple[MergeRule, ...]
_ANNOTATIONS: Path = ("metadata", "annotations")


def told_apart(made: Ingredients, rules: Rules) -> Ingredients:
    """Return what a package is made from with what we had merged into templates told from people's edits.

    Where a person changed anything in a property that was inherited, all of it is the child's own from now on: what is
    replaced is replaced as a whole (strimzi 4). And where no offer tells any more what was the child's own, as after a
    lost state, its upstream does: what we merged must not come back as a person's.
    """
    return replace(made, ours=_told_apart(made.ours, rules), put=_told_apart(made.put, rules))


def taken_out(made: Ingredients, files: FileTree, rules: Rules) -> Iterator[Conflict]:
    """Yield the inherited properties that people took out of a child, and that the finished package has again."""
    finished = dict(_children(files, rules))
    for standing in (made.ours, made.put):
        for name, path, was, now, own in _inherited(standing, rules) if standing else ():
            value = value_at(finished[name].data, path) if name in finished else ABSENT
            if now is ABSENT and own in (ABSENT, None) and value not in (ABSENT, None):
                resource = finished[name]
                yield Conflict(
                    "field", format_pointer(path), was, ABSENT, value, "rule", "templates",
                    resource.file, str(resource.key),
                )  # fmt: skip


def _told_apart(standing: Standing | None, rules: Rules) -> Standing | None:
    if standing is None:
        return None
    merged, plain = (_without_ours(one, standing.base, rules) for one in (standing.merged, standing.plain))
    known = replace(standing, merged=merged, plain=plain)
    return replace(known, rendered=_without_changed(known, rules)) if standing.is_edited else known


def _without_ours(files: FileTree, base: FileTree, rules: Rules) -> FileTree:
    """Return a package without our merged templates in it; what its upstream says is the child's own."""
    own = dict(_children(base, rules))
    edited: dict[PackageResource, Any] = {}
    for name, resource in _children(files, rules):
        if _is_marked(resource) and not (name in own and _is_marked(own[name])):
            path = _template_path(resource, rules)
            template = value_at(own[name].data, path) if name in own else ABSENT
            edited[resource] = _unmarked(_with(resource.data, path, template))
    return _with_data(files, edited)


def _without_changed(standing: Standing, rules: Rules) -> FileTree:
    """Return what we rendered without the inherited properties that a person changed since."""
    paths: dict[tuple[str, str], list[Path]] = {}
    for name, path, was, now, own in _inherited(standing, rules):
        if own in (ABSENT, None) and now is not ABSENT and not same(was, now):
            paths.setdefault(name, []).append(path)
    edited: dict[PackageResource, Any] = {}
    for name, resource in _children(standing.rendered, rules):
        if name in paths:
            data = resource.data
            for path in paths[name]:
                data = without(data, path)
            # nothing is left of a template that was inherited as a whole
            whole = _template_path(resource, rules)
            edited[resource] = data if value_at(data, whole) else without(data, whole)
    return _with_data(standing.rendered, edited)


def _inherited(standing: Standing, rules: Rules) -> Iterator[tuple[tuple[str, str], Path, Any, Any, Any]]:
    """Yield the properties of merged templates: child, place, what we rendered, what stands there, what was its own."""
    if not standing.is_edited:
        return
    now, own = dict(_children(standing.files, rules)), dict(_children(standing.merged, rules))
    for name, resource in _children(standing.rendered, rules):
        if name not in now or not _is_marked(resource):
            continue
        template = _template_path(resource, rules)
        merged = value_at(resource.data, template)
        for key in merged if isinstance(merged, Mapping) else ():
            path = (*template, key)
            before = value_at(own[name].data, path) if name in own else ABSENT
            yield name, path, value_at(resource.data, path), value_at(now[name].data, path), before


def _children(files: FileTree, rules: Rules) -> Iterator[tuple[tuple[str, str], PackageResource]]:
    """Yield the children of a package by kind and name; a pipeline may give them another namespace."""
    for resource, roles in roles_in(files, rules):
        if any(side is rule.child for rule, side in roles):
            yield (f"{resource.group}/{resource.kind}", resource.name), resource


def _template_path(child: PackageResource, rules: Rules) -> Path:
    return next(rule.child.path for rule in rules if rule.child.means(child))


def _is_marked(resource: PackageResource) -> bool:
    return resource.annotations.get(MARK) == "true"


def _with(data: Any, path: Path, template: Any) -> Any:
    if template is not ABSENT:
        return with_value(data, path, template)
    return data if value_at(data, path) is ABSENT else without(data, path)


def _unmarked(data: Any) -> Any:
    data = without(data, (*_ANNOTATIONS, MARK))
    return data if value_at(data, _ANNOTATIONS) else without(data, _ANNOTATIONS)


def _with_data(files: FileTree, edited: Mapping[PackageResource, Any]) -> FileTree:
    documents = ((resource, edited_document(resource.document, data)) for resource, data in edited.items())
    return with_documents(files, documents) if edited else files
