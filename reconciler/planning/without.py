"""Doing without a layer: what a package is made of, or by, if one thing in it were not said (tenet 8)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import Document, Path
from reconciler.packages.package import documents_of
from reconciler.packages.parsing import Unparsable, edited_document, json_text, parse_cached
from reconciler.packages.update import MergeOptions, merge
from reconciler.planning.render import Renderer
from reconciler.planning.source import Source
from reconciler.rules.edits import value_at, with_value, without
from reconciler.snapshot.catalog import ConfigObject
from reconciler.snapshot.files import FileTree


@dataclass(frozen=True)
class ConfigField:
    """A field of an object of the config; the object itself, where the path is empty."""

    key: ObjectKey
    path: Path


@dataclass(frozen=True)
class SourceField:
    """A field of the source as it came, in document `index` of a file; the document, where the path is empty."""

    file: str
    index: int
    path: Path


@dataclass(frozen=True, eq=False)
class Edit:
    """A person's edit of a field, in document `index` of a file: `before` is what it was, ABSENT for nothing.

    It was made `on_draft`, or on the cluster branch.
    """

    file: str
    index: int
    path: Path
    before: Any
    on_draft: bool


@dataclass(frozen=True)
class FunctionCall:
    """The mutator `number` of the Kptfile of `package`, "" for the root."""

    package: str
    number: int


InRender = SourceField | Edit | FunctionCall
Layer = ConfigField | InRender


def config_without(files: FileTree, one: ConfigObject, path: Path) -> FileTree:
    """Return the config without a field of an object, or without the object itself."""
    data = without(one.data, path) if path else ABSENT
    number = _number_of(files, one)
    return _with(files, one.file, number, data)


def _number_of(files: FileTree, one: ConfigObject) -> int:
    documents = documents_of(one.file, files[one.file].data)
    assert not isinstance(documents, Unparsable), "an object was read from it"
    return next(number for number, each in enumerate(documents) if each.line == one.document.line)


def renderer_without(renderer: Renderer, layer: InRender) -> Renderer:
    """Return who renders as another does, but does without one layer."""
    match layer:
        case FunctionCall(package=package, number=number):
            return replace(renderer, engine=replace(renderer.engine, skipped=(package, number)))
        case _:
            return replace(renderer, adjust=lambda source, options: source_without(source, layer, options))


def source_without(source: Source, layer: SourceField | Edit, options: MergeOptions) -> Source:
    """Return a source without what one of its fields says, or without what a person made of a field.

    Edits of other fields stay.
    """
    match layer:
        case SourceField(file=file, index=index, path=path):
            base = _with(source.base, file, index, without(_data(source.base, file, index), path) if path else ABSENT)
            plain, files = (_brought(source.base, base, one, options) for one in (source.plain, source.files))
            return replace(source, base=base, plain=plain, files=files)
        case Edit(on_draft=True):
            return replace(source, files=_undone(source.files, layer))
        case Edit():
            plain = _undone(source.plain, layer)
            return replace(source, plain=plain, files=_brought(source.plain, plain, source.files, options))


def _brought(base: FileTree, wanted: FileTree, local: FileTree, options: MergeOptions) -> FileTree:
    """Return what people have, brought from one base to another: what they changed stays theirs."""
    if local.id == base.id:
        return wanted
    return merge(base, wanted, local, replace(options, rules=replace(options.rules, winner="local"))).files


def _undone(files: FileTree, layer: Edit) -> FileTree:
    data = _data(files, layer.file, layer.index)
    if layer.before is not ABSENT:
        data = with_value(data, layer.path, layer.before)
    elif value_at(data, layer.path) is not ABSENT:
        data = without(data, layer.path)
    return _with(files, layer.file, layer.index, data)


def _document(files: FileTree, file: str, index: int) -> Document:
    documents = documents_of(file, files[file].data)
    assert not isinstance(documents, Unparsable), "a resource was read from it"
    return documents[index]


def _data(files: FileTree, file: str, index: int) -> Any:
    return _document(files, file, index).data


def _with(files: FileTree, file: str, index: int, data: Any) -> FileTree:
    """Return the files with other data in a document, or without the document where the data are ABSENT."""
    old = files[file].data
    if file.endswith(".json"):
        return files.without(file) if data is ABSENT else files.with_files({file: json_text(data, old)})
    source = parse_cached(old)
    assert not isinstance(source, Unparsable), "a resource was read from it"
    if data is not ABSENT:
        changed = source.replace(index, edited_document(source.documents[index], data))
    elif len(source.documents) > 1:
        changed = source.remove(index)
    else:
        return files.without(file)
    return files.with_files({file: changed.to_bytes()})
