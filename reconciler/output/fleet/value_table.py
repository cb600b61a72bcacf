"""Tables of values for changes with many variants, in which only the values of the same fields differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.change_key import ANY_TARGET
from reconciler.output.fleet.target_names import TargetNames
from reconciler.output.text import to_one_line

if TYPE_CHECKING:
    from reconciler.output.fleet.model import ChangeVariant

MIN_VARIANTS = 11
"""The minimum number of variants in a table. Fewer variants with equal changed fields are listed one by one."""
_Row = tuple[str, str]
"""A resource and the path of its field. The path is "" for a resource or file that is added or removed as a whole."""


@dataclass(frozen=True)
class ValueCount:
    """The values of a field before and after the change, such as `2 → 3`, and the targets with this change."""

    text: str
    targets: tuple[str, ...]


@dataclass(frozen=True)
class ValueRow:
    """The values of one field on all targets of a table.

    Attributes:
        resource: The resource as `Kind namespace/name`, or the path of a file. Names of targets are replaced by `*`.
        path: The path of the field. "" if the resource is added or removed.
        values: The values, those with the most targets first.
    """

    resource: str
    path: str
    values: tuple[ValueCount, ...]

    def format_line(self, limit: int = 3) -> str:
        """Return the row on one line, such as `Deployment web: replicas 2 → 3 on 30, 4 → 6 on 12`."""
        values = [f"{value.text} on {len(value.targets)}" for value in self.values[:limit]]
        rest = len(self.values) - limit
        values += [f"and {rest} more"] if rest > 0 else []
        path = f"{self.path.removeprefix('spec.')} " if self.path else ""
        return f"{self.resource}: {path}{', '.join(values)}"


@dataclass(frozen=True)
class VariantTable:
    """Variants with equal changed fields, and the values of these fields."""

    variants: tuple[ChangeVariant, ...]
    rows: tuple[ValueRow, ...]

    @property
    def target_count(self) -> int:
        """The number of drafts in all variants of the table."""
        return sum(len(variant.members) for variant in self.variants)


@dataclass(frozen=True)
class VariantGroups:
    """The variants of a change.

    Attributes:
        tables: The tables, the largest first.
        others: The variants that are in no table.
    """

    tables: tuple[VariantTable, ...] = ()
    others: tuple[ChangeVariant, ...] = ()


def group_variants(variants: Sequence[ChangeVariant]) -> VariantGroups:
    """Combine variants with equal changed fields and equal risk in tables. Return the tables and the other variants.

    A table contains at least `MIN_VARIANTS` variants. Variants with conflicts or with other blocking reasons are never
    in a table, because a reviewer must read each of them.
    """
    if len(variants) < MIN_VARIANTS:
        return VariantGroups(others=tuple(variants))
    groups: dict[object, list[tuple[ChangeVariant, Mapping[_Row, str]]]] = {}
    for variant in variants:
        values = dict(_list_values(variant))
        content = variant.content
        is_single = content.conflicts or any(member.refusals for member in variant.members)
        key = variant.digest if is_single else (content.is_removal, content.risk.risk_class, frozenset(values))
        groups.setdefault(key, []).append((variant, values))
    tables = [_build_table(group) for group in groups.values() if len(group) >= MIN_VARIANTS]
    listed = {variant.digest for table in tables for variant in table.variants}
    others = tuple(variant for variant in variants if variant.digest not in listed)
    return VariantGroups(tuple(sorted(tables, key=lambda table: -table.target_count)), others)


def _list_values(variant: ChangeVariant) -> Iterator[tuple[_Row, str]]:
    """Yield the changed fields of a variant with their values. The name of the target is replaced."""
    names = TargetNames(variant.members[0].target)
    effects = variant.content.changes.select_effects()
    for change in effects.objects:
        resource = names.replace_cluster(change.name, ANY_TARGET)
        if not change.fields:
            yield (resource, ""), change.change_type
        for field in change.fields:
            path = names.replace_cluster(to_one_line(field.path_text), ANY_TARGET)
            yield (resource, path), names.replace_cluster(field.format_values(), ANY_TARGET)
    for kptfile in effects.kptfiles:
        for field in kptfile.fields:
            yield (to_one_line(kptfile.path), to_one_line(field.path_text)), field.format_values()
    for file in effects.files:
        yield (to_one_line(file.path), ""), file.change_type


def _build_table(group: Sequence[tuple[ChangeVariant, Mapping[_Row, str]]]) -> VariantTable:
    rows = []
    # List the fields in the order of the first variant, because this variant has the most targets.
    for row in group[0][1]:
        targets: dict[str, list[str]] = {}
        for variant, values in group:
            targets.setdefault(values[row], []).extend(member.target for member in variant.members)
        ordered = sorted(targets.items(), key=lambda item: -len(item[1]))
        rows.append(ValueRow(*row, tuple(ValueCount(text, tuple(names)) for text, names in ordered)))
    return VariantTable(tuple(variant for variant, _ in group), tuple(rows))
