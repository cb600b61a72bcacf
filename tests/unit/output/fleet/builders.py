"""Builders of targets with one drafted package for the tests of the fleet index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.controllers.results import PackageOwner
from reconciler.krm.objects import ObjectKey
from reconciler.output.fleet.builder import build_fleet_index, index_target
from reconciler.output.fleet.model import FleetIndex, TargetEntry
from reconciler.output.fleet.target_data import PackageData, TargetData
from reconciler.output.fleet.variants import VariantPool
from reconciler.output.review.models import Rejection
from reconciler.output.review.open_drafts import DraftDetails, DraftPackageDetails
from reconciler.planning.lifecycle.open_drafts import BlockingReason, DraftedPackage, OpenDraft, TargetPackage
from reconciler.planning.model.state import PackageRecord, ProposedRemoval
from tests.unit.output.builders import TREE, build_target, build_tree, format_deployment
from tests.unit.output.report.builders import BASE, DAY, HEAD, OFFER

VARIANT, PRESET = "PackageVariant", "PluginPreset"
PUBLISHED, DRAFTED = replace(OFFER, upstream="catalog/gw v1 1111111"), replace(OFFER, upstream="catalog/gw v2 2222222")
BEFORE, AFTER = ({"d.yaml": format_deployment(image=image)} for image in ("web:1", "web:2"))
Files = Mapping[str, str]


def build_owner(name: str, kind: str = VARIANT, parent: ObjectKey | None = None) -> PackageOwner:
    return PackageOwner(ObjectKey("", kind, "default", name), "v1", parent)


def build_plugin_owner(cluster: str, preset: str = "logs") -> PackageOwner:
    """Return the Plugin that a PluginPreset creates for a cluster."""
    return build_owner(f"{preset}-{cluster}", "Plugin", ObjectKey("", PRESET, "acme", preset))


def build_draft(
    cluster: str,
    before: Files = BEFORE,
    after: Files = AFTER,
    *,
    package: str = "gw",
    owner: PackageOwner | None = None,
    is_removal: bool = False,
    rejection: str = "",
    conflicts: Sequence[Mapping[str, Any]] = (),
    unmet_gates: Sequence[str] = (),
    is_published: bool = True,
    has_version: bool = True,
    templates: tuple[str, ...] = (),
    **fields: Any,
) -> TargetData:
    """Return a target with one drafted package. `fields` are fields of the draft."""
    record = PackageRecord(
        owner or build_owner("gw"), is_owned=True, published_version=PUBLISHED if is_published else None,
        draft_version=DRAFTED if has_version and not is_removal else None, draft_branch=f"drafts/{cluster}",
        removal=ProposedRemoval(f"drafts/{cluster}", TREE) if is_removal else None,
    )  # fmt: skip
    gates = tuple(BlockingReason("GateNotMet", f"{package}: {gate} is not reported") for gate in unmet_gates)
    status = {"task": "upgrade", "conflicts": list(conflicts)}
    drafted = DraftedPackage(
        package, record, TREE if is_published else None, None if is_removal else TREE, status, unmet_gates=gates
    )
    draft = OpenDraft(build_target(cluster), f"drafts/{cluster}", HEAD, BASE, BASE, None, False, (drafted,), ())
    draft = replace(draft, **fields)
    details = DraftPackageDetails(
        drafted, build_tree(before), build_tree({} if is_removal else after), (), templates, DAY
    )
    state = TargetPackage(package, record, "draft", TREE, draft=draft, drafted_package=drafted)
    rejected = Rejection(by="Grace", reason=rejection) if rejection else None
    sheets = {draft.branch: DraftDetails(draft, DAY, 0, rejection=rejected, packages=(details,))}
    return TargetData(build_target(cluster), packages=(PackageData(state, DAY, details),), drafts=sheets)


def format_size(size: int) -> dict[str, str]:
    """Return the files of a package with one resource, which has this size."""
    text = f'apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{size: "{size}"}}\n'
    return {"settings.yaml": text}


def index_targets(*clusters: TargetData) -> tuple[TargetEntry, ...]:
    """Return the entries of targets that share a pool."""
    pool = VariantPool()
    return tuple(index_target(cluster, pool) for cluster in clusters)


def build_index(*clusters: TargetData) -> FleetIndex:
    """Return the index of these targets."""
    return build_fleet_index(1, DAY, "41ab" * 10, index_targets(*clusters), ())


def list_groups(*clusters: TargetData) -> list[list[list[str]]]:
    """Return the targets of each variant of each change, sorted by their names."""
    return sorted(
        sorted([member.target for member in variant.members] for variant in change.variants)
        for change in build_index(*clusters).changes
    )
