"""Runs the review actions of commands through the API of a running service.

The owner of the access token becomes the author of each action.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.output.review.action_results import APPROVAL_RECORDED, ActionOutcome, ReviewActionResult
from reconciler.planning.lifecycle.open_drafts import BlockingReason
from reconciler.server.api_client import ApiClient, ApiRefusedError
from reconciler.server.health_client import NoResponseError

RemoteVerb = Literal["approve", "propose", "reject"]
_MAX_TARGETS = 300
_POLL_SECONDS, MAX_SECONDS = 1.0, 600
_MOVED = ("BranchMoved", "DraftMoved")
_UNCHANGED_CODES = ("AlreadyPublished", "AlreadyProposed", "AlreadyRejected", "Unchanged")


@dataclass(frozen=True)
class RemoteReview:
    """A review action that a command requests from the service.

    Attributes:
        references: The selected targets and packages, as `(CLUSTER, PACKAGE)`. A package "" means all packages. If
            `references` is empty, `selector` selects the drafts.
        selector: A label selector for targets. "" selects all targets.
        includes_unproposed: Whether drafts that are not proposed are approved.
        includes_removals: Whether the action also applies to removals of packages that `references` does not name.
    """

    verb: RemoteVerb
    references: frozenset[tuple[str, str]] = frozenset()
    selector: str = ""
    reason: str = ""
    accepts_conflicts: bool = False
    includes_unproposed: bool = False
    includes_removals: bool = False

    def names(self, target: str, package: str) -> bool:
        """Return whether the references contain exactly this target and package."""
        return (target, package) in self.references

    def selects(self, target: str, package: str) -> bool:
        """Return whether the action applies to a draft."""
        return not self.references or self.names(target, "") or self.names(target, package)


@dataclass(frozen=True)
class _Draft:
    """A draft in the result of the API, with the keys of its change and variant."""

    change: str
    variant: str
    is_removal: bool
    data: Mapping[str, Any] = field(repr=False)

    @property
    def target(self) -> str:
        return str(self.data["target"])

    @property
    def package(self) -> str:
        return str(self.data["package"])

    @property
    def key(self) -> tuple[str, str]:
        return self.target, self.package

    @property
    def effect(self) -> tuple[str, str]:
        return self.change, self.variant


def apply_remote_action(
    client: ApiClient, review: RemoteReview, sleep: Callable[[float], None] = time.sleep
) -> tuple[ReviewActionResult, ...]:
    """Request the list of drafts from the service, apply an action to the selected drafts, and wait for the results.

    The action applies to the draft heads in this list.

    Raises:
        ApiRefusedError: The service has refused to list the drafts.
        NoResponseError: The service does not respond.
        LookupError: The response does not contain an expected field.
    """
    drafts = _select_drafts(client, review)
    results = {draft.key: result for draft in drafts if (result := _check_draft(draft, review))}
    pending = [draft for draft in drafts if draft.key not in results]
    while pending:
        found = {_get_key(result): result for result in _submit_all(client, review, pending, sleep)}
        results |= found
        pending = _wait_for_next_pass(client, review, _list_delayed(pending, found), sleep)
    present = {(draft.target, name) for draft in drafts for name in ("", draft.package)}
    absent = [
        ReviewActionResult(target, "", (package,) if package else (), review.verb, "unchanged", "no draft is open")
        for target, package in sorted(review.references - present)
    ]
    all_results = [*results.values(), *absent]
    return tuple(sorted(all_results, key=lambda result: (result.repository, result.branch, result.packages)))


def _get_key(result: ReviewActionResult) -> tuple[str, str]:
    return result.repository, ",".join(result.packages)


def _select_drafts(client: ApiClient, review: RemoteReview) -> list[_Draft]:
    """Return the selected drafts with their current heads."""
    targets = {item["name"] for item in _list_items(client, "/targets", {"labels": review.selector})}
    return [
        draft
        for change in _list_items(client, "/changes", {"target": review.selector})
        for draft in _list_drafts(change)
        if draft.target in targets and review.selects(draft.target, draft.package)
    ]


def _list_items(client: ApiClient, path: str, query: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    for page in client.read_pages(path, {"limit": "500", **query}):
        yield from page["items"]


def _list_drafts(change: Mapping[str, Any]) -> Iterator[_Draft]:
    for variant in change["variants"]:
        for draft in variant["drafts"]:
            yield _Draft(change["key"], variant["key"], variant["action"] == "remove", draft)


def _submit_all(
    client: ApiClient, review: RemoteReview, drafts: Iterable[_Draft], sleep: Callable[[float], None]
) -> Iterator[ReviewActionResult]:
    groups: dict[tuple[str, bool], list[_Draft]] = {}
    for draft in drafts:
        groups.setdefault((draft.change, draft.is_removal and review.verb != "reject"), []).append(draft)
    for (change, is_removal), members in groups.items():
        for start in range(0, len(members), _MAX_TARGETS):
            part = members[start : start + _MAX_TARGETS]
            yield from _submit(client, review, change, part, is_removal=is_removal, sleep=sleep)


def _list_delayed(drafts: Iterable[_Draft], results: Mapping[tuple[str, str], ReviewActionResult]) -> list[_Draft]:
    """Return the drafts that were skipped only because this command has published another draft of their target."""
    published = {result.repository for result in results.values() if result.outcome == "done" and result.commit}
    return [draft for draft in drafts if draft.target in published and _has_moved(results.get(draft.key))]


def _has_moved(result: ReviewActionResult | None) -> bool:
    return result is not None and any(reason.reason in _MOVED for reason in result.reasons)


def _wait_for_next_pass(
    client: ApiClient, review: RemoteReview, drafts: Iterable[_Draft], sleep: Callable[[float], None]
) -> list[_Draft]:
    """Wait until a pass has rebuilt all given drafts on the new heads of their target branches.

    Return the rebuilt drafts whose effect is unchanged. Return [] if no pass has rebuilt all drafts in time.
    """
    known = {draft.key: draft for draft in drafts}
    for _ in range(int(MAX_SECONDS / _POLL_SECONDS) if known else 0):
        sleep(_POLL_SECONDS)
        current = {draft.key: draft for draft in _select_drafts(client, review) if draft.key in known}
        if all(draft.data["branchHead"] != known[key].data["branchHead"] for key, draft in current.items()):
            return [draft for key, draft in current.items() if draft.effect == known[key].effect]
    return []


def _check_draft(draft: _Draft, review: RemoteReview) -> ReviewActionResult | None:
    """If the action must skip a draft, return the result with the reason. Otherwise, return None."""
    branch, state = draft.data["branch"], draft.data["state"]
    is_unnamed_removal = draft.is_removal and not review.names(draft.target, draft.package)
    if review.verb != "reject" and is_unnamed_removal and not review.includes_removals:
        message = "the draft removes packages; name these packages in the command, or add --removals"
        return _build_result(draft, review, "unchanged", message)
    if review.verb != "reject" and state == "rejected" and not review.references:
        return _build_result(draft, review, "refused", "", BlockingReason("Rejected", f"{branch} is rejected"))
    if review.verb == "approve" and state == "waiting" and not review.includes_unproposed:
        message = f"{branch} is not proposed; run `reconciler propose` first, or add --propose"
        return _build_result(draft, review, "refused", "", BlockingReason("NotProposed", message))
    return None


def _build_result(
    draft: _Draft, review: RemoteReview, outcome: ActionOutcome, message: str, *reasons: BlockingReason
) -> ReviewActionResult:
    return ReviewActionResult(
        draft.target, str(draft.data["branch"]), (draft.package,), review.verb, outcome, message, reasons
    )


def _submit(
    client: ApiClient,
    review: RemoteReview,
    change: str,
    drafts: Sequence[_Draft],
    *,
    is_removal: bool,
    sleep: Callable[[float], None],
) -> list[ReviewActionResult]:
    """Submit a review of drafts of one change to the service, and return the results for these drafts.

    If the service refuses the whole request, each result contains the reason for the refusal.
    """
    heads = {draft.target: draft.data for draft in drafts}
    body = {
        "targets": [
            {"name": name, "draftHead": data["draftHead"], "branchHead": data["branchHead"]}
            for name, data in heads.items()
        ],
        "reason": review.reason,
        "idempotencyKey": secrets.token_urlsafe(),
        "removals": is_removal,
        "acceptConflicts": review.accepts_conflicts,
    }
    try:
        job = client.post(f"/changes/{change}:{review.verb}", body)
    except ApiRefusedError as error:
        if skipped := error.problem.get("skipped"):
            return [_read_item(item, review) for item in skipped]
        reason = BlockingReason(str(error.problem.get("code", "Refused")), str(error.problem.get("detail", error)))
        return [_build_result(draft, review, "refused", "", reason) for draft in drafts]
    for _ in range(int(MAX_SECONDS / _POLL_SECONDS)):
        if job["summary"]["state"] == "completed":
            return [_read_item(item, review) for item in job["items"]]
        sleep(_POLL_SECONDS)
        job = client.read(f"/jobs/{job['summary']['id']}")
    identifier = job["summary"]["id"]
    raise NoResponseError(
        f"{client.url}: the job {identifier} is not complete; read its results later at /api/v1/jobs/{identifier}"
    )


def _read_item(item: Mapping[str, Any], review: RemoteReview) -> ReviewActionResult:
    code, message, commit = (str(item.get(name, "")) for name in ("code", "message", "commit"))
    result = ReviewActionResult(
        item["target"], item.get("branch", ""), tuple(item.get("packages", ())), review.verb, "done", message,
        commit=commit,
    )  # fmt: skip
    return _with_state(result, item["state"], code, message)


def _with_state(result: ReviewActionResult, state: str, code: str, message: str) -> ReviewActionResult:
    if state == "failed":
        return replace(result, outcome="failed")
    if state == "done":
        return replace(result, outcome="recorded") if code == APPROVAL_RECORDED else result
    if code in _UNCHANGED_CODES:
        return replace(result, outcome="unchanged")
    return replace(result, outcome="refused", message="", reasons=(BlockingReason(code, message),))
