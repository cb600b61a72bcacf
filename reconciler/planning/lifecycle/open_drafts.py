"""Open drafts of a target, and the state of each of its packages. Nothing is rendered or planned here.

The data comes from the branches of the target, the refs of proposed drafts, and the recorded state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, Protocol, get_args

from reconciler.catalog.files import BlobId, CommitId, ObjectId, TreeId
from reconciler.controllers.package_variants.injection import CONDITION_PREFIX
from reconciler.krm.findings import Severity
from reconciler.krm.json_text import encode_canonical_json
from reconciler.krm.objects import Condition
from reconciler.krm.yaml import YamlError, parse_yaml
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.planning.decide.fleet_plan import find_metadata_path
from reconciler.planning.model.codes import PlanningCodes
from reconciler.planning.model.sources import are_conflicts_readable, filter_recorded_conflicts
from reconciler.planning.model.state import DraftBranch, PackageRecord, PublishedRevision
from reconciler.planning.model.targets import Target
from reconciler.planning.observe.target_snapshot import TargetObjects, TargetSnapshot

DraftLifecycle = Literal["Draft", "Proposed", "Stale"]
_MAX_LISTED_PATHS = 3
BRANCH_MOVED = "BranchMoved"
CONFLICTS_NOT_ACCEPTED = "ConflictsNotAccepted"


@dataclass(frozen=True)
class DraftedFile:
    """A file that a draft changes, compared with the target branch.

    Attributes:
        object_id: The new content, or None for a deleted file.
        is_mergeable: False if the target branch has changed the file since the draft was created.
    """

    path: str
    object_id: ObjectId | None
    mode: str
    is_mergeable: bool


class DraftContents(TargetObjects, Protocol):
    """Git objects of a target, with the contents of files and the changes of drafts."""

    def read_blob(self, blob: BlobId) -> bytes:
        """Return the content of a file."""
        ...

    def list_drafted_files(self, head: CommitId, base: CommitId, branch: CommitId) -> tuple[DraftedFile, ...]:
        """Return each file that a draft changes.

        Args:
            head: The head of the draft branch.
            base: The commit of the target branch that the draft branch starts at.
            branch: The head of the target branch. Files that are equal on the draft and target branches are omitted.
        """
        ...


@dataclass(frozen=True)
class BlockingReason:
    """Reason why a draft must not be proposed or published: an identifier, and a message for the user."""

    reason: str
    message: str


@dataclass(frozen=True)
class DraftedPackage:
    """A package on a draft branch.

    Attributes:
        published_tree: The tree on the target branch.
        drafted_tree: The tree on the draft branch, or None if the draft removes the package.
        status: The `status` of the status file on the draft, or {} if the file cannot be read.
        conditions: The conditions of the Kptfile, and the condition `Rendered`.
        unmet_gates: The readiness gates that are not met. They block the draft only in a deployment repository.
        errors: Other reasons that block the draft.
        is_edited: Whether the draft contains local changes.
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
        """Errors that block a newer version of the package. They do not block the current draft."""
        return tuple(list_blocking_errors(self.record))

    @property
    def conflicts(self) -> tuple[Mapping[str, Any], ...]:
        """The conflicts in the status file, followed by the conflicts in the recorded state.

        The recorded state is read as well, because anyone can delete a conflict from the status file. In addition, only
        the recorded state contains conflicts of local changes on the draft.
        """
        recorded = self.record.conflicts if self.record.draft_version is not None and not self.is_removed else ()
        conflicts = (*filter_recorded_conflicts(self.status.get("conflicts")), *recorded)
        return tuple({encode_canonical_json(conflict): conflict for conflict in conflicts}.values())

    @property
    def is_removed(self) -> bool:
        """Whether the draft removes the package."""
        return self.drafted_tree is None


@dataclass(frozen=True)
class OpenDraft:
    """A draft branch.

    Attributes:
        base: The commit of the target branch that the draft branch starts at.
        published_head: The head of the target branch.
        proposed_head: The commit that was submitted for approval.
        is_edited: Whether the draft branch contains commits of other authors.
        files: All files that the draft changes, except for `metadata`.
        metadata: The file with the config commit of the draft, for GitOps Promoter.
        pull_request_number: The number of the pull request, or 0 if there is none.
    """

    target: Target
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
        """State of the draft. `Stale` means that the draft has changed since it was proposed."""
        if self.proposed_head is None:
            return "Draft"
        return "Proposed" if self.proposed_head == self.head else "Stale"

    @property
    def is_removal(self) -> bool:
        """Whether the draft only removes packages."""
        return bool(self.packages) and all(package.is_removed for package in self.packages)

    def select_packages(self, names: Collection[str]) -> tuple[DraftedPackage, ...]:
        """Return the packages with these names. If `names` is empty, return all packages of the draft."""
        return tuple(package for package in self.packages if not names or package.package in names)

    def restrict(self, names: Collection[str]) -> OpenDraft:
        """Return the draft with only the packages with these names, and with only their files."""
        packages = tuple(package for package in self.packages if package.package in names)
        if len(packages) == len(self.packages):
            return self
        return replace(self, packages=packages, files=self._select_files(names, are_in_packages=True))

    def select_files(self, names: Collection[str]) -> tuple[DraftedFile, ...]:
        """Return the changed files of the packages with these names, and their status files.

        If `names` is empty, return all changed files.
        """
        return self._select_files(names, are_in_packages=True) if names else self.files

    def list_other_files(self, names: Collection[str]) -> tuple[DraftedFile, ...]:
        """Return the changed files outside of the packages `names`. Return () if `names` is empty."""
        return self._select_files(names, are_in_packages=False) if names else ()

    @property
    def files_outside_packages(self) -> tuple[DraftedFile, ...]:
        """Changed files that belong to no package of the draft. They are always local changes."""
        names = [package.package for package in self.packages]
        return self.list_other_files(names) if names else self.files

    def _select_files(self, names: Collection[str], *, are_in_packages: bool) -> tuple[DraftedFile, ...]:
        folders = tuple(f"{self.target.get_package_path(name)}/" for name in names)
        status_files = {self.target.get_status_file_path(name) for name in names}
        return tuple(
            file
            for file in self.files
            if (file.path.startswith(folders) or file.path in status_files) == are_in_packages
        )

    def list_refusals(self, names: Collection[str] = ()) -> tuple[BlockingReason, ...]:
        """Return the reasons why the packages in `names` are blocked. If `names` is empty, check the whole draft."""
        reasons = [reason for package in self.select_packages(names) for reason in self._list_package_refusals(package)]
        clash = _find_clash(self, [file.path for file in self.select_files(names) if not file.is_mergeable])
        return (*reasons, *([clash] if clash else []))

    def _list_package_refusals(self, package: DraftedPackage) -> tuple[BlockingReason, ...]:
        return (*package.errors, *(package.unmet_gates if self.target.is_deployment else ()))

    def list_unaccepted_conflicts(self, names: Collection[str] = ()) -> tuple[BlockingReason, ...]:
        """Return a reason for each package that has conflicts. If `names` is empty, check all packages of the draft."""
        return tuple(
            _build_conflict_reason(package)
            for package in self.select_packages(names)
            if package.conflicts or not are_conflicts_readable(package.status.get("conflicts"))
        )

    def list_warnings(self, names: Collection[str] = ()) -> tuple[BlockingReason, ...]:
        """Return the unmet gates that do not block the draft, because no cluster is deployed from the repository."""
        return (
            ()
            if self.target.is_deployment
            else tuple(gate for package in self.select_packages(names) for gate in package.unmet_gates)
        )


def _build_conflict_reason(package: DraftedPackage) -> BlockingReason:
    count = len(package.conflicts)
    conflicts = "1 conflict" if count == 1 else f"{count or 'unreadable'} conflicts"
    message = (
        f"{package.package} has {conflicts}; review the conflicts and use --accept-conflicts, or resolve the conflicts"
        " on the draft and run a sync"
    )
    return BlockingReason(CONFLICTS_NOT_ACCEPTED, message)


def _find_clash(draft: OpenDraft, paths: list[str]) -> BlockingReason | None:
    if not paths:
        return None
    more = f" and {len(paths) - _MAX_LISTED_PATHS} more" if len(paths) > _MAX_LISTED_PATHS else ""
    message = (
        f'both "{draft.branch}" and "{draft.target.branch}" changed {", ".join(paths[:_MAX_LISTED_PATHS])}{more};'
        " reject the draft and run a sync to update it, or merge the draft manually"
    )
    return BlockingReason(BRANCH_MOVED, message)


def read_open_drafts(snapshot: TargetSnapshot, contents: DraftContents) -> tuple[OpenDraft, ...]:
    """Return the draft branches of a target, sorted by name. The recorded state must contain all of them."""
    published = snapshot.heads.target_branch
    if published is None:
        return ()
    return tuple(
        _read_draft(snapshot, contents, branch, draft_branch, published)
        for branch, draft_branch in sorted(snapshot.state.drafts.items())
    )


def _read_draft(
    snapshot: TargetSnapshot, contents: DraftContents, branch: str, draft_branch: DraftBranch, published: CommitId
) -> OpenDraft:
    head = snapshot.heads.drafts[branch]
    all_files = contents.list_drafted_files(head, draft_branch.base, published)
    metadata_path = find_metadata_path(snapshot.target, branch)
    return OpenDraft(
        target=snapshot.target,
        branch=branch,
        head=head,
        base=draft_branch.base,
        published_head=published,
        proposed_head=snapshot.heads.proposed.get(branch),
        is_edited=draft_branch.is_edited,
        packages=tuple(_read_packages(snapshot, contents, branch, draft_branch)),
        files=tuple(file for file in all_files if file.path != metadata_path),
        metadata=next((file for file in all_files if file.path == metadata_path and file.object_id), None),
        pull_request_number=draft_branch.pull_request.number if draft_branch.pull_request else 0,
    )


def _read_packages(
    snapshot: TargetSnapshot, contents: DraftContents, branch: str, draft_branch: DraftBranch
) -> Iterator[DraftedPackage]:
    head = snapshot.heads.drafts[branch]
    for name, record in sorted(snapshot.state.packages.items()):
        (base, _), (published, _), (drafted, status_blob) = (
            snapshot.find_package_at(commit, name) for commit in (draft_branch.base, snapshot.heads.target_branch, head)
        )
        is_recorded = record.draft_version is not None and record.draft_branch == branch
        if is_recorded or drafted not in (base, published):
            version = record.draft_version
            is_edited = is_recorded and version is not None and drafted != version.rendered
            package = DraftedPackage(name, record, published, drafted, {}, is_edited=is_edited)
            yield _read_package(package, snapshot.target, head, status_blob, contents) if drafted else package


def _read_package(
    package: DraftedPackage, target: Target, head: CommitId, status_blob: BlobId | None, contents: DraftContents
) -> DraftedPackage:
    status = parse_package_status(contents.read_blob(status_blob)) if status_blob else None
    kptfile = _read_kptfile(contents, head, f"{target.get_package_path(package.package)}/{KPTFILE}")
    # Use only merge conflicts. All other errors of the last pass block only a newer version, and not this draft.
    conflicts = (reason for reason in package.update_errors if reason.reason == PlanningCodes.MERGE_CONFLICT.name)
    errors = [*_list_status_errors(package, status), *conflicts]
    conditions: tuple[Condition, ...] = ()
    unmet_gates: tuple[BlockingReason, ...] = ()
    if isinstance(kptfile, Kptfile):
        conditions = tuple(kptfile.conditions)
        unmet_gates = tuple(_list_unmet_gates(package.package, kptfile.readiness_gates, conditions))
    elif kptfile:
        errors.append(BlockingReason("KptfileInvalid", f"{package.package}: {kptfile}"))
    rendered = tuple(condition for condition in _read_conditions(status or {}) if condition.type == "Rendered")
    return replace(
        package,
        status=status or {},
        conditions=(*rendered, *conditions),
        unmet_gates=unmet_gates,
        errors=tuple(errors),
    )


def _read_kptfile(contents: DraftContents, head: CommitId, path: str) -> Kptfile | str:
    """Return the Kptfile of a package. Return the error messages if the Kptfile is invalid, or "" if there is no
    Kptfile.
    """
    blob = contents.find_blob_at(head, path)
    kptfile = read_kptfile(contents.read_blob(blob)) if blob else ()
    return kptfile if isinstance(kptfile, Kptfile) else "; ".join(finding.message for finding in kptfile)


def parse_package_status(content: bytes) -> Mapping[str, Any] | None:
    """Return the `status` of a status file. Return None if the file is invalid, because anyone can edit the file."""
    try:
        documents = parse_yaml(content).documents
    except YamlError:
        return None
    data = documents[0].data if documents else None
    status = data.get("status") if isinstance(data, dict) else None
    return status if isinstance(status, dict) else None


def _read_conditions(status: Mapping[str, Any]) -> Iterator[Condition]:
    entries = status.get("conditions")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            fields = {name: str(entry.get(name, "")) for name in ("type", "status", "reason", "message")}
            yield Condition(**fields)  # type: ignore[arg-type]


def _list_status_errors(package: DraftedPackage, status: Mapping[str, Any] | None) -> Iterator[BlockingReason]:
    if status is None:
        # Block the draft, because its status file cannot be read, and only this file shows whether the render
        # succeeded.
        if package.record.draft_version is not None:
            yield BlockingReason(
                "StatusUnreadable", f"{package.package}: the status file is missing or cannot be read; run a sync again"
            )
        return
    if not are_conflicts_readable(status.get("conflicts")):
        message = f"{package.package}: the conflicts in the status file cannot be read; restore the status file"
        yield BlockingReason("StatusUnreadable", message)
    for condition in _read_conditions(status):
        if condition.type == "Rendered" and condition.status != "True":
            reason = f"; {condition.message}" if condition.message else ""
            text = f"{package.package}: the condition Rendered is {condition.status}{reason}"
            yield BlockingReason("RenderFailed", text)


def list_blocking_errors(record: PackageRecord) -> Iterator[BlockingReason]:
    """Yield the errors that blocked a package in the last pass."""
    if record.outcome.get("kind") == "blocked":
        for finding in record.outcome.get("findings", ()):
            if finding["severity"] == Severity.ERROR.value:
                yield BlockingReason(finding["code"], finding["message"])


def _list_unmet_gates(
    package: str, gates: tuple[str, ...], conditions: tuple[Condition, ...]
) -> Iterator[BlockingReason]:
    by_type = {condition.type: condition for condition in conditions}
    for gate in dict.fromkeys(gates):
        condition = by_type.get(gate)
        if condition is None:
            text = f'{package}: the readiness gate "{gate}" has no condition. Next step: {_get_next_step(gate)}'
            yield BlockingReason("GateNotMet", text)
        elif condition.status != "True":
            reason = f" ({condition.reason})" if condition.reason else ""
            message = f"; {condition.message}" if condition.message else ""
            state = f"{condition.status}{reason}{message}"
            text = f'{package}: the readiness gate "{gate}" is {state}. Next step: {_get_next_step(gate)}'
            yield BlockingReason("GateNotMet", text)


def _get_next_step(gate: str) -> str:
    if gate.startswith(CONDITION_PREFIX):
        return "add the object to the config, or add an injector that selects an existing object, and run a sync"
    return "set this condition to True in status.conditions of the Kptfile on the draft, or remove the gate"


PackageState = Literal[
    "blocked", "held", "removal", "proposed", "edited", "draft", "declined", "orphaned", "published"
]  # fmt: skip
PACKAGE_STATES: tuple[PackageState, ...] = get_args(PackageState)
"""All package states, the most urgent state first. If several states apply to a package, the first one is used."""


@dataclass(frozen=True)
class TargetPackage:
    """A package of a target, with its state and its draft.

    Attributes:
        published_tree: The tree on the target branch.
        status_blob: The status file on the target branch.
        revision: The published revision. None if the reconciler did not publish the package, or if the revision is too
            old to be recorded.
        is_edited: Whether the published package contains local changes.
        reasons: The reasons why the package, its update or its removal is blocked.
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
    def is_status_file_unmodified(self) -> bool:
        """Whether the reconciler wrote the status file on the target branch, and no person changed it later."""
        versions = (self.record.published_version, *(revision.version for revision in self.record.revisions))
        return any(version is not None and version.status == self.status_blob for version in versions)

    @property
    def refusals(self) -> tuple[BlockingReason, ...]:
        """The reasons that block this package on its draft."""
        return self.draft.list_refusals((self.package,)) if self.draft else ()


def list_target_packages(snapshot: TargetSnapshot, drafts: Iterable[OpenDraft]) -> Iterator[TargetPackage]:
    """Yield the packages of a target that are published, drafted or blocked, sorted by name."""
    drafted_packages = {package.package: (draft, package) for draft in drafts for package in draft.packages}
    for name, record in sorted(snapshot.state.packages.items()):
        published, status_blob = snapshot.find_package_at(snapshot.heads.target_branch, name)
        draft, drafted_package = drafted_packages.get(name, (None, None))
        reasons = tuple(_list_reasons(record))
        state = _get_state(record, published, draft, drafted_package, reasons)
        if state is None:
            continue
        version = record.published_version
        revision = next((revision for revision in reversed(record.revisions) if revision.version == version), None)
        yield TargetPackage(
            package=name,
            record=record,
            state=state,
            published_tree=published,
            status_blob=status_blob,
            revision=revision if published else None,
            is_edited=published is not None and version is not None and published != version.rendered,
            draft=draft,
            drafted_package=drafted_package,
            reasons=reasons,
        )


def _get_state(
    record: PackageRecord,
    published: TreeId | None,
    draft: OpenDraft | None,
    drafted_package: DraftedPackage | None,
    reasons: tuple[BlockingReason, ...],
) -> PackageState | None:
    kind = record.outcome.get("kind")
    # A package that is blocked without an error only waits, e.g. for the approval of its proposed draft. Its state is
    # then the state of its draft, which is determined below.
    if kind == "blocked" and (drafted_package is None or any(list_blocking_errors(record))):
        return "blocked"
    if kind == "held" and reasons:
        return "held"
    if draft and drafted_package:
        return _get_draft_state(record, draft, drafted_package)
    if record.removal and not record.removal.is_declined:
        return "removal"
    if _is_declined(record, published):
        return "declined"
    if published is None:
        return None
    return "published" if record.is_owned else "orphaned"


def _get_draft_state(record: PackageRecord, draft: OpenDraft, package: DraftedPackage) -> PackageState:
    if package.is_removed:
        return "removal"
    if draft.lifecycle == "Proposed":
        return "proposed"
    # If the record contains no draft version, all changes on the draft branch are local changes.
    return "edited" if package.is_edited or record.draft_version is None else "draft"


def _is_declined(record: PackageRecord, published: TreeId | None) -> bool:
    """Return whether a person declined the requested version of a package, or its removal."""
    is_version_declined = record.desired_tree in record.declined_trees and record.desired_tree != published
    return record.is_owned and (is_version_declined or (record.removal is not None and record.removal.is_declined))


def _list_reasons(record: PackageRecord) -> Iterator[BlockingReason]:
    """Yield the findings that blocked the package in the last pass. If there are no such findings, yield the unmet
    conditions of the package.
    """
    outcome = record.outcome
    match outcome.get("kind"):
        case "blocked":
            yield from tuple(list_blocking_errors(record)) or _list_unready_conditions(outcome)
        case "held":
            yield from _list_recorded_findings(outcome)
        case _ if record.removal:
            yield from _list_recorded_findings(outcome)


def _list_recorded_findings(outcome: Mapping[str, Any]) -> Iterator[BlockingReason]:
    return (BlockingReason(finding["code"], finding["message"]) for finding in outcome.get("findings", ()))


def _list_unready_conditions(outcome: Mapping[str, Any]) -> tuple[BlockingReason, ...]:
    conditions = outcome.get("conditions", ())
    return tuple(
        BlockingReason(condition["reason"], condition["message"])
        for condition in conditions
        if condition["type"] == "Ready" and condition["status"] != "True"
    )
