"""One change: what a reviewer must know to decide, the differences of a variant, and its targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus

from reconciler.git.errors import GitError
from reconciler.inspect.draft_content import DraftMovedError
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.change_history import MAX_LINES, DraftOutcome, PastChange, PastDraft
from reconciler.output.fleet.model import ChangeVariant, DraftMember, ReviewChange
from reconciler.output.fleet.resource_diffs import ResourceDiff
from reconciler.output.text import format_count
from reconciler.reconcile.failures import log_if_internal, repository_boundary
from reconciler.review.stages import list_progress
from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.listing import list_page, read_choice
from reconciler.server.console.page import PageContent, PageRequest
from reconciler.server.console.selected_drafts import select_member, select_variant

VIEWS = ("unified", "split")
_MAX_LINES = 400
_MAX_RESOURCE_LINES = 5_000
_MAX_TARGETS = 20
_MAX_VALUES = 20


@dataclass(frozen=True)
class ShownDiffs:
    """The diffs of a draft on a page.

    Attributes:
        hidden: The titles of the resources whose lines are not shown, because the page has too many lines.
        error: The reason why the diffs cannot be read. "" if they were read.
    """

    diffs: tuple[ResourceDiff, ...] = ()
    noise: tuple[ResourceDiff, ...] = ()
    hidden: frozenset[str] = frozenset()
    error: str = ""


def build_page(page: PageRequest) -> PageContent:
    """Build the content of the page."""
    request = page.request
    change = page.index.by_change.get(request.path_params["key"])
    if change is None:
        return _build_gone_page(page)
    variant = select_variant(change, request.query_params.get("variant", ""), request.query_params.get("target", ""))
    member = select_member(variant, request.query_params.get("target", ""))
    position = change.members.index(member)
    resource = request.query_params.get("resource", "")
    shown = read_diffs(page.context, member, resource)
    return PageContent(
        "change.html",
        {
            "change": change,
            "variant": variant,
            "first": member,
            "shown": shown,
            "resource": resource,
            "view": read_choice(request.query_params, "view", VIEWS, "unified"),
            "should_show_noise": request.query_params.get("noise") == "show",
            "members": change.members[:_MAX_TARGETS],
            "stages": list_progress(page.index, change, page.context.stages),
            "previous": change.members[position - 1] if position else None,
            "next": change.members[position + 1] if position + 1 < len(change.members) else None,
            "differences": {other.key: describe_difference(variant, other) for other in change.groups.others},
            "max_values": _MAX_VALUES,
        },
        is_from_index=not shown.error,
    )


def _build_gone_page(page: PageRequest) -> PageContent:
    """Build the page of a change that is not open any more: what happened to its drafts."""
    key = page.request.path_params["key"]
    past = page.context.archive.find(key, page.index, page.session.permissions)
    successors = Counter(draft.successor for draft in past.drafts if draft.successor) if past else {}
    return PageContent(
        "change_gone.html",
        {
            "key": key,
            "past": past,
            "by_outcome": group_drafts(past.drafts) if past else {},
            "listing": list_page(past.drafts, page.request.query_params) if past else None,
            "successors": [
                (other, count, compare_lines(past, page.index.by_change.get(other.key)) if past else None)
                for successor, count in successors.items()
                if (other := find_change(page, successor))
            ],
        },
        HTTPStatus.GONE,
    )


def find_change(page: PageRequest, key: str) -> ReviewChange | PastChange | None:
    """Return an open or past change. Return None if the person may not read it, or if it is unknown."""
    archive, permissions = page.context.archive, page.session.permissions
    return page.index.by_change.get(key) or archive.find(key, page.index, permissions)


def group_drafts(drafts: Iterable[PastDraft]) -> Mapping[DraftOutcome, Sequence[PastDraft]]:
    """Return the drafts by their outcome."""
    groups: dict[DraftOutcome, list[PastDraft]] = {}
    for draft in drafts:
        groups.setdefault(draft.outcome, []).append(draft)
    return groups


def compare_lines(past: PastChange, newer: ReviewChange | None) -> tuple[Sequence[str], Sequence[str]]:
    """Return two lists of lines: the effects of only the past change, and the effects of only the newer change."""
    if newer is None or not past.lines:
        return (), ()
    lines = newer.variants[0].content.changes.format_summary_lines(MAX_LINES)
    return [line for line in past.lines if line not in lines], [line for line in lines if line not in past.lines]


def build_targets_page(page: PageRequest) -> PageContent:
    """Build the page with all targets of a change."""
    change = page.index.by_change.get(page.request.path_params["key"])
    if change is None:
        return _build_gone_page(page)
    rows = [(variant, member) for variant in change.variants for member in variant.members]
    values = {"change": change, "listing": list_page(rows, page.request.query_params)}
    return PageContent("change_targets.html", values, is_from_index=True)


def read_diffs(context: ConsoleContext, member: DraftMember, resource: str = "") -> ShownDiffs:
    """Return the diffs of a draft.

    Args:
        resource: The title of a resource. Its lines are always shown.
    """
    try:
        with repository_boundary("the content of a draft"):
            diffs = context.contents.read(member).diffs
    except DraftMovedError:
        return ShownDiffs(error="The draft has changed since the last pass. The next pass shows its new content.")
    except GitError as error:
        log_if_internal(error)
        return ShownDiffs(error=error.full_message)
    hidden, lines = set(), 0
    for diff in diffs:
        lines += 0 if diff.is_noise else diff.changed_lines
        if diff.title != resource and (lines > _MAX_LINES or diff.changed_lines > _MAX_RESOURCE_LINES):
            hidden.add(diff.title)
    shown = tuple(diff for diff in diffs if not diff.is_noise)
    return ShownDiffs(shown, tuple(diff for diff in diffs if diff.is_noise), frozenset(hidden))


def describe_difference(first: ChangeVariant, other: ChangeVariant) -> str:
    """Return how a variant differs from the shown variant, as a phrase. "" for the shown variant."""
    if other is first:
        return ""
    parts = []
    if len(other.content.conflicts) != len(first.content.conflicts):
        parts.append(format_count(len(other.content.conflicts), "conflict"))
    lines = set(other.content.changes.format_summary_lines()) - set(first.content.changes.format_summary_lines())
    parts += sorted(lines)[:2]
    if any(member.editors for member in other.members):
        parts.append("local changes")
    if _list_codes(other) != _list_codes(first):
        parts.append("other reasons that block the draft")
    return "; ".join(parts) or "other values in the same resources"


def _list_codes(variant: ChangeVariant) -> set[str]:
    return {refusal.reason for member in variant.members for refusal in member.refusals}
