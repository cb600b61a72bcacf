"""Write resources back into their files. The text of unchanged documents does not change."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reconciler.catalog.files import FileTree
from reconciler.krm.yaml import Document, YamlFile
from reconciler.memory import cached
from reconciler.packages.functions.function import Item
from reconciler.packages.package import PackageResource
from reconciler.packages.parsing import edit_document, format_json, parse_cached


def replace_documents(files: FileTree, edits: Iterable[tuple[PackageResource, Document]]) -> FileTree:
    """Return the files in which edited documents replace the documents of their resources.

    If no document is changed, return the same `files` object.
    """
    documents_by_file: dict[str, dict[int, Document]] = {}
    for resource, document in edits:
        if document is not resource.document:
            documents_by_file.setdefault(resource.file, {})[resource.index] = document
    new_contents = {
        path: _build_edited_content(path, files[path].data, documents) for path, documents in documents_by_file.items()
    }
    return files.with_files(new_contents) if new_contents else files


def _build_edited_content(path: str, old: bytes, documents: Mapping[int, Document]) -> bytes:
    if path.endswith(".json"):
        return _write_json(old, documents[0].data)
    source = parse_cached(old)
    assert isinstance(source, YamlFile)  # Parsing cannot fail, because `documents` were parsed from this content.
    order = [(index, documents.get(index, document)) for index, document in enumerate(source.documents)]
    return source.with_documents(order).to_bytes()


def _write_json(old: bytes, data: Any) -> bytes:
    """Return the content of the JSON file `old` with the value `data`.

    The text is edited if it can be read as YAML. In any other case, the whole file is formatted again.
    """
    source = parse_cached(old)
    if isinstance(source, YamlFile) and len(source.documents) == 1:
        text = source.replace(0, edit_document(source.documents[0], data)).to_bytes()
        if _is_parsed_as(text, data):
            return text
    return format_json(data, old)


def _is_parsed_as(text: bytes, data: Any) -> bool:
    try:
        return bool(json.loads(text) == data)
    except ValueError:
        return False


# Maximum number of cached results. Results are cached, because most files are equal on many clusters.
_MAX_CACHED_FILES = 1024


def write_back(
    files: FileTree, read_resources: Sequence[PackageResource], items: Iterable[Item], *, prune: bool
) -> FileTree:
    """Return `files` with the resources after a render.

    Unchanged documents and unchanged files keep their content.

    Args:
        read_resources: The resources that were read from the files.
        items: The resources after the render. An item with id n replaces `read_resources[n]`. An item with any other id
            is a new resource.
        prune: Whether to delete files without remaining items.
    """
    items_by_file: dict[str, list[Item]] = {}
    for item in items:
        items_by_file.setdefault(item.file, []).append(item)
    numbers_by_file: dict[str, list[int]] = {}
    for number, resource in enumerate(read_resources):
        numbers_by_file.setdefault(resource.file, []).append(number)
    changes = {
        path: _format_content(files, path, read_resources, sorted(group, key=_index_of))
        for path, group in items_by_file.items()
        if not _is_unchanged_file(group, numbers_by_file.get(path, ()), read_resources)
    }
    changed_contents = {path: data for path, data in changes.items() if path not in files or files[path].data != data}
    deleted = numbers_by_file.keys() - items_by_file.keys() if prune else ()
    return files.with_files(changed_contents).without_files(*deleted)


def _is_unchanged_file(
    items: Sequence[Item], numbers: Sequence[int], read_resources: Sequence[PackageResource]
) -> bool:
    """Return whether the items of a file equal the resources that were read from this file, in the same order."""
    return len(items) == len(numbers) and all(
        item.id == number
        and item.index == read_resources[number].index
        and _has_document(item, read_resources[number].document)
        for item, number in zip(items, numbers, strict=True)
    )


def _has_document(item: Item, document: Document) -> bool:
    return item.base is document and item.data is document.data


def _index_of(item: Item) -> int:
    return item.index


def _format_content(
    files: FileTree, path: str, read_resources: Sequence[PackageResource], items: Sequence[Item]
) -> bytes:
    old = files[path].data if path in files else b""
    if path.endswith(".json") and len(items) == 1:
        return old if _is_untouched(items[0], path, read_resources) else format_json(items[0].data, old)
    return _format_file(
        old, tuple((_find_origin(item, path, read_resources), item) for item in items), is_json=path.endswith(".json")
    )


@cached(_MAX_CACHED_FILES)
def _format_file(old: bytes, items: tuple[tuple[int, Item], ...], *, is_json: bool) -> bytes:
    """Return the new content of a file that contained `old` and now contains `items`.

    Each pair in `items` consists of an index and an item. The index is the position of the item in `old`, or -1 if the
    item is not from this file.
    """
    existing_items = {origin: item for origin, item in items if origin >= 0}
    added_items = [item for origin, item in items if origin < 0]
    order = [*sorted(existing_items), *(-1 for _ in added_items)]
    if not existing_items or is_json or [origin for origin, _ in items] != order:
        return "---\n".join(_add_line_end(item.document.text) for _, item in items).encode()
    source = parse_cached(old)
    assert isinstance(source, YamlFile)
    return _edit_file(source, existing_items, added_items).to_bytes()


def _is_untouched(item: Item, path: str, read_resources: Sequence[PackageResource]) -> bool:
    return (
        _find_origin(item, path, read_resources) >= 0
        and item.id is not None
        and item.data is read_resources[item.id].data
    )


def _find_origin(item: Item, path: str, read_resources: Sequence[PackageResource]) -> int:
    """Return the index that the item had in the file `path`, or -1 if the item is not from this file."""
    if item.id is None or item.id >= len(read_resources) or read_resources[item.id].file != path:
        return -1
    return read_resources[item.id].index


def _edit_file(source: YamlFile, existing_items: dict[int, Item], added_items: Sequence[Item]) -> YamlFile:
    for index in reversed(range(len(source.documents))):
        if index not in existing_items:
            source = source.remove(index)
        elif existing_items[index].document is not source.documents[index]:
            source = source.replace(index, existing_items[index].document)
    for item in added_items:
        source = source.append(_add_line_end(item.document.text))
    return source


def _add_line_end(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"
