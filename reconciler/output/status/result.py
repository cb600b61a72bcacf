"""The result of `reconciler status`: the file `summary.yaml` of the status branch, and its text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from reconciler.krm.findings import Severity
from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.envelope import CommandResult, OutputModel, create_cli_metadata
from reconciler.output.findings.entries import FindingEntry
from reconciler.output.findings.formats import format_location
from reconciler.output.json_data import read_mapping, read_mappings
from reconciler.output.status.last_pass import LastPass, format_last_pass
from reconciler.output.status.summary import format_totals
from reconciler.output.text import format_object_reference, to_one_line

ProblemType = Literal["notReady", "held", "removal", "gated"]
_MAX_LINES = 40
_NOT_READY = "not ready"
# If the condition `Ready` of an object has one of these reasons, the object waits until a person approves a draft. This
# is not a failure. If a package of the object has an error, a finding reports this error.
_WAITING_REASONS = ("AllPluginsReady", "DownstreamProposed")
_PROBLEM_KINDS = (_NOT_READY, *(severity.value for severity in Severity))
_LISTS: Mapping[str, ProblemType] = {
    "notReady": "notReady",
    "held": "held",
    "leaving": "removal",
    "gated": "gated",
}


class FleetProblem(OutputModel):
    """An object that is not ready, a held package, a pending removal, or a draft with an unmet readiness gate."""

    model_config = ConfigDict(extra="ignore")

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
    pending_removals: int = Field(
        default=0,
        validation_alias="leaving",
        description="The number of removals that wait for a review, or were rejected.",
    )
    stalled: int = 0
    awaited: int = 0
    not_ready: int = 0
    gated: int = 0
    findings: int = 0
    last_pass: LastPass | None = Field(
        default=None, description="The last pass on this machine, or of the daemon at `--server`."
    )


class StatusResult(CommandResult):
    """The result of `reconciler status`. `items` and `findings` contain at most 1,000 entries of each type."""

    kind: Literal["Status"] = "Status"
    items: tuple[FleetProblem, ...]
    findings: tuple[FindingEntry, ...]
    summary: FleetTotals

    @property
    def totals_line(self) -> str:
        """The totals on one line."""
        return format_totals(self.summary.model_dump(by_alias=True, exclude={"last_pass"}))

    def with_last_pass(self, last_pass: LastPass | None) -> StatusResult:
        """Return a copy of the status that contains the last pass. The status branch does not contain the last pass."""
        return self.model_copy(update={"summary": self.summary.model_copy(update={"last_pass": last_pass})})

    @property
    def has_problems(self) -> bool:
        """Whether an object is not ready, a package is held, or a finding is an error.

        An object that only waits for a review is not a problem.
        """
        has_errors = any(finding.severity is Severity.ERROR for finding in self.findings)
        return has_errors or any(
            item.type == "held" or (item.type == "notReady" and item.reason not in _WAITING_REASONS)
            for item in self.items
        )


def read_status_result(summary: Mapping[str, Any]) -> StatusResult:
    """Return the result for the content of `summary.yaml`.

    Raises:
        ValueError: The content does not have the format of a pass.
        LookupError: The totals are missing.
    """
    totals = dict(summary["totals"])
    # Read the key `destinations` too, because earlier versions stored the number of targets with this key.
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
    """Return the result for the content of `summary.yaml`. Return None if the totals are missing or invalid.

    Invalid entries are skipped, because everyone who may push to the status branch can change the file.
    """
    lists: dict[str, list[Mapping[str, Any]]] = {
        name: [entry for entry in read_mappings(summary, name) if _is_valid(FleetProblem, {"type": kind, **entry})]
        for name, kind in _LISTS.items()
    }
    findings = [finding for finding in read_mappings(summary, "findings") if _is_valid(FindingEntry, finding)]
    try:
        return read_status_result({"totals": read_mapping(summary, "totals"), **lists, "findings": findings})
    except (LookupError, ValueError):
        return None


def _is_valid(model: type[OutputModel], data: Mapping[str, Any]) -> bool:
    try:
        model.model_validate(data)
    except ValidationError:
        return False
    return True


@dataclass(frozen=True)
class ProblemLine:
    """One problem of the fleet, as the report shows it.

    Attributes:
        kind: "not ready" for an object, or the severity of a finding.
        place: The name of the object, or the package and file of the finding.
        reason: The reason of the condition, or the code of the finding.
    """

    kind: str
    place: str
    reason: str
    message: str


def list_problem_lines(status: StatusResult | None) -> tuple[ProblemLine, ...]:
    """Return the problems of the fleet: objects that are not ready, then findings by severity."""
    items, findings = (status.items, status.findings) if status else ((), ())
    lines = [
        ProblemLine(_NOT_READY, format_object_reference(item.object), item.reason, item.message)
        for item in items
        if item.type == "notReady"
    ]
    lines += [
        ProblemLine(finding.severity.value, _format_place(finding), finding.code, finding.message)
        for finding in findings
    ]
    return tuple(sorted(lines, key=lambda line: _PROBLEM_KINDS.index(line.kind)))


def _format_place(finding: FindingEntry) -> str:
    file = f"{finding.file}:{finding.line}" if finding.file and finding.line else finding.file
    return " ".join(filter(None, (finding.package, file or format_object_reference(finding.object))))


def format_problem_counts(problems: Iterable[ProblemLine]) -> str:
    """Return the number of problems per kind, such as `2 not ready, 1 error`. Return "" if there are no problems."""
    counts = Counter(problem.kind for problem in problems)
    return ", ".join(
        f"{counts[kind]} {kind}" if kind == _NOT_READY else format_count(counts[kind], kind)
        for kind in _PROBLEM_KINDS
        if counts[kind]
    )


def format_status_text(result: StatusResult, now: int) -> str:
    """Return the status as text: one line with the last pass, one with the totals, then one line per problem.

    Args:
        now: The current time, in seconds since 1970.
    """
    lines = [to_one_line(line) for line in _format_problems(result)]
    more = [f"and {len(lines) - _MAX_LINES} more; -o json lists all"] if len(lines) > _MAX_LINES else []
    last_pass = format_last_pass(result.summary.last_pass, now)
    return "\n".join([last_pass, result.totals_line, *lines[:_MAX_LINES], *more])


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
