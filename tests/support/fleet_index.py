"""Indexes of the console without repositories, for tests of permissions and confirmations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.krm.findings import Finding
from reconciler.output.changes.package_changes import PackageChanges
from reconciler.output.fleet.builder import build_fleet_index
from reconciler.output.fleet.model import DraftMember, FleetIndex, IndexedDraft, PackageRow, TargetEntry, VariantContent
from reconciler.output.fleet.publications import Publication
from reconciler.output.fleet.risk import Risk, RiskClass
from reconciler.planning.lifecycle.open_drafts import BlockingReason, PackageState


def create_row(
    target: str,
    package: str,
    *,
    change: str = "",
    risk: RiskClass = "fields",
    tenant: str = "",
    causes: tuple[str, ...] = (),
    template_effects: tuple[str, ...] = (),
    publication: Publication | None = None,
    lifecycle: str = "Draft",
    **more: Any,
) -> PackageRow:
    """Return a package. If `change` is set, the package has a draft, which is a member of this change."""
    content = VariantContent(
        f"update {package} on {target}", PackageChanges(), Risk(risk), causes=causes, template_effects=template_effects
    )
    member = DraftMember(
        target, package, f"drafts/{target}", f"draft-of-{target}", f"head-of-{target}", lifecycle, tenant=tenant, **more
    )
    draft = IndexedDraft(member, change, f"update {package}", "", f"sha256:{risk}", content) if change else None
    state: PackageState = "draft" if draft else "published"
    return PackageRow(target, package, package, "", state, draft=draft, publication=publication, tenant=tenant)


def create_target(name: str, labels: Mapping[str, str], *rows: PackageRow) -> TargetEntry:
    return TargetEntry(name, labels, f"https://example.com/{name}.git", f"clusters/{name}", packages=rows)


def create_index(
    targets: Iterable[TargetEntry],
    findings: Iterable[Finding] = (),
    number: int = 1,
    finding_tenants: Mapping[str, str] | None = None,
) -> FleetIndex:
    return build_fleet_index(number, 1_000, "config", targets, findings, finding_tenants=finding_tenants)


def create_large_index(count: int, risk: RiskClass = "fields") -> FleetIndex:
    """Return an index with one change of one package on many targets."""
    names = [f"target-{number}" for number in range(count)]
    return create_index(create_target(name, {}, create_row(name, "web", change="update", risk=risk)) for name in names)


def create_refusal(message: str) -> BlockingReason:
    return BlockingReason("GateNotMet", message)
