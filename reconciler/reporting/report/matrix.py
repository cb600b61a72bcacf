"""The matrix of a report: which lines it has, which of them fold away, and which way round it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reconciler.reporting.report.fleet import Entry, Row

# so many columns still fit a screen; what is wider stands the other way round, if that is narrower
_WIDE = 12
# a browser lays out so many cells in a moment; of more, lines that are equal become one
_CELLS = 20_000


@dataclass(frozen=True)
class Line:
    """One line: a name, or those of several that are equal, with an entry for each column, None where there is none.

    `find` is what a reader may look for, in lower case; `states` are those of its entries.
    """

    names: tuple[str, ...]
    entries: tuple[Entry | None, ...]
    find: str
    trouble: str = ""

    @property
    def states(self) -> str:
        """The states of its entries, with a space between them."""
        return " ".join(sorted({one.state for one in self.entries if one}))


@dataclass(frozen=True)
class Matrix:
    """Clusters and packages: `axis` is what lines are, `open` those that need somebody, `well` all others."""

    axis: str
    columns: tuple[str, ...]
    open: tuple[Line, ...]
    well: tuple[Line, ...]

    @property
    def number_well(self) -> int:
        """How many names the lines have that are well."""
        return sum(len(one.names) for one in self.well)


def matrix_of(rows: Sequence[Row], packages: tuple[str, ...]) -> Matrix:
    """Return the matrix, its lines by name."""
    if len(packages) > _WIDE and len(packages) > len(rows):
        columns = tuple(row.cluster for row in rows)
        lines = [Line((one,), tuple(row.entries.get(one) for row in rows), one.lower()) for one in packages]
        return _matrix("package", columns, [(line, all(map(_is_well, line.entries))) for line in lines])
    return _matrix("cluster", packages, [(_line(row, packages), row.is_well) for row in rows])


def _line(row: Row, packages: tuple[str, ...]) -> Line:
    labels = (f"{name}={value}" for name, value in sorted(row.labels.items()))
    find = " ".join((row.cluster, *labels)).lower()
    return Line((row.cluster,), tuple(map(row.entries.get, packages)), find, row.trouble)


def _matrix(axis: str, columns: tuple[str, ...], lines: Iterable[tuple[Line, bool]]) -> Matrix:
    listed = tuple(lines)
    parts = (tuple(line for line, is_well in listed if is_well == wanted) for wanted in (False, True))
    if len(listed) * len(columns) > _CELLS:
        parts = (tuple(_folded(part)) for part in parts)
    return Matrix(axis, columns, *parts)


def _is_well(entry: Entry | None) -> bool:
    return entry is None or entry.is_well


def _folded(lines: Iterable[Line]) -> Iterable[Line]:
    groups: dict[tuple[object, ...], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.trouble, *map(_looks, line.entries)), []).append(line)
    for group in groups.values():
        first, names = group[0], tuple(name for line in group for name in line.names)
        yield replace(first, names=names, find=" ".join(line.find for line in group))


def _looks(entry: Entry | None) -> object:
    return entry and (entry.state, entry.version, entry.change, entry.conflicts, entry.unmet, entry.notes)
