"""Errors of the API in the format of RFC 9457."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse, Response

from reconciler.output.fleet.results import build_problem

PROBLEM_TYPE = "application/problem+json"


class ApiError(Exception):
    """A request that the API refuses.

    Attributes:
        code: The reason as an identifier, such as `InvalidParameter`.
        next_step: The next step of the client. "" if the message contains the next step.
        details: More fields of the problem.
    """

    def __init__(
        self,
        code: str,
        message: str,
        status: HTTPStatus = HTTPStatus.BAD_REQUEST,
        next_step: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.next_step = next_step
        self.details = details or {}


def respond_with_problem(error: ApiError) -> Response:
    """Return the response to a refused request."""
    problem = build_problem(error.status, error.status.phrase, error.code, str(error), error.next_step)
    problem = {**problem, **error.details}
    headers = {"WWW-Authenticate": "Bearer"} if error.status == HTTPStatus.UNAUTHORIZED else {}
    return JSONResponse(problem, error.status, headers, media_type=PROBLEM_TYPE)
