"""Rules of a three-way merge, and the conflicts that the merge reports.

Most switches of `MergeRules` are deviations from kpt. D1, D2, … are the names of these deviations in the setting
`merge.deviations`.
"""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

from reconciler.lazy_dataclasses import dataclass


class _Absent(Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT
"""Placeholder for a field that a version of the document does not contain. The YAML value null is None."""

ConflictKind = Literal["field", "element", "resource", "file", "package"]
Winner: TypeAlias = Literal["upstream", "local"]
ChosenSide = Literal["upstream", "local", "rule"]


@dataclass(frozen=True)
class Conflict:
    """A field, list element or other part that the local side and upstream changed differently.

    Attributes:
        pointer: JSON pointer to the field in the resource. "" is the whole resource.
        base: Value before both changes. `base`, `local` and `upstream` are plain data or `ABSENT`.
        chosen: The side whose value is used, or "rule" if a step of the render replaced the local change. In the case
            of "rule", `upstream` contains the value of this step.
        rule: The name of the rule that selected the value, for example "D2".
        file: Path of the file. `file` and `resource` are "" if they do not apply.
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
    """A merge that kpt rejects, because the sides have different types of values or different merge keys.

    `SAFE` rules never raise this exception.
    """


@dataclass(frozen=True)
class MergeRules:
    """Switches for cases where kpt removes or damages content. The default of each switch is the safe behavior.

    `winner` selects the side that is used for fields that both sides changed differently (D2), for values whose types
    conflict (D7), and for lists whose merge keys are missing or not unique (D6).

    `winner` does not decide whether a list element is removed. An element that upstream removed is kept if it has local
    changes (D3, D5). An element that the local side removed stays removed (D4). Each case is reported as a conflict.
    """

    removes_emptied_collections: bool = True
    """D1: a mapping or list that one side removed, and that is empty after the merge, is removed. kpt can keep the
    empty value.
    """
    keeps_edited_elements: bool = True
    """D3: an element that upstream removed and the local side changed is kept. kpt keeps only its changed fields."""
    keeps_removals: bool = True
    """D4: an element that the local side removed and upstream changed is removed. kpt restores the changed fields."""
    keeps_local_elements: bool = True
    """D5: if upstream removes a whole list, the elements that the local side added are kept. kpt removes these
    elements.
    """
    strict_keys: bool = True
    """D6: a missing key field has the default value of the API server, e.g. `protocol: TCP`.

    A list with missing or duplicate keys is replaced as a whole.
    """
    reports_type_conflicts: bool = True
    """D7: different types on the two sides, such as a mapping and a list, are a conflict. kpt reports an error."""
    compares_types: bool = True
    """D8: values of different types, such as 1 and "1", are different. For kpt, they are equal."""
    keeps_nulls: bool = True
    """D9: a field with the value null is kept. kpt removes the field."""
    resolves_aliases: bool = True
    """D12: an alias is merged as the value of its anchor. kpt removes a field whose value is an alias."""
    merges_comments: bool = True
    """D13: comments are merged three ways. kpt uses the comment of the side whose value is used, or removes the
    comment.
    """
    keeps_upstream_order: bool = True
    """D14: new keys are inserted at the same position as in upstream. kpt appends new keys in alphabetical order."""
    infers_names: bool = True
    """D22: a list without a schema is merged by `name` if each element has a unique name. kpt replaces the list."""
    requires_names: bool = False
    """Whether lists without a schema are merged by `name`, as kpt does in a Kptfile.

    If all elements have a name in the list of one side, but not in the list of another side, the merge raises
    `MergeError`. This switch is not a deviation from kpt.
    """
    merges_scalar_lists: bool = False
    """Whether a list of scalars is merged item by item and not replaced as a whole. This switch is not a deviation from
    kpt.

    Use this switch to undo the changes of a render in a file with local changes. Without this switch, a list with a
    local change would keep the items that the render added.
    """
    merges_unattached_lines: bool = False
    """Whether comments that belong to no value, blank lines and the order of keys are merged line by line.

    Use this switch if both sides contain local changes. The formatting of `updated` is then not preserved. This switch
    is not a deviation from kpt.
    """
    winner: Winner = "upstream"

    @cached_property
    def can_copy_a_side(self) -> bool:
        """Whether a value that only one side changed is copied from this side, without a merge of its fields.

        With the rules of kpt, the fields are merged even then. The result can differ from the changed side, for example
        because kpt removes fields with the value null.
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
