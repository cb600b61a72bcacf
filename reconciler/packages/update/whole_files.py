"""Files that are merged as a whole: opaque files, which are not read as resources, and files that cannot be parsed."""

from __future__ import annotations

from typing import Any

from reconciler.catalog.files import File, FileTree
from reconciler.krm.merge3.rules import ABSENT, ChosenSide, Conflict
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.sides import MergeSides, UpdateResult

DELETED_LOCALLY = "deleted-locally"
DELETED_UPSTREAM = "deleted-upstream"


def merge_opaque_file(sides: MergeSides, path: str, options: MergeOptions) -> UpdateResult:
    """Merge an opaque file, which is not read as resources. If both sides changed the file, the local file wins."""
    origin, updated, local = (side.get(path) for side in sides)
    if options.remember_deletions:
        return merge_whole_file(sides, path, "local", "D16")
    # Keep the local file, because kpt does not merge paths that contain ".git".
    if ".git" in path:
        return create_single_file_result(path, local)
    if local is not None and local != origin:
        return create_single_file_result(path, local)
    return create_single_file_result(path, updated)


def merge_whole_file(sides: MergeSides, path: str, winner: ChosenSide, rule: str) -> UpdateResult:
    """Merge a file as a whole. If only one side changed the file, return the file of this side.

    If both sides changed the file differently, return a conflict and the file of this side:

    - If one side deleted the file, use the local side: the file stays deleted, or keeps its local changes.
    - Otherwise, use the side `winner`.
    """
    origin, updated, local = (side.get(path) for side in sides)
    if (resolved := resolve_one_sided(origin, updated, local)) is not None:
        return create_single_file_result(path, resolved[0])
    if local is None or updated is None:
        winner, rule = "local", DELETED_LOCALLY if local is None else DELETED_UPSTREAM
    conflict = Conflict(
        "file",
        "",
        format_conflict_file(origin),
        format_conflict_file(local),
        format_conflict_file(updated),
        winner,
        rule,
        file=path,
    )
    return create_single_file_result(path, updated if winner == "upstream" else local).with_details([conflict])


def resolve_one_sided(origin: File | None, updated: File | None, local: File | None) -> tuple[File | None] | None:
    """Return the merged file, or None if both sides changed the file differently.

    A merged file is in a tuple with one element. `(None,)` means that the file is deleted.
    """
    if origin == updated or local == updated:
        return (local,)
    if origin == local:
        return (updated,)
    if local and updated and origin and local.data == updated.data:
        return (File(local.data, merge_executable_bit(origin, updated, local)),)
    if local and updated and origin and origin.data in (local.data, updated.data):
        changed_file = updated if origin.data == local.data else local
        return (File(changed_file.data, merge_executable_bit(origin, updated, local)),)
    return None


def merge_executable_bit(origin: File | None, updated: File | None, local: File | None) -> bool:
    """Return whether the merged file is executable. A changed executable bit is preferred over an unchanged one."""
    if local is None or updated is None:
        return bool((local or updated or File(b"")).executable)
    base = origin.executable if origin else updated.executable
    return updated.executable if local.executable == base else local.executable


def create_single_file_result(path: str, file: File | None) -> UpdateResult:
    """Return a result that contains only this file. If `file` is None, the result has no files."""
    return UpdateResult(FileTree({path: file} if file else {}))


def format_conflict_file(file: File | None) -> Any:
    """Return the value that represents a file in a conflict: its blob id, or ABSENT if the file does not exist."""
    return ABSENT if file is None else file.id
