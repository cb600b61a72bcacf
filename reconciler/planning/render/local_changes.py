"""Local changes that other merge steps do not handle.

- Local changes of template fields that a Kafka resource inherits from its parent.
- Local changes that are missing after a render, although no merge reported a conflict. Examples are quotes, blank
  lines, line ends, the executable bit, or a deleted file that a render creates again. `find_lost_changes` compares
  bytes after the render, so that each such change is recorded as a conflict.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.catalog.files import File, FileTree
from reconciler.controllers.kafka_templates.model import MATERIALISED_ANNOTATION, TemplateMergeRule
from reconciler.controllers.kafka_templates.pairing import find_roles
from reconciler.controllers.nested_values import copy_with_value, copy_without_value, get_value
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.rules import ABSENT, Conflict
from reconciler.krm.yaml import DataPath, Document
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.package import PackageResource
from reconciler.packages.parsing import edit_document
from reconciler.packages.sops import SopsMacError
from reconciler.packages.write_back import replace_documents
from reconciler.planning.model.sources import NOT_KEPT_RULE, BranchPackage, RenderInputs

TemplateMergeRules = tuple[TemplateMergeRule, ...]
_ANNOTATIONS: DataPath = ("metadata", "annotations")


def separate_template_changes(inputs: RenderInputs, rules: TemplateMergeRules) -> RenderInputs:
    """Change the inputs, so that template fields that a child inherits from its parent do not count as local changes.

    If a person changed an inherited field, the whole field counts as a field of the child itself. If no rendered
    version is recorded, only the template fields from the upstream count as fields of the child itself.
    """
    return replace(
        inputs,
        published=_separate_changes(inputs.published, rules),
        drafted=_separate_changes(inputs.drafted, rules),
    )


def find_removed_inherited_fields(
    inputs: RenderInputs, files: FileTree, rules: TemplateMergeRules
) -> Iterator[Conflict]:
    """Yield a conflict for each inherited field that a person removed, and that the rendered package contains again."""
    rendered = dict(_iterate_children(files, rules))
    for package in (inputs.published, inputs.drafted):
        for name, path, before, local, own in _iterate_inherited_fields(package, rules) if package else ():
            value = get_value(rendered[name].data, path) if name in rendered else ABSENT
            if local is ABSENT and own in (ABSENT, None) and value not in (ABSENT, None):
                resource = rendered[name]
                yield Conflict(
                    "field", format_pointer(path), before, ABSENT, value, "rule", "templates",
                    resource.file, resource.key.reference,
                )  # fmt: skip


def _separate_changes(package: BranchPackage | None, rules: TemplateMergeRules) -> BranchPackage | None:
    if package is None:
        return None
    merged, plain = (_remove_merged_templates(files, package.base, rules) for files in (package.merged, package.plain))
    separated = replace(package, merged=merged, plain=plain)
    return replace(separated, rendered=_remove_changed_fields(separated, rules)) if package.is_edited else separated


def _remove_merged_templates(files: FileTree, base: FileTree, rules: TemplateMergeRules) -> FileTree:
    """Remove the merged templates from a package.

    Template fields that the upstream of the package contains are the child's own fields, and are kept.
    """
    own = dict(_iterate_children(base, rules))
    edited: dict[PackageResource, Any] = {}
    for name, resource in _iterate_children(files, rules):
        if _is_marked(resource) and not (name in own and _is_marked(own[name])):
            path = _get_template_path(resource, rules)
            template = get_value(own[name].data, path) if name in own else ABSENT
            edited[resource] = _remove_mark(_set_template(resource.data, path, template))
    return _replace_data(files, edited)


def _remove_changed_fields(package: BranchPackage, rules: TemplateMergeRules) -> FileTree:
    """Return the rendered files. Remove each inherited field that a local change has replaced on the branch."""
    paths: dict[tuple[str, str], list[DataPath]] = {}
    for name, path, before, local, own in _iterate_inherited_fields(package, rules):
        if own in (ABSENT, None) and local is not ABSENT and not is_equal_data(before, local):
            paths.setdefault(name, []).append(path)
    edited: dict[PackageResource, Any] = {}
    for name, resource in _iterate_children(package.rendered, rules):
        if name in paths:
            data = resource.data
            for path in paths[name]:
                data = copy_without_value(data, path)
            # Remove the template field itself if it is empty now, because all its content was inherited.
            whole = _get_template_path(resource, rules)
            edited[resource] = data if get_value(data, whole) else copy_without_value(data, whole)
    return _replace_data(package.rendered, edited)


def _iterate_inherited_fields(
    package: BranchPackage, rules: TemplateMergeRules
) -> Iterator[tuple[tuple[str, str], DataPath, Any, Any, Any]]:
    """Yield each field that a child inherits from its parent.

    Each tuple contains the child, the path of the field, and three values of the field: the rendered value, the value
    with local changes, and the value in the child's own template.
    """
    if not package.is_edited:
        return
    local, own = dict(_iterate_children(package.files, rules)), dict(_iterate_children(package.merged, rules))
    for name, resource in _iterate_children(package.rendered, rules):
        if name not in local or not _is_marked(resource):
            continue
        template = _get_template_path(resource, rules)
        merged = get_value(resource.data, template)
        for key in merged if isinstance(merged, Mapping) else ():
            path = (*template, key)
            own_value = get_value(own[name].data, path) if name in own else ABSENT
            yield name, path, get_value(resource.data, path), get_value(local[name].data, path), own_value


def _iterate_children(files: FileTree, rules: TemplateMergeRules) -> Iterator[tuple[tuple[str, str], PackageResource]]:
    """Yield each child of a template in a package, preceded by its kind and name.

    The namespace is not included, because functions may change it.
    """
    for resource, roles in find_roles(files, rules):
        if any(side is rule.child for rule, side in roles):
            yield (f"{resource.group}/{resource.kind}", resource.name), resource


def _get_template_path(child: PackageResource, rules: TemplateMergeRules) -> DataPath:
    return next(rule.child.path for rule in rules if rule.child.is_kind_of(child))


def _is_marked(resource: PackageResource) -> bool:
    return resource.annotations.get(MATERIALISED_ANNOTATION) == "true"


def _set_template(data: Any, path: DataPath, template: Any) -> Any:
    if template is not ABSENT:
        return copy_with_value(data, path, template)
    return data if get_value(data, path) is ABSENT else copy_without_value(data, path)


def _remove_mark(data: Any) -> Any:
    data = copy_without_value(data, (*_ANNOTATIONS, MATERIALISED_ANNOTATION))
    return data if get_value(data, _ANNOTATIONS) else copy_without_value(data, _ANNOTATIONS)


def _replace_data(files: FileTree, edited: Mapping[PackageResource, Any]) -> FileTree:
    documents = ((resource, _edit(resource, data)) for resource, data in edited.items())
    return replace_documents(files, documents) if edited else files


def _edit(resource: PackageResource, data: Any) -> Document:
    try:
        return edit_document(resource.document, data)
    except SopsMacError:
        return resource.document  # No template was merged into this document, because this would break its MAC.


_BOM = b"\xef\xbb\xbf"
_WORD = re.compile(r"[^\s,:\[\]{}]+")
# Match a comment only at the start of a line or after white space, as in YAML.
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")


@dataclass(frozen=True)
class LostChanges:
    """Conflicts about local changes that are missing after a render.

    Attributes:
        published_conflicts: The conflicts about local changes on the target branch. The state does not record them.
        draft_conflicts: The conflicts about local changes on the draft branch. The state records them.
    """

    published_conflicts: tuple[Conflict, ...] = ()
    draft_conflicts: tuple[Conflict, ...] = ()


def find_lost_changes(inputs: RenderInputs, files: FileTree, known: Sequence[Conflict]) -> LostChanges:
    """Return a conflict for each file whose local change is neither in `files` nor in a `known` conflict.

    If a file has local changes on both the target branch and the draft, only the change on the draft is checked,
    because the change on the draft is newer.

    A render replaces the draft. After that, a lost change of the draft is on no branch, and later renders cannot detect
    the loss. Therefore, later renders return the recorded conflict again until the file is changed, added or deleted.
    """
    drafted = _collect_changed_files(inputs.drafted) if inputs.drafted else {}
    published = (
        {path: change for path, change in _collect_changed_files(inputs.published).items() if path not in drafted}
        if inputs.published
        else {}
    )
    conflicts = inputs.drafted.conflicts if inputs.drafted else ()
    recorded = (conflict for conflict in conflicts if conflict.rule == NOT_KEPT_RULE)
    return LostChanges(
        (*_find_deletion(inputs, files), *_find_conflicts(published, files, known)),
        (
            *_find_conflicts(drafted, files, known),
            *(conflict for conflict in recorded if conflict.file not in drafted and _is_still_lost(conflict, files)),
        ),
    )


def _find_deletion(inputs: RenderInputs, files: FileTree) -> Iterator[Conflict]:
    """Yield a conflict if a person deleted the package from the target branch, and the draft adds it again."""
    if inputs.deleted_tree:
        yield Conflict("package", "", inputs.deleted_tree, ABSENT, files.id, "upstream", NOT_KEPT_RULE)


def _is_still_lost(conflict: Conflict, files: FileTree) -> bool:
    return (conflict.file in files) == (conflict.upstream is not ABSENT)


@dataclass(frozen=True)
class _FileChange:
    """A local change of one file.

    Attributes:
        rendered: The file in the rendered version, or None if it did not exist.
        local: The file on the branch, or None if it was deleted.
        all_rendered: The rendered contents of all locally changed files, to detect lines that were moved between files.
    """

    rendered: File | None
    local: File | None
    all_rendered: File


def _collect_changed_files(package: BranchPackage) -> dict[str, _FileChange]:
    if not package.is_edited:
        return {}
    rendered, local = package.rendered, package.files
    changed = {path for path in {*rendered, *local} if rendered.get(path) != local.get(path)}
    # Collect the lines of all changed files, because a line that was moved from another file is not a local change.
    all_rendered = File(b"".join(rendered[path].data for path in sorted(changed) if path in rendered))
    return {path: _FileChange(rendered.get(path), local.get(path), all_rendered) for path in changed}


def _find_conflicts(changes: dict[str, _FileChange], files: FileTree, known: Sequence[Conflict]) -> Iterator[Conflict]:
    for path, change in sorted(changes.items()):
        recorded = [conflict for conflict in known if conflict.file == path or conflict.file.startswith(f"{path}/")]
        if any(conflict.kind in ("file", "package", "resource") for conflict in recorded) or _contains_change(
            path, change, files, recorded
        ):
            continue
        sides = (_get_file_id(change.rendered), _get_file_id(change.local), _get_file_id(files.get(path)))
        yield Conflict("file", "", *sides, "upstream", NOT_KEPT_RULE, file=path)


def _get_file_id(file: File | None) -> object:
    return ABSENT if file is None else file.id


def _contains_change(path: str, change: _FileChange, files: FileTree, recorded: Collection[Conflict]) -> bool:
    rendered, local, result = change.rendered, change.local, files.get(path)
    if local is None or local == result:
        return local == result
    if (
        rendered is not None
        and local.executable != rendered.executable
        and result
        and result.executable != local.executable
    ):
        return False
    if result is None:
        # The render deleted this file. Search all files, because its resources can be in another file now.
        return all(
            _has_part(part, files) for part in _iterate_lost_parts(change.all_rendered, local, File(b""), recorded)
        )
    if _has_lost_form(rendered, local, result):
        return False
    return all(
        _has_part(part, files) for part in _iterate_lost_parts(rendered or change.all_rendered, local, result, recorded)
    )


def _has_part(part: str, files: FileTree) -> bool:
    return any(part in _count_parts(file) for file in files.values())


def _iterate_lost_parts(rendered: File, local: File, result: File, recorded: Collection[Conflict]) -> Iterator[str]:
    """Yield the lines and comments that a local change added to a file, and that the rendered file does not contain.

    Values with a recorded conflict, and lines that were merged with other lines, are omitted.
    """
    values = [str(conflict.local) for conflict in recorded if not isinstance(conflict.local, dict | list)]
    added, removed = _count_parts(local) - _count_parts(rendered), _count_parts(rendered) - _count_parts(local)
    missing = added - _count_parts(result)
    yield from (
        part
        for part in missing
        if not any(value in part for value in values) and not _is_merged(part, removed, _count_parts(result))
    )


def _is_merged(part: str, removed: Iterable[str], result: Iterable[str]) -> bool:
    """Return whether a line of the result contains the locally changed line `part`, merged with other changes.

    Such a line contains all words of `part`, and no word that the local change removed. For example, the locally
    changed list `[two, three]` can become `[two, three, four]`.
    """
    words = _WORD.findall(part)
    if part.startswith("#") or not words:
        return False
    before = {word for line in removed if (line_words := _WORD.findall(line))[:1] == words[:1] for word in line_words}
    return any(
        line_words[:1] == words[:1] and {*words} <= {*line_words} and not (before - {*words}) & {*line_words}
        for line_words in map(_WORD.findall, result)
    )


def _count_parts(file: File) -> Counter[str]:
    """Count the parts of all lines: the text of each line without surrounding white space, and each comment."""
    parts: Counter[str] = Counter()
    for line in _decode_text(file).splitlines():
        comment = _COMMENT.search(line)
        parts[line[: comment.start()].strip() if comment else line.strip()] += 1
        if comment:
            parts[comment[0].strip()] += 1
    del parts[""]
    return parts


def _decode_text(file: File) -> str:
    return file.data.removeprefix(_BOM).decode(errors="backslashreplace")


def _has_lost_form(rendered: File | None, local: File, result: File) -> bool:
    """Return whether a local change of the byte order mark, line ends, blank lines or order of lines is missing."""
    before = rendered or File(b"")
    for has_property in (_has_bom, _has_crlf):
        if has_property(local) and not has_property(before) and not has_property(result):
            return True
    if _count_blank_lines(local) > _count_blank_lines(before) >= _count_blank_lines(result):
        return True
    return (
        _count_parts(local) == _count_parts(before)
        and not _has_order_of(local, result)
        and _has_order_of(before, result)
    )


def _has_bom(file: File) -> bool:
    return file.data.startswith(_BOM)


def _has_crlf(file: File) -> bool:
    return b"\r\n" in file.data


def _count_blank_lines(file: File) -> int:
    return sum(not line.strip() for line in _decode_text(file).splitlines())


def _has_order_of(file: File, other: File) -> bool:
    lines, other_lines = (
        [line.strip() for line in _decode_text(entry).splitlines() if line.strip()] for entry in (file, other)
    )
    common = {*lines} & {*other_lines}
    return [line for line in lines if line in common] == [line for line in other_lines if line in common]
