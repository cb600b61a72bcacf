"""The report as one HTML page, with the style, the macros and the changes of the console.

The page loads no other file, is readable without its script, and escapes all user input.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import groupby
from typing import Any

from jinja2 import Template
from markupsafe import Markup, escape

from reconciler.krm.numbers import format_count
from reconciler.output.pages.environment import create_environment, format_date, read_style
from reconciler.output.report.matrix import build_matrix
from reconciler.output.report.model import (
    FleetReport,
    PendingItem,
    PendingKind,
    ReportedChange,
    ReportedExplanation,
    ReportedValue,
)
from reconciler.output.status.result import format_problem_counts, list_problem_lines
from reconciler.output.text import shorten, to_one_line
from reconciler.planning.lifecycle.open_drafts import PackageState

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


def format_report_page(report: FleetReport, options: str = "") -> str:
    """Return the report as HTML. Equal arguments give equal pages.

    Args:
        options: The options that select the fleet of this report, for the shell commands on the page. Each option has a
            leading space.
    """
    style, script = _build_style(), _read_asset("report.js")
    problems = list_problem_lines(report.status)
    return _load_template().render(
        report=report,
        options=options,
        style=style,
        script=script,
        policy=_build_content_policy(style, script),
        date=format_date(report.seconds) if report.seconds else "",
        package_count=report.index.package_count,
        completed_count=sum(not row.has_pending_work for row in report.rows),
        unread_count=len(report.unread_rows),
        matrix=build_matrix(report.rows, report.columns),
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
    return "\n".join([read_style(), _read_asset("report.css"), *rules])


def _build_links(report: FleetReport) -> dict[str, Any]:
    """Return the template variables for links inside the page: the HTML IDs of sections, and the texts of the links."""
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
        "variants": {change.key: change for change in report.changes},
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
    """Return the content security policy of the page. It allows only the given style sheet and the given script."""
    hashes = (f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in (style, script))
    allowed = " ".join(f"{kind}-src {value};" for kind, value in zip(("style", "script"), hashes, strict=True))
    return f"default-src 'none'; {allowed} base-uri 'none'; form-action 'none'"


@cache
def _read_asset(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


@cache
def _load_template() -> Template:
    environment = create_environment(__package__)
    environment.filters |= {
        "allow_breaks": _allow_line_breaks, "groupby_kind": _group_by_kind, "groupby_resource": _group_by_resource,
    }  # fmt: skip
    environment.globals |= {
        "change_url": _build_change_link, "symbols": _SYMBOLS, "labels": _LABELS, "plural_labels": _PLURAL_LABELS,
        "meanings": [*_MEANINGS.items()], "kind_titles": _KIND_TITLES,
    }  # fmt: skip
    return environment.get_template("report.html")


def _build_change_link(key: str) -> str:
    """Return the link to a change on this page."""
    return f"#review-{key}"


def _allow_line_breaks(name: str) -> Markup:
    """Return the name as HTML. A browser can break the name after each slash."""
    return Markup("/<wbr>").join(escape(to_one_line(part)) for part in name.split("/"))


def _group_by_kind(items: Iterable[PendingItem]) -> list[tuple[PendingKind, list[PendingItem]]]:
    return [(kind, [*group]) for kind, group in groupby(items, key=lambda item: item.kind)]


def _group_by_resource(values: Iterable[ReportedValue]) -> list[tuple[str, list[ReportedValue]]]:
    return [(resource, [*group]) for resource, group in groupby(values, key=lambda value: value.resource)]
