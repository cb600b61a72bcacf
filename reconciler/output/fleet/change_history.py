"""The history of each change: its drafts and their outcomes. A closed change has a history, but no open draft."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.fleet.model import FleetIndex, PackageRow, ReviewChange

DraftOutcome = Literal["open", "published", "replaced", "withdrawn"]
MAX_CHANGES, MAX_DRAFTS, MAX_LINES = 5_000, 100_000, 20


@dataclass(frozen=True)
class PastDraft:
    """A draft of a change, and what happened to it.

    Attributes:
        version: The number of the revision that the package had while the draft was open. 0 if it had no revision.
        outcome: For a draft that ended without a publication, "replaced" means that the package now has a draft of a
            different change. "withdrawn" means that the package now has no draft.
        number: The number of the revision that the publication of the draft created. 0 if the draft was not published,
            or removed the package.
        author: The person who published the draft. "" if it is unknown.
        seconds: The time of the publication, in seconds since 1970. 0 if it is unknown.
        successor: The key of the different change if the draft was replaced. Otherwise "".
    """

    target: str
    package: str
    version: int = 0
    outcome: DraftOutcome = "open"
    number: int = 0
    author: str = ""
    seconds: int = 0
    successor: str = ""


@dataclass(frozen=True)
class PastChange:
    """A change with the history of its drafts.

    Attributes:
        lines: The texts about the changed objects of the largest variant, in the format of the list of changes.
    """

    key: str
    title: str
    owner: str
    lines: tuple[str, ...]
    is_removal: bool
    drafts: tuple[PastDraft, ...]

    @property
    def is_open(self) -> bool:
        """Whether a draft of the change is open."""
        return any(draft.outcome == "open" for draft in self.drafts)


def update_history(history: Mapping[str, PastChange], index: FleetIndex) -> Mapping[str, PastChange]:
    """Return the history with the changes of a new index. Open changes are at the end.

    If the history exceeds its limits, the changes that were closed first are deleted.
    """
    updated = {key: _close_drafts(change, index) for key, change in history.items() if key not in index.by_change}
    for change in reversed(index.changes):
        updated[change.key] = _add_open_change(change, history.get(change.key), index)
    return _delete_old(updated)


def _add_open_change(change: ReviewChange, past: PastChange | None, index: FleetIndex) -> PastChange:
    names = [(member.target, member.package) for member in change.members]
    drafts = {name: PastDraft(*name, index.by_target[name[0]].by_package[name[1]].version) for name in names}
    earlier = [draft for draft in past.drafts if (draft.target, draft.package) not in drafts] if past else []
    is_removal = change.variants[0].content.is_removal
    closed = [_close_draft(draft, index, is_removal=is_removal) for draft in earlier]
    lines = change.variants[0].content.changes.format_summary_lines(MAX_LINES)
    return PastChange(change.key, change.title, change.owner, lines, is_removal, (*closed, *drafts.values()))


def _close_drafts(change: PastChange, index: FleetIndex) -> PastChange:
    if not change.is_open:
        return change
    drafts = tuple(_close_draft(draft, index, is_removal=change.is_removal) for draft in change.drafts)
    return replace(change, drafts=drafts)


def _close_draft(draft: PastDraft, index: FleetIndex, *, is_removal: bool) -> PastDraft:
    """Return a draft that is no longer open, with its outcome.

    Return the draft unchanged if it already has an outcome, or if its target cannot be read.
    """
    if draft.outcome != "open":
        return draft
    target = index.by_target.get(draft.target)
    row = target.by_package.get(draft.package) if target else None
    if target and target.read_error:
        return draft
    if row is None:
        return replace(draft, outcome="published" if is_removal and target else "withdrawn")
    if row.version > draft.version:
        return _publish(draft, row)
    if row.draft:
        return replace(draft, outcome="replaced", successor=row.draft.change_key)
    return replace(draft, outcome="withdrawn")


def _publish(draft: PastDraft, row: PackageRow) -> PastDraft:
    published = replace(draft, outcome="published", number=row.version)
    if row.publication is None:
        return published
    return replace(published, author=row.publication.author, seconds=row.publication.seconds)


def _delete_old(history: Mapping[str, PastChange]) -> Mapping[str, PastChange]:
    kept: list[PastChange] = []
    drafts = 0
    for change in reversed(tuple(history.values())):
        drafts += len(change.drafts)
        if change.is_open or (len(kept) < MAX_CHANGES and drafts <= MAX_DRAFTS):
            kept.append(change)
    return {change.key: change for change in reversed(kept)}


def select_drafts(change: PastChange, index: FleetIndex, *, reads_everything: bool) -> PastChange | None:
    """Return a change with the drafts that a person may read. Return None if the person may read none of them.

    Args:
        index: The part of the newest index that the person may read.
        reads_everything: Whether the person may read all packages, also packages that do not exist any more.
    """
    if reads_everything:
        return change
    drafts = tuple(draft for draft in change.drafts if _is_readable(draft, index))
    if not drafts:
        return None
    # If drafts are hidden, remove the lines, because they can contain names of a target that the person may not read.
    return change if len(drafts) == len(change.drafts) else replace(change, drafts=drafts, lines=())


def _is_readable(draft: PastDraft, index: FleetIndex) -> bool:
    target = index.by_target.get(draft.target)
    return target is not None and draft.package in target.by_package
