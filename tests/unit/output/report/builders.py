"""Builders of small report clusters and packages for the tests of reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reconciler.catalog.files import BlobId, CommitId
from reconciler.krm.yaml import emit
from reconciler.output.fleet.target_data import PackageData, TargetData
from reconciler.output.report.builder import build_fleet_report
from reconciler.output.report.model import FleetReport
from reconciler.output.review.open_drafts import DraftDetails, DraftPackageDetails
from reconciler.planning.lifecycle.open_drafts import (
    BlockingReason,
    DraftedPackage,
    OpenDraft,
    PackageState,
    TargetPackage,
)
from reconciler.planning.model.state import PackageRecord, PublishedRevision, RenderedVersion
from tests.unit.output.builders import TREE, build_owner, build_target, build_tree, format_deployment

DAY = 1_767_312_000
HEAD, BASE = CommitId("d1" * 20), CommitId("b0" * 20)
OFFER = RenderedVersion(TREE, BlobId("5a" * 20), TREE, TREE, TREE, "")
OWNER = {"kind": "PackageVariant", "namespace": "default", "name": "edge-gw"}
STATUS: dict[str, Any] = {
    "owner": OWNER,
    "task": "upgrade",
    "upstream": {
        "from": {"ref": "gw/v1", "directory": "gw"},
        "to": {"repo": "./catalog.git", "ref": "gw/v2", "directory": "gw", "commit": "9f2c" * 10},
    },
    "overrides": [
        {
            "file": "d.yaml", "resource": "Deployment/web", "pointer": "/spec/replicas",
            "steps": [
                {"by": "OverridePolicy/small", "where": "spec.rules[0]", "op": "replaced", "before": 3, "after": 1}
            ],
        }
    ],
}  # fmt: skip
CONFLICT = {
    "kind": "field", "file": "d.yaml", "resource": "Deployment/web", "pointer": "/spec/replicas",
    "base": 1, "local": 2, "upstream": 3, "chosen": "upstream", "rule": "conflictPolicy",
}  # fmt: skip


def build_drafted_package(
    package: str = "gw",
    state: PackageState = "draft",
    *,
    cluster: str = "eu-1",
    old: str = "web:1",
    new: str = "web:2",
    status: Mapping[str, Any] = STATUS,
    since: int | None = DAY,
    **fields: Any,
) -> tuple[PackageData, OpenDraft]:
    """Return a package on an open draft that changes its image, and the draft."""
    record = PackageRecord(
        build_owner(f"gw-{cluster}"), is_owned=True, draft_version=OFFER, draft_branch=f"drafts/{cluster}"
    )
    unmet = tuple(fields.pop("unmet", ()))
    drafted_package = DraftedPackage(package, record, TREE, TREE, status, unmet_gates=unmet)
    draft = OpenDraft(build_target(cluster), f"drafts/{cluster}", HEAD, BASE, BASE, None, False, (drafted_package,), ())
    draft = replace(draft, **{name: fields.pop(name) for name in ("proposed_head", "is_edited") if name in fields})
    before, after = (build_tree({"d.yaml": format_deployment(image=image)}) for image in (old, new))
    sheet = DraftPackageDetails(drafted_package, before, after, ("upstream moved",), since=since)
    cell = TargetPackage(
        package,
        record,
        state,
        TREE,
        revision=PublishedRevision(1, BASE, OFFER),
        draft=draft,
        drafted_package=drafted_package,
        **fields,
    )
    return PackageData(cell, since, sheet), draft


def build_published_package(
    package: str = "gw", state: PackageState = "published", *, status: Mapping[str, Any] = STATUS, **fields: Any
) -> PackageData:
    """Return a package that is on no draft."""
    number = fields.pop("number", 1)
    record = PackageRecord(build_owner(), is_owned=True, published_version=OFFER)
    revision = PublishedRevision(number, BASE, OFFER) if number else None
    cell = TargetPackage(package, record, state, TREE, OFFER.status, revision, **fields)
    return PackageData(cell, DAY, None, emit({"status": dict(status)}).encode())


def build_cluster(name: str = "eu-1", *packages: PackageData, **fields: Any) -> TargetData:
    """Return a cluster with these packages and minimal details of their drafts."""
    sheets = {
        report_package.package_state.draft.branch: DraftDetails(report_package.package_state.draft, DAY, 0)
        for report_package in packages
        if report_package.package_state.draft
    }
    return TargetData(build_target(name), packages=packages, **{"drafts": sheets, "seconds": DAY, **fields})


def build_report(*clusters: TargetData, summary: Mapping[str, Any] | None = None) -> FleetReport:
    """Return the report of these clusters."""
    return build_fleet_report(clusters, "41ab" * 10, summary or {})


GATE = BlockingReason("GateNotMet", "gw: tested is not reported")
