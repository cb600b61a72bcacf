"""The result of `reconciler status`: the file `summary.yaml` of the status branch, and its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field

from reconciler.krm.findings import Severity
from reconciler.output.envelope import CommandResult, OutputModel, create_cli_metadata
from reconciler.output.findings.entries import FindingEntry
from reconciler.output.findings.formats import format_location
from reconciler.output.status.summary import format_totals
from reconciler.output.text import format_object_reference, to_one_line

ProblemType = Literal["notReady", "held", "removal", "gated"]
_MAX_LINES = 40
_LISTS: Mapping[str, ProblemType] = {
    "notReady": "notReady",
    "held": "held",
    "leaving": "removal",
    "gated": "gated",
}


class FleetProblem(OutputModel):
    """An object that is not ready, a held package, a pending removal, or a draft with an unmet readiness gate."""

    type: ProblemType
    object: str = Field(default="", description="The object, as `Kind/namespace/name`.")
    package: str = Field(default="", description="The package, as `target/package`.")
    target: str = Field(default="", description="The target of a draft with an unmet readiness gate.")
    state: str = Field(default="", description="The state of a removal: `proposed` or `declined`.")
    branch: str = Field(default="", description="The branch of the removal draft.")
    reason: str = ""
    message: str = ""
    unmet_gates: tuple[str, ...] = ()


class FleetTotals(OutputModel):
    """The numbers of packages, targets, problems and findings after the last pass."""

    model_config = ConfigDict(extra="ignore")

    packages: int
    targets: int
    published: int = 0
    drafted: int = 0
    declined: int = 0
    blocked: int = 0
    held: int = 0
    leaving: int = Field(default=0, description="The number of removals that wait for a review, or were rejected.")
    stalled: int = 0
    awaited: int = 0
    not_ready: int = 0
    gated: int = 0
    findings: int = 0


class StatusResult(CommandResult):
    """The result of `reconciler status`. `items` and `findings` contain at most 1,000 entries of each type."""

    kind: Literal["Status"] = "Status"
    items: tuple[FleetProblem, ...]
    findings: tuple[FindingEntry, ...]
    summary: FleetTotals

    @property
    def has_problems(self) -> bool:
        """Whether an object is not ready, a package is held, or a finding is an error."""
        has_errors = any(finding.severity is Severity.ERROR for finding in self.findings)
        return has_errors or any(item.type in ("notReady", "held") for item in self.items)


def read_status_result(summary: Mapping[str, Any]) -> StatusResult:
    """Return the result for the content of `summary.yaml`.

    Raises:
        ValueError: The content does not have the format of a pass.
        LookupError: The totals are missing.
    """
    totals = dict(summary["totals"])
    # Earlier versions stored the number of targets with the key `destinations`.
    totals.setdefault("targets", totals.pop("destinations", None))
    return StatusResult(
        metadata=create_cli_metadata(),
        items=tuple(
            FleetProblem.model_validate({"type": problem_type, **entry})
            for name, problem_type in _LISTS.items()
            for entry in summary.get(name, ())
        ),
        findings=tuple(FindingEntry.model_validate(finding) for finding in summary.get("findings", ())),
        summary=FleetTotals.model_validate(totals),
    )


def read_valid_status(summary: Mapping[str, Any]) -> StatusResult | None:
    """Return the result for the content of `summary.yaml`. Return None if it does not have the format of a pass."""
    try:
        return read_status_result(summary)
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


def format_status_text(result: StatusResult) -> str:
    """Return the status as text: one line with the totals, then one line per problem with its reason."""
    lines = [to_one_line(line) for line in _format_problems(result)]
    more = [f"and {len(lines) - _MAX_LINES} more; -o json lists all"] if len(lines) > _MAX_LINES else []
    return "\n".join([format_totals(result.summary.model_dump(by_alias=True)), *lines[:_MAX_LINES], *more])


def _format_problems(result: StatusResult) -> Iterator[str]:
    for item in result.items:
        match item.type:
            case "notReady":
                yield f"not ready  {format_object_reference(item.object)}: {item.reason}: {item.message}"
            case "held":
                yield f"held       {item.package}: {item.reason}: {item.message}"
            case "removal":
                yield f"removal    {item.package}: {_format_removal(item)}"
            case "gated":
                yield f"gated      {format_object_reference(item.object)}: {_format_gates(item)}"
    for finding in result.findings:
        location = format_location(vars(finding))
        place = f"{location}: " if location else ""
        yield f"{finding.severity.value:<10} {place}{finding.code}: {finding.message}"


def _format_removal(item: FleetProblem) -> str:
    is_declined = item.state == "declined"
    state = "the removal was declined" if is_declined else f"the removal waits for review on {item.branch}"
    return f"{state}: {item.reason}"


def _format_gates(item: FleetProblem) -> str:
    gates = f"gates not met: {', '.join(item.unmet_gates)}" if item.unmet_gates else ""
    return ": ".join(filter(None, (item.reason, item.message, gates)))
