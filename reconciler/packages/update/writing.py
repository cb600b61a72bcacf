"""Writing: the documents of a merge back into files, of which only what changed is touched (kpt.md 3.2, D18)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.krm.conflicts import Chosen, Conflict
from reconciler.krm.yaml import Document, YamlFile
from reconciler.packages.parsing import parse_cached
from reconciler.packages.update.matching import Group
from reconciler.packages.update.opaque import DELETED_UPSTREAM, merged_mode, shown
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.order import in_index_order, in_order
from reconciler.packages.update.sides import Sides
from reconciler.snapshot.files import File


@dataclass(frozen=True)
class Placed:
    """A resource after the merge, and the file that it belongs into."""

    group: Group
    path: str
    document: Document


def write_file(sides: Sides, path: str, resources: Sequence[Placed], options: MergeOptions) -> File | None:
    """Return a file that holds its resources, written into the local file, or into upstream's where there is none.

    None: nothing remains of it.
    """
    here = {id(each.group): each for each in resources if each.path == path}
    if not here:
        return None
    groups = [each.group for each in here.values()]
    ordered = in_order(groups, path) if options.profile == "safe" else in_index_order(groups)
    mode = merged_mode(*(side.get(path) for side in sides))
    base = parse_cached((sides.local.get(path) or sides.updated[path]).data)
    assert isinstance(base, YamlFile)
    placed = (here[id(group)] for group in ordered)
    documents = [(_slot(each, path, sides), each.document) for each in placed]
    file = base if _is_untouched(base, documents) else base.arranged(documents)
    return File((_with_new_comments(file, sides, path) if options.rules.keeps_lines else file).to_bytes(), mode)


@dataclass(frozen=True)
class LeftOver:
    """What stays of a file that has no resources any more, None for nothing, and the conflict about it."""

    file: File | None
    conflict: Conflict


def left_over(sides: Sides, path: str, resources: Sequence[Placed], options: MergeOptions) -> LeftOver | None:
    """Return what stays of a file whose resources are gone, because it was changed locally beside its resources.

    That is its mode, its byte order mark, or a comment between documents. The whole file stays, unless its resources
    moved to other files: then its comments do. None: nothing was changed, and the file goes with its resources.
    """
    origin, updated, local = (side.get(path) for side in sides)
    if options.profile == "compat" or origin is None or local is None or not _has_other_frame(origin, local):
        return None
    moved = any(each.group.local and each.group.local.path == path for each in resources)
    file = _comments_of(local) if moved else local
    chosen: Chosen = "upstream" if file is None else "local"
    conflict = Conflict("file", "", shown(origin), shown(local), shown(updated), chosen, DELETED_UPSTREAM, file=path)
    return LeftOver(file, conflict)


def _has_other_frame(origin: File, local: File) -> bool:
    before, now = (parse_cached(file.data) for file in (origin, local))
    if not isinstance(before, YamlFile) or not isinstance(now, YamlFile):
        return False
    return (origin.executable, before.bom) != (local.executable, now.bom) or bool(_new_comments(before, now))


def _new_comments(before: YamlFile, now: YamlFile) -> list[str]:
    """Return the comments between documents that only one of two files has."""
    known = before.comment_lines()
    return [line for line in now.comment_lines() if line not in known]


def _comments_of(local: File) -> File | None:
    parsed = parse_cached(local.data)
    lines = parsed.comment_lines() if isinstance(parsed, YamlFile) else ()
    return File("".join(f"{line}\n" for line in lines).encode(), local.executable) if lines else None


def _with_new_comments(file: YamlFile, sides: Sides, path: str) -> YamlFile:
    """Return the file with the comments that the other side put between documents; the local ones are in it."""
    if path not in sides.local or path not in sides.updated:
        return file
    origin = parse_cached(sides.origin[path].data if path in sides.origin else b"")
    updated = parse_cached(sides.updated[path].data)
    if not isinstance(origin, YamlFile) or not isinstance(updated, YamlFile):
        return file
    known = file.comment_lines()
    return file.with_comments_at_end([line for line in _new_comments(origin, updated) if line not in known])


def _slot(placed: Placed, path: str, sides: Sides) -> int | None:
    """Return the number that the resource has in the file that is written into."""
    entry = placed.group.local if path in sides.local else placed.group.updated
    return entry.index if entry and entry.path == path else None


def _is_untouched(base: YamlFile, documents: Sequence[tuple[int | None, Document]]) -> bool:
    return len(documents) == len(base.documents) and all(
        slot == index and document is base.documents[index] for index, (slot, document) in enumerate(documents)
    )
