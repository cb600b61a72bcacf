"""Values for the tests of reporting: small, whole, and the same every time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.krm.conditions import Condition
from reconciler.krm.findings import Finding, Where
from reconciler.krm.identity import ObjectKey
from reconciler.planning.decide import VALID
from reconciler.planning.destination import Destination
from reconciler.planning.fleet import DestinationPlan, FleetPlan
from reconciler.planning.outcome import Blocked, Draft, Held, How, Leaving, Outcome, Rendered, Unchanged
from reconciler.planning.standing import Heads
from reconciler.planning.state import DestinationState, Offer, PackageRecord, Removal, Seen
from reconciler.reporting.destination_statuses import ObjectStatus
from reconciler.reporting.owners import owner_statuses
from reconciler.rules.variant import Mutated, Owner, Place, RoomResult, Upstream, Variant
from reconciler.snapshot.files import File, FileTree
from reconciler.snapshot.objects import CommitId, TreeId
from reconciler.snapshot.trace import View

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


def deployment(replicas: int = 3, image: str = "web:1") -> str:
    return DEPLOYMENT.format(replicas=replicas, image=image)


def endpoints(api: str = "a") -> str:
    return ENDPOINTS.format(api=api)


def secret(password: str = "hunter2") -> str:
    return SECRET.format(password=password)


def kptfile(ref: str = "v4", commit: str = COMMIT) -> str:
    return KPTFILE.format(ref=ref, commit=commit)


def tree(files: Mapping[str, str | bytes | File]) -> FileTree:
    made = {p: one.encode() if isinstance(one, str) else one for p, one in files.items()}
    return FileTree({p: one if isinstance(one, File) else File(one) for p, one in made.items()})


def key(kind: str, name: str, namespace: str = "default", group: str = GROUP) -> ObjectKey:
    return ObjectKey(group, kind, namespace, name)


def destination(name: str = "eu-1", directory: str = "") -> Destination:
    where = Where("repos.yaml", 3, f"Repository/default/{name}")
    url = "https://git.example/fleet"
    return Destination(key("Repository", name), url, f"{url}.git", f"clusters/{name}", directory, True, where)


def owner(name: str = "edge-gw", made_by: str | None = None) -> Owner:
    return Owner(
        key("PackageVariant", name), f"{GROUP}/v1alpha1", key("PackageVariantSet", made_by) if made_by else None
    )


def untouched(files: FileTree, _view: View) -> Mutated:
    return Mutated(files)


def upstream(ref: str = "gateway/v4") -> Upstream:
    url = "https://git.example/catalog"
    return Upstream("default", "catalog", url, f"{url}.git", "gateway", "gateway", ref, COMMIT, TREE)


def variant(
    name: str = "edge-gw", repository: str = "eu-1", package: str = "gw", made_by: str | None = None
) -> Variant:
    return Variant(owner(name, made_by), Place("default", repository, package), upstream(), untouched, {})


def draft(
    before: Mapping[str, str | bytes | File] | FileTree,
    after: Mapping[str, str | bytes | File] | FileTree,
    *,
    wanted: Variant | None = None,
    task: str = "update",
    causes: tuple[str, ...] = ("upstream",),
    trace: Mapping[str, str] | None = None,
    rendered: Rendered | None = None,
) -> Draft:
    wanted = wanted or variant()
    old, new = (files if isinstance(files, FileTree) else tree(files) for files in (before, after))
    made = replace(rendered or Rendered(new), files=new, trace=trace or {})
    known = PackageRecord(wanted.owner, owned=True, workspace=3, trace=trace or {}, wanted=new.id)
    record = replace(known, render=made.render_status)
    return Draft(wanted, made, record, Seen(), TREE, TREE, TREE, task, old, causes)


def unchanged(wanted: Variant, why: str = "published") -> Unchanged:
    offer = Offer(TREE, TREE, TREE, TREE, TREE, "")  # type: ignore[arg-type]
    put, ours = (offer, None) if why == "drafted" else (None, offer)
    return Unchanged(wanted, PackageRecord(wanted.owner, owned=True, workspace=3, put=put, ours=ours), why)


def blocked(wanted: Variant, message: str = "it cannot be") -> Blocked:
    finding = Finding("Broken", message, Where("pv.yaml", 7, str(wanted.owner.key)))
    conditions = (VALID, Condition("Ready", "False", "Error", message))
    return Blocked(wanted, None, conditions, (finding,), Seen())


def held(package: str = "old") -> Held:
    finding = Finding(
        "DeletionHeld", f"package {package} is not wanted any more", Where(object="PackageVariant/default/old")
    )
    return Held(package, PackageRecord(owner("old"), owned=True), finding)


def leaving(how: How = "proposed", package: str = "gone", *, before: TreeId | None = None) -> Leaving:
    removal = Removal("removals/eu-1", TREE, declined=how == "declined") if how in ("proposed", "declined") else None
    record = PackageRecord(owner("old"), owned=removal is not None, removal=removal)
    return Leaving(package, owner("old"), how, record, "PackageVariant/default/old is gone", before)


def destination_plan(
    *outcomes: Outcome,
    name: str = "eu-1",
    holding: Sequence[Held] = (),
    findings: Sequence[Finding] = (),
    leaving: Sequence[Leaving] = (),
) -> DestinationPlan:
    state = DestinationState("https://git.example/fleet.git", f"clusters/{name}", "")
    packages = {one.variant.place.package: one.record for one in outcomes if one.record}
    after = replace(state, packages=packages)
    return DestinationPlan(
        destination(name), Heads(), state, after, outcomes, tuple(holding), (), tuple(findings), leaving=tuple(leaving)
    )  # fmt: skip


def fleet(*plans: DestinationPlan, room: RoomResult | None = None, as_of: int = 1_700_000_000) -> FleetPlan:
    variants = tuple(one.variant for plan in plans for one in plan.outcomes)
    return FleetPlan(CONFIG, as_of, room or RoomResult(variants), plans)


def told_of(plan: FleetPlan) -> dict[ObjectKey, ObjectStatus]:
    """Return what is told of each object of the status branch."""
    told = owner_statuses(plan)
    everybody = {one.key: one for one in (*(each.destination for each in told.destinations), *told.others)}
    return everybody | {key: one for each in told.destinations for key, one in each.owners.items()}
