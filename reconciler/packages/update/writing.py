"""Writing: the documents of a merge back into files, of which only what changed is touched (kpt.md 3.2, D18)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.krm.yaml import Document, YamlFile
from reconciler.packages.parsing import parse_cached
from reconciler.packages.update.matching import Group
from reconciler.packages.update.opaque import merged_mode
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
    return File((base if _is_untouched(base, documents) else base.arranged(documents)).to_bytes(), mode)


def _slot(placed: Placed, path: str, sides: Sides) -> int | None:
    """Return the number that the resource has in the file that is written into."""
    entry = placed.group.local if path in sides.local else placed.group.updated
    return entry.index if entry and entry.path == path else None


def _is_untouched(base: YamlFile, documents: Sequence[tuple[int | None, Document]]) -> bool:
    return len(documents) == len(base.documents) and all(
        slot == index and document is base.documents[index] for index, (slot, document) in enumerate(documents)
    )
