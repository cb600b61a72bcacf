"""Confirmations: the drafts that a person is about to review, as the person saw them.

A confirmation contains the heads of the branches. A draft that moves after the confirmation was created is skipped.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Literal

from reconciler.catalog.files import CommitId
from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.fleet.model import ChangeVariant, DraftMember, FleetIndex, ReviewChange
from reconciler.planning.lifecycle.open_drafts import BRANCH_MOVED, CONFLICTS_NOT_ACCEPTED, BlockingReason
from reconciler.review.actions import DRAFT_MOVED
from reconciler.review.draft_permissions import find_permission_refusal, list_branch_rows
from reconciler.review.people import Reviewer, clean_reason
from reconciler.review.permissions import Permissions
from reconciler.review.restricted_index import restrict_index
from reconciler.review.reverts import select_reverts
from reconciler.review.review_requests import (
    ChangeSelection,
    ConfirmedDraft,
    ExcludedDraft,
    JobVerb,
    ReviewRequest,
    ReviewRequestError,
    SelectedTarget,
)

if TYPE_CHECKING:
    from reconciler.review.record_folder import RecordFolder

ReasonCause = Literal["reject", "high risk", "conflict"]
CONFIRMATION_SECONDS = 30 * 60
# The time for which an expired confirmation is stored. During this time, the person can create it again.
_KEPT_SECONDS = 24 * 60 * 60
DEFAULT_CONFIRM_ABOVE = 50
_ID_BYTES = 24


@dataclass(frozen=True)
class Confirmation:
    """The drafts of a request, and the input that the person must add.

    Attributes:
        id: A random ID.
        expires_at: The time after which the confirmation cannot be used, in seconds since 1970.
        reason_causes: Why the person must give a reason. If empty, the reason is optional.
        typed_count: The number of targets, if the person must type this number to confirm. None if the person need not
            type it.
        entered_reason: The reason that the person sent when the session had ended. "" if there is none.
        entered_count: The number of targets that the person sent when the session had ended. None if there is none.
    """

    id: str
    person: Reviewer
    request: ReviewRequest
    expires_at: float
    drafts: tuple[ConfirmedDraft, ...]
    excluded: tuple[ExcludedDraft, ...] = ()
    reason_causes: tuple[ReasonCause, ...] = ()
    typed_count: int | None = None
    entered_reason: str = ""
    entered_count: int | None = None

    @property
    def created_at(self) -> float:
        """The time of the creation, in seconds since 1970."""
        return self.expires_at - CONFIRMATION_SECONDS

    @property
    def verb(self) -> JobVerb:
        """The action."""
        return self.request.verb

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the targets to which the action applies, sorted."""
        return tuple(sorted({draft.target for draft in self.drafts}))

    def group_by_branch(self) -> Mapping[tuple[str, str], Sequence[ConfirmedDraft]]:
        """Return the drafts by target and draft branch."""
        groups: dict[tuple[str, str], list[ConfirmedDraft]] = {}
        for draft in self.drafts:
            groups.setdefault((draft.target, draft.branch), []).append(draft)
        return groups

    def group_by_result(self) -> Sequence[tuple[ConfirmedDraft, ...]]:
        """Return the drafts in groups. The action has one result for each group."""
        if self.verb == "revert":
            return [(draft,) for draft in self.drafts]
        return [tuple(drafts) for drafts in self.group_by_branch().values()]


def build_confirmation(
    index: FleetIndex, permissions: Permissions, request: ReviewRequest, readable: FleetIndex | None = None
) -> tuple[tuple[ConfirmedDraft, ...], tuple[ExcludedDraft, ...]]:
    """Return the selected drafts to which the request applies, and the selected drafts that it excludes.

    Neither result contains drafts that the person may not read.

    Args:
        readable: The part of the index that the person may read. If None, it is computed from `permissions`.

    Raises:
        ReviewRequestError: The index does not contain a selected change or variant.
    """
    readable = readable or restrict_index(index, permissions)
    if request.verb == "revert":
        return select_reverts(index, permissions, request.published, readable)
    drafts: dict[tuple[str, str], ConfirmedDraft] = {}
    excluded: dict[tuple[str, str], ExcludedDraft] = {}
    for selection in request.selections:
        if replaced := _list_replaced(readable, selection):
            excluded |= {(draft.target, draft.package): draft for draft in replaced}
            continue
        unknown = {target.name for target in selection.targets}
        # If the person selected a whole stage and no single targets, `target.head` is empty for all targets.
        is_explicit = any(target.head or not request.stage for target in selection.targets)
        for draft, member, selected in _list_selected(readable, selection):
            unknown.discard(draft.target)
            reason = (
                find_permission_refusal(index, permissions, request.verb, draft)
                or _find_moved_branch(draft, selected)
                or _find_obstacle(request, draft, member, is_explicit=is_explicit)
            )
            key = draft.target, draft.package
            if reason:
                excluded[key] = ExcludedDraft(*key, reason)
            else:
                drafts[key] = draft
        for name in sorted(unknown):
            reason = BlockingReason(DRAFT_MOVED, "the target has no draft of this change any more")
            excluded[name, ""] = ExcludedDraft(name, "", reason)
    return tuple(drafts.values()), tuple(excluded.values())


def _list_replaced(readable: FleetIndex, selection: ChangeSelection) -> list[ExcludedDraft]:
    """Return all drafts of the selected change if its targets or effects have changed since the person selected it.

    Return [] if `ReviewChange.effects`, the digest of the effects, is unchanged. Also return [] if `selection` contains
    no digest.
    """
    change = readable.by_change.get(selection.key)
    if not selection.effects or (change and change.effects == selection.effects):
        return []
    if change is None:
        reason = BlockingReason(DRAFT_MOVED, "the change was published, withdrawn or replaced after you selected it")
        return [ExcludedDraft(f"change {selection.key}", "", reason)]
    message = (
        f"the targets or effects of the change {change.title} have changed since you selected the change;"
        " review the change again"
    )
    reason = BlockingReason(DRAFT_MOVED, message)
    return [ExcludedDraft(member.target, member.package, reason) for member in change.members]


def _list_selected(
    readable: FleetIndex, selection: ChangeSelection
) -> Iterator[tuple[ConfirmedDraft, DraftMember, SelectedTarget]]:
    change = readable.by_change.get(selection.key)
    if change is None:
        raise ReviewRequestError(
            "UnknownChange",
            f'there is no change "{selection.key}" any more: it was published, withdrawn or replaced; open the list of'
            " changes",
        )
    selected = {target.name: target for target in selection.targets}
    for variant in _select_variants(change, selection):
        for member in variant.members:
            if not selected or member.target in selected:
                draft = _build_draft(readable, change, variant, member)
                yield draft, member, selected.get(member.target, SelectedTarget(member.target))


def _select_variants(change: ReviewChange, selection: ChangeSelection) -> list[ChangeVariant]:
    variants = [variant for variant in change.variants if not selection.variants or variant.key in selection.variants]
    unknown = selection.variants - {variant.key for variant in variants}
    if unknown:
        raise ReviewRequestError(
            "UnknownVariant",
            f"the change {change.key} has no variant {', '.join(sorted(unknown))} any more; review the change again",
        )
    return variants


def _build_draft(
    readable: FleetIndex, change: ReviewChange, variant: ChangeVariant, member: DraftMember
) -> ConfirmedDraft:
    packages = [row.package for row in list_branch_rows(readable, member.target, member.branch)]
    return ConfirmedDraft(
        target=member.target,
        package=member.package,
        branch=member.branch,
        head=CommitId(member.head),
        published_head=CommitId(member.published_head),
        change=change.key,
        variant_digest=variant.digest,
        variant=variant.key,
        risk=variant.content.risk.level,
        is_removal=variant.content.is_removal,
        conflict_count=len(variant.content.conflicts),
        other_packages=tuple(package for package in packages if package != member.package),
    )


def _find_moved_branch(draft: ConfirmedDraft, selected: SelectedTarget) -> BlockingReason | None:
    if selected.head and selected.head != draft.head:
        return BlockingReason(DRAFT_MOVED, f'"{draft.branch}" has changed since the review; review the draft again')
    if selected.published_head and selected.published_head != draft.published_head:
        return BlockingReason(BRANCH_MOVED, "the target branch has changed since the review; review the draft again")
    return None


def _find_obstacle(
    request: ReviewRequest, draft: ConfirmedDraft, member: DraftMember, *, is_explicit: bool
) -> BlockingReason | None:
    """Return the reason why the action has no effect on a draft, or must not be applied to it.

    Args:
        is_explicit: Whether the person selected the target, and not the whole change.
    """
    if request.verb == "reject":
        is_rejected = member.state == "rejected"
        return BlockingReason("AlreadyRejected", f'"{draft.branch}" is already rejected') if is_rejected else None
    if member.state == "rejected" and not is_explicit:
        message = (
            f'"{draft.branch}" was {member.rejection}; to {request.verb} the draft nevertheless, select its target'
        )
        return BlockingReason("Rejected", message)
    if draft.is_removal != request.removals:
        code, message = (
            ("RemovalNeedsSeparateAction", f"the draft removes {draft.package}; confirm removals in a separate action")
            if draft.is_removal
            else ("NotARemoval", f"the draft does not remove {draft.package}, but this action applies only to removals")
        )
        return BlockingReason(code, message)
    if member.refusals:
        return member.refusals[0]
    if draft.conflict_count and not request.accepts_conflicts:
        count = format_count(draft.conflict_count, "conflict")
        return BlockingReason(CONFLICTS_NOT_ACCEPTED, f"{draft.package} has {count}; review and accept the conflicts")
    if request.verb == "propose" and member.lifecycle == "Proposed":
        return BlockingReason("AlreadyProposed", f'"{draft.branch}" is already proposed')
    return None


def _list_reason_causes(verb: JobVerb, drafts: Iterable[ConfirmedDraft]) -> Iterator[ReasonCause]:
    confirmed = tuple(drafts)
    if verb == "reject":
        yield "reject"
    if any(draft.risk == "high" for draft in confirmed):
        yield "high risk"
    if any(draft.conflict_count for draft in confirmed):
        yield "conflict"


def check_input(confirmation: Confirmation, reason: str, typed_count: int | None) -> None:
    """Check the input that a person adds to a confirmation.

    Raises:
        ReviewRequestError: An input is missing or wrong.
    """
    if not confirmation.drafts:
        raise ReviewRequestError(
            "NothingToDo", "the action applies to no draft; see the reasons of the excluded drafts"
        )
    if confirmation.reason_causes and not clean_reason(reason):
        causes = ", ".join(confirmation.reason_causes)
        raise ReviewRequestError("ReasonRequired", f"a reason is required ({causes}); enter a reason")
    if confirmation.typed_count is not None and typed_count != confirmation.typed_count:
        raise ReviewRequestError(
            "CountMismatch", f"type the number of targets, {confirmation.typed_count}, to confirm the action"
        )


class ConfirmationStore:
    """Stores confirmations, which are valid for 30 minutes. The numbers of confirmations and drafts are limited.

    After a confirmation has expired, a new confirmation can be created for its request. The new confirmation contains
    the current drafts.

    Args:
        clock: Returns seconds since 1970.
        confirm_above: The number of targets above which the person must type the number of targets.
        max_confirmations: The maximum number of confirmations of all people. The oldest confirmations are deleted.
        max_per_person: The maximum number of confirmations of one person.
        max_drafts: The maximum number of drafts in all confirmations, including the excluded drafts.
        folder: Stores the confirmations for later processes. If None, the confirmations are only in memory.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        confirm_above: int = DEFAULT_CONFIRM_ABOVE,
        folder: RecordFolder[Confirmation] | None = None,
        *,
        max_confirmations: int = 1_000,
        max_per_person: int = 50,
        max_drafts: int = 200_000,
    ) -> None:
        self._clock = clock
        self.confirm_above = confirm_above
        self._folder = folder
        self._max_confirmations = max_confirmations
        self._max_per_person = max_per_person
        self._max_drafts = max_drafts
        self._lock = Lock()
        stored = folder.read_all() if folder else ()
        self._confirmations = {confirmation.id: confirmation for confirmation in stored}

    def create(
        self,
        index: FleetIndex,
        person: Reviewer,
        permissions: Permissions,
        request: ReviewRequest,
        readable: FleetIndex | None = None,
    ) -> Confirmation:
        """Create and store the confirmation of a request.

        Args:
            index: The index of the whole fleet.
            readable: The part of the index that the person may read, if it is known.

        Raises:
            ReviewRequestError: The index does not contain a selected change, or too many drafts are selected.
        """
        drafts, excluded = build_confirmation(index, permissions, request, readable)
        if len(drafts) + len(excluded) > self._max_drafts:
            raise ReviewRequestError("TooManyDrafts", f"select at most {self._max_drafts} drafts")
        now = self._clock()
        targets = {draft.target for draft in drafts}
        is_large = len(targets) > self.confirm_above or any(draft.risk == "high" for draft in drafts)
        confirmation = Confirmation(
            id=secrets.token_urlsafe(_ID_BYTES),
            person=person,
            request=request,
            expires_at=now + CONFIRMATION_SECONDS,
            drafts=drafts,
            excluded=excluded,
            reason_causes=tuple(_list_reason_causes(request.verb, drafts)),
            typed_count=len(targets) if is_large and drafts else None,
        )
        with self._lock:
            self._delete_expired(now)
            self._delete_excess(confirmation)
            self._store(confirmation)
        return confirmation

    def find(self, confirmation_id: str, person: Reviewer) -> Confirmation | None:
        """Return a confirmation of this person. Return None if there is none, or if it has expired."""
        found = self.find_expired(confirmation_id, person)
        return found if found and found.expires_at > self._clock() else None

    def find_expired(self, confirmation_id: str, person: Reviewer) -> Confirmation | None:
        """Return a confirmation of this person, also if it has expired. Return None if it does not exist any more."""
        with self._lock:
            self._delete_expired(self._clock())
            found = self._confirmations.get(confirmation_id)
        return found if found and found.person.key == person.key else None

    def keep_input(self, confirmation_id: str, reason: str, count: int | None) -> bool:
        """Store the form input of a person whose session has ended. Return whether the confirmation exists.

        The caller needs no session, because only the person knows the ID of the confirmation. The person must
        confirm the action after signing in again.
        """
        with self._lock:
            found = self._confirmations.get(confirmation_id)
            if found:
                self._store(replace(found, entered_reason=clean_reason(reason), entered_count=count))
        return found is not None

    def _store(self, confirmation: Confirmation) -> None:
        self._confirmations[confirmation.id] = confirmation
        if self._folder:
            self._folder.write(confirmation)

    def _delete(self, confirmation_id: str) -> Confirmation:
        if self._folder:
            self._folder.delete(confirmation_id)
        return self._confirmations.pop(confirmation_id)

    def _delete_expired(self, now: float) -> None:
        for key in [key for key, value in self._confirmations.items() if value.expires_at + _KEPT_SECONDS <= now]:
            self._delete(key)

    def _delete_excess(self, new: Confirmation) -> None:
        """Delete the oldest confirmations, first those of the same person, until the new one fits into the limits."""
        own = [key for key, value in self._confirmations.items() if value.person.key == new.person.key]
        for key in own[: max(len(own) - self._max_per_person + 1, 0)]:
            self._delete(key)
        count = sum(_count_drafts(confirmation) for confirmation in self._confirmations.values())
        while self._confirmations and (
            len(self._confirmations) >= self._max_confirmations or count + _count_drafts(new) > self._max_drafts
        ):
            oldest = next(iter(self._confirmations))
            count -= _count_drafts(self._delete(oldest))


def _count_drafts(confirmation: Confirmation) -> int:
    return len(confirmation.drafts) + len(confirmation.excluded)
