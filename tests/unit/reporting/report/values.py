"""Values for the tests of reports: clusters as they are read, small and whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reconciler.krm.yaml import emit
from reconciler.planning.cells import Cell, State
from reconciler.planning.open_drafts import DraftedPackage, OpenDraft, Reason
from reconciler.planning.state import Offer, PackageRecord, Revision
from reconciler.reporting.open_drafts import PackageSheet, Sheet
from reconciler.reporting.report.build import build_report
from reconciler.reporting.report.fleet import FleetReport, ReadCluster, ReadPackage
from reconciler.snapshot.objects import BlobId, CommitId
from tests.unit.reporting.world import TREE, deployment, destination, owner, tree

DAY = 1_767_312_000
HEAD, BASE = CommitId("d1" * 20), CommitId("b0" * 20)
OFFER = Offer(TREE, BlobId("5a" * 20), TREE, TREE, TREE, "")
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


def drafted(
    package: str = "gw",
    state: State = "draft",
    *,
    cluster: str = "eu-1",
    old: str = "web:1",
    new: str = "web:2",
    status: Mapping[str, Any] = STATUS,
    since: int | None = DAY,
    **fields: Any,
) -> tuple[ReadPackage, OpenDraft]:
    """Return a package on an open draft that changes its image, and the draft."""
    record = PackageRecord(owner(f"gw-{cluster}"), owned=True, put=OFFER, draft=f"drafts/{cluster}")
    unmet = tuple(fields.pop("unmet", ()))
    one = DraftedPackage(package, record, TREE, TREE, status, unmet=unmet)
    draft = OpenDraft(destination(cluster), f"drafts/{cluster}", HEAD, BASE, BASE, None, False, (one,), ())
    draft = replace(draft, **{name: fields.pop(name) for name in ("proposed", "edited") if name in fields})
    before, after = (tree({"d.yaml": deployment(image=image)}) for image in (old, new))
    sheet = PackageSheet(one, before, after, ("upstream moved",), since=since)
    cell = Cell(package, record, state, TREE, revision=Revision(1, BASE, OFFER), draft=draft, drafted=one, **fields)
    return ReadPackage(cell, since, sheet), draft


def published(
    package: str = "gw", state: State = "published", *, status: Mapping[str, Any] = STATUS, **fields: Any
) -> ReadPackage:
    """Return a package that is on no draft."""
    number = fields.pop("number", 1)
    record = PackageRecord(owner(), owned=True, ours=OFFER)
    revision = Revision(number, BASE, OFFER) if number else None
    cell = Cell(package, record, state, TREE, OFFER.status, revision, **fields)
    return ReadPackage(cell, DAY, None, emit({"status": dict(status)}).encode())


def cluster(name: str = "eu-1", *packages: ReadPackage, **fields: Any) -> ReadCluster:
    """Return a cluster with these packages; the sheets of their drafts tell nothing more."""
    sheets = {one.cell.draft.branch: Sheet(one.cell.draft, DAY, 0) for one in packages if one.cell.draft}
    return ReadCluster(destination(name), packages=packages, **{"sheets": sheets, "seconds": DAY, **fields})


def report(*clusters: ReadCluster, summary: Mapping[str, Any] | None = None) -> FleetReport:
    """Return the report of these clusters."""
    return build_report(clusters, "41ab" * 10, summary or {})


GATE = Reason("GateNotMet", "gw: tested is not reported")
