"""Writing back: rendered resources into files, touching only what changed (kpt.md 3.2, 11.8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.caching import cached
from reconciler.krm.yaml import Document, YamlFile
from reconciler.packages.functions.function import Item
from reconciler.packages.package import PackageResource
from reconciler.packages.parsing import json_text, parse_cached
from reconciler.snapshot.files import FileTree

# clusters have most files alike, and so the items in them
_REMEMBERED_FILES = 1024


def write_back(files: FileTree, read: Sequence[PackageResource], items: Iterable[Item], *, prune: bool) -> FileTree:
    """Return the files with the items in place of the resources that were read.

    Item `id` n comes from `read[n]`, any other id is new. A file that was read and has no item left goes, if `prune`.
    Documents that did not change keep their bytes, and so do files all of whose documents are as they were.
    """
    places: dict[str, list[Item]] = {}
    for item in items:
        places.setdefault(item.file, []).append(item)
    known: dict[str, list[int]] = {}
    for number, resource in enumerate(read):
        known.setdefault(resource.file, []).append(number)
    changes = {
        path: _content(files, path, read, sorted(group, key=_index))
        for path, group in places.items()
        if not _stands(group, known.get(path, ()), read)
    }
    changed = {path: data for path, data in changes.items() if path not in files or files[path].data != data}
    gone = known.keys() - places.keys() if prune else ()
    return files.with_files(changed).without(*gone)


def _stands(items: Sequence[Item], numbers: Sequence[int], read: Sequence[PackageResource]) -> bool:
    """Tell whether the items of a file are all that was read from it, untouched and in their order."""
    return len(items) == len(numbers) and all(
        item.id == number and item.index == read[number].index and _is_document(item, read[number].document)
        for item, number in zip(items, numbers, strict=True)
    )


def _is_document(item: Item, document: Document) -> bool:
    return item.base is document and item.data is document.data


def _index(item: Item) -> int:
    return item.index


def _content(files: FileTree, path: str, read: Sequence[PackageResource], items: Sequence[Item]) -> bytes:
    old = files[path].data if path in files else b""
    if path.endswith(".json") and len(items) == 1:
        return old if _is_untouched(items[0], path, read) else json_text(items[0].data, old)
    return _text(old, tuple((_origin(item, path, read), item) for item in items), is_json=path.endswith(".json"))


@cached(_REMEMBERED_FILES)
def _text(old: bytes, items: tuple[tuple[int, Item], ...], *, is_json: bool) -> bytes:
    """Return the file that was `old` with these items, each with the index that it had there, -1 for guests."""
    at_home = {origin: item for origin, item in items if origin >= 0}
    guests = [item for origin, item in items if origin < 0]
    order = [*sorted(at_home), *(-1 for _ in guests)]
    if not at_home or is_json or [origin for origin, _ in items] != order:
        return "---\n".join(_ended(item.document.text) for _, item in items).encode()
    source = parse_cached(old)
    assert isinstance(source, YamlFile)
    return _edited(source, at_home, guests).to_bytes()


def _is_untouched(item: Item, path: str, read: Sequence[PackageResource]) -> bool:
    return _origin(item, path, read) >= 0 and item.id is not None and item.data is read[item.id].data


def _origin(item: Item, path: str, read: Sequence[PackageResource]) -> int:
    """Return the index that the item had in this file, or -1 when it comes from elsewhere."""
    if item.id is None or item.id >= len(read) or read[item.id].file != path:
        return -1
    return read[item.id].index


def _edited(source: YamlFile, at_home: dict[int, Item], guests: Sequence[Item]) -> YamlFile:
    for index in reversed(range(len(source.documents))):
        if index not in at_home:
            source = source.remove(index)
        elif at_home[index].document is not source.documents[index]:
            source = source.replace(index, at_home[index].document)
    for item in guests:
        source = source.append(_ended(item.document.text))
    return source


def _ended(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"
