"""The diffs of a draft that is too large for a page: the most important resources, and notes for the other files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.catalog.files import FileTree
from reconciler.output.changes.objects import ChangeType
from reconciler.output.changes.package_changes import PackageChanges, compare_packages, select_differing_files
from reconciler.output.fleet.resource_diffs import ResourceDiff, build_resource_diffs
from reconciler.output.text import to_one_line

# The diffs of changed files with this size take about 3 seconds and 200 MB of memory.
MAX_BYTES = 2_000_000
_OMITTED = (
    "The differences of this file are not on this page, because the page shows differences up to {limit:,} bytes."
)
_TOO_LARGE = "The file is not shown, because it has more than {limit:,} bytes."


def build_limited_diffs(
    before: FileTree,
    after: FileTree,
    changes: PackageChanges,
    requested: Sequence[str] = (),
    max_bytes: int = MAX_BYTES,
) -> tuple[tuple[ResourceDiff, ...], int]:
    """Return the diffs between two versions of a package, and the number of bytes in the changed files.

    If the changed files exceed the limit, the diffs of less important files contain a note instead of lines. These
    files are not parsed.

    Args:
        changes: The differences between the two versions.
        requested: The most important resources (as `Kind namespace/name`) and files (as paths), in this order.
    """
    old, new = select_differing_files(before, after)
    sizes = {path: max(len(tree[path].data) if path in tree else 0 for tree in (old, new)) for path in {*old, *new}}
    total = sum(sizes.values())
    if total <= max_bytes:
        return build_resource_diffs(before, after, changes), total
    shown: set[str] = set()
    rest = max_bytes
    for files in _list_files(changes, requested):
        size = sum(sizes.get(path, 0) for path in files - shown)
        if size <= rest:
            shown |= files
            rest -= size
    old_part, new_part = (FileTree({path: file for path, file in tree.items() if path in shown}) for tree in (old, new))
    diffs = build_resource_diffs(old_part, new_part, compare_packages(old_part, new_part))
    notes = (_build_note(path, old, new, sizes[path], max_bytes) for path in sorted(sizes.keys() - shown))
    return (*diffs, *notes), total


def _list_files(changes: PackageChanges, requested: Sequence[str]) -> Iterator[frozenset[str]]:
    """Yield the files of each changed resource, and each other changed file, the most important first.

    The resources and files in `requested` come before all others, and are yielded again later.
    """
    groups = [(change.name, change.files) for change in changes.objects]
    groups += [(to_one_line(file.path), frozenset({file.path})) for file in changes.files]
    groups += [(to_one_line(kptfile.path), frozenset({kptfile.path})) for kptfile in changes.kptfiles]
    for place in requested:
        yield from (files for name, files in groups if name == place or place in files)
    yield from (files for _, files in groups)


def _build_note(path: str, old: FileTree, new: FileTree, size: int, max_bytes: int) -> ResourceDiff:
    change_type: ChangeType = "added" if path not in old else "removed" if path not in new else "changed"
    is_omitted = size <= max_bytes
    note = (_OMITTED if is_omitted else _TOO_LARGE).format(limit=max_bytes)
    return ResourceDiff(to_one_line(path), change_type, path, note=note, is_omitted=is_omitted)
