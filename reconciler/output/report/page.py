"""The report as one HTML page, and the matrix of clusters and packages on the page.

The page loads no other file, is readable without its script, and escapes all user input.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import groupby
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from reconciler.krm.times import format_rfc3339
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.report.model import (
    ClusterRow,
    FleetReport,
    MatrixEntry,
    PendingItem,
    PendingKind,
    ReportedChange,
    ReportedExplanation,
    ReportedValue,
)
from reconciler.output.status.result import format_problem_counts, list_problem_lines
from reconciler.output.text import format_count, shorten, to_one_line
from reconciler.planning.lifecycle.open_drafts import PackageState

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
        entries: One entry per column. None if the cluster does not have the package.
        search_text: The names and labels in lower case, for the filter of the page.
        read_error: The error message if the cluster cannot be read. "" if the cluster was read.
    """

    names: tuple[str, ...]
    entries: tuple[MatrixEntry | None, ...]
    search_text: str
    read_error: str = ""

    @property
    def states(self) -> str:
        """The states of all entries, sorted and separated by spaces."""
        return " ".join(sorted({entry.state for entry in self.entries if entry}))


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


def build_matrix(rows: Sequence[ClusterRow], packages: tuple[str, ...]) -> Matrix:
    """Return the matrix of clusters and packages. The lines have the order of the arguments."""
    if len(packages) > _MAX_PACKAGE_COLUMNS and len(packages) > len(rows):
        clusters = tuple(row.cluster for row in rows)
        lines = [_build_package_line(package, rows) for package in packages]
        return _build_matrix("package", clusters, [(line, any(map(_has_pending_work, line.entries))) for line in lines])
    return _build_matrix(
        "cluster", packages, [(_build_cluster_line(row, packages), row.has_pending_work) for row in rows]
    )


def _build_package_line(package: str, rows: Iterable[ClusterRow]) -> MatrixLine:
    return MatrixLine((package,), tuple(row.entries.get(package) for row in rows), package.lower())


def _build_cluster_line(row: ClusterRow, packages: tuple[str, ...]) -> MatrixLine:
    labels = (f"{name}={value}" for name, value in sorted(row.labels.items()))
    search_text = " ".join((row.cluster, *labels)).lower()
    return MatrixLine((row.cluster,), tuple(map(row.entries.get, packages)), search_text, row.read_error)


def _build_matrix(axis: str, columns: tuple[str, ...], lines: Sequence[tuple[MatrixLine, bool]]) -> Matrix:
    """Return the matrix.

    Args:
        axis: The kind of the lines: "cluster" or "package".
        lines: Each line, with True if the line has pending work.
    """
    pending = tuple(line for line, has_pending_work in lines if has_pending_work)
    completed = tuple(line for line, has_pending_work in lines if not has_pending_work)
    if len(lines) * len(columns) > _MAX_CELLS:
        pending, completed = tuple(_merge_equal_lines(pending)), tuple(_merge_equal_lines(completed))
    return Matrix(axis, columns, pending, completed)


def _has_pending_work(entry: MatrixEntry | None) -> bool:
    return entry is not None and entry.has_pending_work


def _merge_equal_lines(lines: Iterable[MatrixLine]) -> Iterable[MatrixLine]:
    groups: dict[tuple[object, ...], list[MatrixLine]] = {}
    for line in lines:
        groups.setdefault((line.read_error, *map(_get_visible_fields, line.entries)), []).append(line)
    for group in groups.values():
        names = tuple(name for line in group for name in line.names)
        yield replace(group[0], names=names, search_text=" ".join(line.search_text for line in group))


def _get_visible_fields(entry: MatrixEntry | None) -> object:
    return entry and (
        entry.state, entry.version, entry.change_key, entry.conflict_count, entry.refusal_count, entry.notes,
    )  # fmt: skip


_DATE_CHARACTERS = len("2026-01-02")
_SYMBOLS: Mapping[PackageState, str] = {
    "blocked": "✕", "held": "‖", "removal": "−", "proposed": "◆", "edited": "✎", "draft": "◇", "declined": "⊘",
    "orphaned": "○", "published": "●",
}  # fmt: skip
_LABELS: Mapping[PackageState, str] = {
    "blocked": "blocked", "held": "held", "removal": "removal", "proposed": "proposed", "edited": "edited draft",
    "draft": "draft", "declined": "declined", "orphaned": "orphaned", "published": "published",
}  # fmt: skip
_PLURAL_LABELS: Mapping[PackageState, str] = {"removal": "removals", "edited": "edited drafts", "draft": "drafts"}
_MEANINGS: Mapping[PackageState, str] = {
    "blocked": "the package cannot be rendered; the published package stays",
    "held": "the package is no longer requested, and is kept",
    "removal": "a draft removes the package",
    "proposed": "the draft is proposed, and does not change until it is approved or rejected",
    "edited": "the draft contains local changes, or a person created it",
    "draft": "the draft is open",
    "declined": "the last draft was declined; the published package stays",
    "orphaned": "the package has no owner in the config",
    "published": "the target branch contains the desired package",
}
_KIND_TITLES: Mapping[PendingKind, str] = {
    "blocked": "Blocked", "held": "Held", "conflict": "Conflicts to review", "refused": "Publication blocked",
    "collision": "Collisions with the target branch", "rejected": "Rejected", "proposed": "Waiting for approval",
    "removal": "Removals", "draft": "Waiting for review", "declined": "Declined",
}  # fmt: skip
_MAX_SUMMARY_CHARACTERS = 90
# A unified diff starts with two lines that contain the file names.
_DIFF_HEADER_LINES = 2
_DIFF_LINE_CLASSES = {"+": "added", "-": "deleted", "@": "header"}


def format_report_page(report: FleetReport, options: str = "") -> str:
    """Return the report as HTML. Equal arguments give equal pages.

    Args:
        options: The options that the commands on the page need to select the fleet of this report, each with a leading
            space.
    """
    style, script = _build_style(), _read_asset("page.js")
    problems = list_problem_lines(report.status)
    return _load_template().render(
        report=report,
        options=options,
        style=style,
        script=script,
        policy=_build_content_policy(style, script),
        date=_format_date(report.seconds) if report.seconds else "",
        package_count=sum(report.counts.values()),
        completed_count=sum(not row.has_pending_work for row in report.rows),
        unread_count=len(report.unread_rows),
        matrix=build_matrix(report.rows, report.packages),
        problems=problems,
        problem_counts=format_problem_counts(problems),
        totals=report.status.totals_line if report.status else "",
        **_build_links(report),
    )


def _build_style() -> str:
    """Return the style sheet of the page.

    The style sheet contains the symbols of the matrix, because a browser renders an HTML element per symbol more
    slowly.
    """
    rules = (
        f'.matrix td.{state}::before {{ content: "{symbol} " / "" }}'
        for state, symbol in _SYMBOLS.items()
        if state != "published"
    )
    return "\n".join([_read_asset("page.css"), *rules])


def _build_links(report: FleetReport) -> dict[str, Any]:
    """Return the HTML IDs of all linked sections, and the texts of these links."""
    ids = {change.key: f"change-{number}" for number, change in enumerate(report.changes, 1)}
    ids |= {explanation.key: f"explanation-{number}" for number, explanation in enumerate(report.explanations, 1)}
    item_ids = {item: f"pending-{number}" for number, item in enumerate(report.pending_items, 1)}
    explanation_keys: dict[str, dict[str, None]] = {}
    for row in report.rows:
        for entry in row.entries.values():
            if entry.change_key and entry.explanation_key:
                explanation_keys.setdefault(entry.change_key, {})[entry.explanation_key] = None
    return {
        "ids": ids,
        "item_ids": item_ids,
        "target_item_ids": {target: item_id for item, item_id in item_ids.items() for target in item.targets},
        "explanation_keys": {change: [*keys] for change, keys in explanation_keys.items()},
        "change_links": {
            change.key: {"package": change.package, "summary": _format_change_summary(change)}
            for change in report.changes
        },
        "explanation_links": {
            explanation.key: _format_first_target(explanation) for explanation in report.explanations
        },
    }


def _format_change_summary(change: ReportedChange) -> str:
    first, *other_lines = change.summary_lines or ("no change of files",)
    summary = shorten(first, _MAX_SUMMARY_CHARACTERS)
    return f"{summary}, and {len(other_lines)} more" if other_lines else summary


def _format_first_target(explanation: ReportedExplanation) -> str:
    first, *other_targets = explanation.targets
    return (
        f"on {first.cluster} and {format_count(len(other_targets), 'other')}"
        if other_targets
        else f"on {first.cluster}"
    )


def _build_content_policy(style: str, script: str) -> str:
    """Return the content security policy, which allows only this style sheet and this script, by their hashes."""
    hashes = (f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in (style, script))
    allowed = " ".join(f"{kind}-src {value};" for kind, value in zip(("style", "script"), hashes, strict=True))
    return f"default-src 'none'; {allowed} base-uri 'none'; form-action 'none'"


@cache
def _read_asset(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


@cache
def _load_template() -> Template:
    environment = Environment(autoescape=True, finalize=_sanitize_output, undefined=StrictUndefined, trim_blocks=True)
    environment.filters |= {
        "allow_breaks": _allow_line_breaks, "count": format_count, "date": _format_date, "groupby_kind": _group_by_kind,
        "groupby_resource": _group_by_resource, "highlight": _highlight_diff, "timestamp": format_rfc3339,
    }  # fmt: skip
    environment.globals |= {
        "symbols": _SYMBOLS, "labels": _LABELS, "plural_labels": _PLURAL_LABELS, "meanings": [*_MEANINGS.items()],
        "kind_titles": _KIND_TITLES,
    }  # fmt: skip
    return environment.from_string(_read_asset("page.html"))


def _sanitize_output(value: object) -> object:
    # Escape text direction characters, because such a character in a name would reverse the text after the name.
    return value if isinstance(value, Markup) or not isinstance(value, str) else to_one_line(value)


def _format_date(seconds: int) -> str:
    return format_rfc3339(seconds)[:_DATE_CHARACTERS]


def _allow_line_breaks(name: str) -> Markup:
    """Return the name as HTML. A browser can break the name after each slash."""
    return Markup("/<wbr>").join(escape(to_one_line(part)) for part in name.split("/"))


def _highlight_diff(diff: str) -> Markup:
    """Return the diff as HTML with a CSS class for each line."""
    lines = diff.removesuffix("\n").split("\n")
    classes = (
        "header" if index < _DIFF_HEADER_LINES else _DIFF_LINE_CLASSES.get(line[:1], "context")
        for index, line in enumerate(lines)
    )
    spans = (Markup("<span class={}>{}</span>").format(*pair) for pair in zip(classes, lines, strict=True))
    return Markup("\n").join(spans)


def _group_by_kind(items: Iterable[PendingItem]) -> list[tuple[PendingKind, list[PendingItem]]]:
    return [(kind, [*group]) for kind, group in groupby(items, key=lambda item: item.kind)]


def _group_by_resource(values: Iterable[ReportedValue]) -> list[tuple[str, list[ReportedValue]]]:
    return [(resource, [*group]) for resource, group in groupby(values, key=lambda value: value.resource)]
