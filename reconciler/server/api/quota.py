"""The limit for the API requests of each person or program, and the response headers that contain this limit."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from reconciler.server.api.problems import ApiError
from reconciler.server.console.people import Session
from reconciler.server.rate_limit import WINDOW_SECONDS, RateLimit, RequestQuota

_POLICY = '"requests"'


def count_request(request: Request, session: Session, limit: RateLimit) -> None:
    """Count a request, and store the quota of the person or program in the request for `add_quota_headers`.

    Raises:
        ApiError: The person or program has sent too many requests.
    """
    quota = limit.count(session.person.key)
    request.state.quota = quota
    if not quota.is_allowed:
        raise ApiError(
            "TooManyRequests", f"you sent more than {quota.limit} requests in a minute", HTTPStatus.TOO_MANY_REQUESTS,
            f"Try again in {quota.wait_seconds} s.",
        )  # fmt: skip


def add_quota_headers(request: Request, response: Response) -> Response:
    """Add the headers with the quota of the person to a response. A request without a session has no quota."""
    quota: RequestQuota | None = getattr(request.state, "quota", None)
    if quota is not None:
        response.headers["RateLimit-Policy"] = f"{_POLICY};q={quota.limit};w={WINDOW_SECONDS}"
        response.headers["RateLimit"] = f"{_POLICY};r={quota.remaining};t={quota.reset_seconds}"
        if not quota.is_allowed:
            response.headers["Retry-After"] = str(quota.wait_seconds)
    return response
