"""The endpoints of the API that read: their paths, parameters and results. The OpenAPI document has the same source."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Protocol

from starlette.datastructures import QueryParams

from reconciler.krm.findings import Severity
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.envelope import API_VERSION, CommandResult
from reconciler.output.explain.result import ExplanationResult
from reconciler.output.findings.entries import build_finding_entries
from reconciler.output.fleet.model import CHANGE_STATES, FleetIndex, TargetEntry
from reconciler.output.fleet.results import (
    ChangeListResult,
    FindingListResult,
    FleetResult,
    PackageListResult,
    PublicationListResult,
    TargetListResult,
    build_change_list,
    build_finding_list,
    build_fleet_result,
    build_package_list,
    build_publication_list,
    build_target_list,
)
from reconciler.output.fleet.risk import RISK_LEVELS
from reconciler.output.text import format_count
from reconciler.planning.lifecycle.open_drafts import PACKAGE_STATES
from reconciler.review.job_results import ReviewJobResult, build_job_result
from reconciler.review.restricted_index import list_hidden_names, mentions_any
from reconciler.server.api.paging import read_page
from reconciler.server.api.problems import ApiError
from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.filters import (
    SEVERITIES,
    filter_activity,
    filter_changes,
    filter_findings,
    filter_targets,
)
from reconciler.server.console.listing import check_selector
from reconciler.server.console.people import Session


@dataclass(frozen=True)
class Parameter:
    """A query parameter.

    Attributes:
        choices: The allowed values. If empty, all texts are allowed.
    """

    name: str
    description: str
    choices: tuple[str, ...] = ()
    is_required: bool = False


@dataclass(frozen=True)
class ApiRequest:
    """A request to an endpoint.

    Attributes:
        index: The part of the newest index that the person may read.
        whole_index: The newest index. Only checks of permissions may use it.
        path: The parameters of the path.
        id: The ID of the request for commits and log events.
    """

    context: ConsoleContext
    session: Session
    index: FleetIndex
    whole_index: FleetIndex
    query: QueryParams
    path: dict[str, str]
    id: str


class JsonResult(Protocol):
    """A result that can be written as JSON."""

    def to_json(self) -> str:
        """Return the JSON text."""
        ...


@dataclass(frozen=True)
class ExplanationText:
    """The result of `reconciler explain -o json`, which another process has built."""

    values: Sequence[Mapping[str, Any]]
    summary: Mapping[str, Any]

    def to_json(self) -> str:
        """Return the JSON text with the envelope of all results."""
        envelope = {"apiVersion": API_VERSION, "kind": "Explanation", "metadata": {"source": "api"}}
        return json.dumps({**envelope, "items": self.values, "findings": [], "summary": self.summary, "next": None})


@dataclass(frozen=True)
class Endpoint:
    """An endpoint that returns a result.

    Attributes:
        path: The path below `API_PREFIX`, with parameters such as `{target}`.
        is_list: Whether the endpoint has the parameters `limit` and `cursor`.
        depends_on_index: Whether the result changes only with the index. If so, it has the header `ETag`.
    """

    path: str
    summary: str
    result: type[CommandResult]
    build: Callable[[ApiRequest], JsonResult]
    parameters: tuple[Parameter, ...] = ()
    is_list: bool = False
    depends_on_index: bool = True


def get_status(request: ApiRequest) -> CommandResult:
    """Return the state of the fleet."""
    counts = Counter(finding.severity.value for finding in request.index.findings)
    return build_fleet_result(request.index, {severity.value: counts[severity.value] for severity in Severity})


def _list_changes(request: ApiRequest) -> CommandResult:
    selector = _read_selector(request.query, "target")
    page = read_page(tuple(filter_changes(request.index, request.query, selector)), request.query)
    return build_change_list(request.index, page.items, page.total, page.cursor)


def _get_change(request: ApiRequest) -> CommandResult:
    change = request.index.by_change.get(request.path["key"])
    if change is None:
        raise _describe_past_change(request)
    return build_change_list(request.index, (change,), 1, has_details=True)


def _list_targets(request: ApiRequest) -> CommandResult:
    selector = _read_selector(request.query, "labels")
    page = read_page(tuple(filter_targets(request.index, request.query, selector)), request.query)
    return build_target_list(request.index, page.items, page.total, page.cursor)


def _list_packages(request: ApiRequest) -> CommandResult:
    target = _find_target(request)
    page = read_page(target.packages, request.query)
    return build_package_list(request.index, target, page.items, page.cursor)


def _get_package(request: ApiRequest) -> CommandResult:
    target, name = _find_target(request), request.path["package"]
    row = target.by_package.get(name)
    if row is None:
        raise _missing("package", f"{target.name}/{name}")
    return build_package_list(request.index, target, (row,))


def _list_findings(request: ApiRequest) -> CommandResult:
    entries = build_finding_entries(filter_findings(request.index.findings, request.query))
    page = read_page(entries, request.query)
    return build_finding_list(request.index, page.items, page.total, page.cursor)


def _list_activity(request: ApiRequest) -> CommandResult:
    page = read_page(filter_activity(request.index, request.query), request.query)
    return build_publication_list(request.index, page.items, page.total, page.cursor)


def _get_job(request: ApiRequest) -> CommandResult:
    identifier = request.path["id"]
    job = request.context.jobs.find(identifier, request.session.person, request.session.permissions)
    if job is None:
        raise _missing("job", identifier)
    return build_job_result(job)


def _explain(request: ApiRequest) -> JsonResult:
    target, package, resource, pointer = (request.query[name] for name in ("target", "package", "resource", "pointer"))
    entry = request.index.by_target.get(target)
    if entry is None or package not in entry.by_package:
        raise _missing("package", f"{target}/{package}")
    explanation = request.context.explainer.explain(target, package, resource, pointer)
    result = ExplanationText(explanation.values, explanation.summary)
    if mentions_any(explanation.error + result.to_json(), list_hidden_names(request.whole_index, request.index)):
        raise ApiError(
            "NotPermitted", "the explanation contains names of targets that you may not read", HTTPStatus.FORBIDDEN
        )
    if explanation.error:
        raise ApiError(
            "NotExplained", explanation.error, HTTPStatus.UNPROCESSABLE_ENTITY, f"Run {explanation.command}"
        )  # fmt: skip
    return result


def _find_target(request: ApiRequest) -> TargetEntry:
    target = request.index.by_target.get(request.path["target"])
    if target is None:
        raise _missing("target", request.path["target"])
    return target


def _missing(kind: str, name: str, status: HTTPStatus = HTTPStatus.NOT_FOUND) -> ApiError:
    return ApiError(f"Unknown{kind.capitalize()}", f"there is no {kind} {name[:200]}", status)


def _describe_past_change(request: ApiRequest) -> ApiError:
    """Return the error for a change that is not open, with the outcomes of its drafts."""
    key = request.path["key"]
    past = request.context.archive.find(key, request.index, request.session.permissions)
    if past is None:
        return _missing("change", key, HTTPStatus.GONE)
    outcomes = Counter(draft.outcome for draft in past.drafts)
    counts = ", ".join(f"{format_count(count, 'draft')} {outcome}" for outcome, count in outcomes.items())
    successors = sorted({draft.successor for draft in past.drafts if draft.successor in request.index.by_change})
    return ApiError(
        "UnknownChange", f"the change {key} ({past.title}) is not open any more: {counts}", HTTPStatus.GONE,
        details={"supersededBy": successors} if successors else {},
    )  # fmt: skip


def _read_selector(query: QueryParams, name: str) -> str:
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
            choices = ", ".join(parameter.choices)
            raise ApiError("InvalidParameter", f"{name}: must be one of {choices}, not {value[:40]!r}")
    if missing := [name for name, parameter in allowed.items() if parameter.is_required and not query.get(name)]:
        raise ApiError("InvalidParameter", f"{missing[0]}: the parameter is required")


def list_parameters(endpoint: Endpoint) -> Iterable[Parameter]:
    """Return all query parameters of an endpoint."""
    return (*endpoint.parameters, *(_PAGING if endpoint.is_list else ()))


_PAGING = (
    Parameter("limit", "The number of items on a page, at most 500. The default is 100."),
    Parameter("cursor", "The field `next` of the previous page."),
)
_TEXT = Parameter("q", "A part of the names.")

ENDPOINTS = (
    Endpoint("/status", "The state of the fleet", FleetResult, get_status),
    Endpoint(
        "/changes", "The changes of open drafts, the highest risk first", ChangeListResult, _list_changes,
        (
            Parameter("state", "The state of a draft of the change.", CHANGE_STATES),
            Parameter("risk", "The risk.", RISK_LEVELS),
            Parameter("target", "A label selector for the targets of the change."),
            _TEXT,
        ),
        is_list=True,
    ),
    Endpoint("/changes/{key}", "One change with its differences", ChangeListResult, _get_change),
    Endpoint(
        "/targets", "The targets", TargetListResult, _list_targets,
        (
            Parameter("labels", "A label selector."),
            Parameter("state", "The state of a package of the target.", PACKAGE_STATES),
            _TEXT,
        ),
        is_list=True,
    ),
    Endpoint("/targets/{target}", "The packages of a target", PackageListResult, _list_packages, is_list=True),
    Endpoint("/targets/{target}/packages/{package}", "One package", PackageListResult, _get_package),
    Endpoint(
        "/findings", "The findings of the last pass", FindingListResult, _list_findings,
        (
            Parameter("severity", "The severity.", tuple(SEVERITIES)), Parameter("code", "The code of the finding."),
            Parameter("q", "A part of the message or of the location."),
        ),
        is_list=True,
    ),
    Endpoint(
        "/activity", "The last publication of each package, the newest first", PublicationListResult, _list_activity,
        (
            Parameter("actor", "A part of the name of the person."), Parameter("target", "A part of the name."),
            Parameter("q", "A part of the package, the message or the reason."),
        ),
        is_list=True,
    ),
    Endpoint(
        "/explain", "The layers of a value of a package, from the current config", ExplanationResult, _explain,
        (
            Parameter("target", "The name of the target.", is_required=True),
            Parameter("package", "The path of the package.", is_required=True),
            Parameter("resource", "The resource as Kind/name or Kind/namespace/name.", is_required=True),
            Parameter("pointer", "The JSON pointer of the value, for example /spec/replicas.", is_required=True),
        ),
        depends_on_index=False,
    ),
    Endpoint(
        "/jobs/{id}", "A review action with its results, for 7 days", ReviewJobResult, _get_job, depends_on_index=False
    ),
)  # fmt: skip
"""All endpoints that read."""
