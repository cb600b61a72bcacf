"""The list of targets, and the matrix of targets and packages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from starlette.datastructures import QueryParams

from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.model import PackageRow, TargetEntry
from reconciler.planning.lifecycle.open_drafts import PACKAGE_STATES
from reconciler.review.stages import find_stage
from reconciler.server.console.filters import TARGET_FILTERS, filter_targets
from reconciler.server.console.listing import (
    check_selector,
    count_filters,
    list_page,
    read_choice,
    read_names,
    read_text,
)
from reconciler.server.console.page import PageContent, PageRequest

MATRIX_ROWS, MATRIX_COLUMNS = 50, 20
MAX_LABEL_COLUMNS = 6
_MAX_LABEL_CHOICES = 50
_VIEWS = ("list", "matrix")


@dataclass(frozen=True)
class MatrixRow:
    """A row of the matrix of targets and packages. Each cell contains the packages of a column, or is empty."""

    target: TargetEntry
    cells: tuple[tuple[PackageRow, ...], ...]


def build_list_page(page: PageRequest) -> PageContent:
    """Build the list of targets, or the matrix of targets and packages."""
    query, index = page.request.query_params, page.index
    selector = read_text(query, "labels")
    error = check_selector(selector)
    found = () if error else tuple(filter_targets(index, query, selector))
    shown_labels = read_names(query, "show")
    view = read_choice(query, "view", _VIEWS, "list")
    listing = list_page(found, query, MATRIX_ROWS) if view == "matrix" else list_page(found, query)
    columns = list_columns(found) if view == "matrix" else ()
    columns_page = list_page(columns, QueryParams({"page": query.get("columns", "1")}), MATRIX_COLUMNS)
    return PageContent(
        "targets.html",
        {
            "listing": listing,
            "view": view,
            "states": PACKAGE_STATES,
            "selector_error": error,
            "columns": columns_page,
            "matrix": build_matrix(listing.items, columns_page.items) if view == "matrix" else (),
            "filter_count": count_filters(query, TARGET_FILTERS),
            "shown_labels": [name for name in index.label_names if name in shown_labels][:MAX_LABEL_COLUMNS],
            "stages": {target.name: find_stage(target, page.context.stages) for target in listing.items},
            "label_choices": index.label_names[:_MAX_LABEL_CHOICES],
        },
        is_from_index=True,
    )


def list_columns(targets: Iterable[TargetEntry]) -> Sequence[str]:
    """Return the sorted columns of the matrix. Packages whose names differ only in the target name share a column."""
    return sorted({row.column for target in targets for row in target.packages})


def build_matrix(targets: Iterable[TargetEntry], columns: Sequence[str]) -> tuple[MatrixRow, ...]:
    """Return one row for each target."""
    rows = []
    for target in targets:
        by_column: dict[str, list[PackageRow]] = {}
        for row in target.packages:
            by_column.setdefault(row.column, []).append(row)
        rows.append(MatrixRow(target, tuple(tuple(by_column.get(column, ())) for column in columns)))
    return tuple(rows)
