"""The result of `reconciler verify`, and its text.

The module `inspect/verify.py` re-renders the packages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field, computed_field

from reconciler.catalog.files import CommitId
from reconciler.catalog.trace import Trace
from reconciler.krm.findings import Finding
from reconciler.krm.numbers import format_count
from reconciler.krm.times import format_rfc3339
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.envelope import DATACLASS_CONFIG, CommandResult, OutputModel, Timestamp, create_cli_metadata
from reconciler.output.explain.first_difference import FirstDifference
from reconciler.output.findings.entries import FindingEntry, build_finding_entries
from reconciler.output.json_data import mask_trace
from reconciler.output.text import list_first_lines, shorten, shorten_id, to_one_line

VerificationVerdict = Literal["reproduced", "edited", "differs", "unknowable", "foreign"]
VERIFICATION_VERDICTS: tuple[VerificationVerdict, ...] = ("differs", "unknowable", "edited", "reproduced", "foreign")
# List the packages with these verdicts in groups, because the verdicts have no details for a single package.
_GROUPED_VERDICTS: tuple[VerificationVerdict, ...] = ("reproduced", "foreign", "unknowable")
_MAX_EDITS = 5
_MAX_CHANGED_INPUTS = 10
_MAX_NAMES = 8
_MAX_INPUT_CHARACTERS = 40


@dataclass(frozen=True)
class CommitInfo:
    """A commit with its author and its committer.

    Attributes:
        seconds: The author time of the commit, in seconds since 1970.
        merge_commit: The merge commit that added the commit to the branch. "" if no merge commit added the commit.
    """

    __pydantic_config__ = DATACLASS_CONFIG

    commit: CommitId
    author: str
    committer: str
    seconds: Annotated[Timestamp, Field(serialization_alias="date")]
    subject: str
    merge_commit: str = ""


@dataclass(frozen=True)
class RerenderResult:
    """The result of comparing a re-render with the recorded tree. Later local changes are ignored.

    Attributes:
        reason: A sentence that explains the verdict. The verdict `reproduced` has no reason.
        changed_inputs: The inputs that differ from the recorded inputs.
    """

    __pydantic_config__ = DATACLASS_CONFIG

    verdict: VerificationVerdict
    reason: str = ""
    difference: FirstDifference | None = None
    changed_inputs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class PackageVerification(OutputModel):
    """The verification of one package at a commit: the re-render, and the local changes after the render."""

    package: str = Field(description="The package, as `target/package`.")
    branch: str
    commit: CommitId
    config: str = Field(default="", description="The config of the recorded render.")
    rerender: RerenderResult
    is_edited: bool = Field(description="Whether the package was changed locally after the render.")
    edit_commits: tuple[CommitInfo, ...] = ()
    edit_difference: FirstDifference | None = None

    @computed_field(  # type: ignore[prop-decorator]
        description="The verdict of the package: `differs`, `edited`, or the verdict of the re-render."
    )
    @property
    def verdict(self) -> VerificationVerdict:
        """The verdict of the package: the verdict of its re-render, or `edited` if the package has local changes.

        However, if the verdict of the re-render is `differs`, the verdict of the package is `differs` too.
        """
        if self.is_edited and self.rerender.verdict != "differs":
            return "edited"
        return self.rerender.verdict


class VerificationSummary(OutputModel):
    """The numbers of packages by verdict."""

    packages: int
    reproduced: int
    edited: int
    differs: int
    unknowable: int
    foreign: int
    unreadable_targets: int


class VerificationResult(CommandResult):
    """The result of `reconciler verify`. The findings name the targets that cannot be read."""

    kind: Literal["Verification"] = "Verification"
    items: tuple[PackageVerification, ...]
    findings: tuple[FindingEntry, ...]
    summary: VerificationSummary


def build_verification_result(
    packages: Sequence[PackageVerification], read_errors: Iterable[Finding] = ()
) -> VerificationResult:
    """Return the result of a verification.

    Args:
        packages: The verified packages.
        read_errors: One finding for each target that could not be read.
    """
    counts, findings = Counter(package.verdict for package in packages), build_finding_entries(read_errors)
    summary = VerificationSummary(
        packages=len(packages),
        **{verdict: counts[verdict] for verdict in VERIFICATION_VERDICTS},
        unreadable_targets=len(findings),
    )
    items = tuple(sorted(packages, key=lambda package: (package.package, package.branch)))
    return VerificationResult(metadata=create_cli_metadata(), items=items, findings=findings, summary=summary)


def format_changed_inputs(before: Trace, after: Trace) -> tuple[str, ...]:
    """Return one line per changed input, with its old and its new fingerprint. Fingerprints of Secrets are masked."""
    old, new = mask_trace(before), mask_trace(after)
    changed = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    lines = tuple(
        f"{_decode_name(name)}: {_format_fingerprint(old.get(name))} → {_format_fingerprint(new.get(name))}"
        for name in changed
    )
    return list_first_lines(lines, _MAX_CHANGED_INPUTS)


def _decode_name(name: str) -> str:
    return to_one_line(name.replace("%20", " ").replace("%25", "%"))


def _format_fingerprint(fingerprint: str | None) -> str:
    if fingerprint is None:
        return "not an input"
    return shorten(to_one_line(fingerprint.removeprefix("sha256:")), _MAX_INPUT_CHARACTERS)


def format_verification_text(result: VerificationResult, empty_message: str = "none") -> str:
    """Return the result as text.

    Packages with the verdict `edited` or `differs` have details. The other packages are listed in groups.

    Args:
        result: The result.
        empty_message: The summary if there are no packages.
    """
    detailed = [item for item in result.items if item.verdict not in _GROUPED_VERDICTS]
    lines = [line for item in sorted(detailed, key=_get_sort_key) for line in _list_package_lines(item)]
    lines += _list_group_lines([item for item in result.items if item.verdict in _GROUPED_VERDICTS])
    lines += [f"not read    {to_one_line(finding.message)}" for finding in result.findings]
    counts = Counter(item.verdict for item in result.items)
    verdicts = ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in reversed(VERIFICATION_VERDICTS) if counts[verdict]
    )
    unread = f"{format_count(len(result.findings), 'target')} not read" if result.findings else ""
    summary = "; ".join(filter(None, (verdicts or ("" if result.findings else empty_message), unread)))
    lines.append(
        f"{format_count(len(result.items), 'package')}: {summary}{_format_verdicts_before_edits(result.items)}"
    )
    return "\n".join(lines) + "\n"


def _get_sort_key(result: PackageVerification) -> tuple[int, str, str]:
    return VERIFICATION_VERDICTS.index(result.verdict), result.package, result.branch


def _format_verdicts_before_edits(results: Iterable[PackageVerification]) -> str:
    """Return a text with the number of edited packages for the re-render verdicts `differs` and `unknowable`.

    The output needs this text, because the exit status depends on these verdicts. Return "" if no edited package has
    one of them.
    """
    counts = Counter(result.rerender.verdict for result in results if result.verdict == "edited")
    verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("differs", "unknowable") if counts[verdict])
    return f"; before the edits: {verdicts}" if verdicts else ""


def _list_group_lines(results: Iterable[PackageVerification]) -> Iterator[str]:
    groups: dict[tuple[VerificationVerdict, str, str, str, str, tuple[str, ...]], list[str]] = {}
    for result in results:
        repository, _, package = result.package.partition("/")
        rerender = result.rerender
        key = (result.verdict, repository, result.branch, result.commit, rerender.reason, rerender.notes)
        groups.setdefault(key, []).append(package)
    ordered = sorted(groups.items(), key=lambda group: (VERIFICATION_VERDICTS.index(group[0][0]), group[0]))
    for (verdict, repository, branch, commit, reason, notes), packages in ordered:
        names = ", ".join(packages[:_MAX_NAMES]) + (", …" if len(packages) > _MAX_NAMES else "")
        yield f"{verdict:<11} {repository}  {to_one_line(names)}  ({branch} {shorten_id(commit)})"
        yield from (f"  {to_one_line(line)}" for line in (reason, *(f"note: {note}" for note in notes)) if line)


def _list_package_lines(result: PackageVerification) -> Iterator[str]:
    config = f"config {shorten_id(result.config)}, " if result.config else ""
    location = f"({config}{result.branch} {shorten_id(result.commit)})"
    yield f"{result.verdict:<11} {to_one_line(result.package)}  {location}"
    if result.is_edited:
        yield from _list_edit_lines(result)
    if result.rerender.verdict not in ("reproduced", "foreign") or result.rerender.notes:
        indent = "    " if result.is_edited else "  "
        yield from (f"{indent}{line}" for line in _list_rerender_lines(result.rerender))


def _list_edit_lines(result: PackageVerification) -> Iterator[str]:
    for edit in result.edit_commits[:_MAX_EDITS]:
        merge = f", merged by {shorten_id(edit.merge_commit)}" if edit.merge_commit else ""
        yield f"  edit: {format_commit(edit)}{merge}"
    if len(result.edit_commits) > _MAX_EDITS:
        yield f"  and {format_count(len(result.edit_commits) - _MAX_EDITS, 'earlier edit')}"
    if not result.edit_commits:
        yield "  edit: the commits of the edit no longer exist"
    difference = _list_difference_lines(result.edit_difference, "diff from the rendered package to the edited package")
    yield from (f"  {line}" for line in difference)
    yield f"  before the edit: {result.rerender.verdict}"


def format_commit(commit: CommitInfo) -> str:
    """Return a commit on one line: its ID, its author, its time and its subject."""
    committer = f", committed by {to_one_line(commit.committer)}" if commit.committer != commit.author else ""
    time = format_rfc3339(commit.seconds)
    subject = shorten(to_one_line(commit.subject))
    return f"commit {shorten_id(commit.commit)} by {to_one_line(commit.author)}{committer}, {time}: {subject}"


def _list_rerender_lines(rerender: RerenderResult) -> Iterator[str]:
    if rerender.reason:
        yield to_one_line(rerender.reason)
    if rerender.changed_inputs:
        yield "inputs that changed since the recorded render:"
        yield from (f"  {line}" for line in rerender.changed_inputs)
    yield from (f"note: {note}" for note in rerender.notes)
    yield from _list_difference_lines(
        rerender.difference, "diff from the recorded package to the re-rendered package"
    )  # fmt: skip


def _list_difference_lines(difference: FirstDifference | None, diff_title: str) -> Iterator[str]:
    if difference is None:
        return
    more = f"; {format_count(difference.files - 1, 'other file')} also different" if difference.files > 1 else ""
    yield f"first difference: {to_one_line(difference.file)}, line {difference.line}, byte {difference.byte}{more}"
    if difference.resource:
        setter = f", set by {to_one_line(difference.set_by)}" if difference.set_by else ""
        parts = filter(None, (difference.resource, difference.pointer, difference.change))
        yield f"  {' '.join(map(to_one_line, parts))}{setter}"
    if difference.diff:
        yield f"{diff_title}:"
        yield from (f"  {line}" for line in difference.diff.splitlines())
