"""The page of one change: the data for the decision of a reviewer, the differences of a variant, and its targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus

from reconciler.krm.numbers import format_count
from reconciler.krm.selectors import parse_label_query
from reconciler.lazy_dataclasses import replace
from reconciler.output.explain.verification import CommitInfo
from reconciler.output.fleet.change_history import MAX_LINES as MAX_HISTORY_LINES
from reconciler.output.fleet.change_history import DraftOutcome, PastChange, PastDraft
from reconciler.output.fleet.large_diffs import MAX_BYTES
from reconciler.output.fleet.model import ChangeVariant, ReviewChange
from reconciler.review.restricted_index import hide_names, list_hidden_names
from reconciler.review.stages import list_progress
from reconciler.server.console.listing import check_selector, count_filters, list_page, read_choice, read_text
from reconciler.server.console.page import PageContent, PageRequest
from reconciler.server.console.pages.release_effects import has_releases
from reconciler.server.console.selected_drafts import select_member, select_variant
from reconciler.server.console.shown_diffs import MAX_LINES, ShownDiffs, read_diffs
from reconciler.server.console.target_groups import group_members, list_group_labels, list_member_rows
from reconciler.server.console.topics import build_change_topic

VIEWS = ("unified", "split", "list")
_MAX_TARGETS = 20
_MAX_TARGETS_PER_GROUP = 5
_MAX_VALUES = 20


def build_page(page: PageRequest) -> PageContent:
    """Build the content of the page."""
    query = page.request.query_params
    change = page.index.by_change.get(page.request.path_params["key"])
    if change is None:
        return _build_gone_page(page)
    variant = select_variant(change, query.get("variant", ""), query.get("target", ""))
    member = select_member(variant, query.get("target", ""))
    target = page.index.by_target[member.target]
    draft = target.by_package[member.package].draft
    assert draft is not None, "a member of a change is the draft of a package"
    position = change.members.index(member)
    resource = query.get("resource", "")
    is_known = page.context.contents.find(member, resource) is not None

    def read_shown() -> ShownDiffs:
        shown = read_diffs(page.context, target, member, draft.content, resource)
        return replace(shown, local_commits=tuple(_hide_names(page, shown.local_commits)))

    labels = list_group_labels(page.index.by_target[each.target] for each in change.members)
    label = read_choice(query, "by", labels, next(iter(labels), ""))
    return PageContent(
        "change.html",
        {
            "change": change,
            "variant": variant,
            # Do not use the content of the variant, because its texts contain the name of the variant's first target.
            "content": draft.content,
            "first": member,
            # The template reads the differences after the buttons, so that a large draft does not delay the buttons.
            "read_shown": read_shown,
            "max_lines": MAX_LINES,
            "max_bytes": MAX_BYTES,
            "view": read_choice(query, "view", VIEWS, "unified"),
            "views": VIEWS,
            "should_show_noise": query.get("noise") == "show",
            "is_folded": query.get("fold") == "all",
            "labels": labels,
            "label": label,
            "groups": group_members(change, page.index.by_target, label),
            "max_targets": _MAX_TARGETS_PER_GROUP if labels else _MAX_TARGETS,
            "stages": list_progress(page.index, change, page.context.stages),
            "previous": change.members[position - 1] if position else None,
            "next": change.members[position + 1] if position + 1 < len(change.members) else None,
            "differences": {other.key: describe_difference(variant, other) for other in change.groups.others},
            "max_values": _MAX_VALUES,
            "has_releases": has_releases(draft.content),
        },
        # Browsers may cache the page only if its diffs are in memory (`is_known`). Reading other diffs can fail, and
        # the page then contains the error.
        is_from_index=is_known,
        is_streamed=not is_known,
        topics=(build_change_topic(change.key),),
    )


def _hide_names(page: PageRequest, commits: Iterable[CommitInfo | None]) -> Iterator[CommitInfo | None]:
    """Yield the commits. Their messages contain no names of targets that the person may not read."""
    hidden = list_hidden_names(page.whole_index, page.index)
    return (commit and replace(commit, subject=hide_names(commit.subject, hidden)) for commit in commits)


def _build_gone_page(page: PageRequest) -> PageContent:
    """Build the page of a change that is not open any more. The page shows the outcomes of its drafts."""
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
    """Compare the summary lines of a past change and of a newer change.

    Return two lists: the lines that only the past change has, and the lines that only the newer change has.
    """
    if newer is None or not past.lines:
        return (), ()
    lines = newer.variants[0].content.changes.format_summary_lines(MAX_HISTORY_LINES)
    return [line for line in past.lines if line not in lines], [line for line in lines if line not in past.lines]


def build_targets_page(page: PageRequest) -> PageContent:
    """Build the page with all targets of a change."""
    change = page.index.by_change.get(page.request.path_params["key"])
    if change is None:
        return _build_gone_page(page)
    query = page.request.query_params
    selector = read_text(query, "target")
    error = check_selector(selector)
    matches = parse_label_query("" if error else selector).matches
    rows = [row for row in list_member_rows(change) if matches(page.index.by_target[row[1].target].labels)]
    values = {
        "change": change, "listing": list_page(rows, query), "targets": page.index.by_target,
        "selector_error": error, "filter_count": count_filters(query, ("target",)),
    }  # fmt: skip
    topics = (build_change_topic(change.key),)
    return PageContent("change_targets.html", values, is_from_index=True, topics=topics)


def describe_difference(first: ChangeVariant, other: ChangeVariant) -> str:
    """Return how a variant differs from the shown variant, as a phrase. Return "" for the shown variant."""
    if other is first:
        return ""
    parts = []
    if len(other.content.conflicts) != len(first.content.conflicts):
        parts.append(format_count(len(other.content.conflicts), "conflict"))
    lines = set(other.content.changes.format_summary_lines()) - set(first.content.changes.format_summary_lines())
    parts += sorted(lines)[:2]
    if other.content.template_effects != first.content.template_effects:
        parts.append("different effects of templates")
    if any(member.editors for member in other.members):
        parts.append("local changes")
    if _list_codes(other) != _list_codes(first):
        parts.append("different reasons that block the draft")
    return "; ".join(parts) or "different values in the same resources"


def _list_codes(variant: ChangeVariant) -> set[str]:
    return {refusal.reason for member in variant.members for refusal in member.refusals}
