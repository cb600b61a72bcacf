"""Results of review actions as text and JSON data. The actions are propose, approve, reject and drop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from reconciler.lazy_dataclasses import dataclass
from reconciler.output.json_data import drop_empty
from reconciler.output.status.package_sections import format_recorded_conflicts
from reconciler.output.text import format_count, to_one_line
from reconciler.planning.lifecycle.open_drafts import BlockingReason, DraftedPackage

ActionOutcome = Literal["done", "unchanged", "refused", "failed", "lost"]
_LABELS = {"propose": "proposed", "approve": "published", "reject": "rejected", "drop": "dropped"}
_COMMIT_CHARACTERS = 12
PersonIdentity = tuple[str, str]
"""The name and email address of a person."""


@dataclass(frozen=True)
class ReviewActionResult:
    """The result of a review action for one draft branch.

    Attributes:
        branch: The draft branch. "" if the cluster has no draft.
        packages: The packages that the user requested the action for.
        commit: The commit that was published or proposed.
        conflicts: One line per conflict of the packages that were proposed or approved.
    """

    repository: str
    branch: str
    packages: tuple[str, ...]
    action: str
    outcome: ActionOutcome
    message: str = ""
    reasons: tuple[BlockingReason, ...] = ()
    warnings: tuple[BlockingReason, ...] = ()
    commit: str = ""
    conflicts: tuple[str, ...] = ()

    @property
    def is_successful(self) -> bool:
        """Whether the draft has the state that the user requested."""
        return self.outcome in ("done", "unchanged")

    @property
    def status_label(self) -> str:
        """The completed action, such as "published". If the action was not completed, the outcome."""
        return _LABELS[self.action] if self.outcome == "done" else self.outcome


def format_action_results(results: Iterable[ReviewActionResult], person: PersonIdentity | None) -> str:
    """Return the results as text: all conflicts, then one line per result, and one line per reason of a result.

    Args:
        results: The results.
        person: The person who performed the action. None if the person is unknown.
    """
    listed = tuple(results)
    # List the conflicts first, so that a reviewer reads them before the results.
    lines = [f"conflict   {result.repository}/{line}" for result in listed for line in result.conflicts]
    lines += [line for result in listed for line in _format_result(result)]
    completed = sum(result.outcome == "done" for result in listed)
    if not listed:
        return "nothing to do: no draft is open"
    author = f" as {_format_person(person)}" if completed and person else ""
    total = f"{format_count(completed, 'draft')} {_LABELS[listed[0].action]}{author}"
    return "\n".join(map(to_one_line, [*lines, total]))


def format_draft_conflicts(packages: Iterable[DraftedPackage]) -> tuple[str, ...]:
    """Return one line for each conflict of the packages."""
    return tuple(
        f"{package.package}: {line}"
        for package in packages
        for line in format_recorded_conflicts(list(package.conflicts))
    )


def _format_result(result: ReviewActionResult) -> Iterator[str]:
    place = f"{result.repository}: {result.branch}" if result.branch else result.repository
    packages = f" ({', '.join(result.packages)})" if result.packages else ""
    commit = f" at {result.commit[:_COMMIT_CHARACTERS]}" if result.commit else ""
    message = f": {result.message}" if result.message else ""
    yield f"{result.status_label:<10} {place}{packages}{commit}{message}"
    yield from (f"  {reason.reason}: {reason.message}" for reason in result.reasons)
    yield from (f"  warning {warning.reason}: {warning.message}" for warning in result.warnings)


def build_action_results_data(results: Iterable[ReviewActionResult], person: PersonIdentity | None) -> dict[str, Any]:
    """Return the results as JSON data, and omit empty fields."""
    return {
        **({"by": _format_person(person)} if person else {}),
        "results": [_build_data(result) for result in results],
    }


def _format_person(person: PersonIdentity) -> str:
    return f"{person[0]} <{person[1]}>"


def _build_data(result: ReviewActionResult) -> dict[str, Any]:
    return drop_empty({
        "repository": result.repository, "branch": result.branch, "packages": list(result.packages),
        "outcome": result.status_label, "conflicts": list(result.conflicts), "commit": result.commit,
        "why": result.message, "reasons": build_reasons_data(result.reasons),
        "warnings": build_reasons_data(result.warnings),
    })  # fmt: skip


def build_reasons_data(reasons: Iterable[BlockingReason]) -> list[dict[str, str]]:
    """Return blocking reasons as JSON data."""
    return [dict(vars(reason)) for reason in reasons]
