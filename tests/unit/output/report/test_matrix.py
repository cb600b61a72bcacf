"""Tests of the matrix: its lines, folded lines, and its orientation."""

from __future__ import annotations

import pytest

from reconciler.output.report.matrix import Matrix, build_matrix
from reconciler.output.report.model import ClusterRow, MatrixEntry, ReportTarget
from reconciler.planning.lifecycle.open_drafts import PackageState


def build_row(cluster: str, states: dict[str, PackageState], **fields: object) -> ClusterRow:
    entries = {
        name: MatrixEntry(ReportTarget(cluster, name), state, name.replace(cluster, "*"), 1)
        for name, state in states.items()
    }
    return ClusterRow(cluster, {"region": "north"}, entries, **fields)  # type: ignore[arg-type]


def build_test_matrix(*rows: ClusterRow) -> Matrix:
    return build_matrix(
        rows, tuple(sorted({entry.column for cluster_row in rows for entry in cluster_row.entries.values()}))
    )


def test_lines_are_clusters_and_completed_lines_are_separate() -> None:
    actual_matrix = build_test_matrix(
        build_row("a", {"x": "published"}),
        build_row("b", {"x": "draft", "y": "published"}),
        build_row("c", {}, read_error="gone"),
    )

    assert (actual_matrix.axis, actual_matrix.columns) == ("cluster", ("x", "y"))
    assert [matrix_line.names for matrix_line in actual_matrix.pending_lines] == [("b",), ("c",)]
    assert [matrix_line.names for matrix_line in actual_matrix.completed_lines] == [("a",)]
    assert actual_matrix.pending_lines[0].states == "draft published"
    assert actual_matrix.completed_lines[0].cells[1] == ()


def test_search_text_of_a_line_contains_name_and_labels() -> None:
    assert build_test_matrix(build_row("Berlin", {"x": "draft"})).pending_lines[0].search_text == "berlin region=north"


def test_packages_that_differ_in_the_name_of_their_cluster_share_one_column() -> None:
    actual_matrix = build_test_matrix(
        build_row("eu", {"logs-eu": "draft", "logs": "published"}), build_row("us", {"logs-us": "draft"})
    )

    assert actual_matrix.columns == ("logs", "logs-*")
    assert [[len(cell) for cell in line.cells] for line in actual_matrix.pending_lines] == [[1, 1], [0, 1]]


def test_column_contains_all_its_packages_of_a_cluster() -> None:
    (line,) = build_test_matrix(build_row("eu", {"a-eu": "draft", "a-*": "published"})).pending_lines

    assert [[entry.state for entry in cell] for cell in line.cells] == [["draft", "published"]]


def test_packages_become_lines_when_there_are_more_packages_than_clusters() -> None:
    states: dict[str, PackageState] = {f"p{number:02}": "published" for number in range(20)}
    actual_matrix = build_test_matrix(build_row("a", {**states, "p01": "draft"}), build_row("b", states))

    assert (actual_matrix.axis, actual_matrix.columns, len(actual_matrix.completed_lines)) == (
        "package",
        ("a", "b"),
        19,
    )
    assert [matrix_line.names for matrix_line in actual_matrix.pending_lines] == [("p01",)]


@pytest.mark.parametrize(
    ("clusters", "lines"),
    [pytest.param(10, 10, id="all-of-a-small-fleet"), pytest.param(2_001, 2, id="of-a-large-one")],
)
@pytest.mark.parametrize("state", ["published", "draft"])
def test_equal_lines_of_a_large_fleet_are_folded(clusters: int, lines: int, state: PackageState) -> None:
    states: dict[str, PackageState] = {f"p{number}": state for number in range(10)}
    rows = [build_row(f"c{number:04}", states) for number in range(clusters - 1)]
    actual_matrix = build_test_matrix(
        *rows, build_row("odd", {"p1": state}), build_row("gone", {}, read_error="unreachable")
    )
    folded = actual_matrix.completed_lines if state == "published" else actual_matrix.pending_lines

    assert len([matrix_line for matrix_line in folded if not matrix_line.read_error]) == lines
    assert (
        sum(len(matrix_line.names) for matrix_line in (*actual_matrix.pending_lines, *actual_matrix.completed_lines))
        == clusters + 1
    )
    assert [matrix_line.names for matrix_line in actual_matrix.pending_lines if matrix_line.read_error] == [("gone",)]
