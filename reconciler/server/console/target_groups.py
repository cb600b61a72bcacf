"""Groups of targets with the same value of a label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.model import ChangeVariant, DraftMember, ReviewChange, TargetEntry

MemberRow = tuple[ChangeVariant, DraftMember]


@dataclass(frozen=True)
class MemberGroup:
    """The drafts of a change on targets with the same value of a label. `value` is "" for targets without the label."""

    value: str
    rows: tuple[MemberRow, ...]


def list_group_labels(targets: Iterable[TargetEntry]) -> Sequence[str]:
    """Return the labels that can divide the targets into groups. The label with the fewest values comes first."""
    values: dict[str, set[str]] = {}
    count = 0
    for target in targets:
        count += 1
        for name, value in target.labels.items():
            values.setdefault(name, set()).add(value)
    # A label with only one value, or with a different value for each target, does not form groups.
    groups = {name: len(found) for name, found in values.items() if 1 < len(found) < max(count, 3)}
    return sorted(groups, key=lambda name: (groups[name], name))


def list_member_rows(change: ReviewChange) -> tuple[MemberRow, ...]:
    """Return all drafts of a change with their variants."""
    return tuple((variant, member) for variant in change.variants for member in variant.members)


def group_members(change: ReviewChange, targets: Mapping[str, TargetEntry], label: str) -> tuple[MemberGroup, ...]:
    """Group the drafts of a change by the value that `label` has on their targets. Sort the groups by this value.

    If `label` is "", return one group.
    """
    groups: dict[str, list[MemberRow]] = {}
    for row in list_member_rows(change):
        value = targets[row[1].target].labels.get(label, "") if label else ""
        groups.setdefault(value, []).append(row)
    return tuple(MemberGroup(value, tuple(rows)) for value, rows in sorted(groups.items()))
