"""One target with its packages, drafts, published resources, history and findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reconciler.git.errors import GitError
from reconciler.inspect.package_content import PackageMissingError, ResourceName
from reconciler.krm.findings import Finding
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.activity import ActivityEvent
from reconciler.output.fleet.model import PackageRow, TargetEntry
from reconciler.planning.lifecycle.open_drafts import PACKAGE_STATES
from reconciler.reconcile.failures import repository_boundary
from reconciler.review.stages import find_stage
from reconciler.server.console.failed_parts import report_failed_part
from reconciler.server.console.filters import PACKAGE_FILTERS, filter_packages
from reconciler.server.console.listing import count_filters, list_page, read_choice
from reconciler.server.console.page import PageContent, PageRequest
from reconciler.server.console.pages.comparison import build_comparison_page
from reconciler.server.console.pages.missing import build_missing_page
from reconciler.server.console.topics import build_target_topic, list_target_findings

RESOURCE_PACKAGES = 20
"""The number of packages on one page of the published resources, because the page reads their files."""
_VIEWS: Mapping[str, str] = {
    "packages": "Packages", "waiting": "Waiting", "resources": "Published resources", "history": "History",
    "findings": "Findings",
}  # fmt: skip
_HISTORY_ACTIONS = frozenset({"published", "approved", "removed"})


@dataclass(frozen=True)
class _TargetData:
    """The data of the sections of a target."""

    page: PageRequest
    target: TargetEntry
    findings: Sequence[Finding]
    events: Sequence[ActivityEvent]


def build_page(page: PageRequest) -> PageContent:
    """Build the page of one target, with the section that the query parameter `view` selects."""
    name, query = page.request.path_params["target"], page.request.query_params
    target = page.index.by_target.get(name)
    if target is None:
        return build_missing_page("target", name)
    if query.get("compare"):
        return build_comparison_page(page, target)
    view = read_choice(query, "view", tuple(_VIEWS), "packages")
    data = _TargetData(page, target, list_target_findings(page.index, name), _list_events(page, target))
    waiting = {draft.change_key for draft in target.drafts}
    return PageContent(
        "target.html",
        {
            "target": target,
            "view": view,
            "views": _VIEWS,
            "counts": {
                "packages": len(target.packages), "waiting": len(waiting), "history": len(data.events),
                "findings": len(data.findings),
            },
            "stage": find_stage(target, page.context.stages),
            "last_publication": next((event for event in data.events if "published" in event.actions), None),
            "findings": data.findings,
            "states": PACKAGE_STATES,
            "filter_count": count_filters(query, PACKAGE_FILTERS),
            **_SECTIONS[view](data),
        },
        # The page of the published resources also reads the repository, and not only the index.
        is_from_index=view != "resources",
        topics=(build_target_topic(name),),
    )  # fmt: skip


def _list_events(page: PageRequest, target: TargetEntry) -> Sequence[ActivityEvent]:
    events = page.context.activity.list_events(page.whole_index, page.index, page.session.permissions)
    return [event for event in events if event.target == target.name and not _HISTORY_ACTIONS.isdisjoint(event.actions)]


def _filter_rows(data: _TargetData) -> Sequence[PackageRow]:
    return tuple(filter_packages(data.page.index, data.target.packages, data.page.request.query_params))


def _build_packages(data: _TargetData) -> dict[str, Any]:
    return {"listing": list_page(_filter_rows(data), data.page.request.query_params)}


def _build_waiting(data: _TargetData) -> dict[str, Any]:
    index = data.page.index
    drafts = sorted(data.target.drafts, key=lambda draft: index.by_change[draft.change_key].sort_key)
    return {"listing": list_page(drafts, data.page.request.query_params), "changes": index.by_change}


def _build_resources(data: _TargetData) -> dict[str, Any]:
    listing = list_page(_filter_rows(data), data.page.request.query_params, RESOURCE_PACKAGES)
    error = ""
    found: Mapping[str, Sequence[ResourceName]] = {}
    try:
        with repository_boundary(f"the packages of {data.target.name}"):
            packages = {row.package for row in listing.items}
            found = data.page.context.packages.list_resources(data.target.name, packages)
    except PackageMissingError as missing:
        error = str(missing)
    except GitError as unreadable:
        error = report_failed_part(unreadable)
    return {"listing": listing, "resources": found, "error": error}


def _build_history(data: _TargetData) -> dict[str, Any]:
    return {"listing": list_page(data.events, data.page.request.query_params)}


def _build_findings(data: _TargetData) -> dict[str, Any]:
    return {"listing": list_page(data.findings, data.page.request.query_params)}


_SECTIONS: Mapping[str, Callable[[_TargetData], dict[str, Any]]] = {
    "packages": _build_packages, "waiting": _build_waiting, "resources": _build_resources, "history": _build_history,
    "findings": _build_findings,
}  # fmt: skip
