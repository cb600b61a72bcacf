"""Rules of a three-way merge, and the conflicts that it reports.

Each switch of `MergeRules` is a deviation from kpt. The numbers D1, D2, … are the names of these deviations in the
settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias


class _Absent(Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT
"""The value of a side that does not contain the field. None is an explicit null."""

ConflictKind = Literal["field", "element", "resource", "file", "package"]
Winner: TypeAlias = Literal["upstream", "local"]
ChosenSide = Literal["upstream", "local", "rule"]


@dataclass(frozen=True)
class Conflict:
    """A field or element that the local side and the upstream side changed differently.

    Attributes:
        pointer: JSON pointer into the resource; "" for the whole resource.
        base: Value before both changes. Like `local` and `upstream`, it is plain data or `ABSENT`.
        chosen: The side whose value is used. "rule" if one of our rules replaced a local change; `upstream` is then the
            value that the rule sets.
        rule: The name of the rule that decided, for example "D2".
        file: "" if it does not apply, as `resource`.
    """

    kind: ConflictKind
    pointer: str
    base: Any
    local: Any
    upstream: Any
    chosen: ChosenSide
    rule: str
    file: str = ""
    resource: str = ""


class MergeError(Exception):
    """A merge that kpt rejects too: types of values or merge keys conflict. `SAFE` rules never raise it."""


@dataclass(frozen=True)
class MergeRules:
    """Rules for the cases where kpt loses or damages content. Each switch is True for the safe behavior.

    `winner` decides fields that both sides changed differently (D2), conflicts of types (D7), and lists whose keys do
    not identify their elements (D6). List elements do not depend on `winner`, because a part of an element is useless:
    a locally changed element is kept (D3, D5), and a locally removed element stays removed (D4). Both are reported as
    conflicts.
    """

    removes_emptied_collections: bool = True
    """D1: a mapping or list that one side removed does not remain, or return, as an empty value."""
    keeps_edited_elements: bool = True
    """D3: an element that upstream removed and the local side changed is kept completely; kpt keeps only the local
    fields.
    """
    keeps_removals: bool = True
    """D4: an element that the local side removed and upstream changed stays removed; kpt restores the changed fields.
    """
    keeps_local_elements: bool = True
    """D5: if upstream removes a whole list, elements that only the local side contains are kept."""
    strict_keys: bool = True
    """D6: key fields get the API server's defaults, and lists with missing or duplicate keys are atomic."""
    reports_type_conflicts: bool = True
    """D7: different types on the two sides, such as a mapping and a list, are a conflict; kpt fails (`MergeError`)."""
    compares_types: bool = True
    """D8: 1 and "1" are different values."""
    keeps_nulls: bool = True
    """D9: an explicit null is a value; kpt removes its key."""
    resolves_aliases: bool = True
    """D12: an alias is replaced by the value of its anchor; kpt drops the field."""
    merges_comments: bool = True
    """D13: comments are merged three ways; kpt moves a comment with its value, or drops it."""
    keeps_upstream_order: bool = True
    """D14: new keys are inserted at their position in upstream; kpt appends them in alphabetical order."""
    infers_names: bool = True
    """D22: in objects without a schema, a list is merged by `name` if every element on every side has a unique name."""
    requires_names: bool = False
    """Not a deviation: kpt merges Kptfile lists without a schema by `name`, and otherwise fails with `MergeError`."""
    merges_scalar_lists: bool = False
    """Not a deviation: insertions and removals in a list of scalars are both applied, even if they are adjacent.

    This is used to remove our own changes from a file. Adjacent local changes must not restore removed items.
    """
    merges_unattached_lines: bool = False
    """Not a deviation: comments without a value, blank lines and the order of keys are merged as lines of text.

    This is used if both sides contain local changes. A format change by upstream is then not preserved.
    """
    winner: Winner = "upstream"

    @cached_property
    def can_copy_a_side(self) -> bool:
        """Return whether an unchanged side can be replaced by the other side without a merge.

        kpt always merges, which can change the value.
        """
        return all(
            (
                self.removes_emptied_collections,
                self.strict_keys,
                self.keeps_nulls,
                self.keeps_upstream_order,
                self.reports_type_conflicts,
                self.keeps_edited_elements,
                self.keeps_removals,
                self.keeps_local_elements,
                self.compares_types,
                self.resolves_aliases,
            )
        )


SAFE = MergeRules()
COMPAT = MergeRules(
    removes_emptied_collections=False,
    keeps_edited_elements=False,
    keeps_removals=False,
    keeps_local_elements=False,
    strict_keys=False,
    reports_type_conflicts=False,
    compares_types=False,
    keeps_nulls=False,
    resolves_aliases=False,
    merges_comments=False,
    keeps_upstream_order=False,
    infers_names=False,
)
