"""The matrix of a report: which lines it has, which of them fold away, and which way round it stands.

A report as one page of HTML: no file beside it, no script needed to read it, and whatever people wrote escaped.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import groupby
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from reconciler.krm.times import format_rfc3339
from reconciler.output.report.model import (
    ClusterRow,
    FleetReport,
    MatrixEntry,
    ReportedChange,
    ReportedExplanation,
    ReportedValue,
    WaitingItem,
    WaitingKind,
)
from reconciler.output.status.summary import format_problem_counts, format_summary_totals, list_summary_problems
from reconciler.output.text import format_count, shorten, to_one_line
from reconciler.planning.lifecycle.open_drafts import PackageState

# so many columns still fit a screen; what is wider stands the other way round, if that is narrower
_WIDE = 12
# a browser lays out so many cells in a moment; of more, lines that are equal become one
_CELLS = 20_000


@dataclass(frozen=True)
class MatrixLine:
    """One line: a name, or those of several that are equal, with an entry for each column, None where there is none.

    `find` is what a reader may look for, in lower case; `states` are those of its entries.
    """

    names: tuple[str, ...]
    entries: tuple[MatrixEntry | None, ...]
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
    open: tuple[MatrixLine, ...]
    well: tuple[MatrixLine, ...]

    @property
    def number_well(self) -> int:
        """How many names the lines have that are well."""
        return sum(len(one.names) for one in self.well)


def build_matrix(rows: Sequence[ClusterRow], packages: tuple[str, ...]) -> Matrix:
    """Return the matrix, its lines by name."""
    if len(packages) > _WIDE and len(packages) > len(rows):
        columns = tuple(row.cluster for row in rows)
        lines = [MatrixLine((one,), tuple(row.entries.get(one) for row in rows), one.lower()) for one in packages]
        return _matrix("package", columns, [(line, all(map(_is_well, line.entries))) for line in lines])
    return _matrix("cluster", packages, [(_line(row, packages), row.is_well) for row in rows])


def _line(row: ClusterRow, packages: tuple[str, ...]) -> MatrixLine:
    labels = (f"{name}={value}" for name, value in sorted(row.labels.items()))
    find = " ".join((row.cluster, *labels)).lower()
    return MatrixLine((row.cluster,), tuple(map(row.entries.get, packages)), find, row.trouble)


def _matrix(axis: str, columns: tuple[str, ...], lines: Iterable[tuple[MatrixLine, bool]]) -> Matrix:
    listed = tuple(lines)
    parts = (tuple(line for line, is_well in listed if is_well == wanted) for wanted in (False, True))
    if len(listed) * len(columns) > _CELLS:
        parts = (tuple(_folded(part)) for part in parts)
    return Matrix(axis, columns, *parts)


def _is_well(entry: MatrixEntry | None) -> bool:
    return entry is None or entry.is_well


def _folded(lines: Iterable[MatrixLine]) -> Iterable[MatrixLine]:
    groups: dict[tuple[object, ...], list[MatrixLine]] = {}
    for line in lines:
        groups.setdefault((line.trouble, *map(_looks, line.entries)), []).append(line)
    for group in groups.values():
        first, names = group[0], tuple(name for line in group for name in line.names)
        yield replace(first, names=names, find=" ".join(line.find for line in group))


def _looks(entry: MatrixEntry | None) -> object:
    return entry and (entry.state, entry.version, entry.change, entry.conflicts, entry.unmet, entry.notes)


_DAY = len("2026-01-02")
_SYMBOLS: Mapping[PackageState, str] = {
    "blocked": "✕", "held": "‖", "removal": "−", "proposed": "◆", "edited": "✎", "draft": "◇", "declined": "⊘",
    "orphaned": "○", "published": "●",
}  # fmt: skip
_WORDS: Mapping[PackageState, str] = {
    "blocked": "blocked", "held": "held", "removal": "removal", "proposed": "proposed", "edited": "edited draft",
    "draft": "draft", "declined": "declined", "orphaned": "orphaned", "published": "published",
}  # fmt: skip
_PLURALS: Mapping[PackageState, str] = {"removal": "removals", "edited": "edited drafts", "draft": "drafts"}
_MEANINGS: Mapping[PackageState, str] = {
    "blocked": "it could not be made anew; what stands there stays",
    "held": "nothing wants it any more, and it is kept all the same",
    "removal": "a draft takes it away",
    "proposed": "its draft is ready, and frozen until it is approved or rejected",
    "edited": "people have changed its draft, or made it",
    "draft": "its draft is open",
    "declined": "people turned down what was last wanted; what stands there stays",
    "orphaned": "nobody in the config has it, and its files are people's",
    "published": "the cluster branch has what is wanted",
}
_KINDS: Mapping[WaitingKind, str] = {
    "blocked": "Blocked", "held": "Held", "conflict": "With conflicts", "gate": "In the way", "clash": "Overtaken",
    "rejected": "Rejected", "proposed": "To be approved", "removal": "Removals", "draft": "To be reviewed",
    "declined": "Declined",
}  # fmt: skip
_SHORT = 90
# the two lines that name the file before and after
_HEAD = 2
_LINES = {"+": "a", "-": "d", "@": "h"}


def format_report_page(report: FleetReport, options: str = "") -> str:
    """Return the report as HTML; equal reports give equal pages.

    `options` are those with which commands read the same fleet, with a space before each.
    """
    style, script = _style(), _piece("page.js")
    troubles = list_summary_problems(report.summary)
    wells = sum(row.is_well for row in report.rows)
    return _template().render(
        report=report, options=options, style=style, script=script, policy=_policy(style, script),
        date=format_rfc3339(report.seconds)[:_DAY] if report.seconds else "", total=sum(report.counts.values()),
        well=wells, unread=len(report.troubles), matrix=build_matrix(report.rows, report.packages),
        troubles=troubles, found=format_problem_counts(troubles), totals=format_summary_totals(report.summary), **_links(report),  # noqa: E501
    )  # fmt: skip


def _style() -> str:
    """Return the style; it draws the signs of the matrix, for a browser takes its time over elements for them."""
    signs = (
        f'.matrix td.{state}::before {{ content: "{sign} " / "" }}'
        for state, sign in _SYMBOLS.items()
        if state != "published"
    )
    return "\n".join([_piece("page.css"), *signs])


def _links(report: FleetReport) -> dict[str, Any]:
    """Return by which ids changes, explanations and what waits are found, and what made the drafts of a change."""
    ids = {one.key: f"change-{number}" for number, one in enumerate(report.changes, 1)}
    ids |= {one.key: f"why-{number}" for number, one in enumerate(report.explanations, 1)}
    wait_ids = {one: f"wait-{number}" for number, one in enumerate(report.waiting, 1)}
    reasons: dict[str, dict[str, None]] = {}
    for row in report.rows:
        for entry in row.entries.values():
            if entry.change and entry.explanation:
                reasons.setdefault(entry.change, {})[entry.explanation] = None
    waits = {place: name for one, name in wait_ids.items() for place in one.places}
    return {
        "ids": ids, "wait_ids": wait_ids, "waits": waits, "reasons": {key: [*found] for key, found in reasons.items()},
        "changed": {one.key: {"package": one.package, "short": _in_short(one)} for one in report.changes},
        "explained": {one.key: _first_places(one) for one in report.explanations},
    }  # fmt: skip


def _in_short(one: ReportedChange) -> str:
    first, *more = one.lines or ("nothing that can be told",)
    told = shorten(first, _SHORT)
    return f"{told}, and {len(more)} more" if more else told


def _first_places(one: ReportedExplanation) -> str:
    first, *more = one.places
    return f"on {first.cluster} and {format_count(len(more), 'other')}" if more else f"on {first.cluster}"


def _policy(style: str, script: str) -> str:
    """Return what the page may load: nothing but its own style and script, by what they are."""
    hashes = (f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in (style, script))
    allowed = " ".join(f"{what}-src {value};" for what, value in zip(("style", "script"), hashes, strict=True))
    return f"default-src 'none'; {allowed} base-uri 'none'; form-action 'none'"


@cache
def _piece(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, finalize=_finalize, undefined=StrictUndefined, trim_blocks=True)
    environment.filters |= {
        "breakable": _breakable, "coloured": _coloured, "count": format_count, "day": _day, "groupby_kind": _by_kind,
        "groupby_resource": _by_resource, "moment": format_rfc3339,
    }  # fmt: skip
    environment.globals |= {
        "symbols": _SYMBOLS, "words": _WORDS, "plurals": _PLURALS, "meanings": [*_MEANINGS.items()], "kinds": _KINDS,
    }  # fmt: skip
    return environment.from_string(_piece("page.html"))


def _finalize(value: object) -> object:
    # a direction override in a name would turn round what stands behind it
    return value if isinstance(value, Markup) or not isinstance(value, str) else to_one_line(value)


def _day(seconds: int) -> str:
    return format_rfc3339(seconds)[:_DAY]


def _breakable(name: str) -> Markup:
    return Markup("/<wbr>").join(escape(to_one_line(part)) for part in name.split("/"))


def _coloured(diff: str) -> Markup:
    """Return a diff with each line marked by what it is."""
    lines = diff.removesuffix("\n").split("\n")
    kinds = ("h" if index < _HEAD else _LINES.get(line[:1], "s") for index, line in enumerate(lines))
    marked = (Markup("<span class={}>{}</span>").format(*one) for one in zip(kinds, lines, strict=True))
    return Markup("\n").join(marked)


def _by_kind(waiting: Iterable[WaitingItem]) -> list[tuple[WaitingKind, list[WaitingItem]]]:
    return [(kind, [*listed]) for kind, listed in groupby(waiting, key=lambda one: one.kind)]


def _by_resource(values: Iterable[ReportedValue]) -> list[tuple[str, list[ReportedValue]]]:
    return [(resource, [*listed]) for resource, listed in groupby(values, key=lambda one: one.resource)]
