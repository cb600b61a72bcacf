"""The endpoints of the API about the service: its last passes and its remotes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from http import HTTPStatus

from reconciler.output.envelope import CommandResult
from reconciler.output.fleet.results import create_api_metadata
from reconciler.output.service_results import (
    PassEntry,
    PassListResult,
    PassListSummary,
    RemoteEntry,
    RemoteListResult,
    RemoteListSummary,
)
from reconciler.reconcile.remotes.availability import RemoteState
from reconciler.server.api.endpoint import ApiRequest, Endpoint, Parameter, create_missing_error
from reconciler.server.api.paging import read_page
from reconciler.server.api.problems import ApiError
from reconciler.server.console.filters import REMOTE_STATES, filter_remotes, get_remote_state


def _list_passes(request: ApiRequest) -> CommandResult:
    passes = request.context.state.recent_passes
    page = read_page(passes, request)
    can_read_messages = request.session.permissions.reads_everything
    return PassListResult(
        metadata=create_api_metadata(request.index),
        items=tuple(
            PassEntry(
                started_at=int(record.started_at),
                duration_seconds=round(record.duration_seconds, 3),
                result=record.result,
                triggers=record.triggers,
                phases={name: round(seconds, 3) for name, seconds in record.phases.items()},
                message=record.message if can_read_messages else "",
            )
            for record in page.items
        ),
        summary=PassListSummary(passes=len(passes)),
        next=page.cursor,
    )


def _list_remotes(request: ApiRequest) -> CommandResult:
    remotes = _read_remotes(request)
    page = read_page([*filter_remotes(remotes, request.query)], request)
    return build_remote_list(request, page.items, remotes, page.cursor)


def _read_remotes(request: ApiRequest) -> Sequence[RemoteState]:
    """Return the remotes of the last pass.

    Raises:
        ApiError: The person may not read all targets. The URLs of remotes contain names of targets.
    """
    if not request.session.permissions.reads_everything:
        raise ApiError(
            "NotPermitted", "to read the remotes, you need a role that applies to all targets", HTTPStatus.FORBIDDEN
        )
    view = request.context.state.view
    return view.remotes if view else ()


def find_remotes(request: ApiRequest) -> Sequence[RemoteState]:
    """Return the remotes whose key is in the path of a request.

    Raises:
        ApiError: There is no such remote, or the person may not read it.
    """
    found = [remote for remote in _read_remotes(request) if remote.key == request.path["key"]]
    if not found:
        raise create_missing_error("remote", request.path["key"])
    return found


def build_remote_list(
    request: ApiRequest,
    remotes: Iterable[RemoteState],
    all_remotes: Sequence[RemoteState] | None = None,
    cursor: str | None = None,
) -> RemoteListResult:
    """Return the API result that lists `remotes`.

    Args:
        all_remotes: The remotes that the summary counts, if `remotes` is only one page of them. By default, `remotes`.
        cursor: The cursor of the next page.
    """
    shown = [*remotes]
    counted = shown if all_remotes is None else all_remotes
    return RemoteListResult(
        metadata=create_api_metadata(request.index),
        items=tuple(_build_remote(request, remote) for remote in shown),
        summary=RemoteListSummary(
            remotes=len(counted), failing=sum(get_remote_state(remote) == "failing" for remote in counted)
        ),
        next=cursor,
    )


def _build_remote(request: ApiRequest, remote: RemoteState) -> RemoteEntry:
    state = request.context.state
    # Convert times of the monotonic clock to times of day.
    offset = request.context.clock() - state.clock()
    completed_at = state.view.completed_at if state.view else 0.0
    return RemoteEntry(
        key=remote.key,
        url=remote.url,
        kind=remote.kind,
        state=get_remote_state(remote),
        code=remote.error.code if remote.error else "",
        message=remote.error.full_message if remote.error else "",
        since=None if remote.since is None else int(remote.since + offset),
        failures=remote.failures,
        next_attempt=int(completed_at + remote.wait_seconds + offset) if remote.wait_seconds else None,
        last_fetch=None if remote.fetched_at is None else int(remote.fetched_at + offset),
        last_push=None if remote.pushed_at is None else int(remote.pushed_at + offset),
    )


SERVICE_ENDPOINTS = (
    Endpoint(
        "/passes", "The last passes of this process, the newest first", PassListResult, _list_passes, is_list=True,
        depends_on_index=False,
    ),
    Endpoint(
        "/remotes", "The remotes of the last pass, for people who may read all targets", RemoteListResult,
        _list_remotes,
        (Parameter("state", "The state.", REMOTE_STATES), Parameter("q", "A text that the URL or the error contains.")),
        is_list=True, depends_on_index=False,
    ),
)  # fmt: skip
"""The endpoints about the service."""
