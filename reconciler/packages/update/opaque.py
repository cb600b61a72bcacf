"""Files that are taken whole: opaque ones, and those that cannot be merged (kpt.md 5.5, 6.5)."""

from __future__ import annotations

from typing import Any

from reconciler.krm.conflicts import ABSENT, Chosen, Conflict
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.result import Updated
from reconciler.packages.update.sides import Sides
from reconciler.snapshot.files import File, FileTree

DELETED_HERE = "deleted-locally"
DELETED_UPSTREAM = "deleted-upstream"


def merge_opaque_file(sides: Sides, path: str, options: MergeOptions) -> Updated:
    """Return an opaque file after the update: the side that changed it, the local one when both did (D16)."""
    origin, updated, local = (side.get(path) for side in sides)
    if options.remember_deletions:
        return merge_whole_file(sides, path, "local", "D16")
    # kpt.md 5.5 as it is upstream, where names with .git in them are not even seen
    if ".git" in path:
        return only(path, local)
    if local is not None and local != origin:
        return only(path, local)
    return only(path, updated)


def merge_whole_file(sides: Sides, path: str, winner: Chosen, rule: str) -> Updated:
    """Return a file as the side has it that changed it; if both did, the winner's, and a conflict.

    A deletion never wins against a change, except where it is local: what is gone locally stays away.
    """
    origin, updated, local = (side.get(path) for side in sides)
    if (settled := settle(origin, updated, local)) is not None:
        return only(path, settled[0])
    if local is None or updated is None:
        winner, rule = "local", DELETED_HERE if local is None else DELETED_UPSTREAM
    conflict = Conflict("file", "", shown(origin), shown(local), shown(updated), winner, rule, file=path)
    return only(path, updated if winner == "upstream" else local).noting([conflict])


def settle(origin: File | None, updated: File | None, local: File | None) -> tuple[File | None] | None:
    """Return what a file comes to when at most one side changed it, or both did alike; None when it must be merged."""
    if origin == updated or local == updated:
        return (local,)
    if origin == local:
        return (updated,)
    if local and updated and origin and local.data == updated.data:
        return (File(local.data, merged_mode(origin, updated, local)),)
    if local and updated and origin and origin.data in (local.data, updated.data):
        changed = updated if origin.data == local.data else local
        return (File(changed.data, merged_mode(origin, updated, local)),)
    return None


def merged_mode(origin: File | None, updated: File | None, local: File | None) -> bool:
    """Return whether the merged file is executable: as the side says that changed it."""
    if local is None or updated is None:
        return bool((local or updated or File(b"")).executable)
    base = origin.executable if origin else updated.executable
    return updated.executable if local.executable == base else local.executable


def only(path: str, file: File | None) -> Updated:
    """Return an update of one file."""
    return Updated(FileTree({path: file} if file else {}))


def shown(file: File | None) -> Any:
    """Return what stands for a file's content in a conflict: its blob id, or ABSENT."""
    return ABSENT if file is None else file.id
