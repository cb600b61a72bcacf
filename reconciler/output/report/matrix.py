"""The matrix of clusters and packages on the page of the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.report.model import ClusterRow, MatrixEntry

# The maximum number of columns for packages, because more columns do not fit on a screen. A larger matrix shows the
# clusters as columns if it has fewer clusters than packages.
_MAX_PACKAGE_COLUMNS = 12
# The maximum number of cells. Equal lines of a larger matrix are merged, so that a browser renders the matrix without a
# visible delay.
_MAX_CELLS = 20_000


@dataclass(frozen=True)
class MatrixLine:
    """One line of the matrix, or several equal lines as one.

    Attributes:
        cells: The packages in each column. A column can have several packages of a cluster, or none.
        search_text: The names and labels in lower case, for the filter of the page.
        read_error: The error message if the cluster cannot be read. "" if the cluster was read.
    """

    names: tuple[str, ...]
    cells: tuple[tuple[MatrixEntry, ...], ...]
    search_text: str
    read_error: str = ""

    @property
    def states(self) -> str:
        """The states of all packages, sorted and separated by spaces."""
        return " ".join(sorted({entry.state for cell in self.cells for entry in cell}))


@dataclass(frozen=True)
class Matrix:
    """The matrix of clusters and packages.

    Attributes:
        axis: The kind of the lines: "cluster" or "package".
    """

    axis: str
    columns: tuple[str, ...]
    pending_lines: tuple[MatrixLine, ...]
    completed_lines: tuple[MatrixLine, ...]

    @property
    def completed_count(self) -> int:
        """The number of clusters or packages without pending work."""
        return sum(len(line.names) for line in self.completed_lines)


def build_matrix(rows: Sequence[ClusterRow], columns: tuple[str, ...]) -> Matrix:
    """Return the matrix of clusters and packages, in the order of the arguments.

    Each line is a cluster. If there are too many packages for columns, each line is a package instead.
    """
    lines = [_build_cluster_line(row, columns) for row in rows]
    if len(columns) > _MAX_PACKAGE_COLUMNS and len(columns) > len(rows):
        clusters = tuple(row.cluster for row in rows)
        cells = zip(*(line.cells for line in lines), strict=True) if lines else ()
        package_lines = [
            MatrixLine((package,), row, package.lower()) for package, row in zip(columns, cells, strict=True)
        ]
        return _build_matrix("package", clusters, [(line, _has_pending_work(line)) for line in package_lines])
    pending = [row.has_pending_work for row in rows]
    return _build_matrix("cluster", columns, [*zip(lines, pending, strict=True)])


def _has_pending_work(line: MatrixLine) -> bool:
    return any(entry.has_pending_work for cell in line.cells for entry in cell)


def _build_cluster_line(row: ClusterRow, columns: tuple[str, ...]) -> MatrixLine:
    labels = (f"{name}={value}" for name, value in sorted(row.labels.items()))
    search_text = " ".join((row.cluster, *labels)).lower()
    cells: dict[str, list[MatrixEntry]] = {}
    for entry in row.entries.values():
        cells.setdefault(entry.column, []).append(entry)
    return MatrixLine(
        (row.cluster,), tuple(tuple(cells.get(column, ())) for column in columns), search_text, row.read_error
    )


def _build_matrix(axis: str, columns: tuple[str, ...], lines: Sequence[tuple[MatrixLine, bool]]) -> Matrix:
    """Return a matrix that separates the lines with pending work from the other lines.

    Args:
        axis: The kind of the lines: "cluster" or "package".
        lines: Pairs of a line and a bool: whether the line has pending work.
    """
    pending = tuple(line for line, has_pending_work in lines if has_pending_work)
    completed = tuple(line for line, has_pending_work in lines if not has_pending_work)
    if len(lines) * len(columns) > _MAX_CELLS:
        pending, completed = tuple(_merge_equal_lines(pending)), tuple(_merge_equal_lines(completed))
    return Matrix(axis, columns, pending, completed)


def _merge_equal_lines(lines: Iterable[MatrixLine]) -> Iterable[MatrixLine]:
    groups: dict[tuple[object, ...], list[MatrixLine]] = {}
    for line in lines:
        fields = (_get_visible_fields(entry) for cell in line.cells for entry in cell)
        groups.setdefault((line.read_error, *map(len, line.cells), *fields), []).append(line)
    for group in groups.values():
        names = tuple(name for line in group for name in line.names)
        yield replace(group[0], names=names, search_text=" ".join(line.search_text for line in group))


def _get_visible_fields(entry: MatrixEntry) -> object:
    return (
        entry.state, entry.version, entry.change_key, entry.conflict_count, entry.refusal_count, entry.notes,
    )  # fmt: skip
