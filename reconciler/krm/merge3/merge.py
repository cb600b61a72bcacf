"""The merge of one document: bytes first, then data, then the text that says it (kpt.md 7, D13, D15)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconciler.krm.conflicts import ABSENT, Conflict
from reconciler.krm.merge3.commented import with_commented_shapes
from reconciler.krm.merge3.data import merge_data
from reconciler.krm.merge3.rules import SAFE, MergeRules
from reconciler.krm.merge3.text import write_merged
from reconciler.krm.shapes import UNKNOWN, Shape
from reconciler.krm.yaml import Document
from reconciler.krm.yaml.same import same


@dataclass(frozen=True)
class Merged:
    """What came of a merge: a document, None when nothing remains, and the conflicts, `file` and `resource` empty."""

    document: Document | None
    conflicts: tuple[Conflict, ...] = ()


def merge3(
    origin: Document | None,
    updated: Document | None,
    local: Document | None,
    shape: Shape = UNKNOWN,
    rules: MergeRules = SAFE,
) -> Merged:
    """Return the local document with what upstream changed from `origin` to `updated` (kpt.md 7).

    The very document of a side is returned when the other side changed nothing. Whole documents are not torn: one that
    upstream removed is gone if nobody edited it here, else it stays (kpt.md 6.2), with a conflict of kind "resource".
    Raises MergeError under rules like kpt's, where node kinds or merge keys clash.
    """
    if local is None or updated is None:
        return _without_a_side(origin, updated, local)
    if rules.takes_sides:
        if local.text == updated.text or (origin is not None and origin.text == updated.text):
            return Merged(local)
        if origin is not None and origin.text == local.text:
            return Merged(updated)
    shape = with_commented_shapes(shape, (local, origin, updated))
    ours, base, theirs = (_data(side, rules) for side in (local, origin, updated))
    data, conflicts = merge_data(base, theirs, ours, shape, rules)
    document = None if data is ABSENT else write_merged(local, origin, updated, data, shape, rules)
    return Merged(document, conflicts)


def _without_a_side(origin: Document | None, updated: Document | None, local: Document | None) -> Merged:
    if local is None or updated is not None:
        return Merged(updated)
    if origin is None:
        return Merged(local)
    if same(origin.data, local.data):
        return Merged(None)
    return Merged(local, (Conflict("resource", "", origin.data, local.data, ABSENT, "local", "D3"),))


def _data(document: Document | None, rules: MergeRules) -> Any:
    if document is None:
        return ABSENT
    return document.data if rules.reads_aliases else document.data_without_aliases
