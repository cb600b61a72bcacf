"""The URLs of pages. Names are percent-encoded, and the path of a package is the end of its URL."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from reconciler.krm.findings import Finding
from reconciler.server.console.finding_groups import compute_group_id


def build_change_url(key: str, **query: str) -> str:
    """Return the URL of a change."""
    return f"/changes/{key}{_format_query(query)}"


def build_target_url(target: str) -> str:
    """Return the URL of a target."""
    return f"/targets/{quote(target, safe='')}"


def build_package_url(target: str, package: str, **query: str) -> str:
    """Return the URL of a package."""
    return f"{build_target_url(target)}/packages/{quote(package, safe='/')}{_format_query(query)}"


def build_finding_url(finding: Finding) -> str:
    """Return the URL of the page of a finding and of all equal findings."""
    return f"/findings/{compute_group_id(finding)}"


def _format_query(query: Mapping[str, str]) -> str:
    text = urlencode({name: value for name, value in query.items() if value})
    return f"?{text}" if text else ""
