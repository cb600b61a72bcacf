"""All findings of the last pass. Findings with one code and one message are one row."""

from __future__ import annotations

from collections import Counter

from reconciler.git.errors import GitError
from reconciler.krm.findings import SourceLocation
from reconciler.output.findings.code_scanning import SCOPE_EFFECTS
from reconciler.output.findings.excerpts import Excerpt, build_excerpt
from reconciler.reconcile.codes import ALL_CODES
from reconciler.reconcile.failures import repository_boundary
from reconciler.server.console.failed_parts import report_failed_part
from reconciler.server.console.filters import FINDING_FILTERS, SEVERITIES, filter_findings
from reconciler.server.console.finding_groups import group_findings
from reconciler.server.console.listing import count_filters, list_page
from reconciler.server.console.page import PageContent, PageRequest
from reconciler.server.console.pages.missing import build_missing_page


def build_list_page(page: PageRequest) -> PageContent:
    """Build the list of findings."""
    query, index = page.request.query_params, page.index
    groups = group_findings(filter_findings(index, query))
    return PageContent(
        "findings.html",
        {
            "listing": list_page(groups, query),
            "severities": SEVERITIES,
            "severity_counts": Counter(finding.severity.value for finding in index.findings),
            "codes": sorted({finding.code for finding in index.findings}),
            "filter_count": count_filters(query, FINDING_FILTERS),
        },
        is_from_index=True,
    )


def build_finding_page(page: PageRequest) -> PageContent:
    """Build the page of one group of findings."""
    identifier = page.request.path_params["id"]
    group = next((group for group in group_findings(page.index.findings) if group.id == identifier), None)
    if group is None:
        return build_missing_page("finding", identifier)
    excerpt, error = _read_excerpt(page, group.first.location)
    return PageContent(
        "finding.html",
        {
            "group": group,
            "listing": list_page(group.places, page.request.query_params),
            "code": next((code for code in ALL_CODES if code.name == group.first.code), None),
            "effects": SCOPE_EFFECTS,
            "excerpt": excerpt,
            "excerpt_error": error,
        },
    )


def _read_excerpt(page: PageRequest, location: SourceLocation) -> tuple[Excerpt | None, str]:
    """Return the lines around a location in the config, or the reason why they cannot be read.

    Return None and "" if there is no such location.

    Lines can contain names of other objects. Therefore, only people who may read everything can read them.
    """
    is_in_config = location.file and location.line and not location.package
    if not is_in_config or not page.session.permissions.reads_everything:
        return None, ""
    try:
        with repository_boundary(f"the file {location.file} of the config"):
            content = page.context.config.read_file(page.index.config, location.file)
    except GitError as error:
        return None, report_failed_part(error)
    return (build_excerpt(content, location.line) if content is not None else None), ""
