"""The first difference between two versions of a package."""

from __future__ import annotations

from posixpath import commonprefix
from typing import Any

from reconciler.catalog.files import File, FileTree
from reconciler.controllers.provenance import Change, diff_values, redact_both_values
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.changes.diffs import format_file_diffs
from reconciler.output.changes.fields import ABSENT_FIELD, FieldChange
from reconciler.output.envelope import DATACLASS_CONFIG
from reconciler.packages.package import Package

_MAX_DIFF_LINES = 40
_EMPTY_FILE = File(b"")


@dataclass(frozen=True)
class FirstDifference:
    """The first difference between two versions of a package.

    Attributes:
        byte: The offset of the first different byte in the file. The first byte has the offset 0.
        line: The line of this byte. The first line has the number 1.
        files: The number of files that differ.
        resource: The resource that contains the difference. "" if there is no such resource.
        pointer: The JSON pointer of the first different field in the resource. "" if there is no such field.
        change: The change of this field, such as `2 → 5`.
        set_by: The object or person that set the value in the second version. "" if this is unknown.
        diff: The diff of `file`.
    """

    __pydantic_config__ = DATACLASS_CONFIG

    file: str
    byte: int
    line: int
    files: int
    resource: str = ""
    pointer: str = ""
    change: str = ""
    set_by: str = ""
    diff: str = ""


def find_first_difference(
    before: FileTree, after: FileTree, max_diff_lines: int = _MAX_DIFF_LINES
) -> FirstDifference | None:
    """Return the first difference between two versions, or None if the versions are equal. Secret values are masked.

    Args:
        max_diff_lines: The maximum number of lines of the diff. 0 omits the diff.
    """
    differing = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    if not differing:
        return None
    file = differing[0]
    old, new = before.get(file, _EMPTY_FILE).data, after.get(file, _EMPTY_FILE).data
    byte = 0 if old == new else len(commonprefix([old, new]))
    line = (old if len(old) > byte else new).count(b"\n", 0, byte) + 1
    diffs = format_file_diffs(before, after, max_lines=max_diff_lines)
    diff = next((text for path, text in diffs if path == file), "mode changed\n")
    resource, pointer, change = _find_changed_field(file, before, after)
    return FirstDifference(
        file, byte, line, len(differing), resource, pointer, change, diff=diff if max_diff_lines else ""
    )


def _find_changed_field(file: str, before: FileTree, after: FileTree) -> tuple[str, str, str]:
    """Return the first changed field of a file: the resource, the JSON pointer of the field, and the change."""
    old, new = (
        {resource.key.reference: resource.data for resource in Package(files).resources if resource.file == file}
        for files in (before, after)
    )
    for name in dict.fromkeys((*old, *new)):
        if name not in old or name not in new:
            return name, "", "removed" if name in old else "added"
        if change := find_first_change(old[name], new[name]):
            path, old_value, new_value = change
            redacted = redact_both_values(old_value, new_value, path, (old[name], new[name]))
            sides = (ABSENT_FIELD if value is ABSENT else value for value in redacted)
            return name, format_pointer(path), FieldChange((), *sides).format_line().strip()
    return "", "", ""


def find_first_change(before: Any, after: Any) -> Change | None:
    """Return the first value that differs, in the order of the fields. Return None if no value differs."""
    return next(diff_values(before, after, ()), None)
