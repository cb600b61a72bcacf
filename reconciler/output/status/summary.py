"""Builds the file `summary.yaml` of the status branch from a plan, and the same file for each tenant."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.api.base import omit_empty
from reconciler.krm.findings import Finding
from reconciler.krm.numbers import format_count
from reconciler.krm.yaml import emit
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.findings.formats import build_findings_data
from reconciler.output.json_data import read_mapping, read_mappings
from reconciler.output.status.removals import build_pending_removals_data, list_pending_removals
from reconciler.output.status.target_statuses import PACKAGE_OUTCOMES, count_packages_by_tenant
from reconciler.planning.decide.fleet_plan import FleetPlan

SUMMARY_FILE = "summary.yaml"
TENANTS_FOLDER = "tenants/"
_STATUS_FOLDERS = ("objects/", "types/", TENANTS_FOLDER)
_MAX_ENTRIES = 1000
_FIRST_TOTALS = ("packages", "targets", "destinations")
_TOTAL_LABELS = {"notReady": "not ready"}
_TOTAL_NOUNS = {"findings": "finding", "leaving": "pending removal", "pendingRemovals": "pending removal"}

StatusDocument = Mapping[str, Any]


def is_status_branch(paths: Collection[str]) -> bool:
    """Return whether a branch with these paths is a status branch, and not a config branch or target branch."""
    return SUMMARY_FILE in paths or all(path.startswith(_STATUS_FOLDERS) for path in paths)


@dataclass(frozen=True)
class SummaryEntries:
    """The entries of `summary.yaml` for one object.

    Attributes:
        not_ready: One entry if the object is not ready.
        gated: One entry for each draft with a failed render or an unmet readiness gate.
        is_healthy: Whether the object is ready and no draft of the object is gated.
    """

    name: str
    not_ready: tuple[dict[str, Any], ...]
    gated: tuple[dict[str, Any], ...]
    is_healthy: bool


def build_summary_entries(document: StatusDocument) -> SummaryEntries:
    """Return the summary entries for the status file of one object."""
    is_ready = any(
        (condition.get("type"), condition.get("status")) == ("Ready", "True")
        for condition in _read_conditions(document)
    )
    gated = tuple(_build_gated(document))
    return SummaryEntries(_get_name(document), tuple(_build_not_ready(document)), gated, is_ready and not gated)


def get_tenant_file(tenant: str) -> str:
    """Return the path of the summary of a tenant on the status branch."""
    return f"{TENANTS_FOLDER}{tenant}.yaml"


def list_tenants(paths: Iterable[str]) -> list[str]:
    """Return the tenants with a summary on the status branch."""
    return sorted(
        path.removeprefix(TENANTS_FOLDER).removesuffix(".yaml") for path in paths if path.startswith(TENANTS_FOLDER)
    )


def build_tenant_summaries(plan: FleetPlan, objects: Sequence[SummaryEntries]) -> Mapping[str, bytes]:
    """Return the summary of each tenant by path. A summary contains only the packages and findings of its tenant."""
    if not plan.tenants.by_name:
        return {}
    own: dict[str, list[SummaryEntries]] = {}
    for entries in objects:
        own.setdefault(plan.find_object_tenant(entries.name), []).append(entries)
    findings: dict[str, list[Finding]] = {}
    for finding in plan.list_findings():
        findings.setdefault(plan.find_finding_tenant(finding), []).append(finding)
    targets = [count_packages_by_tenant(target) for target in plan.targets]
    return {
        get_tenant_file(tenant): build_summary_file(
            plan,
            own.get(tenant, ()),
            [counts[tenant] for counts in targets if tenant in counts],
            findings.get(tenant, ()),
            tenant,
        )
        for tenant in plan.tenants.by_name
    }


def build_summary_file(
    plan: FleetPlan,
    objects: Iterable[SummaryEntries],
    package_counts: Sequence[Mapping[str, int]],
    findings: Iterable[Finding],
    tenant: str | None = None,
) -> bytes:
    """Return `summary.yaml`: the totals, and the lists `notReady`, `gated`, `held`, `leaving` and `findings`.

    Each list has at most 1,000 entries. The totals contain the number of all entries.

    Args:
        objects: The entries of all objects that are not healthy.
        package_counts: The number of packages per outcome, for each target.
        findings: The findings to list.
        tenant: The tenant whose packages are listed. None means all.
    """

    def is_listed(owner: str) -> bool:
        return tenant is None or owner == tenant

    listed = sorted(
        (entries for entries in objects if entries.not_ready or entries.gated), key=lambda entries: entries.name
    )
    lists: dict[str, list[dict[str, Any]]] = {
        "notReady": [entry for entries in listed for entry in entries.not_ready],
        "gated": [entry for entries in listed for entry in entries.gated],
        "held": list(_build_held(plan, is_listed)),
        "leaving": [
            dict(entry)
            for target_plan in plan.targets
            if target_plan.removals
            for entry in build_pending_removals_data(
                pending for pending in list_pending_removals(target_plan) if is_listed(pending.tenant)
            )
        ],
        "findings": build_findings_data(findings),
    }
    stalled_count = sum(is_listed(stalled.tenant) for stalled in plan.controller_result.stalled)
    totals = {
        **_build_totals(plan, package_counts, stalled_count),
        **{name: len(entries) for name, entries in lists.items()},
    }
    document = {"totals": totals, **{name: entries[:_MAX_ENTRIES] for name, entries in lists.items() if entries}}
    return emit(document).encode()


def _build_totals(plan: FleetPlan, package_counts: Sequence[Mapping[str, int]], stalled_count: int) -> dict[str, int]:
    outcomes = {outcome: sum(counts[outcome] for counts in package_counts) for outcome in PACKAGE_OUTCOMES}
    awaited = {"awaited": len(plan.awaited_owners)} if plan.awaited_owners else {}
    return {
        "targets": len(package_counts),
        "packages": sum(outcomes.values()),
        **outcomes,
        "stalled": stalled_count,
        **awaited,
    }


def _get_name(document: StatusDocument) -> str:
    metadata = read_mapping(document, "metadata")
    return f"{document['kind']}/{metadata.get('namespace') or '_cluster'}/{metadata['name']}"


def _read_conditions(document: StatusDocument) -> list[Mapping[str, Any]]:
    return read_mappings(read_mapping(document, "status"), "conditions")


def _build_not_ready(document: StatusDocument) -> Iterator[dict[str, Any]]:
    for condition in _read_conditions(document):
        if condition["type"] == "Ready" and condition["status"] != "True":
            name = _get_name(document)
            yield omit_empty({"object": name, "reason": condition["reason"], "message": condition["message"]})


def _build_gated(document: StatusDocument) -> Iterator[dict[str, Any]]:
    for target in read_mappings(read_mapping(document, "status"), "downstreamTargets"):
        render = read_mapping(target, "renderStatus")
        if render.get("status") == "False" or render.get("unmetGates"):
            fields = {name: render.get(name) for name in ("reason", "message", "unmetGates")}
            yield omit_empty({"object": _get_name(document), "target": target["name"], **fields})


def _build_held(plan: FleetPlan, is_listed: Callable[[str], bool]) -> Iterator[dict[str, Any]]:
    for target_plan in plan.targets:
        for held in filter(lambda held: is_listed(held.record.tenant), target_plan.held):
            package = f"{target_plan.target.name}/{held.package}"
            yield omit_empty({"package": package, "reason": held.finding.code, "message": held.finding.message})


def format_totals(totals: Mapping[str, int]) -> str:
    """Return the totals of a summary on one line. Omit totals that are 0."""
    packages = f"{format_count(totals['packages'], 'package')} on {format_count(count_targets(totals), 'target')}"
    rest = [_format_total(name, number) for name, number in totals.items() if number and name not in _FIRST_TOTALS]
    return f"{packages}: {', '.join(rest)}" if rest else packages


def count_targets(totals: Mapping[str, int]) -> int:
    """Return the number of targets. Earlier versions stored this number with the key `destinations`."""
    return totals["targets"] if "targets" in totals else totals["destinations"]


def _format_total(name: str, number: int) -> str:
    if noun := _TOTAL_NOUNS.get(name):
        return format_count(number, noun)
    return f"{number} {_TOTAL_LABELS.get(name, name)}"
