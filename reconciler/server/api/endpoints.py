"""The read-only endpoints of the API: their paths, parameters and results. `openapi.py` uses these declarations."""

from __future__ import annotations

from collections import Counter

from reconciler.inspect.change_list import list_read_errors
from reconciler.krm.findings import Severity
from reconciler.output.envelope import CommandResult
from reconciler.output.findings.entries import build_finding_entries
from reconciler.output.fleet.activity import ACTIVITY_ACTIONS
from reconciler.output.fleet.model import CHANGE_STATES
from reconciler.output.fleet.results import (
    ActivityListResult,
    ChangeListResult,
    FindingListResult,
    FleetResult,
    PackageListResult,
    TargetListResult,
    build_activity_list,
    build_change_list,
    build_finding_list,
    build_fleet_result,
    build_package_list,
    build_target_list,
)
from reconciler.output.fleet.risk import RISK_LEVELS
from reconciler.planning.lifecycle.open_drafts import PACKAGE_STATES
from reconciler.review.job_results import ReviewJobResult, build_job_result
from reconciler.server.api.detail_endpoints import DETAIL_ENDPOINTS
from reconciler.server.api.draft_endpoints import DRAFT_ENDPOINTS
from reconciler.server.api.endpoint import (
    ApiRequest,
    Endpoint,
    Parameter,
    create_missing_error,
    find_change,
    find_row,
    find_target,
    read_selector,
)
from reconciler.server.api.explain_endpoint import EXPLAIN_ENDPOINT
from reconciler.server.api.paging import read_page
from reconciler.server.api.problems import ApiError
from reconciler.server.api.service_endpoints import SERVICE_ENDPOINTS
from reconciler.server.console.activity_filters import check_days, list_activity
from reconciler.server.console.filters import (
    CHANGE_SORT_KEYS,
    SEVERITIES,
    check_since,
    filter_changes,
    filter_findings,
    filter_packages,
    filter_targets,
    sort_changes,
)


def get_status(request: ApiRequest) -> CommandResult:
    """Return the state of the fleet."""
    counts = Counter(finding.severity.value for finding in request.index.findings)
    return build_fleet_result(request.index, {severity.value: counts[severity.value] for severity in Severity})


def _list_changes(request: ApiRequest) -> CommandResult:
    selector = read_selector(request.query, "target")
    if error := check_since(request.query):
        raise ApiError("InvalidParameter", error)
    changes = sort_changes(filter_changes(request.index, request.query, selector), request.query)
    page = read_page(changes, request)
    findings = () if request.query.get("cursor") else list_read_errors(request.index)
    return build_change_list(request.index, page.items, changes, page.cursor, findings=findings)


def _get_change(request: ApiRequest) -> CommandResult:
    changes = (find_change(request),)
    return build_change_list(request.index, changes, changes, has_details=True)


def _list_targets(request: ApiRequest) -> CommandResult:
    selector = read_selector(request.query, "labels")
    page = read_page(tuple(filter_targets(request.index, request.query, selector)), request)
    return build_target_list(request.index, page.items, page.total, page.cursor)


def _list_packages(request: ApiRequest) -> CommandResult:
    target = find_target(request)
    rows = tuple(filter_packages(request.index, target.packages, request.query))
    page = read_page(rows, request)
    return build_package_list(request.index, page.items, page.total, page.cursor)


def _get_package(request: ApiRequest) -> CommandResult:
    target = find_target(request)
    row = find_row(request.index, target.name, request.path["package"])
    return build_package_list(request.index, (row,), len(target.packages))


def _list_findings(request: ApiRequest) -> CommandResult:
    entries = build_finding_entries(filter_findings(request.index, request.query))
    page = read_page(entries, request)
    return build_finding_list(request.index, page.items, page.total, page.cursor)


def _list_activity(request: ApiRequest) -> CommandResult:
    if error := check_days(request.query):
        raise ApiError("InvalidParameter", error)
    events = list_activity(request.context, request.session, request.whole_index, request.index, request.query)
    page = read_page(events, request)
    return build_activity_list(request.index, page.items, page.total, page.cursor)


def _get_job(request: ApiRequest) -> CommandResult:
    identifier = request.path["id"]
    job = request.context.jobs.find(identifier, request.session.person, request.session.permissions)
    if job is None:
        raise create_missing_error("job", identifier)
    return build_job_result(job)


_TEXT = Parameter("q", "A text that the name contains.")
_TENANT = Parameter("tenant", "The name of the tenant that owns a package.")
_OWNER = Parameter(
    "owner",
    "The config object that requests a package, such as `PackageVariantSet default/web`, or a text that the name of the"
    " object contains.",
)

ENDPOINTS = (
    Endpoint("/status", "The state of the fleet", FleetResult, get_status),
    Endpoint(
        "/changes", "The changes with open drafts, the highest risk first", ChangeListResult, _list_changes,
        (
            Parameter("state", "The state of at least one draft of the change.", CHANGE_STATES),
            Parameter("risk", "The risk of the change.", RISK_LEVELS),
            Parameter("target", "A label selector for the targets of the change."),
            Parameter("on", "Names of targets, separated by commas.", is_repeatable=True),
            Parameter(
                "since", "Only changes with a draft since this day in UTC, such as 2024-05-31, or seconds since 1970."
            ),
            Parameter("sort", "The order. The default is `risk`.", tuple(CHANGE_SORT_KEYS)),
            _TEXT, _TENANT, _OWNER,
        ),
        is_list=True,
    ),
    Endpoint(
        "/changes/{key}", "One change with its differences", ChangeListResult, _get_change,
        refusals={"410": "The change is not open any more."},
    ),
    Endpoint(
        "/targets", "The targets", TargetListResult, _list_targets,
        (
            Parameter("labels", "A label selector for targets."),
            Parameter(
                "state",
                "The state of a package of the target. The same package must match the tenant and the owner.",
                PACKAGE_STATES,
            ),
            _TEXT, _TENANT, _OWNER,
        ),
        is_list=True,
    ),
    Endpoint(
        "/targets/{target}", "The packages of a target", PackageListResult, _list_packages,
        (Parameter("state", "The state of the package.", PACKAGE_STATES), _TEXT, _TENANT, _OWNER), is_list=True,
    ),
    Endpoint("/targets/{target}/packages/{package}", "One package", PackageListResult, _get_package),
    Endpoint(
        "/findings", "The findings of the last pass", FindingListResult, _list_findings,
        (
            Parameter("severity", "The severity of the finding.", tuple(SEVERITIES)),
            Parameter("code", "The code of the finding."),
            Parameter("q", "A text that the message or the location contains."),
            Parameter("tenant", "The name of the tenant that owns the package, the object or the file of the finding."),
            Parameter("owner", "The config object of the finding, or the object that requests its package."),
        ),
        is_list=True,
    ),
    Endpoint(
        "/activity", "What people and passes did, the newest event first", ActivityListResult, _list_activity,
        (
            Parameter("actor", "A text that the name of the person contains."),
            Parameter("action", "The action of the person or pass.", ACTIVITY_ACTIONS),
            Parameter("target", "A text that the name of the target contains."),
            Parameter("q", "A text that the package, the message or the reason contains."),
            Parameter("from", "The first day in UTC, such as 2024-05-31."),
            Parameter("to", "The last day in UTC."),
        ),
        is_list=True,
    ),
    *DETAIL_ENDPOINTS,
    *DRAFT_ENDPOINTS,
    *SERVICE_ENDPOINTS,
    EXPLAIN_ENDPOINT,
    Endpoint(
        "/jobs/{id}", "A review action of the last 7 days, with its results", ReviewJobResult, _get_job,
        depends_on_index=False,
    ),
)  # fmt: skip
"""All read-only endpoints."""
