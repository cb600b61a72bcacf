"""The declaration of read-only endpoints, and the checks of their parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Protocol

from starlette.datastructures import QueryParams

from reconciler.git.errors import GitError
from reconciler.krm.field_text import describe_choice, quote_value
from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.envelope import CommandResult
from reconciler.output.fleet.model import FleetIndex, PackageRow, ReviewChange, TargetEntry
from reconciler.reconcile.failures import log_if_internal
from reconciler.review.restricted_index import TargetNameSet, hide_names, list_hidden_names
from reconciler.server.api.problems import ApiError
from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.listing import check_selector, is_number
from reconciler.server.console.people import Session


@dataclass(frozen=True)
class Parameter:
    """A query parameter.

    Attributes:
        choices: The allowed values. If empty, all texts are allowed.
        is_repeatable: Whether the parameter can have several values.
    """

    name: str
    description: str
    choices: tuple[str, ...] = ()
    is_required: bool = False
    is_repeatable: bool = False


@dataclass(frozen=True)
class ApiRequest:
    """A request to an endpoint.

    Attributes:
        index: The part of the fleet index that the person may read.
        whole_index: The whole fleet index. Only checks of permissions may use it.
        url_path: The path of the URL.
        path: The parameters of the path.
        id: The ID of the request. Commits and log events contain this ID.
    """

    context: ConsoleContext
    session: Session
    index: FleetIndex
    whole_index: FleetIndex
    query: QueryParams
    url_path: str
    path: dict[str, str]
    id: str

    @property
    def hidden_names(self) -> TargetNameSet:
        """The names of the targets that the person may not read."""
        return list_hidden_names(self.whole_index, self.index)


class JsonResult(Protocol):
    """A result that can be written as JSON."""

    def to_json(self) -> str:
        """Return the JSON text."""
        ...


@dataclass(frozen=True)
class Endpoint:
    """An endpoint that returns a result.

    Attributes:
        path: The path below `API_PREFIX`, with parameters such as `{target}`.
        is_list: Whether the endpoint has the parameters `limit` and `cursor`.
        depends_on_index: Whether the result stays the same until a new fleet index appears. If so, the response has
            the header `ETag`.
        text_result: The model of the result with the parameter `output=text`. None if there is no such parameter.
        refusals: Further statuses of refused requests, with their descriptions.
    """

    path: str
    summary: str
    result: type[CommandResult]
    build: Callable[[ApiRequest], JsonResult]
    parameters: tuple[Parameter, ...] = ()
    is_list: bool = False
    depends_on_index: bool = True
    text_result: type[CommandResult] | None = None
    refusals: Mapping[str, str] = field(default_factory=dict)


def find_target(request: ApiRequest) -> TargetEntry:
    """Return the target in the path of a request.

    Raises:
        ApiError: There is no such target, or the person may not read it.
    """
    target = request.index.by_target.get(request.path["target"])
    if target is None:
        raise create_missing_error("target", request.path["target"])
    return target


def find_row(index: FleetIndex, target: str, package: str) -> PackageRow:
    """Return a package of a target.

    Raises:
        ApiError: There is no such package, or the person may not read it.
    """
    row = index.find_row(target, package)
    if row is None:
        raise create_missing_error("package", f"{target}/{package}")
    return row


def find_change(request: ApiRequest) -> ReviewChange:
    """Return the change whose key is in the path of a request.

    Raises:
        ApiError: The change is not open, or the person may not read it.
    """
    change = request.index.by_change.get(request.path["key"])
    if change is None:
        raise _describe_past_change(request)
    return change


def _describe_past_change(request: ApiRequest) -> ApiError:
    """Return the error for a change that is not open, with the outcomes of its drafts."""
    key = request.path["key"]
    past = request.context.archive.find(key, request.index, request.session.permissions)
    if past is None:
        return create_missing_error("change", key, HTTPStatus.GONE)
    outcomes = Counter(draft.outcome for draft in past.drafts)
    counts = ", ".join(f"{format_count(count, 'draft')} {outcome}" for outcome, count in outcomes.items())
    successors = sorted({draft.successor for draft in past.drafts if draft.successor in request.index.by_change})
    return ApiError(
        "UnknownChange", f"the change {key} ({past.title}) is not open any more; its drafts: {counts}", HTTPStatus.GONE,
        details={"supersededBy": successors} if successors else {},
    )  # fmt: skip


def create_missing_error(kind: str, name: str, status: HTTPStatus = HTTPStatus.NOT_FOUND) -> ApiError:
    """Return the error for an object that does not exist, or that the person may not read."""
    return ApiError(f"Unknown{kind.capitalize()}", f'there is no {kind} "{name[:200]}" that you may read', status)


def create_unreadable_error(request: ApiRequest, error: GitError) -> ApiError:
    """Log an unexpected error, and return the error for a repository that cannot be read."""
    log_if_internal(error)
    message = hide_names(error.full_message, request.hidden_names)
    return ApiError("Unreadable", message, HTTPStatus.SERVICE_UNAVAILABLE)


def read_number(query: QueryParams, name: str, maximum: int, *, minimum: int = 0, default: int = 0) -> int:
    """Return the number in a query parameter.

    Raises:
        ApiError: The value is not a number from the minimum to the maximum.
    """
    text = query.get(name, str(default))
    if not is_number(text) or not minimum <= int(text) <= maximum:
        raise ApiError(
            "InvalidParameter", f"{name}: must be a number from {minimum} to {maximum}, but is {quote_value(text[:40])}"
        )
    return int(text)


def read_selector(query: QueryParams, name: str) -> str:
    """Return the label selector in a query parameter.

    Raises:
        ApiError: The selector is not valid.
    """
    selector = query.get(name, "")
    if error := check_selector(selector):
        raise ApiError("InvalidParameter", f"{name}: {error}")
    return selector


def check_parameters(endpoint: Endpoint, query: QueryParams) -> None:
    """Check the names and values of the parameters.

    Raises:
        ApiError: A parameter is unknown or has a value that is not allowed.
    """
    allowed = {parameter.name: parameter for parameter in list_parameters(endpoint)}
    for name, value in query.multi_items():
        parameter = allowed.get(name)
        if parameter is None:
            names = ", ".join(sorted(allowed)) or "none"
            raise ApiError("UnknownParameter", f"{name[:40]}: unknown parameter; allowed parameters: {names}")
        if parameter.choices and value not in parameter.choices:
            choices = describe_choice(parameter.choices)
            raise ApiError("InvalidParameter", f"{name}: must be {choices}, but is {quote_value(value[:40])}")
    if missing := [name for name, parameter in allowed.items() if parameter.is_required and not query.get(name)]:
        raise ApiError("InvalidParameter", f"{missing[0]}: the query parameter is required")


def list_parameters(endpoint: Endpoint) -> Iterable[Parameter]:
    """Return all query parameters of an endpoint."""
    return (*endpoint.parameters, *(_PAGING if endpoint.is_list else ()))


TARGET_PARAMETER = Parameter("target", "The name of the target.", is_required=True)
PACKAGE_PARAMETER = Parameter("package", "The path of the package.", is_required=True)
_PAGING = (
    Parameter("limit", "The number of items on a page, at most 500. The default is 100."),
    Parameter("cursor", "The field `next` of the previous page."),
)
