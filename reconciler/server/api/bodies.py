"""The bodies of requests that change something, and the checks that no page of another site has sent a request."""

import json
from http import HTTPStatus
from typing import Annotated, TypeVar

from pydantic import Field, StrictBool, StringConstraints
from starlette.requests import Request

from reconciler.api.base import ApiModel, read_model
from reconciler.api.messages import MessageTemplates
from reconciler.review.jobs import MAX_KEY_CHARACTERS
from reconciler.review.people import MAX_REASON_CHARACTERS
from reconciler.server.api.problems import ApiError
from reconciler.server.console.forms import is_same_origin

MAX_TARGETS = 300
"""The maximum number of targets in one request. The size limit of a body permits this number of names and heads."""
_JSON_TYPE = "application/json"
_BROWSER_HEADERS = ("sec-fetch-site", "origin")
_MAX_NAME_CHARACTERS = 253
_MAX_ERRORS = 10
_Body = TypeVar("_Body", bound=ApiModel)

Name = Annotated[str, StringConstraints(min_length=1, max_length=_MAX_NAME_CHARACTERS)]
CommitText = Annotated[str, StringConstraints(pattern="^([0-9a-f]{40}|[0-9a-f]{64})$")]


class ReviewTarget(ApiModel):
    """A target, and the heads of its draft branch and target branch that the person has reviewed."""

    name: Name
    draft_head: CommitText = Field(
        description="The commit in the field `draftHead` of the draft. If the draft branch has moved since then, the"
        " draft is skipped."
    )
    branch_head: CommitText = Field(
        description="The commit in the field `branchHead` of the draft. If the target branch has moved since then, the"
        " draft is skipped."
    )


class ReviewBody(ApiModel):
    """The drafts of a change to which an action applies."""

    variants: Annotated[tuple[Name, ...], Field(max_length=MAX_TARGETS)] = Field(
        default=(), description="The keys of the variants. If empty, the action applies to all variants."
    )
    targets: Annotated[tuple[ReviewTarget, ...], Field(min_length=1, max_length=MAX_TARGETS)]
    reason: Annotated[str, StringConstraints(max_length=MAX_REASON_CHARACTERS)] = Field(
        default="",
        description="The reason for the action. It is required to reject drafts, and for drafts with a high risk or"
        " with conflicts.",
    )
    idempotency_key: Annotated[str, StringConstraints(min_length=1, max_length=MAX_KEY_CHARACTERS)] = Field(
        description="A key that the client creates for each action. A second request with the same key returns the job"
        " of the first request."
    )
    removals: StrictBool = Field(
        default=False,
        description="If true, the action applies only to drafts that remove packages. If false, it skips these drafts.",
    )
    accept_conflicts: StrictBool = Field(default=False, description="Also apply the action to drafts with conflicts.")


class EmptyBody(ApiModel):
    """The body of an action without fields."""


_TEMPLATES = MessageTemplates(
    {
        "string_pattern_mismatch": "{path} must be a commit ID of 40 or 64 hexadecimal digits{found}",
        "too_long": f"{{path}} must have at most {MAX_TARGETS} items; send several requests",
        "string_too_long": "{path} must have at most {limit} characters",
    }
)  # fmt: skip


def check_origin(request: Request) -> None:
    """Check that no page of a different site has sent a request. Clients that are not browsers are accepted.

    Raises:
        ApiError: The request comes from a different site, or its body is not JSON. HTML forms cannot send JSON.
    """
    if any(name in request.headers for name in _BROWSER_HEADERS) and not is_same_origin(request):
        raise ApiError(
            "ForeignOrigin", "the request comes from a web page of a different site", HTTPStatus.FORBIDDEN,
            "Use the console, or send the request from a program that is not a browser.",
        )  # fmt: skip
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON_TYPE:
        raise ApiError(
            "UnsupportedMediaType", f"the header Content-Type must be {_JSON_TYPE}", HTTPStatus.UNSUPPORTED_MEDIA_TYPE
        )


def parse_body(model: type[_Body], content: bytes) -> _Body:
    """Return the body of a request.

    Raises:
        ApiError: The body is not valid. The message contains all errors.
    """
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        raise ApiError("InvalidBody", "the body must be JSON text in UTF-8") from None
    result = read_model(model, data, _TEMPLATES)
    if result.model is None:
        raise ApiError("InvalidBody", "; ".join(result.error_texts[:_MAX_ERRORS]))
    return result.model
