"""The list of targets, and one target with its packages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from starlette.datastructures import QueryParams

from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.model import PackageRow, TargetEntry, sort_publications
from reconciler.planning.lifecycle.open_drafts import PACKAGE_STATES
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
from reconciler.server.console.pages.comparison import build_comparison_page
from reconciler.server.console.pages.missing import build_missing_page

MATRIX_ROWS, MATRIX_COLUMNS = 50, 20
MAX_LABEL_COLUMNS = 6
_MAX_LABEL_CHOICES = 50
_MAX_PUBLICATIONS = 10
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
            "label_choices": index.label_names[:_MAX_LABEL_CHOICES],
        },
        is_from_index=True,
    )


def list_columns(targets: Iterable[TargetEntry]) -> Sequence[str]:
    """Return the columns of the matrix, sorted. Package names that differ only in the target share a column."""
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


def build_target_page(page: PageRequest) -> PageContent:
    """Build the page of one target."""
    name = page.request.path_params["target"]
    target = page.index.by_target.get(name)
    if target is None:
        return build_missing_page("target", name)
    query = page.request.query_params
    if query.get("compare"):
        return build_comparison_page(page, target)
    state = read_choice(query, "state", PACKAGE_STATES)
    packages = [row for row in target.packages if not state or row.state == state]
    findings = [
        finding
        for finding in page.index.findings
        if finding.location.package.partition("/")[0] == name or finding.location.object.endswith(f"/{name}")
    ]
    return PageContent(
        "target.html",
        {
            "target": target,
            "listing": list_page(packages, query),
            "findings": findings,
            "changes": [page.index.by_change[draft.change_key] for draft in target.drafts],
            "publications": sort_publications(target.packages)[:_MAX_PUBLICATIONS],
        },
        is_from_index=True,
    )
