"""Cells: where each package of a destination stands, by its refs alone; nothing is planned (porch 1.1, 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from reconciler.planning.ground import Ground
from reconciler.planning.open_drafts import DraftedPackage, OpenDraft, Reason, blocked_by
from reconciler.planning.state import PackageRecord, Revision
from reconciler.snapshot.objects import BlobId, TreeId

State = Literal[
    "blocked", "held", "removal", "proposed", "edited", "draft", "declined", "orphaned", "published"
]  # fmt: skip
STATES: tuple[State, ...] = get_args(State)
"""Every state, what needs people most first; a package has the first that is true of it."""


@dataclass(frozen=True)
class Cell:
    """A package on one destination: its state, what is published of it, and the draft that it is on.

    `status` is its status file on the cluster branch. `revision` is what is published, None where that is no revision
    of ours, or too old a one. `edited`: people changed what is published. `reasons` say why it is blocked or held, why
    the update of a proposed draft waits, or why its removal does.
    """

    package: str
    record: PackageRecord
    state: State
    published: TreeId | None = None
    status: BlobId | None = None
    revision: Revision | None = None
    edited: bool = False
    draft: OpenDraft | None = None
    drafted: DraftedPackage | None = None
    reasons: tuple[Reason, ...] = ()

    @property
    def is_status_ours(self) -> bool:
        """Whether the status file on the cluster branch is one of ours, as we wrote it."""
        offers = (self.record.ours, *(known.offer for known in self.record.revisions))
        return any(one is not None and one.status == self.status for one in offers)

    @property
    def refusals(self) -> tuple[Reason, ...]:
        """Why the draft may be neither proposed nor published; only this package's reasons."""
        return self.draft.refusals((self.package,)) if self.draft else ()


def cells(ground: Ground, drafts: Iterable[OpenDraft]) -> Iterator[Cell]:
    """Yield each package that a destination has, is offered, or is denied, by name."""
    offered = {one.package: (draft, one) for draft in drafts for one in draft.packages}
    for package, record in sorted(ground.state.packages.items()):
        published, status = ground.at(ground.heads.branch, package)
        draft, one = offered.get(package, (None, None))
        reasons = tuple(_reasons(record))
        state = _state(record, published, draft, one, reasons)
        if state is None:
            continue
        ours = record.ours
        revision = next((known for known in reversed(record.revisions) if known.offer == ours), None)
        edited = published is not None and ours is not None and published != ours.rendered
        yield Cell(
            package, record, state, published, status, revision if published else None, edited, draft, one, reasons
        )


def _state(
    record: PackageRecord, published: TreeId | None, draft: OpenDraft | None, one: DraftedPackage | None,
    reasons: tuple[Reason, ...],
) -> State | None:  # fmt: skip
    kind = record.outcome.get("kind")
    # what only waits for its own proposal is no error: the proposal is what there is to see
    if kind == "blocked" and (one is None or any(blocked_by(record))):
        return "blocked"
    if kind == "held" and reasons:
        return "held"
    if draft and one:
        return _on_draft(record, draft, one)
    if record.removal and not record.removal.declined:
        return "removal"
    if _is_declined(record, published):
        return "declined"
    if published is None:
        return None
    return "published" if record.owned else "orphaned"


def _on_draft(record: PackageRecord, draft: OpenDraft, one: DraftedPackage) -> State:
    if one.removed:
        return "removal"
    if draft.lifecycle == "Proposed":
        return "proposed"
    # what nobody offered and is there all the same is people's work
    return "edited" if one.edited or record.put is None else "draft"


def _is_declined(record: PackageRecord, published: TreeId | None) -> bool:
    """Return whether people turned down what was last wanted, be it a version or a removal."""
    dropped = record.wanted in record.declined and record.wanted != published
    return record.owned and (dropped or (record.removal is not None and record.removal.declined))


def _reasons(record: PackageRecord) -> Iterator[Reason]:
    """Yield why the last pass left the package as it was, by its findings, else by what its owner was told."""
    outcome = record.outcome
    match outcome.get("kind"):
        case "blocked":
            yield from tuple(blocked_by(record)) or _unready(outcome)
        case "held":
            yield from _told(outcome)
        case _ if record.removal:
            yield from _told(outcome)


def _told(outcome: Mapping[str, Any]) -> Iterator[Reason]:
    return (Reason(one["code"], one["message"]) for one in outcome.get("findings", ()))


def _unready(outcome: Mapping[str, Any]) -> tuple[Reason, ...]:
    found = [one for one in outcome.get("conditions", ()) if one["type"] == "Ready" and one["status"] != "True"]
    return tuple(Reason(one["reason"], one["message"]) for one in found)
