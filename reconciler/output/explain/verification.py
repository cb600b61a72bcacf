"""Results of the command `verify` as text and JSON data.

The module `inspect/verify.py` re-renders the packages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from reconciler.catalog.files import CommitId
from reconciler.catalog.trace import Trace
from reconciler.krm.times import format_rfc3339
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.explain.first_difference import FirstDifference
from reconciler.output.json_data import drop_empty, mask_trace
from reconciler.output.text import format_count, shorten, shorten_id, to_one_line

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
        merge_commit: The merge commit that added the commit to the branch. "" if no merge commit added it.
    """

    commit: CommitId
    author: str
    committer: str
    seconds: int
    subject: str
    merge_commit: str = ""


@dataclass(frozen=True)
class RerenderResult:
    """The result of comparing a re-render with the recorded tree. Later local changes are ignored.

    Attributes:
        reason: A sentence that explains the verdict. The verdict `reproduced` has no reason.
        changed_inputs: The inputs that differ from the recorded inputs.
    """

    verdict: VerificationVerdict
    reason: str = ""
    difference: FirstDifference | None = None
    changed_inputs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class VerificationResult:
    """The verification of one package at a commit: the re-render, and the local changes after the render."""

    target: str
    branch: str
    commit: CommitId
    rerender: RerenderResult
    config: str = ""
    edit_commits: tuple[CommitInfo, ...] = ()
    edit_difference: FirstDifference | None = None
    is_edited: bool = False

    @property
    def verdict(self) -> VerificationVerdict:
        """The verdict of the package, in this order of precedence: `differs`, `edited`, the re-render verdict."""
        if self.is_edited and self.rerender.verdict != "differs":
            return "edited"
        return self.rerender.verdict


def format_changed_inputs(before: Trace, after: Trace) -> tuple[str, ...]:
    """Return one line for each input that differs, with both fingerprints. Fingerprints of Secrets are masked."""
    old, new = mask_trace(before), mask_trace(after)
    changed = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    lines = tuple(
        f"{_decode_name(name)}: {_format_fingerprint(old.get(name))} → {_format_fingerprint(new.get(name))}"
        for name in changed
    )
    rest = len(lines) - _MAX_CHANGED_INPUTS
    return lines if rest <= 0 else (*lines[:_MAX_CHANGED_INPUTS], f"and {rest} more")


def _decode_name(name: str) -> str:
    return to_one_line(name.replace("%20", " ").replace("%25", "%"))


def _format_fingerprint(fingerprint: str | None) -> str:
    if fingerprint is None:
        return "not an input"
    return shorten(to_one_line(fingerprint.removeprefix("sha256:")), _MAX_INPUT_CHARACTERS)


def format_verification_text(
    results: Sequence[VerificationResult], read_errors: Iterable[str] = (), empty_message: str = "none"
) -> str:
    """Return the results as text.

    Packages with the verdict `edited` or `differs` have details. The other packages are listed in groups.

    Args:
        results: The results of all packages.
        read_errors: One message for each target that could not be read.
        empty_message: The summary if there are no results.
    """
    grouped = {result for result in results if result.verdict in _GROUPED_VERDICTS}
    detailed = sorted({*results} - grouped, key=_get_sort_key)
    lines = [line for result in detailed for line in _list_package_lines(result)]
    lines += _list_group_lines([result for result in results if result in grouped])
    errors = tuple(read_errors)
    lines += [f"not read    {to_one_line(error)}" for error in errors]
    counts = Counter(result.verdict for result in results)
    verdicts = ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in reversed(VERIFICATION_VERDICTS) if counts[verdict]
    )
    unread = f"{format_count(len(errors), 'target')} not read" if errors else ""
    summary = "; ".join(filter(None, (verdicts or ("" if errors else empty_message), unread)))
    lines.append(f"{format_count(len(results), 'package')}: {summary}{_format_verdicts_before_edits(results)}")
    return "\n".join(lines) + "\n"


def _get_sort_key(result: VerificationResult) -> tuple[int, str, str]:
    return VERIFICATION_VERDICTS.index(result.verdict), result.target, result.branch


def _format_verdicts_before_edits(results: Iterable[VerificationResult]) -> str:
    """Return the re-render verdicts of the packages with local changes. The exit status depends on these verdicts."""
    counts = Counter(result.rerender.verdict for result in results if result.verdict == "edited")
    verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("differs", "unknowable") if counts[verdict])
    return f"; before the edits: {verdicts}" if verdicts else ""


def _list_group_lines(results: Iterable[VerificationResult]) -> Iterator[str]:
    groups: dict[tuple[VerificationVerdict, str, str, CommitId, str, tuple[str, ...]], list[str]] = {}
    for result in results:
        repository, _, package = result.target.partition("/")
        rerender = result.rerender
        key = (result.verdict, repository, result.branch, result.commit, rerender.reason, rerender.notes)
        groups.setdefault(key, []).append(package)
    ordered = sorted(groups.items(), key=lambda group: (VERIFICATION_VERDICTS.index(group[0][0]), group[0]))
    for (verdict, repository, branch, commit, reason, notes), packages in ordered:
        names = ", ".join(packages[:_MAX_NAMES]) + (", …" if len(packages) > _MAX_NAMES else "")
        yield f"{verdict:<11} {repository}  {to_one_line(names)}  ({branch} {shorten_id(commit)})"
        yield from (f"  {to_one_line(line)}" for line in (reason, *(f"note: {note}" for note in notes)) if line)


def _list_package_lines(result: VerificationResult) -> Iterator[str]:
    config = f"config {shorten_id(result.config)}, " if result.config else ""
    location = f"({config}{result.branch} {shorten_id(result.commit)})"
    yield f"{result.verdict:<11} {to_one_line(result.target)}  {location}"
    if result.is_edited:
        yield from _list_edit_lines(result)
    if result.rerender.verdict not in ("reproduced", "foreign") or result.rerender.notes:
        indent = "    " if result.is_edited else "  "
        yield from (f"{indent}{line}" for line in _list_rerender_lines(result.rerender))


def _list_edit_lines(result: VerificationResult) -> Iterator[str]:
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
    """Return a commit on one line: its ID, its author, its date and its subject."""
    committer = f", committed by {to_one_line(commit.committer)}" if commit.committer != commit.author else ""
    day = format_rfc3339(commit.seconds).partition("T")[0]
    subject = shorten(to_one_line(commit.subject))
    return f"commit {shorten_id(commit.commit)} by {to_one_line(commit.author)}{committer}, {day}: {subject}"


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


def build_verification_data(results: Iterable[VerificationResult], read_errors: Iterable[str] = ()) -> dict[str, Any]:
    """Return the results as JSON data, and omit empty fields."""
    packages = [_build_package_data(result) for result in results]
    counts = Counter(package["verdict"] for package in packages)
    summary = {verdict: counts[verdict] for verdict in VERIFICATION_VERDICTS if counts[verdict]}
    return drop_empty({"packages": packages, "summary": summary, "notRead": [*read_errors]})


def _build_package_data(result: VerificationResult) -> dict[str, Any]:
    rerender = result.rerender
    edited = {
        "commits": [build_commit_data(edit) for edit in result.edit_commits],
        **_build_difference_data(result.edit_difference),
    }
    return drop_empty({
        "package": result.target, "branch": result.branch, "commit": result.commit, "config": result.config,
        "verdict": result.verdict,
        "made": _build_rerender_data(rerender) if rerender.verdict != "foreign" else None,
        "edited": edited if result.is_edited else None,
    })  # fmt: skip


def _build_rerender_data(rerender: RerenderResult) -> dict[str, Any]:
    data = {
        "verdict": rerender.verdict, "why": rerender.reason, "inputs": [*rerender.changed_inputs],
        "notes": [*rerender.notes],
    }  # fmt: skip
    return {**drop_empty(data), **_build_difference_data(rerender.difference)}


def build_commit_data(commit: CommitInfo) -> dict[str, Any]:
    """Return a commit as JSON data."""
    return drop_empty({
        "commit": commit.commit, "author": commit.author,
        "committer": commit.committer if commit.committer != commit.author else "",
        "date": format_rfc3339(commit.seconds), "subject": commit.subject, "broughtBy": commit.merge_commit,
    })  # fmt: skip


def _build_difference_data(difference: FirstDifference | None) -> dict[str, Any]:
    if difference is None:
        return {}
    field = drop_empty({
        "resource": difference.resource, "pointer": difference.pointer, "change": difference.change,
        "by": difference.set_by,
    })  # fmt: skip
    return {
        "difference": {
            "file": difference.file, "byte": difference.byte, "line": difference.line, "files": difference.files,
            **field, "diff": difference.diff,
        }
    }  # fmt: skip
