"""Differences: where two versions of a package part, to the byte, and which rule has a say there (design 10.28)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.pointer import PointerError, format_pointer, resolve
from reconciler.packages.package import Package, PackageResource
from reconciler.planning.remake import Remade
from reconciler.reporting import fields
from reconciler.reporting.diffs import file_diffs
from reconciler.reporting.explain import explain
from reconciler.reporting.explanation import Explained, NothingToExplainError
from reconciler.reporting.secrets import mask
from reconciler.snapshot.files import File, FileTree

_DIFF_LINES = 40
_NOTHING = File(b"")
Path = tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """Where two versions of a package part first: a byte of a file, from 0, on a line, from 1.

    `resource` and `pointer` are the field there, "" outside of resources, and `words` tell what it was and is.
    `by` is who set the later value, as far as that is known. `files` counts those that differ, `diff` is of the first.
    """

    file: str
    byte: int
    line: int
    files: int
    resource: str = ""
    pointer: str = ""
    words: str = ""
    by: str = ""
    diff: str = ""


def find_difference(before: FileTree, after: FileTree, lines: int = _DIFF_LINES) -> Difference | None:
    """Return where a package parts from what it was, None where it is the same; values of Secrets are masked."""
    differing = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    if not differing:
        return None
    file = differing[0]
    old, new = before.get(file, _NOTHING).data, after.get(file, _NOTHING).data
    byte = _first_byte(old, new)
    line = (old if len(old) > byte else new).count(b"\n", 0, byte) + 1
    diff = next((text for path, text in file_diffs(before, after, max_lines=lines) if path == file), "mode changed\n")
    resource, pointer, words = _field(file, before, after)
    return Difference(file, byte, line, len(differing), resource, pointer, words, diff=diff if lines else "")


def _first_byte(old: bytes, new: bytes) -> int:
    if old == new:
        return 0
    shorter = min(len(old), len(new))
    low, high = 0, shorter
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old[:middle] == new[:middle] else (low, middle - 1)
    return low


def _field(file: str, before: FileTree, after: FileTree) -> tuple[str, str, str]:
    """Return the first field of a file's resources that differs: resource, pointer, and what it was and is."""
    old, new = ({str(one.key): one for one in _resources(files, file)} for files in (before, after))
    for name in dict.fromkeys((*old, *new)):
        if name not in old or name not in new:
            return name, "", "is not there any more" if name in old else "is new"
        path = first_path(old[name].data, new[name].data)
        if path is not None:
            return name, format_pointer(path), _words(old[name].data, new[name].data, path)
    return "", "", ""


def _words(old: Any, new: Any, path: Path) -> str:
    was, now = (value_of(data, path) for data in (mask(old), mask(new, old, compared=True)))
    before, after = (fields.ABSENT if one is ABSENT else one for one in (was, now))
    return fields.FieldChange((), before, after).words().strip()


def value_of(data: Any, path: Path) -> Any:
    """Return the value at the segments of a pointer, or ABSENT."""
    try:
        return resolve(data, path)
    except PointerError:
        return ABSENT


def _resources(files: FileTree, file: str) -> Iterator[PackageResource]:
    return (one for one in Package(files).resources if one.file == file)


def first_path(before: Any, after: Any, path: Path = ()) -> Path | None:
    """Return the path of the first value that differs, in the order of the fields; None where all is the same."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        keys = dict.fromkeys((*before, *after))
        pairs = ((str(key), before.get(key, ABSENT), after.get(key, ABSENT)) for key in keys)
    elif isinstance(before, list) and isinstance(after, list):
        zipped = zip_longest(before, after, fillvalue=ABSENT)
        pairs = ((str(index), one, other) for index, (one, other) in enumerate(zipped))
    else:
        return path if type(before) is not type(after) or before != after else None
    found = (first_path(one, other, (*path, key)) for key, one, other in pairs)
    return next((one for one in found if one is not None), None)


def setter_of(resource: str, pointer: str, made: Remade) -> str:
    """Return who set a value of a package last, as an explanation tells it; "" where nothing is there."""
    known = Explained(str(made.variant.place), "", made.objects, made.variant.owner, made.variant, made.rendered)
    try:
        found = explain(known, resource, pointer).values
    except NothingToExplainError:
        return ""
    last = found[0].steps[-1] if found else None
    return " ".join(filter(None, (last.by, last.commit))) if last else ""
