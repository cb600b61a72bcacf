"""What became of people's acts on drafts, in words and as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from reconciler.planning.open_drafts import DraftedPackage, Reason
from reconciler.reporting.conflicts import recorded_conflict_lines
from reconciler.reporting.status_file import told
from reconciler.reporting.values import count, one_line

Outcome = Literal["done", "unchanged", "refused", "failed", "lost"]
_DONE = {"propose": "proposed", "approve": "published", "reject": "rejected", "drop": "dropped"}
_SHORT = 12
Person = tuple[str, str]


@dataclass(frozen=True)
class Acted:
    """The result for one draft branch, "" for a cluster without one; `commit` is the commit made or proposed.

    `conflicts` are a line for each conflict of the packages that are proposed or approved.
    """

    repository: str
    branch: str
    packages: tuple[str, ...]
    verb: str
    outcome: Outcome
    why: str = ""
    reasons: tuple[Reason, ...] = ()
    warnings: tuple[Reason, ...] = ()
    commit: str = ""
    conflicts: tuple[str, ...] = ()

    @property
    def is_well(self) -> bool:
        """Whether it is now as it was asked for."""
        return self.outcome in ("done", "unchanged")

    @property
    def word(self) -> str:
        """What happened, in a word: what was done, or the outcome."""
        return _DONE[self.verb] if self.outcome == "done" else self.outcome


def acted_text(acted: Iterable[Acted], person: Person | None) -> str:
    """Return what became of everything, a line each and one for every reason; `person` did it."""
    listed = tuple(acted)
    # a reviewer sees the conflicts before anything else
    lines = [f"conflict   {one.repository}/{line}" for one in listed for line in one.conflicts]
    lines += [line for one in listed for line in _lines(one)]
    done = [one for one in listed if one.outcome == "done"]
    if not listed:
        return "nothing to do: no draft is open"
    by = f" as {_name(person)}" if done and person else ""
    return "\n".join(map(one_line, [*lines, f"{count(len(done), 'draft')} {_DONE[listed[0].verb]}{by}"]))


def draft_conflict_lines(packages: Iterable[DraftedPackage]) -> tuple[str, ...]:
    """Return a line for each conflict of these packages of a draft."""
    return tuple(f"{one.package}: {line}" for one in packages for line in recorded_conflict_lines(list(one.conflicts)))


def _lines(one: Acted) -> Iterator[str]:
    place = f"{one.repository}: {one.branch}" if one.branch else one.repository
    packages = f" ({', '.join(one.packages)})" if one.packages else ""
    commit = f" at {one.commit[:_SHORT]}" if one.commit else ""
    yield f"{one.word:<10} {place}{packages}{commit}{f': {one.why}' if one.why else ''}"
    yield from (f"  {reason.reason}: {reason.message}" for reason in one.reasons)
    yield from (f"  warning {warning.reason}: {warning.message}" for warning in one.warnings)


def acted_data(acted: Iterable[Acted], person: Person | None) -> dict[str, Any]:
    """Return what became of everything as JSON data; what is empty is left out."""
    return {**({"by": _name(person)} if person else {}), "results": [_data(one) for one in acted]}


def _name(person: Person) -> str:
    return f"{person[0]} <{person[1]}>"


def _data(one: Acted) -> dict[str, Any]:
    return told({
        "repository": one.repository, "branch": one.branch, "packages": list(one.packages), "outcome": one.word,
        "conflicts": list(one.conflicts), "commit": one.commit, "why": one.why, "reasons": reasons_data(one.reasons),
        "warnings": reasons_data(one.warnings),
    })  # fmt: skip


def reasons_data(reasons: Iterable[Reason]) -> list[dict[str, str]]:
    """Return reasons as JSON data."""
    return [dict(vars(one)) for one in reasons]
