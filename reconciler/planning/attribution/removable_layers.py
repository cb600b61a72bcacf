"""Removes one layer of a package before a render, so that users can see the effect of this layer.

A layer is a field of the config or of the package source, a local change, or a function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from reconciler.catalog.catalog import ConfigObject
from reconciler.catalog.files import FileTree
from reconciler.controllers.nested_values import copy_with_value, copy_without_value, get_value
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath, Document
from reconciler.krm.yaml.compare import align_items, is_equal_data
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.packages.package import Package, parse_documents
from reconciler.packages.parsing import ParseFailure, format_json, parse_cached
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.three_way import merge_packages
from reconciler.planning.attribution.provenance_trace import find_previous_path
from reconciler.planning.model.sources import PackageSource
from reconciler.planning.render.renderer import PackageRenderer


@dataclass(frozen=True)
class ConfigField:
    """A field of a config object. If the path is empty, the whole object."""

    key: ObjectKey
    path: DataPath


@dataclass(frozen=True)
class SourceField:
    """A field in a file of the package source without local changes.

    `index` is the index of the document in the file. An empty `path` selects the whole document.
    """

    file: str
    index: int
    path: DataPath


EditOrigin = Literal["branch", "draft", "since"]
"""The place of a local change: the target branch, the draft branch, or the target branch after the last render."""


@dataclass(frozen=True, eq=False)
class LocalEdit:
    """A local change of one field of a resource.

    Attributes:
        index: The index of the document in the file.
        path: The path of the field in `after`, or in `before` for a removed field.
        before: The resource before the change, or ABSENT for an added resource.
        after: The resource after the change, or ABSENT for a deleted resource.
        is_removed: Whether the change removes the field.
    """

    file: str
    index: int
    path: DataPath
    before: Any = field(repr=False)
    after: Any = field(repr=False)
    is_removed: bool
    origin: EditOrigin


@dataclass(frozen=True)
class FunctionCall:
    """A mutator function in a Kptfile.

    `package` is the path of the subpackage with this Kptfile, or "" for the root package.
    """

    package: str
    mutator_index: int


RenderSubject = SourceField | LocalEdit | FunctionCall
RemovableLayer = ConfigField | RenderSubject


def remove_from_config(files: FileTree, config_object: ConfigObject, path: DataPath) -> FileTree:
    """Remove a field of a config object from the config files. If `path` is empty, remove the whole object."""
    full_path = (*config_object.path, *path)
    data = copy_without_value(config_object.document.data, full_path) if full_path else ABSENT
    lines = [document.line for document in _parse_documents(files, config_object.file)]
    return _replace_document(files, config_object.file, lines.index(config_object.document.line), data)


def build_renderer_without_layer(renderer: PackageRenderer, layer: RenderSubject) -> PackageRenderer:
    """Return a renderer that renders packages without one layer."""
    match layer:
        case FunctionCall(package=package, mutator_index=mutator_index):
            return replace(renderer, engine=replace(renderer.engine, skipped_mutator=(package, mutator_index)))
        case _:
            return replace(renderer, adjust_source=lambda source, options: remove_from_source(source, layer, options))


def remove_from_source(source: PackageSource, layer: SourceField | LocalEdit, options: MergeOptions) -> PackageSource:
    """Remove one field, or undo one local change, in a package source. Other local changes are kept."""
    match layer:
        case SourceField(file=file, index=index, path=path):
            data = copy_without_value(_parse_documents(source.base, file)[index].data, path) if path else ABSENT
            base = _replace_document(source.base, file, index, data)
            plain, files = (rebase_files(source.base, base, local, options) for local in (source.plain, source.files))
            return replace(source, base=base, plain=plain, files=files)
        case LocalEdit(origin="draft"):
            return replace(source, files=undo_edit(source.files, source.plain, layer))
        case LocalEdit():
            assert layer.origin == "branch", "a source does not contain changes after the render"
            plain = undo_edit(source.plain, source.base, layer)
            return replace(source, plain=plain, files=rebase_files(source.plain, plain, source.files, options))


def rebase_files(base: FileTree, new_base: FileTree, local: FileTree, options: MergeOptions) -> FileTree:
    """Apply the changes between `base` and `local` to `new_base`. In a conflict, the local change wins."""
    if local.id == base.id:
        return new_base
    return merge_packages(base, new_base, local, replace(options, rules=replace(options.rules, winner="local"))).files


def undo_edit(files: FileTree, previous_files: FileTree, layer: LocalEdit) -> FileTree:
    """Undo one local change.

    Args:
        files: The files with the change.
        previous_files: The files before the change.
    """
    if layer.after is ABSENT:
        return _restore_document(files, previous_files, layer)
    data = undo_change(layer.before, layer.after, layer.path, is_removed=layer.is_removed)
    # Use the comments of the document before the local change. The local change can have removed a setter comment, and
    # `apply-setters` needs this comment.
    resources = Package(previous_files).resources
    template = next((resource.document for resource in resources if is_equal_data(resource.data, layer.before)), None)
    return _replace_document(files, layer.file, layer.index, data, template)


def undo_change(before: Any, after: Any, path: DataPath, *, is_removed: bool = False) -> Any:
    """Undo the change of one value, and return the data.

    Args:
        path: The path of the value in `after`, or in `before` for a removed value.
    """
    if is_removed:
        return _restore_value(before, after, path)
    previous = _get_previous_value(before, after, path)
    return _remove_added_value(after, before, path) if previous is ABSENT else copy_with_value(after, path, previous)


def _get_previous_value(before: Any, after: Any, path: DataPath) -> Any:
    previous_path = find_previous_path(before, after, path)
    return ABSENT if previous_path is None else get_value(before, previous_path)


def _remove_added_value(after: Any, before: Any, path: DataPath) -> Any:
    """Remove an added value, and also its parents that become empty and did not exist before."""
    data = copy_without_value(after, path)
    for end in range(len(path) - 1, 0, -1):
        parent, previous = get_value(data, path[:end]), _get_previous_value(before, after, path[:end])
        if parent or type(previous) is type(parent):
            break
        is_added = previous is ABSENT
        data = copy_without_value(data, path[:end]) if is_added else copy_with_value(data, path[:end], previous)
    return data


def _restore_value(before: Any, after: Any, path: DataPath) -> Any:
    """Insert a removed value again at its previous position."""
    step: Any = path[0]
    if isinstance(after, dict):
        value = _restore_value(before[step], after[step], path[1:]) if path[1:] and step in after else before[step]
        return {**after, step: value}
    pairs = align_items(before, after)
    new_indexes = {old: new for old, new in pairs if old is not None and new is not None}
    if step in new_indexes:
        index = new_indexes[step]
        return copy_with_value(after, (index,), _restore_value(before[step], after[index], path[1:]))
    following = range(step + 1, len(before))
    position = next((new_indexes[old] for old in following if old in new_indexes), len(after))
    return [*after[:position], before[step], *after[position:]]


def _restore_document(files: FileTree, previous_files: FileTree, layer: LocalEdit) -> FileTree:
    """Restore a deleted document. If its file contains no other document, restore the whole previous file."""
    documents = parse_documents(layer.file, files[layer.file].data) if layer.file in files else ()
    if isinstance(documents, ParseFailure) or not documents or layer.file.endswith(".json"):
        return files.with_files({layer.file: previous_files[layer.file].data})
    source = parse_cached(files[layer.file].data)
    assert not isinstance(source, ParseFailure), "its documents were parsed above"
    order: list[tuple[int | None, Document]] = [*enumerate(source.documents)]
    order.insert(layer.index, (None, _parse_documents(previous_files, layer.file)[layer.index]))
    return files.with_files({layer.file: source.with_documents(order).to_bytes()})


def _parse_documents(files: FileTree, file: str) -> Sequence[Document]:
    documents = parse_documents(file, files[file].data)
    assert not isinstance(documents, ParseFailure), "an object was read from this file"
    return documents


def _replace_document(files: FileTree, file: str, index: int, data: Any, template: Document | None = None) -> FileTree:
    """Replace the data of a document. If `data` is ABSENT, remove the document.

    The comments and the style come from `template`. If `template` is None, they come from the replaced document.
    """
    content = files[file].data
    if file.endswith(".json"):
        return files.without_files(file) if data is ABSENT else files.with_files({file: format_json(data, content)})
    source = parse_cached(content)
    assert not isinstance(source, ParseFailure), "a resource was read from this file"
    if data is not ABSENT:
        # Do not use `edit_document`, because it refuses changes of SOPS documents. Here, such a change is safe, because
        # this file is never written to a branch.
        changed = source.replace(index, (template or source.documents[index]).with_data(data))
    elif len(source.documents) > 1:
        changed = source.remove(index)
    else:
        return files.without_files(file)
    return files.with_files({file: changed.to_bytes()})
