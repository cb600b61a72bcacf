"""Verifying: what is told of packages that were made again from what their status files record (design 10.28)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from reconciler.krm.dates import rfc3339
from reconciler.reporting.differences import Difference
from reconciler.reporting.secrets import mask_trace
from reconciler.reporting.status_file import told
from reconciler.reporting.values import count, one_line, shorten
from reconciler.snapshot.objects import CommitId
from reconciler.snapshot.trace import Trace

Verdict = Literal["reproduced", "edited", "differs", "unknowable", "foreign"]
VERDICTS: tuple[Verdict, ...] = ("differs", "unknowable", "edited", "reproduced", "foreign")
_SHORT = 12
_MOST_EDITS = 5
_MOST_MOVED = 10
_MOST_NAMED = 8
# of which there is the same to tell
_PLAIN: tuple[Verdict, ...] = ("reproduced", "foreign", "unknowable")
_ANSWER = 40


@dataclass(frozen=True)
class Person:
    """A commit that somebody made: its author and, where that is another one, its committer.

    `brought` is the merge that brought it to the branch, "" where it stands there itself.
    """

    commit: CommitId
    author: str
    committer: str
    seconds: int
    subject: str
    brought: str = ""


@dataclass(frozen=True)
class Again:
    """What came of making a package again: of the recorded tree, whatever people made of it since.

    `why` is a sentence for what is not reproduced, `moved` are the inputs that are others than recorded.
    """

    verdict: Verdict
    why: str = ""
    difference: Difference | None = None
    moved: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verified:
    """One package at a commit: what came of making it `again`, and what people made of it since."""

    place: str
    branch: str
    commit: CommitId
    again: Again
    config: str = ""
    edits: tuple[Person, ...] = ()
    edited: Difference | None = None
    is_edited: bool = False

    @property
    def verdict(self) -> Verdict:
        """The one word: what was not made of what is recorded weighs more than an edit, and that more than doubt."""
        if self.is_edited and self.again.verdict != "differs":
            return "edited"
        return self.again.verdict


def moved_words(before: Trace, now: Trace) -> tuple[str, ...]:
    """Return the inputs that were answered otherwise, each with both answers; values of Secrets are not told."""
    old, new = mask_trace(before), mask_trace(now)
    moved = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    words = tuple(f"{_decoded(name)}: {_answer(old.get(name))} → {_answer(new.get(name))}" for name in moved)
    rest = len(words) - _MOST_MOVED
    return words if rest <= 0 else (*words[:_MOST_MOVED], f"and {rest} more")


def _decoded(name: str) -> str:
    return one_line(name.replace("%20", " ").replace("%25", "%"))


def _answer(answer: str | None) -> str:
    return "not asked" if answer is None else shorten(one_line(answer.removeprefix("sha256:")), _ANSWER)


def verified_text(found: Sequence[Verified], troubles: Iterable[str] = (), none: str = "none") -> str:
    """Return what came of packages as plain text: one by one what is edited or differs, the rest by branch.

    `none` says why there are none, where there are none.
    """
    plain = {one for one in found if one.verdict in _PLAIN}
    told_alone = sorted({*found} - plain, key=lambda one: (VERDICTS.index(one.verdict), one.place, one.branch))
    lines = [line for one in told_alone for line in _lines(one)]
    lines += _together([one for one in found if one in plain])
    unread = tuple(troubles)
    lines += [f"not read    {one_line(one)}" for one in unread]
    counted = Counter(one.verdict for one in found)
    listed = ", ".join(f"{counted[verdict]} {verdict}" for verdict in reversed(VERDICTS) if counted[verdict])
    unknown = f"{count(len(unread), 'destination')} unknown" if unread else ""
    told = "; ".join(filter(None, (listed or ("" if unread else none), unknown)))
    return "\n".join([*lines, f"{count(len(found), 'package')}: {told}{_before_edits(found)}"]) + "\n"


def _before_edits(found: Iterable[Verified]) -> str:
    """Return what else is wrong with what people edited: it counts for the exit status."""
    made = Counter(one.again.verdict for one in found if one.verdict == "edited")
    listed = ", ".join(f"{made[verdict]} {verdict}" for verdict in ("differs", "unknowable") if made[verdict])
    return f"; what was made before the edits: {listed}" if listed else ""


def _together(found: Iterable[Verified]) -> Iterator[str]:
    groups: dict[tuple[Verdict, str, str, CommitId, str, tuple[str, ...]], list[str]] = {}
    for one in found:
        repository, _, package = one.place.partition("/")
        key = (one.verdict, repository, one.branch, one.commit, one.again.why, one.again.notes)
        groups.setdefault(key, []).append(package)
    ordered = sorted(groups.items(), key=lambda group: (VERDICTS.index(group[0][0]), group[0]))
    for (verdict, repository, branch, commit, why, notes), packages in ordered:
        listed = ", ".join(packages[:_MOST_NAMED]) + (", …" if len(packages) > _MOST_NAMED else "")
        yield f"{verdict:<11} {repository}  {one_line(listed)}  ({branch} {_short(commit)})"
        yield from (f"  {one_line(line)}" for line in (why, *(f"note: {note}" for note in notes)) if line)


def _lines(one: Verified) -> Iterator[str]:
    config = f"config {_short(one.config)}, " if one.config else ""
    yield f"{one.verdict:<11} {one_line(one.place)}  ({config}{one.branch} {_short(one.commit)})"
    if one.is_edited:
        yield from _edits(one)
    if one.again.verdict not in ("reproduced", "foreign") or one.again.notes:
        yield from (f"  {line}" for line in _again(one))


def _edits(one: Verified) -> Iterator[str]:
    for edit in one.edits[:_MOST_EDITS]:
        brought = f", brought by {_short(edit.brought)}" if edit.brought else ""
        yield f"  edited since: {person_words(edit)}{brought}"
    if len(one.edits) > _MOST_EDITS:
        yield f"  and by {len(one.edits) - _MOST_EDITS} commits before"
    if not one.edits:
        yield "  edited since, by commits that are gone"
    yield from (f"  {line}" for line in _difference(one.edited, "as it was made, and as it is"))
    if one.again.verdict == "reproduced":
        yield "  what was made before that comes out again"
    else:
        yield "  of what was made before that:"


def person_words(one: Person) -> str:
    """Return a commit on one line: its id, who made it, when, and its subject."""
    committer = f", committed by {one_line(one.committer)}" if one.committer != one.author else ""
    day = rfc3339(one.seconds).partition("T")[0]
    return f"commit {_short(one.commit)} of {one_line(one.author)}{committer}, {day}: {shorten(one_line(one.subject))}"


def _again(one: Verified) -> Iterator[str]:
    again = one.again
    if again.why:
        yield one_line(again.why)
    if again.moved:
        yield "other than when it was made:"
        yield from (f"  {line}" for line in again.moved)
    yield from (f"note: {note}" for note in again.notes)
    yield from _difference(again.difference, "as it was made, and as it comes out now")


def _difference(one: Difference | None, title: str) -> Iterator[str]:
    if one is None:
        return
    more = f", and {count(one.files - 1, 'other file')}" if one.files > 1 else ""
    yield f"{one_line(one.file)} from byte {one.byte}, line {one.line}{more}"
    if one.resource:
        by = f"  by {one_line(one.by)}" if one.by else ""
        yield " ".join(map(one_line, filter(None, (one.resource, one.pointer, one.words)))) + by
    if one.diff:
        yield f"{title}:"
        yield from (f"  {line}" for line in one.diff.splitlines())


def verified_data(found: Iterable[Verified], troubles: Iterable[str] = ()) -> dict[str, Any]:
    """Return what came of packages as JSON data; what is empty is left out."""
    listed = [_data(one) for one in found]
    counted = Counter(one["verdict"] for one in listed)
    summary = {verdict: counted[verdict] for verdict in VERDICTS if counted[verdict]}
    return told({"packages": listed, "summary": summary, "notRead": [*troubles]})


def _data(one: Verified) -> dict[str, Any]:
    again = one.again
    return told({
        "package": one.place, "branch": one.branch, "commit": one.commit, "config": one.config, "verdict": one.verdict,
        "made": {
            **told({"verdict": again.verdict, "why": again.why, "inputs": [*again.moved], "notes": [*again.notes]}),
            **_difference_data(again.difference),
        } if again.verdict != "foreign" else None,
        "edited": {
            "commits": [person_data(edit) for edit in one.edits], **_difference_data(one.edited),
        } if one.is_edited else None,
    })  # fmt: skip


def person_data(one: Person) -> dict[str, Any]:
    """Return a commit as JSON data."""
    return told({
        "commit": one.commit, "author": one.author, "committer": one.committer if one.committer != one.author else "",
        "date": rfc3339(one.seconds), "subject": one.subject, "broughtBy": one.brought,
    })  # fmt: skip


def _difference_data(one: Difference | None) -> dict[str, Any]:
    if one is None:
        return {}
    field = told({"resource": one.resource, "pointer": one.pointer, "change": one.words, "by": one.by})
    return {"difference": {"file": one.file, "byte": one.byte, "line": one.line, "files": one.files, **field,
                           "diff": one.diff}}  # fmt: skip


def _short(name: str) -> str:
    start = "tree:" if name.startswith("tree:") else ""
    return start + name.removeprefix("tree:")[:_SHORT]
