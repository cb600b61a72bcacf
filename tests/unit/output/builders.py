"""Builders of small fixed values for the tests of output."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.catalog.files import CommitId, File, FileTree, TreeId
from reconciler.catalog.trace import CatalogView
from reconciler.controllers.results import (
    ControllerResult,
    MutationResult,
    PackageOwner,
    PackageTarget,
    UpstreamPackage,
    Variant,
)
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.objects import Condition, ObjectKey
from reconciler.output.changes.package_changes import PackageChanges, compare_packages
from reconciler.output.envelope import CommandResult
from reconciler.output.status.owner_statuses import build_owner_statuses
from reconciler.output.status.target_statuses import ObjectStatus
from reconciler.planning.attribution.explained_sources import ExplainedSources, find_explained_sources
from reconciler.planning.decide.fleet_plan import FleetPlan, TargetPlan
from reconciler.planning.decide.package_decision import VALID_CONDITION
from reconciler.planning.model.outcomes import (
    Blocked,
    Draft,
    HeldRemoval,
    PackageOutcome,
    PackageRender,
    RemovalKind,
    RemovalOutcome,
    Unchanged,
)
from reconciler.planning.model.sources import SourceContent
from reconciler.planning.model.state import (
    ObservedPackage,
    PackageRecord,
    ProposedRemoval,
    RenderedVersion,
    TargetState,
)
from reconciler.planning.model.targets import Target
from reconciler.planning.observe.target_snapshot import TargetHeads


def read_json(result: CommandResult) -> dict[str, Any]:
    """Return the parsed JSON output of a result."""
    data: dict[str, Any] = json.loads(result.to_json())
    return data


GROUP = "config.porch.kpt.dev"
CONFIG = "41ab" * 10
COMMIT = CommitId("9f2c" * 10)
OLD_COMMIT = CommitId("1e0d" * 10)
TREE = TreeId("7b5e" * 10)

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: {replicas}
  template:
    spec:
      containers:
      - name: web
        image: {image}
"""
ENDPOINTS = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: endpoints
data:
  api: {api}
"""
SECRET = """\
apiVersion: v1
kind: Secret
metadata:
  name: login
stringData:
  password: {password}
"""
KPTFILE = """\
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: gw
upstreamLock:
  type: git
  git:
    repo: https://git.example/catalog.git
    directory: gateway
    ref: gateway/{ref}
    commit: {commit}
"""


def format_deployment(replicas: int = 3, image: str = "web:1") -> str:
    return DEPLOYMENT.format(replicas=replicas, image=image)


def format_endpoints(api: str = "a") -> str:
    return ENDPOINTS.format(api=api)


def format_secret(password: str = "hunter2") -> str:
    return SECRET.format(password=password)


def format_kptfile(ref: str = "v4", commit: str = COMMIT) -> str:
    return KPTFILE.format(ref=ref, commit=commit)


def build_tree(files: Mapping[str, str | bytes | File]) -> FileTree:
    mapping = {p: file.encode() if isinstance(file, str) else file for p, file in files.items()}
    return FileTree({p: item if isinstance(item, File) else File(item) for p, item in mapping.items()})


def build_package_changes(before: Mapping[str, str], after: Mapping[str, str]) -> PackageChanges:
    """Return the differences between two versions of a package."""
    return compare_packages(build_tree(before), build_tree(after))


def build_key(kind: str, name: str, namespace: str = "default", group: str = GROUP) -> ObjectKey:
    return ObjectKey(group, kind, namespace, name)


def build_target(name: str = "eu-1", directory: str = "") -> Target:
    where = SourceLocation("repos.yaml", 3, f"Repository/default/{name}")
    url = "https://git.example/fleet"
    return Target(build_key("Repository", name), url, f"{url}.git", f"clusters/{name}", directory, True, where)


def build_owner(name: str = "edge-gw", made_by: str | None = None) -> PackageOwner:
    return PackageOwner(
        build_key("PackageVariant", name),
        f"{GROUP}/v1alpha1",
        build_key("PackageVariantSet", made_by) if made_by else None,
    )


def keep_files(files: FileTree, _view: CatalogView) -> MutationResult:
    return MutationResult(files)


def build_upstream(ref: str = "gateway/v4") -> UpstreamPackage:
    url = "https://git.example/catalog"
    return UpstreamPackage("default", "catalog", url, f"{url}.git", "gateway", "gateway", ref, COMMIT, TREE)


def build_variant(
    name: str = "edge-gw", repository: str = "eu-1", package: str = "gw", made_by: str | None = None
) -> Variant:
    return Variant(
        build_owner(name, made_by), PackageTarget("default", repository, package), build_upstream(), keep_files, {}
    )


class UnreadSources:
    """Reader of sources that are not read, because the origin of a file in Git is known without its content."""

    def read_source(self, upstream: UpstreamPackage) -> SourceContent:
        raise AssertionError("the source must not be rendered")

    def read_unrendered_source(self, upstream: UpstreamPackage) -> FileTree:
        raise AssertionError("the source must not be read")


def build_explained_sources(variant: Variant) -> ExplainedSources | None:
    return find_explained_sources(variant.source, UnreadSources(), "")


def build_draft(
    before: Mapping[str, str | bytes | File] | FileTree,
    after: Mapping[str, str | bytes | File] | FileTree,
    *,
    desired_variant: Variant | None = None,
    task: str = "update",
    causes: tuple[str, ...] = ("upstream",),
    trace: Mapping[str, str] | None = None,
    rendered: PackageRender | None = None,
) -> Draft:
    desired_variant = desired_variant or build_variant()
    old, new = (files if isinstance(files, FileTree) else build_tree(files) for files in (before, after))
    package_render = replace(rendered or PackageRender(new), files=new, trace=trace or {})
    known = PackageRecord(
        desired_variant.owner, is_owned=True, last_workspace=3, trace=trace or {}, desired_tree=new.id
    )
    record = replace(known, render_status=package_render.render_status)
    return Draft(desired_variant, package_render, record, ObservedPackage(), TREE, TREE, TREE, task, old, causes)


def build_unchanged(desired_variant: Variant, why: str = "published") -> Unchanged:
    offer = RenderedVersion(TREE, TREE, TREE, TREE, TREE, "")  # type: ignore[arg-type]
    put, ours = (offer, None) if why == "drafted" else (None, offer)
    return Unchanged(
        desired_variant,
        PackageRecord(
            desired_variant.owner, is_owned=True, last_workspace=3, draft_version=put, published_version=ours
        ),
        why,
    )


def build_blocked(desired_variant: Variant, message: str = "it cannot be") -> Blocked:
    finding = Finding("Broken", message, SourceLocation("pv.yaml", 7, desired_variant.owner.key.reference))
    conditions = (VALID_CONDITION, Condition("Ready", "False", "Error", message))
    return Blocked(desired_variant, None, conditions, (finding,), ObservedPackage())


def build_held_removal(package: str = "old") -> HeldRemoval:
    finding = Finding(
        "DeletionHeld", f"package {package} is not wanted any more", SourceLocation(object="PackageVariant/default/old")
    )
    return HeldRemoval(package, PackageRecord(build_owner("old"), is_owned=True), finding)


def build_removal(
    how: RemovalKind = "proposed", package: str = "gone", *, before: TreeId | None = None
) -> RemovalOutcome:
    removal = (
        ProposedRemoval("removals/eu-1", TREE, is_declined=how == "declined")
        if how in ("proposed", "declined")
        else None
    )
    record = PackageRecord(build_owner("old"), is_owned=removal is not None, removal=removal)
    return RemovalOutcome(package, build_owner("old"), how, record, "PackageVariant default/old is gone", before)


def build_target_plan(
    *outcomes: PackageOutcome,
    name: str = "eu-1",
    holding: Sequence[HeldRemoval] = (),
    findings: Sequence[Finding] = (),
    leaving: Sequence[RemovalOutcome] = (),
) -> TargetPlan:
    state = TargetState("https://git.example/fleet.git", f"clusters/{name}", "")
    packages = {outcome.variant.target.package: outcome.record for outcome in outcomes if outcome.record}
    after = replace(state, packages=packages)
    return TargetPlan(
        build_target(name), TargetHeads(), state, after, outcomes, tuple(holding), (), tuple(findings), removals=tuple(leaving)
    )  # fmt: skip


def build_fleet_plan(
    *plans: TargetPlan, controller_result: ControllerResult | None = None, as_of: int = 1_700_000_000
) -> FleetPlan:
    variants = tuple(outcome.variant for plan in plans for outcome in plan.outcomes)
    return FleetPlan(CONFIG, as_of, controller_result or ControllerResult(variants), plans)


def list_object_statuses(plan: FleetPlan) -> dict[ObjectKey, ObjectStatus]:
    """Return the status of each object of the status branch."""
    fleet_statuses = build_owner_statuses(plan)
    everybody = {
        object_status.key: object_status
        for object_status in (
            *(target_statuses.target_status for target_statuses in fleet_statuses.targets),
            *fleet_statuses.other_statuses,
        )
    }
    return everybody | {
        key: object_status
        for target_statuses in fleet_statuses.targets
        for key, object_status in target_statuses.owners.items()
    }
