"""Results of review actions, and their text. The actions are propose, approve, reject and drop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import Field

from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.envelope import DATACLASS_CONFIG, CommandResult, create_cli_metadata
from reconciler.output.findings.entries import FindingEntry
from reconciler.output.review.models import ReviewSummary, ReviewVerb
from reconciler.output.status.package_sections import format_recorded_conflicts
from reconciler.output.text import to_one_line
from reconciler.planning.lifecycle.open_drafts import BlockingReason, DraftedPackage

ActionOutcome = Literal["done", "recorded", "unchanged", "refused", "failed", "lost"]
APPROVAL_RECORDED = "ApprovalRecorded"
"""The code of a result of the console or the API with the outcome "recorded"."""
_LABELS = {"propose": "proposed", "approve": "published", "reject": "rejected", "drop": "dropped"}
_COMMIT_CHARACTERS = 12
PersonIdentity = tuple[str, str]
"""The name and email address of a person."""


@dataclass(frozen=True)
class ReviewActionResult:
    """The result of a review action for one draft branch.

    Attributes:
        branch: The draft branch. "" if the cluster has no draft.
        outcome: "recorded" means that the approval is recorded, and that more people must approve the draft.
        packages: The packages for which the user requested the action.
        commit: The commit that was published or proposed.
        conflicts: One line per conflict of the packages that were proposed or approved.
    """

    __pydantic_config__ = DATACLASS_CONFIG

    repository: Annotated[str, Field(serialization_alias="target")]
    branch: str
    packages: tuple[str, ...]
    action: ReviewVerb
    outcome: ActionOutcome
    message: str = ""
    reasons: tuple[BlockingReason, ...] = ()
    warnings: tuple[BlockingReason, ...] = ()
    commit: str = ""
    conflicts: tuple[str, ...] = ()

    @property
    def is_successful(self) -> bool:
        """Whether the draft has the state that the user requested."""
        return self.outcome in ("done", "recorded", "unchanged")

    @property
    def status_label(self) -> str:
        """The completed action, such as "published". If the action was not completed, the outcome."""
        if self.outcome == "recorded":
            return "approved"
        return _LABELS[self.action] if self.outcome == "done" else self.outcome


class ReviewResult(CommandResult):
    """The result of `reconciler propose`, `approve` and `reject`."""

    kind: Literal["Review"] = "Review"
    items: tuple[ReviewActionResult, ...]
    findings: tuple[FindingEntry, ...] = ()
    summary: ReviewSummary


def build_review_result(
    results: Iterable[ReviewActionResult], action: ReviewVerb, config: str, person: PersonIdentity | None
) -> ReviewResult:
    """Return the result of a review command.

    Args:
        config: The ID of the config.
        person: The person who performed the action. None if the person is unknown.
    """
    listed = tuple(results)
    return ReviewResult(
        metadata=create_cli_metadata(config),
        items=listed,
        summary=ReviewSummary(
            action=action,
            completed=sum(result.outcome == "done" for result in listed),
            by=f"{person[0]} <{person[1]}>" if person else "",
        ),
    )


def format_review_text(result: ReviewResult) -> str:
    """Return the result as text: all conflicts, then one line per draft branch, and one line per reason."""
    if not result.items:
        return "nothing to do: no draft is open"
    # List the conflicts first, so that a reviewer reads them before the results.
    lines = [f"conflict   {item.repository}/{line}" for item in result.items for line in item.conflicts]
    lines += [line for item in result.items for line in _format_item(item)]
    summary = result.summary
    author = f" as {summary.by}" if summary.completed and summary.by else ""
    total = f"{format_count(summary.completed, 'draft')} {_LABELS[summary.action]}{author}"
    return "\n".join(map(to_one_line, [*lines, total]))


def _format_item(item: ReviewActionResult) -> Iterator[str]:
    place = f"{item.repository}: {item.branch}" if item.branch else item.repository
    packages = f" ({', '.join(item.packages)})" if item.packages else ""
    commit = f" at {item.commit[:_COMMIT_CHARACTERS]}" if item.commit else ""
    message = f": {item.message}" if item.message else ""
    yield f"{item.status_label:<10} {place}{packages}{commit}{message}"
    yield from (f"  {reason.reason}: {reason.message}" for reason in item.reasons)
    yield from (f"  warning {warning.reason}: {warning.message}" for warning in item.warnings)


def format_draft_conflicts(packages: Iterable[DraftedPackage]) -> tuple[str, ...]:
    """Return one line for each conflict of the packages."""
    return tuple(
        f"{package.package}: {line}"
        for package in packages
        for line in format_recorded_conflicts(list(package.conflicts))
    )
