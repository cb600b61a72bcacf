"""Open drafts: what lies on each draft branch of a destination, and what keeps it from being published (porch 7).

Cells: where each package of a destination stands, by its refs alone; nothing is planned (porch 1.1, 6).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from reconciler.catalog.files import BlobId, CommitId, ObjectId, TreeId
from reconciler.controllers.package_variants.injection import CONDITION_PREFIX
from reconciler.krm.findings import Severity
from reconciler.krm.json_text import encode_canonical_json
from reconciler.krm.objects import Condition
from reconciler.krm.yaml import YamlError, parse_yaml
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.planning.decide.fleet_plan import find_metadata_path
from reconciler.planning.model.codes import MERGE_CONFLICT
from reconciler.planning.model.sources import are_conflicts_readable, filter_recorded_conflicts
from reconciler.planning.model.state import DraftBranch, PackageRecord, PublishedRevision
from reconciler.planning.model.targets import Target
from reconciler.planning.observe.target_snapshot import TargetObjects, TargetSnapshot

DraftLifecycle = Literal["Draft", "Proposed", "Stale"]
_NAMED_PATHS = 3
CONFLICTS_NOT_ACCEPTED = "ConflictsNotAccepted"


@dataclass(frozen=True)
class DraftedFile:
    """A file that a draft has changed and the cluster branch does not have yet; without an `id` it is gone.

    `fits` is False when the cluster branch has changed it as well.
    """

    path: str
    object_id: ObjectId | None
    mode: str
    is_mergeable: bool


class DraftContents(TargetObjects, Protocol):
    """A destination's objects with the bytes of files, and what a draft offers file by file."""

    def read_blob(self, blob: BlobId) -> bytes:
        """Return a file's bytes."""
        ...

    def list_drafted_files(self, head: CommitId, base: CommitId, branch: CommitId) -> tuple[DraftedFile, ...]:
        """Return each file that `head` has changed since `base` and that `branch` does not have so."""
        ...


@dataclass(frozen=True)
class BlockingReason:
    """Why a draft may not be proposed or published: a word for tools, a sentence for people."""

    reason: str
    message: str


@dataclass(frozen=True)
class DraftedPackage:
    """A package on a draft: its trees on both branches, and what its status file says, {} where it cannot be read.

    `unmet` are gates, which hold up deployment repositories alone; `faults` hold up every one. `edited`: people
    changed what was rendered.
    """

    package: str
    record: PackageRecord
    published_tree: TreeId | None
    drafted_tree: TreeId | None
    status: Mapping[str, Any]
    conditions: tuple[Condition, ...] = ()
    unmet_gates: tuple[BlockingReason, ...] = ()
    errors: tuple[BlockingReason, ...] = ()
    is_edited: bool = False

    @property
    def update_errors(self) -> tuple[BlockingReason, ...]:
        """What keeps a newer version of it from being drafted; what stands may be published all the same."""
        return tuple(list_blocking_errors(self.record))

    @property
    def conflicts(self) -> tuple[Mapping[str, Any], ...]:
        """The conflicts that the status file records, and those of edits on the draft that only the state records.

        People may edit the status file, so that a conflict can be missing there.
        """
        remembered = self.record.conflicts if self.record.draft_version is not None and not self.is_removed else ()
        listed = (*filter_recorded_conflicts(self.status.get("conflicts")), *remembered)
        return tuple({encode_canonical_json(one): one for one in listed}.values())

    @property
    def is_removed(self) -> bool:
        """Whether the draft takes a published package away."""
        return self.drafted_tree is None


@dataclass(frozen=True)
class OpenDraft:
    """A draft branch as it stands: `base` is the commit of the cluster branch it starts at, `published` its head now.

    `proposed` is where its proposal points to, `paths` everything it offers, packages or not. `metadata` tells GitOps
    Promoter of which config the whole draft was made; it is offered, too, and nobody's work. `request` is the number of
    its pull request, 0 where it has none.
    """

    destination: Target
    branch: str
    head: CommitId
    base: CommitId
    published_head: CommitId
    proposed_head: CommitId | None
    is_edited: bool
    packages: tuple[DraftedPackage, ...]
    files: tuple[DraftedFile, ...]
    metadata: DraftedFile | None = None
    pull_request_number: int = 0

    @property
    def lifecycle(self) -> DraftLifecycle:
        """Draft; Proposed as it stands; or Stale: proposed once, and moved since, so that it is a draft again."""
        if self.proposed_head is None:
            return "Draft"
        return "Proposed" if self.proposed_head == self.head else "Stale"

    @property
    def is_removal(self) -> bool:
        """Whether all that it does to packages is to take published ones away."""
        return bool(self.packages) and all(one.is_removed for one in self.packages)

    def select_packages(self, packages: Collection[str]) -> tuple[DraftedPackage, ...]:
        """Return the named packages, or all without names."""
        return tuple(one for one in self.packages if not packages or one.package in packages)

    def select_files(self, packages: Collection[str]) -> tuple[DraftedFile, ...]:
        """Return what the draft offers of these packages and their status files, or everything without names."""
        return tuple(one for one in self.files if not packages or self._is_in(one.path, packages))

    def list_other_files(self, packages: Collection[str]) -> tuple[DraftedFile, ...]:
        """Return what the draft offers besides these packages; nothing without names."""
        return tuple(one for one in self.files if packages and not self._is_in(one.path, packages))

    @property
    def files_outside_packages(self) -> tuple[DraftedFile, ...]:
        """What people offer beside the packages."""
        names = [one.package for one in self.packages]
        return self.list_other_files(names) if names else self.files

    def _is_in(self, path: str, packages: Collection[str]) -> bool:
        where = self.destination
        return any(
            path.startswith(f"{where.package_path(one)}/") or path == where.status_file_path(one) for one in packages
        )

    def list_refusals(self, packages: Collection[str] = ()) -> tuple[BlockingReason, ...]:
        """Return why these packages, or the whole draft without names, may be neither proposed nor published."""
        found = [reason for one in self.select_packages(packages) for reason in self._refusals(one)]
        clash = _clash(self, [one.path for one in self.select_files(packages) if not one.is_mergeable])
        return (*found, *([clash] if clash else []))

    def _refusals(self, one: DraftedPackage) -> tuple[BlockingReason, ...]:
        return (*one.errors, *(one.unmet_gates if self.destination.is_deployment else ()))

    def list_unaccepted_conflicts(self, packages: Collection[str] = ()) -> tuple[BlockingReason, ...]:
        """Return a reason for each of these packages, or of all without names, that has conflicts to be accepted."""
        return tuple(
            _conflict_reason(one)
            for one in self.select_packages(packages)
            if one.conflicts or not are_conflicts_readable(one.status.get("conflicts"))
        )

    def list_warnings(self, packages: Collection[str] = ()) -> tuple[BlockingReason, ...]:
        """Return the gates that are not met and hold up nothing, because nobody deploys from here (porch 7)."""
        return (
            ()
            if self.destination.is_deployment
            else tuple(gate for one in self.select_packages(packages) for gate in one.unmet_gates)
        )


def _conflict_reason(one: DraftedPackage) -> BlockingReason:
    number = len(one.conflicts)
    conflicts = "1 conflict" if number == 1 else f"{number or 'unreadable'} conflicts"
    message = (
        f"{one.package} has {conflicts}; review them and give --accept-conflicts, or settle them on the draft and sync"
    )
    return BlockingReason(CONFLICTS_NOT_ACCEPTED, message)


def _clash(draft: OpenDraft, paths: list[str]) -> BlockingReason | None:
    if not paths:
        return None
    more = f" and {len(paths) - _NAMED_PATHS} more" if len(paths) > _NAMED_PATHS else ""
    message = (
        f"{draft.branch} and {draft.destination.branch} have both changed {', '.join(paths[:_NAMED_PATHS])}{more};"
        " reject it and sync, which brings it up to date, or merge it by hand"
    )
    return BlockingReason("BranchMoved", message)


def read_open_drafts(ground: TargetSnapshot, contents: DraftContents) -> tuple[OpenDraft, ...]:
    """Return the destination's draft branches with what is on them, by name; the ground's state knows every one."""
    published = ground.heads.target_branch
    if published is None:
        return ()
    return tuple(
        _open(ground, contents, branch, known, published) for branch, known in sorted(ground.state.drafts.items())
    )


def _open(
    ground: TargetSnapshot, contents: DraftContents, branch: str, known: DraftBranch, published: CommitId
) -> OpenDraft:
    head = ground.heads.drafts[branch]
    packages = tuple(_packages(ground, contents, branch, known))
    offered = contents.list_drafted_files(head, known.base, published)
    beside = find_metadata_path(ground.target, branch)
    paths = tuple(one for one in offered if one.path != beside)
    metadata = next((one for one in offered if one.path == beside and one.object_id), None)
    proposed = ground.heads.proposed.get(branch)
    return OpenDraft(
        ground.target, branch, head, known.base, published, proposed, known.edited, packages, paths, metadata,
        known.request.number if known.request else 0,
    )  # fmt: skip


def _packages(
    ground: TargetSnapshot, contents: DraftContents, branch: str, known: DraftBranch
) -> Iterator[DraftedPackage]:
    head = ground.heads.drafts[branch]
    for package, record in sorted(ground.state.packages.items()):
        (at_base, _), (published, _), (drafted, blob) = (
            ground.find_package_at(commit, package) for commit in (known.base, ground.heads.target_branch, head)
        )
        offered = record.draft_version is not None and record.draft_branch == branch
        if offered or drafted not in (at_base, published):
            edited = offered and record.draft_version is not None and drafted != record.draft_version.rendered
            one = DraftedPackage(package, record, published, drafted, {}, is_edited=edited)
            yield _read(one, ground.target, head, blob, contents) if drafted else one


def _read(
    one: DraftedPackage, destination: Target, head: CommitId, blob: BlobId | None, contents: DraftContents
) -> DraftedPackage:
    status = parse_package_status(contents.read_blob(blob)) if blob else None
    kptfile = _kptfile(contents, head, f"{destination.package_path(one.package)}/{KPTFILE}")
    # whatever else blocks a newer version is told elsewhere; a conflict under policy `block` is the draft's own affair
    conflicts = (reason for reason in one.update_errors if reason.reason == MERGE_CONFLICT.name)
    faults = [*_status_faults(one, status), *conflicts]
    conditions: tuple[Condition, ...] = ()
    unmet: tuple[BlockingReason, ...] = ()
    if isinstance(kptfile, Kptfile):
        conditions = tuple(kptfile.conditions)
        unmet = tuple(_unmet(one.package, kptfile.readiness_gates, conditions))
    elif kptfile:
        faults.append(BlockingReason("KptfileInvalid", f"{one.package}: {kptfile}"))
    rendered = tuple(condition for condition in _conditions(status or {}) if condition.type == "Rendered")
    return DraftedPackage(
        one.package, one.record, one.published_tree, one.drafted_tree, status or {}, (*rendered, *conditions), unmet,
        tuple(faults), one.is_edited,
    )  # fmt: skip


def _kptfile(contents: DraftContents, head: CommitId, path: str) -> Kptfile | str:
    """Return a package's Kptfile, why it cannot be read, or "" without one."""
    blob = contents.find_blob_at(head, path)
    read = read_kptfile(contents.read_blob(blob)) if blob else ()
    return read if isinstance(read, Kptfile) else "; ".join(finding.message for finding in read)


def parse_package_status(content: bytes) -> Mapping[str, Any] | None:
    """Return the status of a status file; None when it is not one: the file is open to everybody's edits."""
    try:
        documents = parse_yaml(content).documents
    except YamlError:
        return None
    data = documents[0].data if documents else None
    status = data.get("status") if isinstance(data, dict) else None
    return status if isinstance(status, dict) else None


def _conditions(status: Mapping[str, Any]) -> Iterator[Condition]:
    written = status.get("conditions")
    for one in written if isinstance(written, list) else ():
        if isinstance(one, dict):
            known = {name: str(one.get(name, "")) for name in ("type", "status", "reason", "message")}
            yield Condition(**known)  # type: ignore[arg-type]


def _status_faults(one: DraftedPackage, status: Mapping[str, Any] | None) -> Iterator[BlockingReason]:
    if status is None:
        # without it nobody can tell whether the package was rendered
        if one.record.draft_version is not None:
            yield BlockingReason(
                "StatusUnreadable", f"{one.package}: its status file is missing or cannot be read; sync again"
            )
        return
    if not are_conflicts_readable(status.get("conflicts")):
        message = f"{one.package}: the conflicts in its status file cannot be read; restore the status file"
        yield BlockingReason("StatusUnreadable", message)
    for condition in _conditions(status):
        if condition.type == "Rendered" and condition.status != "True":
            why = f": {condition.message}" if condition.message else ""
            yield BlockingReason("RenderFailed", f"{one.package}: Rendered is {condition.status}{why}")


def list_blocking_errors(record: PackageRecord) -> Iterator[BlockingReason]:
    """Yield the errors for which a package was not made anew in the last pass (design 10.26)."""
    if record.outcome.get("kind") == "blocked":
        for finding in record.outcome.get("findings", ()):
            if finding["severity"] == Severity.ERROR.value:
                yield BlockingReason(finding["code"], finding["message"])


def _unmet(package: str, gates: tuple[str, ...], conditions: tuple[Condition, ...]) -> Iterator[BlockingReason]:
    known = {condition.type: condition for condition in conditions}
    for gate in dict.fromkeys(gates):
        condition = known.get(gate)
        if condition is None:
            yield BlockingReason("GateNotMet", f"{package}: {gate} is not reported; {_next_step(gate)}")
        elif condition.status != "True":
            reason = f" ({condition.reason})" if condition.reason else ""
            why = f": {condition.message}" if condition.message else ""
            yield BlockingReason(
                "GateNotMet", f"{package}: {gate} is {condition.status}{reason}{why}; {_next_step(gate)}"
            )


def _next_step(gate: str) -> str:
    """Return what a person does to meet a gate."""
    if gate.startswith(CONDITION_PREFIX):
        return "add the object that is to be injected to the config, or an injector that names it, and sync"
    return "set this condition to True in status.conditions of the Kptfile on the draft, or remove the gate"


PackageState = Literal[
    "blocked", "held", "removal", "proposed", "edited", "draft", "declined", "orphaned", "published"
]  # fmt: skip
PACKAGE_STATES: tuple[PackageState, ...] = get_args(PackageState)
"""Every state, what needs people most first; a package has the first that is true of it."""


@dataclass(frozen=True)
class TargetPackage:
    """A package on one destination: its state, what is published of it, and the draft that it is on.

    `status` is its status file on the cluster branch. `revision` is what is published, None where that is no revision
    of ours, or too old a one. `edited`: people changed what is published. `reasons` say why it is blocked or held, why
    the update of a proposed draft waits, or why its removal does.
    """

    package: str
    record: PackageRecord
    state: PackageState
    published_tree: TreeId | None = None
    status_blob: BlobId | None = None
    revision: PublishedRevision | None = None
    is_edited: bool = False
    draft: OpenDraft | None = None
    drafted_package: DraftedPackage | None = None
    reasons: tuple[BlockingReason, ...] = ()

    @property
    def is_status_file_ours(self) -> bool:
        """Whether the status file on the cluster branch is one of ours, as we wrote it."""
        offers = (self.record.published_version, *(known.version for known in self.record.revisions))
        return any(one is not None and one.status == self.status_blob for one in offers)

    @property
    def refusals(self) -> tuple[BlockingReason, ...]:
        """Why the draft may be neither proposed nor published; only this package's reasons."""
        return self.draft.list_refusals((self.package,)) if self.draft else ()


def list_target_packages(ground: TargetSnapshot, drafts: Iterable[OpenDraft]) -> Iterator[TargetPackage]:
    """Yield each package that a destination has, is offered, or is denied, by name."""
    offered = {one.package: (draft, one) for draft in drafts for one in draft.packages}
    for package, record in sorted(ground.state.packages.items()):
        published, status = ground.find_package_at(ground.heads.target_branch, package)
        draft, one = offered.get(package, (None, None))
        reasons = tuple(_reasons(record))
        state = _state(record, published, draft, one, reasons)
        if state is None:
            continue
        ours = record.published_version
        revision = next((known for known in reversed(record.revisions) if known.version == ours), None)
        edited = published is not None and ours is not None and published != ours.rendered
        yield TargetPackage(
            package, record, state, published, status, revision if published else None, edited, draft, one, reasons
        )


def _state(
    record: PackageRecord, published: TreeId | None, draft: OpenDraft | None, one: DraftedPackage | None,
    reasons: tuple[BlockingReason, ...],
) -> PackageState | None:  # fmt: skip
    kind = record.outcome.get("kind")
    # what only waits for its own proposal is no error: the proposal is what there is to see
    if kind == "blocked" and (one is None or any(list_blocking_errors(record))):
        return "blocked"
    if kind == "held" and reasons:
        return "held"
    if draft and one:
        return _on_draft(record, draft, one)
    if record.removal and not record.removal.declined:
        return "removal"
    if _is_declined(record, published):
        return "declined"
    if published is None:
        return None
    return "published" if record.owned else "orphaned"


def _on_draft(record: PackageRecord, draft: OpenDraft, one: DraftedPackage) -> PackageState:
    if one.is_removed:
        return "removal"
    if draft.lifecycle == "Proposed":
        return "proposed"
    # what nobody offered and is there all the same is people's work
    return "edited" if one.is_edited or record.draft_version is None else "draft"


def _is_declined(record: PackageRecord, published: TreeId | None) -> bool:
    """Return whether people turned down what was last wanted, be it a version or a removal."""
    dropped = record.desired_tree in record.declined_trees and record.desired_tree != published
    return record.owned and (dropped or (record.removal is not None and record.removal.declined))


def _reasons(record: PackageRecord) -> Iterator[BlockingReason]:
    """Yield why the last pass left the package as it was, by its findings, else by what its owner was told."""
    outcome = record.outcome
    match outcome.get("kind"):
        case "blocked":
            yield from tuple(list_blocking_errors(record)) or _unready(outcome)
        case "held":
            yield from _told(outcome)
        case _ if record.removal:
            yield from _told(outcome)


def _told(outcome: Mapping[str, Any]) -> Iterator[BlockingReason]:
    return (BlockingReason(one["code"], one["message"]) for one in outcome.get("findings", ()))


def _unready(outcome: Mapping[str, Any]) -> tuple[BlockingReason, ...]:
    found = [one for one in outcome.get("conditions", ()) if one["type"] == "Ready" and one["status"] != "True"]
    return tuple(BlockingReason(one["reason"], one["message"]) for one in found)
