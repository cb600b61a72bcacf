"""Review actions: a person selects drafts, confirms the action, and follows the job that applies it."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Collection, Iterable
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request

from reconciler.lazy_dataclasses import replace
from reconciler.output.fleet.model import ReviewChange
from reconciler.review.confirmations import Confirmation
from reconciler.review.jobs import Submission
from reconciler.review.reverts import has_published
from reconciler.review.review_requests import (
    CONSOLE_VERBS,
    ChangeSelection,
    ConsoleVerb,
    ReviewRequest,
    ReviewRequestError,
    SelectedTarget,
)
from reconciler.review.stages import StageProgress, find_stage, list_progress, list_unpublished
from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.forms import Form, is_same_origin
from reconciler.server.console.listing import is_number
from reconciler.server.console.page import PageContent, PageRequest, Redirect
from reconciler.server.console.pages.change import find_change
from reconciler.server.console.pages.missing import build_forgotten_page, build_refusal_page
from reconciler.server.request_ids import read_request_id

_KEY_BYTES = 16
_REFUSED = "The action is not possible"
_READ_ONLY = (
    "This process is a read-only standby. Review the change in the console of the daemon that runs without --read-only."
)


def create_confirmation(page: PageRequest, form: Form) -> PageContent | Redirect:
    """Store the selected drafts, and show what the action will do."""
    if page.context.state.is_read_only:
        return build_refusal_page(_REFUSED, _READ_ONLY)
    verb = next((verb for verb in CONSOLE_VERBS if verb == form.get("verb")), None)
    if verb is None:
        raise HTTPException(HTTPStatus.BAD_REQUEST)
    try:
        confirmation = page.context.confirmations.create(
            page.whole_index, page.session.person, page.session.permissions, _read_request(page, form, verb), page.index
        )
    except ReviewRequestError as error:
        return build_refusal_page(_REFUSED, str(error))
    return Redirect(f"/confirmations/{confirmation.id}")


def _read_request(page: PageRequest, form: Form, verb: ConsoleVerb) -> ReviewRequest:
    if form.get("chosen") and not form.get_all(form.get("chosen")):
        kind = "change" if form.get("chosen") == "row" else "target or variant"
        raise ReviewRequestError("NothingChosen", f"choose at least one {kind}")
    selections = _read_selections(form)
    if stage := form.get("stage"):
        selections = [selected for selection in selections if (selected := _select_stage(page, selection, stage))]
        if not selections:
            message = f"no chosen target is in the stage {stage}; choose other targets, or another stage"
            raise ReviewRequestError("StageEmpty", message)
    has_removals, accepts_conflicts = form.get("removals") == "yes", form.get("conflicts") == "accept"
    return ReviewRequest(verb, tuple(selections), has_removals, accepts_conflicts, stage)


def _read_selections(form: Form) -> list[ChangeSelection]:
    """Return the selected changes from one of two HTML forms.

    - The form for several changes contains a field `row` for each change. The value of `row` is `CHANGE EFFECTS`.
      EFFECTS is the digest `ReviewChange.effects`.
    - The form for one change contains the fields `change`, `variant` and `target`. The value of `target` is
      `NAME HEAD PUBLISHED_HEAD`.
    """
    variants = frozenset(form.get_all("variant"))
    targets = tuple(SelectedTarget(*value.split(" ")[:3]) for value in form.get_all("target"))
    rows = (value.partition(" ") for value in form.get_all("row"))
    return [
        *(ChangeSelection(key, variants, targets) for key in form.get_all("change")),
        *(ChangeSelection(key, effects=effects) for key, _, effects in rows),
    ]


def _select_stage(page: PageRequest, selection: ChangeSelection, stage: str) -> ChangeSelection | None:
    """Remove the targets outside of a stage (a group of targets) from a selection. Return None if no target remains.

    A selection whose change is not open is returned unchanged.
    """
    change = page.index.by_change.get(selection.key)
    if change is None:
        return selection
    names = {
        member.target
        for variant in change.variants
        for member in variant.members
        if not selection.variants or variant.key in selection.variants
        if find_stage(page.index.by_target[member.target], page.context.stages) == stage
    }
    chosen = selection.targets or tuple(map(SelectedTarget, sorted(names)))
    targets = tuple(target for target in chosen if target.name in names)
    return replace(selection, targets=targets) if targets else None


def build_confirmation_page(page: PageRequest) -> PageContent:
    """Build the page that shows the drafts to which an action applies."""
    confirmation = _find_confirmation(page)
    if confirmation:
        return _build_confirmation_page(page, confirmation)
    expired = page.context.confirmations.find_expired(page.request.path_params["id"], page.session.person)
    if expired:
        return PageContent("confirmation_expired.html", {"confirmation": expired}, HTTPStatus.GONE)
    return _build_unknown_page()


def _find_confirmation(page: PageRequest) -> Confirmation | None:
    return page.context.confirmations.find(page.request.path_params["id"], page.session.person)


def _build_unknown_page() -> PageContent:
    message = "The confirmation does not exist any more, or it belongs to another person. Review the change again."
    return build_refusal_page("The action cannot be confirmed", message, HTTPStatus.GONE)


def renew_confirmation(page: PageRequest, _form: Form) -> PageContent | Redirect:
    """Create an expired confirmation again, with the current drafts."""
    if page.context.state.is_read_only:
        return build_refusal_page(_REFUSED, _READ_ONLY)
    try:
        confirmation = _renew(page)
    except ReviewRequestError as error:
        return build_refusal_page(_REFUSED, str(error))
    return Redirect(f"/confirmations/{confirmation.id}") if confirmation else _build_unknown_page()


def _renew(page: PageRequest) -> Confirmation | None:
    """Create an expired confirmation again. Return None if the person has no expired confirmation with this ID."""
    store, session = page.context.confirmations, page.session
    expired = store.find_expired(page.request.path_params["id"], session.person)
    if expired is None:
        return None
    renewed = store.create(page.whole_index, session.person, session.permissions, expired.request, page.index)
    store.keep_input(renewed.id, expired.entered_reason, None)
    return store.find(renewed.id, session.person)


def keep_input(context: ConsoleContext, request: Request, form: Form) -> str:
    """Store the text that the person entered on the confirmation page, because the action cannot be confirmed now.

    Return the path of the page that shows the input again. Return "" if no input was stored.
    """
    if not _is_submission(request):
        return ""
    identifier = request.path_params["id"]
    is_kept = context.confirmations.keep_input(identifier, form.get("reason"), _read_count(form))
    return f"/confirmations/{identifier}" if is_kept else ""


def show_again(page: PageRequest, form: Form) -> PageContent | None:
    """Show a confirmation page and its input again, after the form was sent with an old CSRF token.

    Return None if the form does not belong to a confirmation page.
    """
    confirmation = _find_confirmation(page) if _is_submission(page.request) else None
    if confirmation is None:
        return None
    message = "no draft was changed, because the page belongs to an earlier session; confirm the action again"
    content = _build_confirmation_page(page, confirmation, message, form.get("reason"))
    return replace(content, status=HTTPStatus.FORBIDDEN)


def _is_submission(request: Request) -> bool:
    """Return whether a page of the console has sent the form of a confirmation."""
    identifier = request.path_params.get("id", "")
    return request.url.path == f"/confirmations/{identifier}/submit" and is_same_origin(request)


def _read_count(form: Form) -> int | None:
    text = form.get("count").strip()
    return int(text) if is_number(text) else None


def _build_confirmation_page(
    page: PageRequest, confirmation: Confirmation, error: str = "", reason: str = "", key: str = ""
) -> PageContent:
    excluded: dict[tuple[str, str], list[str]] = {}
    for draft in confirmation.excluded:
        place = f"{draft.target}/{draft.package}" if draft.package else draft.target
        excluded.setdefault((draft.reason.reason, draft.reason.message), []).append(place)
    keys = dict.fromkeys(draft.change for draft in confirmation.drafts)
    changes = {key: page.index.by_change.get(key) for key in keys}
    digests = {draft.variant_digest for draft in confirmation.drafts}
    return PageContent(
        "confirmation.html",
        {
            "confirmation": confirmation,
            "excluded": excluded,
            "has_conflicts": any(code == "ConflictsNotAccepted" for code, _ in excluded),
            "has_removals": any(code == "RemovalNeedsSeparateAction" for code, _ in excluded),
            "changes": changes,
            "reasons": {key: _list_risks(change, digests) for key, change in changes.items() if change},
            "stage_counts": _count_targets(page, confirmation),
            "merge_count": _count_merges(page, confirmation),
            "branch_count": len(confirmation.group_by_branch()),
            "earlier_stages": _list_earlier_stages(page, confirmation, changes.values()),
            "error": error,
            "reason": reason or confirmation.entered_reason,
            "idempotency_key": key or secrets.token_urlsafe(_KEY_BYTES),
        },
        HTTPStatus.UNPROCESSABLE_ENTITY if error else HTTPStatus.OK,
    )


def _count_targets(page: PageRequest, confirmation: Confirmation) -> dict[str, int]:
    """Return the number of confirmed targets by stage, in the order of the stages. Omit stages without targets."""
    entries = (page.index.by_target.get(name) for name in confirmation.targets)
    counts = Counter(find_stage(entry, page.context.stages) for entry in entries if entry)
    return {stage.name: counts[stage.name] for stage in page.context.stages if counts[stage.name]}


def _count_merges(page: PageRequest, confirmation: Confirmation) -> int:
    """Return the number of pull requests that the action merges. Only whole draft branches are merged."""
    if confirmation.verb != "approve":
        return 0
    entries = [
        page.index.by_target.get(target)
        for (target, _), drafts in confirmation.group_by_branch().items()
        if {draft.package for draft in drafts}.issuperset(drafts[0].other_packages)
    ]
    return sum(page.context.can_merge(entry.url) for entry in entries if entry)


def _list_earlier_stages(
    page: PageRequest, confirmation: Confirmation, changes: Iterable[ReviewChange | None]
) -> list[StageProgress]:
    """Return the earlier stages (groups of targets) that still have unpublished drafts of the confirmed changes."""
    if confirmation.verb != "approve":
        return []
    return [
        stage
        for change in changes
        if change
        for stage in list_unpublished(list_progress(page.index, change, page.context.stages), confirmation.targets)
    ]


def _list_risks(change: ReviewChange, digests: Collection[str]) -> list[str]:
    """Return the reasons for the risks of these variants of a change."""
    variants = [variant for variant in change.variants if variant.digest in digests]
    return list(dict.fromkeys(reason for variant in variants for reason in variant.content.risk.reasons))


def submit(page: PageRequest, form: Form) -> PageContent | Redirect:
    """Start the job of a confirmed action."""
    # A read-only service creates no confirmations, but an earlier process can have stored this one in the cache folder.
    if page.context.state.is_read_only:
        return build_refusal_page(_REFUSED, _READ_ONLY)
    submission = Submission(
        page.request.path_params["id"],
        form.get("reason"),
        _read_count(form),
        form.get("key"),
        read_request_id(page.request),
    )
    session = page.session
    try:
        job = page.context.jobs.submit(submission, page.whole_index, session.person, session.permissions)
    except ReviewRequestError as error:
        return _repeat_confirmation(page, submission, error)
    return Redirect(f"/jobs/{job.id}")


def _repeat_confirmation(page: PageRequest, submission: Submission, error: ReviewRequestError) -> PageContent:
    """Show the confirmation again, with the error. If it has expired, show the current drafts."""
    confirmation, message = _find_confirmation(page), str(error)
    try:
        if confirmation is None and (confirmation := _renew(page)):
            message = (
                "the confirmation has expired; the page shows the current drafts now; check them and confirm again"
            )
    except ReviewRequestError as renewal_error:
        return build_refusal_page(_REFUSED, str(renewal_error))
    if confirmation is None:
        return _build_unknown_page()
    return _build_confirmation_page(page, confirmation, message, submission.reason, submission.idempotency_key)


def build_job_page(page: PageRequest) -> PageContent:
    """Build the page with the progress and the results of a job."""
    identifier = page.request.path_params["id"]
    job = page.context.jobs.find(identifier, page.session.person, page.session.permissions)
    if job is None:
        return build_forgotten_page("job", identifier)
    keys = dict.fromkeys(draft.change for item in job.items for draft in item.drafts)
    changes = [change for key in keys if (change := find_change(page, key))]
    has_publications = job.verb == "approve" and job.state == "completed" and any(map(has_published, job.items))
    return PageContent("job.html", {"job": job, "changes": changes, "has_publications": has_publications})


def retry(page: PageRequest, _form: Form) -> PageContent | Redirect:
    """Apply the failed parts of a job again."""
    if page.context.state.is_read_only:
        return build_refusal_page(_REFUSED, _READ_ONLY)
    session, request_id = page.session, read_request_id(page.request)
    try:
        job = page.context.jobs.retry(
            page.request.path_params["id"], request_id, page.whole_index, session.person, session.permissions
        )
    except ReviewRequestError as error:
        return build_refusal_page(_REFUSED, str(error))
    return Redirect(f"/jobs/{job.id}")


def revert(page: PageRequest, _form: Form) -> PageContent | Redirect:
    """Store the packages that a job has published, and show to which of them a revert applies."""
    if page.context.state.is_read_only:
        return build_refusal_page(_REFUSED, _READ_ONLY)
    session = page.session
    request = ReviewRequest("revert", (), published=page.context.jobs.list_published(page.request.path_params["id"]))
    confirmation = page.context.confirmations.create(
        page.whole_index, session.person, session.permissions, request, page.index
    )
    # An unknown job looks like a job whose packages the person may not read.
    if not confirmation.drafts and not confirmation.excluded:
        message = (
            "No publication with this ID is stored any more. To undo the publication of a package, restore its earlier"
            " revision."
        )
        return build_refusal_page(_REFUSED, message, HTTPStatus.GONE)
    return Redirect(f"/confirmations/{confirmation.id}")


def undo(page: PageRequest, _form: Form) -> PageContent | Redirect:
    """Undo an action that has not started."""
    try:
        job = page.context.jobs.undo(page.request.path_params["id"], page.session.person)
    except ReviewRequestError as error:
        return build_refusal_page("The action cannot be undone", str(error), HTTPStatus.CONFLICT)
    return Redirect(f"/jobs/{job.id}")
