"""The endpoints of the API that change something: review actions, and passes. They use the code of the console."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from reconciler.api.base import ApiModel
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.envelope import CommandResult
from reconciler.output.fleet.results import FleetResult
from reconciler.output.service_results import RemoteListResult
from reconciler.review.confirmations import Confirmation
from reconciler.review.job_results import ReviewJobResult, build_excluded_item, build_job_result
from reconciler.review.jobs import Submission
from reconciler.review.review_job import ReviewJob
from reconciler.review.review_requests import (
    CONSOLE_VERBS,
    ChangeSelection,
    ConsoleVerb,
    ReviewRequest,
    ReviewRequestError,
    SelectedTarget,
)
from reconciler.server.address import API_PREFIX
from reconciler.server.api.bodies import EmptyBody, ReviewBody
from reconciler.server.api.endpoint import ApiRequest
from reconciler.server.api.endpoints import get_status
from reconciler.server.api.problems import ApiError
from reconciler.server.api.service_endpoints import build_remote_list, find_remotes

_STATUSES = {
    "UnknownChange": HTTPStatus.GONE,
    "ReasonRequired": HTTPStatus.UNPROCESSABLE_ENTITY,
    "TooManyJobs": HTTPStatus.SERVICE_UNAVAILABLE,
}
_READ_AGAIN = "Read the change again, and send a new request with the current heads of its drafts."


@dataclass(frozen=True)
class ActionResponse:
    """The result of an accepted action. `location` is the path at which a client can read the current result."""

    result: CommandResult
    location: str


@dataclass(frozen=True)
class ActionEndpoint:
    """An endpoint that changes something.

    Attributes:
        body: The model of the body.
        result: The model of the result.
        apply: Applies the action, or starts a job that applies it.
    """

    path: str
    summary: str
    body: type[ApiModel]
    result: type[CommandResult]
    apply: Callable[[ApiRequest, Any], ActionResponse]


def _review(verb: ConsoleVerb, request: ApiRequest, body: ReviewBody) -> ActionResponse:
    if request.context.state.is_read_only:
        raise ApiError(
            "ReadOnly", "this process applies no actions, because it is a read-only standby", HTTPStatus.CONFLICT,
            "Send the request to the daemon that runs without --read-only.",
        )  # fmt: skip
    if request.session.permissions.role in (None, "viewer"):
        raise ApiError("NotPermitted", "to review drafts, you need the role reviewer or admin", HTTPStatus.FORBIDDEN)
    job = _find_repeated(verb, request, body) or _submit(verb, request, body)
    return ActionResponse(build_job_result(job), f"{API_PREFIX}/jobs/{job.id}")


def _find_repeated(verb: ConsoleVerb, request: ApiRequest, body: ReviewBody) -> ReviewJob | None:
    """Return the job of an earlier request with the same idempotency key. Return None if there is no such job.

    Raises:
        ApiError: The earlier request had a different action, change or selection of targets.
    """
    job = request.context.jobs.find_by_key(body.idempotency_key, request.session.person)
    if job is None:
        return None
    drafts = [draft for item in job.items for draft in item.drafts]
    is_same_change = {draft.change for draft in drafts} == {request.path["key"]}
    is_same_selection = {draft.target for draft in drafts} <= {target.name for target in body.targets}
    if job.verb != verb or not (is_same_change and is_same_selection):
        raise ApiError(
            "IdempotencyKeyReused", "idempotencyKey: an earlier request for a different action used this key",
            HTTPStatus.UNPROCESSABLE_ENTITY, "Create a new key for each action.",
        )  # fmt: skip
    return job


def _submit(verb: ConsoleVerb, request: ApiRequest, body: ReviewBody) -> ReviewJob:
    context, session = request.context, request.session
    targets = tuple(SelectedTarget(target.name, target.draft_head, target.branch_head) for target in body.targets)
    selection = ChangeSelection(request.path["key"], frozenset(body.variants), targets)
    review = ReviewRequest(verb, (selection,), body.removals, body.accept_conflicts)
    try:
        confirmation = context.confirmations.create(
            request.whole_index, session.person, session.permissions, review, request.index
        )
        _check_drafts(confirmation)
        # In the console, a person types the number of targets to confirm an action. In the API, this is not necessary,
        # because the request contains each target with its heads.
        submission = Submission(
            confirmation.id, body.reason, confirmation.typed_count, body.idempotency_key, request.id,
            channel="api",
        )  # fmt: skip
        return context.jobs.submit(submission, request.whole_index, session.person, session.permissions)
    except ReviewRequestError as error:
        raise ApiError(error.code, str(error), _STATUSES.get(error.code, HTTPStatus.CONFLICT)) from None


def _check_drafts(confirmation: Confirmation) -> None:
    if not confirmation.drafts:
        skipped = [build_excluded_item(draft).to_data() for draft in confirmation.excluded]
        raise ApiError(
            "NothingToDo", "the action applies to no draft; `skipped` contains the reasons", HTTPStatus.CONFLICT,
            _READ_AGAIN, {"skipped": skipped},
        )  # fmt: skip


def _start_pass(request: ApiRequest, _body: EmptyBody) -> ActionResponse:
    if not request.session.permissions.is_admin:
        raise ApiError("NotPermitted", "to start a pass, you need the role admin", HTTPStatus.FORBIDDEN)
    request.context.controls.wake_pass()
    return ActionResponse(get_status(request), f"{API_PREFIX}/status")


def _retry_remote(request: ApiRequest, _body: EmptyBody) -> ActionResponse:
    if not request.session.permissions.is_admin:
        raise ApiError("NotPermitted", "to retry a remote, you need the role admin", HTTPStatus.FORBIDDEN)
    remotes = find_remotes(request)
    for remote in remotes:
        request.context.controls.retry_remote(remote.address)
    return ActionResponse(build_remote_list(request, remotes), f"{API_PREFIX}/remotes")


ACTIONS = (
    *(
        ActionEndpoint(
            f"/changes/{{key}}:{verb}", f"{verb.capitalize()} drafts of a change", ReviewBody, ReviewJobResult,
            partial(_review, verb),
        )
        for verb in CONSOLE_VERBS
    ),
    ActionEndpoint(
        "/passes", "Start a pass, and return the state of the fleet before this pass", EmptyBody, FleetResult,
        _start_pass,
    ),
    ActionEndpoint(
        "/remotes/{key}:retry", "End the back-off of a remote, and start a pass", EmptyBody, RemoteListResult,
        _retry_remote,
    ),
)  # fmt: skip
"""All endpoints that change something."""
