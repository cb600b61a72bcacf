"""Doing without a layer: what a package is made of, or by, if one thing in it were not said (tenet 8)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import Document, Path
from reconciler.krm.yaml.align import align
from reconciler.krm.yaml.same import same
from reconciler.packages.package import Package, documents_of
from reconciler.packages.parsing import Unparsable, edited_document, json_text, parse_cached
from reconciler.packages.update import MergeOptions, merge
from reconciler.planning.render import Renderer
from reconciler.planning.source import Source
from reconciler.planning.trail import came_from
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
    """A person's edit of what is at `path` of a resource, in document `index` of a file: it made `after` of `before`.

    ABSENT is no resource. The path of what is `gone` is one in `before`. It was `made` on the cluster
    branch or on the draft, or on the branch since our render.
    """

    file: str
    index: int
    path: Path
    before: Any = field(repr=False)
    after: Any = field(repr=False)
    gone: bool
    made: Literal["branch", "draft", "since"]


@dataclass(frozen=True)
class FunctionCall:
    """The mutator `number` of the Kptfile of `package`, "" for the root."""

    package: str
    number: int


InRender = SourceField | Edit | FunctionCall
Layer = ConfigField | InRender


def config_without(files: FileTree, one: ConfigObject, path: Path) -> FileTree:
    """Return the config without a field of an object, or without the object itself."""
    inside = (*one.path, *path)
    data = without(one.document.data, inside) if inside else ABSENT
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
            plain, files = (brought(source.base, base, one, options) for one in (source.plain, source.files))
            return replace(source, base=base, plain=plain, files=files)
        case Edit(made="draft"):
            return replace(source, files=edit_undone(source.files, source.plain, layer))
        case Edit():
            assert layer.made == "branch", "what was made since is in no source"
            plain = edit_undone(source.plain, source.base, layer)
            return replace(source, plain=plain, files=brought(source.plain, plain, source.files, options))


def brought(base: FileTree, wanted: FileTree, local: FileTree, options: MergeOptions) -> FileTree:
    """Return what people have, brought from one base to another: what they changed stays theirs."""
    if local.id == base.id:
        return wanted
    return merge(base, wanted, local, replace(options, rules=replace(options.rules, winner="local"))).files


def edit_undone(files: FileTree, earlier: FileTree, layer: Edit) -> FileTree:
    """Return the files without an edit; `earlier` are those that it was made of."""
    if layer.after is ABSENT:
        return _given_back(files, earlier, layer)
    data = undone(layer.before, layer.after, layer.path, gone=layer.gone)
    # its comments may tell functions what to do, and went with what was edited
    like = next((one.document for one in Package(earlier).resources if same(one.data, layer.before)), None)
    return _with(files, layer.file, layer.index, data, like)


def undone(before: Any, after: Any, path: Path, *, gone: bool = False) -> Any:
    """Return what was made of data without the change of what is at a path of it, or was where it is `gone`."""
    if gone:
        return _put_back(before, after, path)
    was = _was(before, after, path)
    return _taken_out(after, before, path) if was is ABSENT else with_value(after, path, was)


def _was(before: Any, after: Any, path: Path) -> Any:
    came = came_from(before, after, path)
    return ABSENT if came is None else value_at(before, came)


def _taken_out(after: Any, before: Any, path: Path) -> Any:
    """Return the data without what is new at a path, and without what came for it alone."""
    data = without(after, path)
    for end in range(len(path) - 1, 0, -1):
        left, was = value_at(data, path[:end]), _was(before, after, path[:end])
        if left or type(was) is type(left):
            break
        data = without(data, path[:end]) if was is ABSENT else with_value(data, path[:end], was)
    return data


def _put_back(before: Any, after: Any, path: Path) -> Any:
    """Return the data with what is gone from a path where it was, among what is left of its neighbours."""
    step: Any = path[0]
    if isinstance(after, dict):
        inside = _put_back(before[step], after[step], path[1:]) if path[1:] and step in after else before[step]
        return {**after, step: inside}
    now = {one: two for one, two in align(before, after) if one is not None and two is not None}
    if step in now:
        return with_value(after, (now[step],), _put_back(before[step], after[now[step]], path[1:]))
    place = next((now[one] for one in range(step + 1, len(before)) if one in now), len(after))
    return [*after[:place], before[step], *after[place:]]


def _given_back(files: FileTree, earlier: FileTree, layer: Edit) -> FileTree:
    """Return the files with a document that is gone, or with its whole file, where nothing is left of that."""
    documents = documents_of(layer.file, files[layer.file].data) if layer.file in files else ()
    if isinstance(documents, Unparsable) or not documents or layer.file.endswith(".json"):
        return files.with_files({layer.file: earlier[layer.file].data})
    source = parse_cached(files[layer.file].data)
    assert not isinstance(source, Unparsable), "it has documents"
    order: list[tuple[int | None, Document]] = [*enumerate(source.documents)]
    order.insert(layer.index, (None, _document(earlier, layer.file, layer.index)))
    return files.with_files({layer.file: source.arranged(order).to_bytes()})


def _document(files: FileTree, file: str, index: int) -> Document:
    documents = documents_of(file, files[file].data)
    assert not isinstance(documents, Unparsable), "a resource was read from it"
    return documents[index]


def _data(files: FileTree, file: str, index: int) -> Any:
    return _document(files, file, index).data


def _with(files: FileTree, file: str, index: int, data: Any, like: Document | None = None) -> FileTree:
    """Return the files with other data in a document, or without the document where the data are ABSENT.

    The document is written `like` itself, or like another.
    """
    old = files[file].data
    if file.endswith(".json"):
        return files.without(file) if data is ABSENT else files.with_files({file: json_text(data, old)})
    source = parse_cached(old)
    assert not isinstance(source, Unparsable), "a resource was read from it"
    if data is not ABSENT:
        changed = source.replace(index, edited_document(like or source.documents[index], data))
    elif len(source.documents) > 1:
        changed = source.remove(index)
    else:
        return files.without(file)
    return files.with_files({file: changed.to_bytes()})
