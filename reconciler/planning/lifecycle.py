"""The life of a draft as people move it: proposed, approved, rejected, dropped (porch 7)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from reconciler.planning.open_drafts import DraftedPackage, Offered, OpenDraft, Reason


@dataclass(frozen=True)
class Refused:
    """It may not be done."""

    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Nothing:
    """It is so already."""

    why: str


@dataclass(frozen=True)
class Propose:
    """Point the draft's proposal at its head; the draft is frozen from then on."""


@dataclass(frozen=True)
class Publish:
    """Bring packages onto the cluster branch. `whole`: nothing is left of the draft, which ends (git.md finding 6)."""

    packages: tuple[DraftedPackage, ...]
    paths: tuple[Offered, ...]
    whole: bool


@dataclass(frozen=True)
class Reject:
    """Delete the proposal: the draft is a draft again."""


@dataclass(frozen=True)
class Drop:
    """Take packages out of the draft, or end it; the next pass remembers what was offered as declined."""

    packages: tuple[DraftedPackage, ...]
    whole: bool


Decision = Refused | Nothing | Propose | Publish | Reject | Drop


def propose(
    draft: OpenDraft, packages: Collection[str], *, accepts_conflicts: bool = False
) -> Refused | Nothing | Propose:
    """Return whether a draft is proposed: of the named packages no gate may be unmet, or of all without names.

    A package with conflicts is refused unless the person accepts them.
    """
    if draft.lifecycle == "Proposed":
        return Nothing(f"{draft.branch} is proposed as it stands")
    if not draft.paths:
        return Nothing(f"{draft.branch} offers nothing that {draft.destination.branch} does not have")
    reasons = (*_unaccepted(draft, packages, accepts_conflicts), *draft.refusals(packages))
    return Refused(reasons) if reasons else Propose()


def approve(
    draft: OpenDraft, packages: Collection[str], at_once: bool, *, accepts_conflicts: bool = False
) -> Refused | Nothing | Publish:
    """Return what of a draft is published. Only what is proposed may be, or what is to be proposed `at_once`.

    Gates and conflicts are checked again: a gate may have closed since, and another person may have proposed it.
    """
    paths = draft.paths_of(packages)
    if not paths:
        what = ", ".join(sorted(packages)) or draft.branch
        return Nothing(f"{draft.destination.branch} has everything that {what} offers")
    conflicts = _unaccepted(draft, packages, accepts_conflicts)
    reasons = (*_unproposed(draft, at_once), *conflicts, *draft.refusals(packages))
    if reasons:
        return Refused(reasons)
    whole = not draft.others(packages)
    # a branch that has not all of a config's packages must not say that it has: Promoter would leave the rest
    told = (draft.metadata,) if whole and draft.metadata else ()
    return Publish(draft.chosen(packages), (*paths, *told), whole)


def _unproposed(draft: OpenDraft, at_once: bool) -> tuple[Reason, ...]:
    if at_once or draft.lifecycle == "Proposed":
        return ()
    why = "has moved on since it was proposed" if draft.lifecycle == "Stale" else "is not proposed"
    return (Reason("NotProposed", f"{draft.branch} {why}; propose it first, or approve it with --propose"),)


def _unaccepted(draft: OpenDraft, packages: Collection[str], accepts_conflicts: bool) -> tuple[Reason, ...]:
    return () if accepts_conflicts else draft.open_conflicts(packages)


def reject(draft: OpenDraft) -> Nothing | Reject:
    """Return whether there is a proposal to take back."""
    return Reject() if draft.proposed else Nothing(f"{draft.branch} is not proposed")


def drop(draft: OpenDraft, packages: Collection[str]) -> Drop:
    """Return what of a draft is dropped, proposed or not."""
    return Drop(draft.chosen(packages), not draft.others(packages))
