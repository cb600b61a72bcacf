"""A report as one page of HTML: no file beside it, no script needed to read it, and whatever people wrote escaped."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import groupby
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from reconciler.krm.dates import rfc3339
from reconciler.planning.cells import State
from reconciler.reporting.report.fleet import Change, Explanation, FleetReport, Kind, Value, Waiting
from reconciler.reporting.report.matrix import matrix_of
from reconciler.reporting.report.troubles import count_words, totals_of, troubles_of
from reconciler.reporting.values import count, one_line, shorten

_DAY = len("2026-01-02")
_SYMBOLS: Mapping[State, str] = {
    "blocked": "✕", "held": "‖", "removal": "−", "proposed": "◆", "edited": "✎", "draft": "◇", "declined": "⊘",
    "orphaned": "○", "published": "●",
}  # fmt: skip
_WORDS: Mapping[State, str] = {
    "blocked": "blocked", "held": "held", "removal": "removal", "proposed": "proposed", "edited": "edited draft",
    "draft": "draft", "declined": "declined", "orphaned": "orphaned", "published": "published",
}  # fmt: skip
_PLURALS: Mapping[State, str] = {"removal": "removals", "edited": "edited drafts", "draft": "drafts"}
_MEANINGS: Mapping[State, str] = {
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
_KINDS: Mapping[Kind, str] = {
    "blocked": "Blocked", "held": "Held", "conflict": "With conflicts", "gate": "In the way", "clash": "Overtaken",
    "rejected": "Rejected", "proposed": "To be approved", "removal": "Removals", "draft": "To be reviewed",
    "declined": "Declined",
}  # fmt: skip
_SHORT = 90
# the two lines that name the file before and after
_HEAD = 2
_LINES = {"+": "a", "-": "d", "@": "h"}


def report_page(report: FleetReport, options: str = "") -> str:
    """Return the report as HTML; equal reports give equal pages.

    `options` are those with which commands read the same fleet, with a space before each.
    """
    style, script = _style(), _piece("page.js")
    troubles = troubles_of(report.summary)
    wells = sum(row.is_well for row in report.rows)
    return _template().render(
        report=report, options=options, style=style, script=script, policy=_policy(style, script),
        date=rfc3339(report.seconds)[:_DAY] if report.seconds else "", total=sum(report.counts.values()),
        well=wells, unread=len(report.troubles), matrix=matrix_of(report.rows, report.packages),
        troubles=troubles, found=count_words(troubles), totals=totals_of(report.summary), **_links(report),
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


def _in_short(one: Change) -> str:
    first, *more = one.lines or ("nothing that can be told",)
    told = shorten(first, _SHORT)
    return f"{told}, and {len(more)} more" if more else told


def _first_places(one: Explanation) -> str:
    first, *more = one.places
    return f"on {first.cluster} and {count(len(more), 'other')}" if more else f"on {first.cluster}"


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
        "breakable": _breakable, "coloured": _coloured, "count": count, "day": _day, "groupby_kind": _by_kind,
        "groupby_resource": _by_resource, "moment": rfc3339,
    }  # fmt: skip
    environment.globals |= {
        "symbols": _SYMBOLS, "words": _WORDS, "plurals": _PLURALS, "meanings": [*_MEANINGS.items()], "kinds": _KINDS,
    }  # fmt: skip
    return environment.from_string(_piece("page.html"))


def _finalize(value: object) -> object:
    # a direction override in a name would turn round what stands behind it
    return value if isinstance(value, Markup) or not isinstance(value, str) else one_line(value)


def _day(seconds: int) -> str:
    return rfc3339(seconds)[:_DAY]


def _breakable(name: str) -> Markup:
    return Markup("/<wbr>").join(escape(one_line(part)) for part in name.split("/"))


def _coloured(diff: str) -> Markup:
    """Return a diff with each line marked by what it is."""
    lines = diff.removesuffix("\n").split("\n")
    kinds = ("h" if index < _HEAD else _LINES.get(line[:1], "s") for index, line in enumerate(lines))
    marked = (Markup("<span class={}>{}</span>").format(*one) for one in zip(kinds, lines, strict=True))
    return Markup("\n").join(marked)


def _by_kind(waiting: Iterable[Waiting]) -> list[tuple[Kind, list[Waiting]]]:
    return [(kind, [*listed]) for kind, listed in groupby(waiting, key=lambda one: one.kind)]


def _by_resource(values: Iterable[Value]) -> list[tuple[str, list[Value]]]:
    return [(resource, [*listed]) for resource, listed in groupby(values, key=lambda one: one.resource)]
