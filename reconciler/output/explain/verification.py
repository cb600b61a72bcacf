"""Differences: where two versions of a package part, to the byte, and which rule has a say there (design 10.28).

Verifying: what is told of packages that were made again from what their status files record (design 10.28).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from reconciler.catalog.files import CommitId, File, FileTree
from reconciler.catalog.trace import Trace
from reconciler.krm.json_pointer import PointerError, format_pointer, resolve_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.times import format_rfc3339
from reconciler.output.changes import fields
from reconciler.output.changes.diffs import format_file_diffs
from reconciler.output.data import drop_empty, mask_secrets, mask_trace
from reconciler.output.explain.builder import explain
from reconciler.output.explain.model import ExplainedPackage, ValueNotFoundError
from reconciler.output.text import format_count, shorten, to_one_line
from reconciler.packages.package import Package, PackageResource
from reconciler.planning.attribution.re_render import ReRenderedPackage

_DIFF_LINES = 40
_NOTHING = File(b"")
SegmentPath = tuple[str, ...]


@dataclass(frozen=True)
class FirstDifference:
    """Where two versions of a package part first: a byte of a file, from 0, on a line, from 1.

    `resource` and `pointer` are the field there, "" outside of resources, and `words` tell what it was and is.
    `by` is who set the later value, as far as that is known. `files` counts those that differ, `diff` is of the first.
    """

    file: str
    byte: int
    line: int
    files: int
    resource: str = ""
    pointer: str = ""
    change: str = ""
    set_by: str = ""
    diff: str = ""


def find_first_difference(
    before: FileTree, after: FileTree, max_diff_lines: int = _DIFF_LINES
) -> FirstDifference | None:
    """Return where a package parts from what it was, None where it is the same; values of Secrets are masked."""
    differing = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    if not differing:
        return None
    file = differing[0]
    old, new = before.get(file, _NOTHING).data, after.get(file, _NOTHING).data
    byte = _first_byte(old, new)
    line = (old if len(old) > byte else new).count(b"\n", 0, byte) + 1
    diff = next(
        (text for path, text in format_file_diffs(before, after, max_lines=max_diff_lines) if path == file),
        "mode changed\n",
    )
    resource, pointer, words = _field(file, before, after)
    return FirstDifference(
        file, byte, line, len(differing), resource, pointer, words, diff=diff if max_diff_lines else ""
    )


def _first_byte(old: bytes, new: bytes) -> int:
    if old == new:
        return 0
    shorter = min(len(old), len(new))
    low, high = 0, shorter
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old[:middle] == new[:middle] else (low, middle - 1)
    return low


def _field(file: str, before: FileTree, after: FileTree) -> tuple[str, str, str]:
    """Return the first field of a file's resources that differs: resource, pointer, and what it was and is."""
    old, new = ({str(one.key): one for one in _resources(files, file)} for files in (before, after))
    for name in dict.fromkeys((*old, *new)):
        if name not in old or name not in new:
            return name, "", "is not there any more" if name in old else "is new"
        path = find_first_changed_path(old[name].data, new[name].data)
        if path is not None:
            return name, format_pointer(path), _format_change(old[name].data, new[name].data, path)
    return "", "", ""


def _format_change(old: Any, new: Any, path: SegmentPath) -> str:
    was, now = (get_value(data, path) for data in (mask_secrets(old), mask_secrets(new, old, compared=True)))
    before, after = (fields.ABSENT_FIELD if one is ABSENT else one for one in (was, now))
    return fields.FieldChange((), before, after).format_line().strip()


def get_value(data: Any, path: SegmentPath) -> Any:
    """Return the value at the segments of a pointer, or ABSENT."""
    try:
        return resolve_pointer(data, path)
    except PointerError:
        return ABSENT


def _resources(files: FileTree, file: str) -> Iterator[PackageResource]:
    return (one for one in Package(files).resources if one.file == file)


def find_first_changed_path(before: Any, after: Any, path: SegmentPath = ()) -> SegmentPath | None:
    """Return the path of the first value that differs, in the order of the fields; None where all is the same."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        keys = dict.fromkeys((*before, *after))
        pairs = ((str(key), before.get(key, ABSENT), after.get(key, ABSENT)) for key in keys)
    elif isinstance(before, list) and isinstance(after, list):
        zipped = zip_longest(before, after, fillvalue=ABSENT)
        pairs = ((str(index), one, other) for index, (one, other) in enumerate(zipped))
    else:
        return path if type(before) is not type(after) or before != after else None
    found = (find_first_changed_path(one, other, (*path, key)) for key, one, other in pairs)
    return next((one for one in found if one is not None), None)


def find_setter(resource: str, pointer: str, made: ReRenderedPackage) -> str:
    """Return who set a value of a package last, as an explanation tells it; "" where nothing is there."""
    known = ExplainedPackage(
        str(made.variant.target), "", made.objects, made.variant.owner, made.variant, made.rendered
    )
    try:
        found = explain(known, resource, pointer).values
    except ValueNotFoundError:
        return ""
    last = found[0].steps[-1] if found else None
    return " ".join(filter(None, (last.by, last.commit))) if last else ""


VerificationVerdict = Literal["reproduced", "edited", "differs", "unknowable", "foreign"]
VERIFICATION_VERDICTS: tuple[VerificationVerdict, ...] = ("differs", "unknowable", "edited", "reproduced", "foreign")
_SHORT = 12
_MOST_EDITS = 5
_MOST_MOVED = 10
_MOST_NAMED = 8
# of which there is the same to tell
_PLAIN: tuple[VerificationVerdict, ...] = ("reproduced", "foreign", "unknowable")
_ANSWER = 40


@dataclass(frozen=True)
class CommitInfo:
    """A commit that somebody made: its author and, where that is another one, its committer.

    `brought` is the merge that brought it to the branch, "" where it stands there itself.
    """

    commit: CommitId
    author: str
    committer: str
    seconds: int
    subject: str
    merge_commit: str = ""


@dataclass(frozen=True)
class RerenderResult:
    """What came of making a package again: of the recorded tree, whatever people made of it since.

    `why` is a sentence for what is not reproduced, `moved` are the inputs that are others than recorded.
    """

    verdict: VerificationVerdict
    reason: str = ""
    difference: FirstDifference | None = None
    changed_inputs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class VerificationResult:
    """One package at a commit: what came of making it `again`, and what people made of it since."""

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
        """The one word: what was not made of what is recorded weighs more than an edit, and that more than doubt."""
        if self.is_edited and self.rerender.verdict != "differs":
            return "edited"
        return self.rerender.verdict


def format_changed_inputs(before: Trace, now: Trace) -> tuple[str, ...]:
    """Return the inputs that were answered otherwise, each with both answers; values of Secrets are not told."""
    old, new = mask_trace(before), mask_trace(now)
    moved = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    words = tuple(f"{_decoded(name)}: {_answer(old.get(name))} → {_answer(new.get(name))}" for name in moved)
    rest = len(words) - _MOST_MOVED
    return words if rest <= 0 else (*words[:_MOST_MOVED], f"and {rest} more")


def _decoded(name: str) -> str:
    return to_one_line(name.replace("%20", " ").replace("%25", "%"))


def _answer(answer: str | None) -> str:
    return "not asked" if answer is None else shorten(to_one_line(answer.removeprefix("sha256:")), _ANSWER)


def format_verification_text(
    results: Sequence[VerificationResult], read_errors: Iterable[str] = (), empty_message: str = "none"
) -> str:
    """Return what came of packages as plain text: one by one what is edited or differs, the rest by branch.

    `none` says why there are none, where there are none.
    """
    plain = {one for one in results if one.verdict in _PLAIN}
    told_alone = sorted(
        {*results} - plain, key=lambda one: (VERIFICATION_VERDICTS.index(one.verdict), one.target, one.branch)
    )
    lines = [line for one in told_alone for line in _lines(one)]
    lines += _together([one for one in results if one in plain])
    unread = tuple(read_errors)
    lines += [f"not read    {to_one_line(one)}" for one in unread]
    counted = Counter(one.verdict for one in results)
    listed = ", ".join(
        f"{counted[verdict]} {verdict}" for verdict in reversed(VERIFICATION_VERDICTS) if counted[verdict]
    )
    unknown = f"{format_count(len(unread), 'destination')} unknown" if unread else ""
    told = "; ".join(filter(None, (listed or ("" if unread else empty_message), unknown)))
    return "\n".join([*lines, f"{format_count(len(results), 'package')}: {told}{_before_edits(results)}"]) + "\n"


def _before_edits(found: Iterable[VerificationResult]) -> str:
    """Return what else is wrong with what people edited: it counts for the exit status."""
    made = Counter(one.rerender.verdict for one in found if one.verdict == "edited")
    listed = ", ".join(f"{made[verdict]} {verdict}" for verdict in ("differs", "unknowable") if made[verdict])
    return f"; what was made before the edits: {listed}" if listed else ""


def _together(found: Iterable[VerificationResult]) -> Iterator[str]:
    groups: dict[tuple[VerificationVerdict, str, str, CommitId, str, tuple[str, ...]], list[str]] = {}
    for one in found:
        repository, _, package = one.target.partition("/")
        key = (one.verdict, repository, one.branch, one.commit, one.rerender.reason, one.rerender.notes)
        groups.setdefault(key, []).append(package)
    ordered = sorted(groups.items(), key=lambda group: (VERIFICATION_VERDICTS.index(group[0][0]), group[0]))
    for (verdict, repository, branch, commit, why, notes), packages in ordered:
        listed = ", ".join(packages[:_MOST_NAMED]) + (", …" if len(packages) > _MOST_NAMED else "")
        yield f"{verdict:<11} {repository}  {to_one_line(listed)}  ({branch} {_short(commit)})"
        yield from (f"  {to_one_line(line)}" for line in (why, *(f"note: {note}" for note in notes)) if line)


def _lines(one: VerificationResult) -> Iterator[str]:
    config = f"config {_short(one.config)}, " if one.config else ""
    yield f"{one.verdict:<11} {to_one_line(one.target)}  ({config}{one.branch} {_short(one.commit)})"
    if one.is_edited:
        yield from _edits(one)
    if one.rerender.verdict not in ("reproduced", "foreign") or one.rerender.notes:
        yield from (f"  {line}" for line in _again(one))


def _edits(one: VerificationResult) -> Iterator[str]:
    for edit in one.edit_commits[:_MOST_EDITS]:
        brought = f", brought by {_short(edit.merge_commit)}" if edit.merge_commit else ""
        yield f"  edited since: {format_commit(edit)}{brought}"
    if len(one.edit_commits) > _MOST_EDITS:
        yield f"  and by {len(one.edit_commits) - _MOST_EDITS} commits before"
    if not one.edit_commits:
        yield "  edited since, by commits that are gone"
    yield from (f"  {line}" for line in _difference(one.edit_difference, "as it was made, and as it is"))
    if one.rerender.verdict == "reproduced":
        yield "  what was made before that comes out again"
    else:
        yield "  of what was made before that:"


def format_commit(one: CommitInfo) -> str:
    """Return a commit on one line: its id, who made it, when, and its subject."""
    committer = f", committed by {to_one_line(one.committer)}" if one.committer != one.author else ""
    day = format_rfc3339(one.seconds).partition("T")[0]
    return f"commit {_short(one.commit)} of {to_one_line(one.author)}{committer}, {day}: {shorten(to_one_line(one.subject))}"  # noqa: E501


def _again(one: VerificationResult) -> Iterator[str]:
    again = one.rerender
    if again.reason:
        yield to_one_line(again.reason)
    if again.changed_inputs:
        yield "other than when it was made:"
        yield from (f"  {line}" for line in again.changed_inputs)
    yield from (f"note: {note}" for note in again.notes)
    yield from _difference(again.difference, "as it was made, and as it comes out now")


def _difference(one: FirstDifference | None, title: str) -> Iterator[str]:
    if one is None:
        return
    more = f", and {format_count(one.files - 1, 'other file')}" if one.files > 1 else ""
    yield f"{to_one_line(one.file)} from byte {one.byte}, line {one.line}{more}"
    if one.resource:
        by = f"  by {to_one_line(one.set_by)}" if one.set_by else ""
        yield " ".join(map(to_one_line, filter(None, (one.resource, one.pointer, one.change)))) + by
    if one.diff:
        yield f"{title}:"
        yield from (f"  {line}" for line in one.diff.splitlines())


def build_verification_data(results: Iterable[VerificationResult], read_errors: Iterable[str] = ()) -> dict[str, Any]:
    """Return what came of packages as JSON data; what is empty is left out."""
    listed = [_data(one) for one in results]
    counted = Counter(one["verdict"] for one in listed)
    summary = {verdict: counted[verdict] for verdict in VERIFICATION_VERDICTS if counted[verdict]}
    return drop_empty({"packages": listed, "summary": summary, "notRead": [*read_errors]})


def _data(one: VerificationResult) -> dict[str, Any]:
    again = one.rerender
    return drop_empty({
        "package": one.target, "branch": one.branch, "commit": one.commit, "config": one.config, "verdict": one.verdict,
        "made": {
            **drop_empty({"verdict": again.verdict, "why": again.reason, "inputs": [*again.changed_inputs], "notes": [*again.notes]}),  # noqa: E501
            **_difference_data(again.difference),
        } if again.verdict != "foreign" else None,
        "edited": {
            "commits": [build_commit_data(edit) for edit in one.edit_commits], **_difference_data(one.edit_difference),
        } if one.is_edited else None,
    })  # fmt: skip


def build_commit_data(one: CommitInfo) -> dict[str, Any]:
    """Return a commit as JSON data."""
    return drop_empty({
        "commit": one.commit, "author": one.author, "committer": one.committer if one.committer != one.author else "",
        "date": format_rfc3339(one.seconds), "subject": one.subject, "broughtBy": one.merge_commit,
    })  # fmt: skip


def _difference_data(one: FirstDifference | None) -> dict[str, Any]:
    if one is None:
        return {}
    field = drop_empty({"resource": one.resource, "pointer": one.pointer, "change": one.change, "by": one.set_by})
    return {"difference": {"file": one.file, "byte": one.byte, "line": one.line, "files": one.files, **field,
                           "diff": one.diff}}  # fmt: skip


def _short(name: str) -> str:
    start = "tree:" if name.startswith("tree:") else ""
    return start + name.removeprefix("tree:")[:_SHORT]
