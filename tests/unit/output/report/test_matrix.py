"""The matrix: which lines it has, what folds, and which way round it stands."""

from __future__ import annotations

import pytest

from reconciler.output.report.model import ClusterRow, MatrixEntry, ReportTarget
from reconciler.output.report.page import Matrix, build_matrix
from reconciler.planning.lifecycle.open_drafts import PackageState


def row(cluster: str, states: dict[str, PackageState], **fields: object) -> ClusterRow:
    entries = {name: MatrixEntry(ReportTarget(cluster, name), state, 1) for name, state in states.items()}
    return ClusterRow(cluster, {"region": "north"}, entries, **fields)  # type: ignore[arg-type]


def matrix(*rows: ClusterRow) -> Matrix:
    return build_matrix(rows, tuple(sorted({name for one in rows for name in one.entries})))


def test_lines_are_clusters_and_those_that_are_well_stand_apart() -> None:
    found = matrix(
        row("a", {"x": "published"}), row("b", {"x": "draft", "y": "published"}), row("c", {}, read_error="gone")
    )

    assert (found.axis, found.columns) == ("cluster", ("x", "y"))
    assert [one.names for one in found.pending_lines] == [("b",), ("c",)]
    assert [one.names for one in found.completed_lines] == [("a",)]
    assert found.pending_lines[0].states == "draft published"
    assert found.completed_lines[0].entries[1] is None


def test_a_line_is_found_by_name_and_label() -> None:
    assert matrix(row("Berlin", {"x": "draft"})).pending_lines[0].search_text == "berlin region=north"


def test_more_packages_than_clusters_stand_in_lines() -> None:
    states: dict[str, PackageState] = {f"p{number:02}": "published" for number in range(20)}
    found = matrix(row("a", {**states, "p01": "draft"}), row("b", states))

    assert (found.axis, found.columns, len(found.completed_lines)) == ("package", ("a", "b"), 19)
    assert [one.names for one in found.pending_lines] == [("p01",)]


@pytest.mark.parametrize(
    ("clusters", "lines"),
    [pytest.param(10, 10, id="all-of-a-small-fleet"), pytest.param(2_001, 2, id="of-a-large-one")],
)
@pytest.mark.parametrize("state", ["published", "draft"])
def test_equal_lines_of_a_large_fleet_fold(clusters: int, lines: int, state: PackageState) -> None:
    states: dict[str, PackageState] = {f"p{number}": state for number in range(10)}
    rows = [row(f"c{number:04}", states) for number in range(clusters - 1)]
    found = matrix(*rows, row("odd", {"p1": state}), row("gone", {}, read_error="unreachable"))
    folded = found.completed_lines if state == "published" else found.pending_lines

    assert len([one for one in folded if not one.read_error]) == lines
    assert sum(len(one.names) for one in (*found.pending_lines, *found.completed_lines)) == clusters + 1
    assert [one.names for one in found.pending_lines if one.read_error] == [("gone",)]
