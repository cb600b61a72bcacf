"""Open drafts: what lies on each draft branch of a destination, and what keeps it from being published (porch 7)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from reconciler.krm.conditions import Condition
from reconciler.krm.digest import canonical_json
from reconciler.krm.findings import Severity
from reconciler.krm.yaml import YamlError, parse
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.planning.codes import MERGE_CONFLICT
from reconciler.planning.conflicts import are_readable, recorded_conflicts
from reconciler.planning.destination import Destination
from reconciler.planning.ground import Ground, Objects
from reconciler.planning.promoter import metadata_path
from reconciler.planning.state import DraftBranch, PackageRecord
from reconciler.rules.variants.points import CONDITION_PREFIX
from reconciler.snapshot.objects import BlobId, CommitId, ObjectId, TreeId

Lifecycle = Literal["Draft", "Proposed", "Stale"]
_NAMED_PATHS = 3
CONFLICTS_NOT_ACCEPTED = "ConflictsNotAccepted"


@dataclass(frozen=True)
class Offered:
    """A file that a draft has changed and the cluster branch does not have yet; without an `id` it is gone.

    `fits` is False when the cluster branch has changed it as well.
    """

    path: str
    id: ObjectId | None
    mode: str
    fits: bool


class Contents(Objects, Protocol):
    """A destination's objects with the bytes of files, and what a draft offers file by file."""

    def blob(self, blob: BlobId) -> bytes:
        """Return a file's bytes."""
        ...

    def offered(self, head: CommitId, base: CommitId, branch: CommitId) -> tuple[Offered, ...]:
        """Return each file that `head` has changed since `base` and that `branch` does not have so."""
        ...


@dataclass(frozen=True)
class Reason:
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
    published: TreeId | None
    drafted: TreeId | None
    status: Mapping[str, Any]
    conditions: tuple[Condition, ...] = ()
    unmet: tuple[Reason, ...] = ()
    faults: tuple[Reason, ...] = ()
    edited: bool = False

    @property
    def blocked(self) -> tuple[Reason, ...]:
        """What keeps a newer version of it from being drafted; what stands may be published all the same."""
        return tuple(blocked_by(self.record))

    @property
    def conflicts(self) -> tuple[Mapping[str, Any], ...]:
        """The conflicts that the status file records, and those of edits on the draft that only the state records.

        People may edit the status file, so that a conflict can be missing there.
        """
        remembered = self.record.conflicts if self.record.put is not None and not self.removed else ()
        listed = (*recorded_conflicts(self.status.get("conflicts")), *remembered)
        return tuple({canonical_json(one): one for one in listed}.values())

    @property
    def removed(self) -> bool:
        """Whether the draft takes a published package away."""
        return self.drafted is None


@dataclass(frozen=True)
class OpenDraft:
    """A draft branch as it stands: `base` is the commit of the cluster branch it starts at, `published` its head now.

    `proposed` is where its proposal points to, `paths` everything it offers, packages or not. `metadata` tells GitOps
    Promoter of which config the whole draft was made; it is offered, too, and nobody's work. `request` is the number of
    its pull request, 0 where it has none.
    """

    destination: Destination
    branch: str
    head: CommitId
    base: CommitId
    published: CommitId
    proposed: CommitId | None
    edited: bool
    packages: tuple[DraftedPackage, ...]
    paths: tuple[Offered, ...]
    metadata: Offered | None = None
    request: int = 0

    @property
    def lifecycle(self) -> Lifecycle:
        """Draft; Proposed as it stands; or Stale: proposed once, and moved since, so that it is a draft again."""
        if self.proposed is None:
            return "Draft"
        return "Proposed" if self.proposed == self.head else "Stale"

    @property
    def is_removal(self) -> bool:
        """Whether all that it does to packages is to take published ones away."""
        return bool(self.packages) and all(one.removed for one in self.packages)

    def chosen(self, packages: Collection[str]) -> tuple[DraftedPackage, ...]:
        """Return the named packages, or all without names."""
        return tuple(one for one in self.packages if not packages or one.package in packages)

    def paths_of(self, packages: Collection[str]) -> tuple[Offered, ...]:
        """Return what the draft offers of these packages and their status files, or everything without names."""
        return tuple(one for one in self.paths if not packages or self._is_in(one.path, packages))

    def others(self, packages: Collection[str]) -> tuple[Offered, ...]:
        """Return what the draft offers besides these packages; nothing without names."""
        return tuple(one for one in self.paths if packages and not self._is_in(one.path, packages))

    @property
    def beside(self) -> tuple[Offered, ...]:
        """What people offer beside the packages."""
        names = [one.package for one in self.packages]
        return self.others(names) if names else self.paths

    def _is_in(self, path: str, packages: Collection[str]) -> bool:
        where = self.destination
        return any(path.startswith(f"{where.path(one)}/") or path == where.status_path(one) for one in packages)

    def refusals(self, packages: Collection[str] = ()) -> tuple[Reason, ...]:
        """Return why these packages, or the whole draft without names, may be neither proposed nor published."""
        found = [reason for one in self.chosen(packages) for reason in self._refusals(one)]
        clash = _clash(self, [one.path for one in self.paths_of(packages) if not one.fits])
        return (*found, *([clash] if clash else []))

    def _refusals(self, one: DraftedPackage) -> tuple[Reason, ...]:
        return (*one.faults, *(one.unmet if self.destination.deployment else ()))

    def open_conflicts(self, packages: Collection[str] = ()) -> tuple[Reason, ...]:
        """Return a reason for each of these packages, or of all without names, that has conflicts to be accepted."""
        return tuple(
            _conflict_reason(one)
            for one in self.chosen(packages)
            if one.conflicts or not are_readable(one.status.get("conflicts"))
        )

    def warnings(self, packages: Collection[str] = ()) -> tuple[Reason, ...]:
        """Return the gates that are not met and hold up nothing, because nobody deploys from here (porch 7)."""
        return () if self.destination.deployment else tuple(gate for one in self.chosen(packages) for gate in one.unmet)


def _conflict_reason(one: DraftedPackage) -> Reason:
    number = len(one.conflicts)
    conflicts = "1 conflict" if number == 1 else f"{number or 'unreadable'} conflicts"
    message = (
        f"{one.package} has {conflicts}; review them and give --accept-conflicts, or settle them on the draft and sync"
    )
    return Reason(CONFLICTS_NOT_ACCEPTED, message)


def _clash(draft: OpenDraft, paths: list[str]) -> Reason | None:
    if not paths:
        return None
    more = f" and {len(paths) - _NAMED_PATHS} more" if len(paths) > _NAMED_PATHS else ""
    message = (
        f"{draft.branch} and {draft.destination.branch} have both changed {', '.join(paths[:_NAMED_PATHS])}{more};"
        " reject it and sync, which brings it up to date, or merge it by hand"
    )
    return Reason("BranchMoved", message)


def open_drafts(ground: Ground, contents: Contents) -> tuple[OpenDraft, ...]:
    """Return the destination's draft branches with what is on them, by name; the ground's state knows every one."""
    published = ground.heads.branch
    if published is None:
        return ()
    return tuple(
        _open(ground, contents, branch, known, published) for branch, known in sorted(ground.state.drafts.items())
    )


def _open(ground: Ground, contents: Contents, branch: str, known: DraftBranch, published: CommitId) -> OpenDraft:
    head = ground.heads.drafts[branch]
    packages = tuple(_packages(ground, contents, branch, known))
    offered = contents.offered(head, known.base, published)
    beside = metadata_path(ground.destination, branch)
    paths = tuple(one for one in offered if one.path != beside)
    metadata = next((one for one in offered if one.path == beside and one.id), None)
    proposed = ground.heads.proposed.get(branch)
    return OpenDraft(
        ground.destination, branch, head, known.base, published, proposed, known.edited, packages, paths, metadata,
        known.request.number if known.request else 0,
    )  # fmt: skip


def _packages(ground: Ground, contents: Contents, branch: str, known: DraftBranch) -> Iterator[DraftedPackage]:
    head = ground.heads.drafts[branch]
    for package, record in sorted(ground.state.packages.items()):
        (at_base, _), (published, _), (drafted, blob) = (
            ground.at(commit, package) for commit in (known.base, ground.heads.branch, head)
        )
        offered = record.put is not None and record.draft == branch
        if offered or drafted not in (at_base, published):
            edited = offered and record.put is not None and drafted != record.put.rendered
            one = DraftedPackage(package, record, published, drafted, {}, edited=edited)
            yield _read(one, ground.destination, head, blob, contents) if drafted else one


def _read(
    one: DraftedPackage, destination: Destination, head: CommitId, blob: BlobId | None, contents: Contents
) -> DraftedPackage:
    status = read_package_status(contents.blob(blob)) if blob else None
    kptfile = _kptfile(contents, head, f"{destination.path(one.package)}/{KPTFILE}")
    # whatever else blocks a newer version is told elsewhere; a conflict under policy `block` is the draft's own affair
    conflicts = (reason for reason in one.blocked if reason.reason == MERGE_CONFLICT.name)
    faults = [*_status_faults(one, status), *conflicts]
    conditions: tuple[Condition, ...] = ()
    unmet: tuple[Reason, ...] = ()
    if isinstance(kptfile, Kptfile):
        conditions = tuple(kptfile.conditions)
        unmet = tuple(_unmet(one.package, kptfile.readiness_gates, conditions))
    elif kptfile:
        faults.append(Reason("KptfileInvalid", f"{one.package}: {kptfile}"))
    rendered = tuple(condition for condition in _conditions(status or {}) if condition.type == "Rendered")
    return DraftedPackage(
        one.package, one.record, one.published, one.drafted, status or {}, (*rendered, *conditions), unmet,
        tuple(faults), one.edited,
    )  # fmt: skip


def _kptfile(contents: Contents, head: CommitId, path: str) -> Kptfile | str:
    """Return a package's Kptfile, why it cannot be read, or "" without one."""
    blob = contents.blob_at(head, path)
    read = read_kptfile(contents.blob(blob)) if blob else ()
    return read if isinstance(read, Kptfile) else "; ".join(finding.message for finding in read)


def read_package_status(content: bytes) -> Mapping[str, Any] | None:
    """Return the status of a status file; None when it is not one: the file is open to everybody's edits."""
    try:
        documents = parse(content).documents
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


def _status_faults(one: DraftedPackage, status: Mapping[str, Any] | None) -> Iterator[Reason]:
    if status is None:
        # without it nobody can tell whether the package was rendered
        if one.record.put is not None:
            yield Reason("StatusUnreadable", f"{one.package}: its status file is missing or cannot be read; sync again")
        return
    if not are_readable(status.get("conflicts")):
        message = f"{one.package}: the conflicts in its status file cannot be read; restore the status file"
        yield Reason("StatusUnreadable", message)
    for condition in _conditions(status):
        if condition.type == "Rendered" and condition.status != "True":
            why = f": {condition.message}" if condition.message else ""
            yield Reason("RenderFailed", f"{one.package}: Rendered is {condition.status}{why}")


def blocked_by(record: PackageRecord) -> Iterator[Reason]:
    """Yield the errors for which a package was not made anew in the last pass (design 10.26)."""
    if record.outcome.get("kind") == "blocked":
        for finding in record.outcome.get("findings", ()):
            if finding["severity"] == Severity.ERROR.value:
                yield Reason(finding["code"], finding["message"])


def _unmet(package: str, gates: tuple[str, ...], conditions: tuple[Condition, ...]) -> Iterator[Reason]:
    known = {condition.type: condition for condition in conditions}
    for gate in dict.fromkeys(gates):
        condition = known.get(gate)
        if condition is None:
            yield Reason("GateNotMet", f"{package}: {gate} is not reported; {_next_step(gate)}")
        elif condition.status != "True":
            reason = f" ({condition.reason})" if condition.reason else ""
            why = f": {condition.message}" if condition.message else ""
            yield Reason("GateNotMet", f"{package}: {gate} is {condition.status}{reason}{why}; {_next_step(gate)}")


def _next_step(gate: str) -> str:
    """Return what a person does to meet a gate."""
    if gate.startswith(CONDITION_PREFIX):
        return "add the object that is to be injected to the config, or an injector that names it, and sync"
    return "set this condition to True in status.conditions of the Kptfile on the draft, or remove the gate"
