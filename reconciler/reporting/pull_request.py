"""The words of a draft's pull request: conflicts first, then what changes and why, and how to come to the same.

They stand between two marks; what people write around them stays. The first mark bears a digest of title and words:
as long as it says what we would say, nothing is written, whatever people made of the title.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reconciler.krm.digest import digest
from reconciler.planning.open_drafts import Reason
from reconciler.reporting.markdown import code
from reconciler.reporting.open_drafts import (
    PackageSheet,
    Sheet,
    draft_lines,
    package_conflicts,
    package_gates,
    package_title,
    reproduce_lines,
)
from reconciler.reporting.package_status import owner_of, task_words, text
from reconciler.reporting.review import sameness
from reconciler.reporting.values import count, one_line, shorten

TITLE_WIDTH = 120
VERDICT_WIDTH = 140
# below what GitHub takes, 65,536 characters, with room for what people add
_LONGEST = 50_000
_DETAILED = 30
_LINES = 20
_NAMED = 5
_DIGITS = 12
_END = "<!-- reconciler:end -->"
_BLOCK = re.compile(r"<!-- reconciler:begin ([0-9a-f]{12}) -->.*?" + re.escape(_END), re.DOTALL)


@dataclass(frozen=True)
class Twins:
    """The other clusters whose drafts change the same: how many, and the first of them by name."""

    number: int = 0
    names: tuple[str, ...] = ()


def change_digest(sheet: Sheet) -> str:
    """Return a digest of what a draft changes, equal on every cluster where that is the same."""
    told = [_same(sheet, one) for one in sheet.contents]
    return _short(digest([told, list(sheet.beside)]))


def _same(sheet: Sheet, one: PackageSheet) -> str:
    package = one.package
    gates = [[gate.reason, gate.message] for gate in (*package.unmet, *package.faults)]
    what = [package.removed, text(package.status, "task"), *one.changes.sameness, gates, package_conflicts(package)]
    return sameness(what, owner_of(package.status).rpartition("/")[2])


def request_title(sheet: Sheet) -> str:
    """Return the title: the cluster, and what becomes of its package or of how many."""
    packages = sheet.draft.packages
    name = sheet.draft.destination.name
    if len(packages) == 1:
        (one,) = packages
        what = "remove it" if one.removed else task_words(one.status) or "as people made it"
        return shorten(one_line(f"{name}/{one.package}: {what}"), TITLE_WIDTH)
    verb = "remove " if sheet.draft.is_removal else ""
    named = ", ".join(one.package for one in packages)
    return shorten(one_line(f"{name}: {verb}{count(len(packages), 'package')} ({named})"), TITLE_WIDTH)


def request_body(sheet: Sheet, title: str, twins: Twins, change: str) -> str:
    """Return the body with its marks. Whatever people wrote stands in it as code, where it names nobody."""
    parts = [_opening(sheet, twins, change)]
    shown, length = 0, len(parts[0])
    for one in sheet.contents[:_DETAILED]:
        part = _package(sheet, one)
        if length + len(part) > _LONGEST:
            break
        parts.append(part)
        shown, length = shown + 1, length + len(part)
    if left := len(sheet.contents) - shown:
        parts.append(f"And {count(left, 'more package')}; `reconciler show` lists them all.")
    parts.append(_closing(sheet))
    words = "\n\n".join(filter(None, parts))
    return f"<!-- reconciler:begin {_short(digest([title, words]))} -->\n{words}\n{_END}"


def _opening(sheet: Sheet, twins: Twins, change: str) -> str:
    lines = [f"- {code(one_line(line))}" for line in _obstacles(sheet)]
    obstacles = "\n".join(["**In the way**", "", *lines]) if lines else ""
    same = ""
    if twins.number:
        more = f" and {twins.number - len(twins.names)} more" if twins.number > len(twins.names) else ""
        same = f"Same change as {count(twins.number, 'other')} (change `{change}`): {', '.join(twins.names)}{more}."
    return "\n\n".join(filter(None, (obstacles, same or f"Change `{change}`.")))


def _obstacles(sheet: Sheet) -> Iterator[str]:
    for one in sheet.draft.packages:
        yield from (f"{one.package}: {line}" for line in package_conflicts(one))
    for one in sheet.draft.packages:
        yield from package_gates(sheet.draft, one)
    yield from draft_lines(sheet)


def _package(sheet: Sheet, one: PackageSheet) -> str:
    told = [*one.changes.summary_lines(_LINES), *one.changes.file_lines(_LINES), *(f"why: {why}" for why in one.causes)]
    lines = [f"- {code(one_line(line))}" for line in told]
    lines += [f"- reproduce: {code(one_line(line))}" for line in reproduce_lines(sheet, one)]
    return "\n".join([f"### {code(one_line(package_title(one.package)))}", "", *lines])


def _closing(sheet: Sheet) -> str:
    branch = code(one_line(sheet.draft.branch))
    what = "removes these packages" if sheet.draft.is_removal else "publishes this"
    return (
        f"Merging {what}; closing declines it, and it comes back only when it would be another. "
        f"What you commit to {branch} is kept through updates."
    )


def is_ours(body: str) -> bool:
    """Return whether a body holds words of ours."""
    return _BLOCK.search(body) is not None


def body_with(standing: str, body: str) -> str | None:
    """Return a standing body with our words in it as they are to be; None when they already are, or were taken out.

    What stands around them is people's, and stays.
    """
    found, new = _BLOCK.search(standing), _BLOCK.search(body)
    if found is None or new is None or found.group(1) == new.group(1):
        return None
    return standing[: found.start()] + new.group() + standing[found.end() :]


def twins_of(names: Sequence[str]) -> Twins:
    """Return the other clusters of a change, by name."""
    known = sorted(names)
    return Twins(len(known), tuple(one_line(name) for name in known[:_NAMED]))


def verdict_words(reasons: Sequence[Reason]) -> str:
    """Return in one line what keeps a draft from being published, or that nothing does."""
    if not reasons:
        return "nothing is in the way of publishing"
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    first = one_line(f"{reasons[0].reason}: {reasons[0].message}")
    return shorten(first, VERDICT_WIDTH - len(more)) + more


def _short(name: str) -> str:
    return name.removeprefix("sha256:")[:_DIGITS]
