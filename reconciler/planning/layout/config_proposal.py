"""The config proposal: one commit on a branch of the config repository, which updates upstream revisions in the config.

The commit contains each revision that a moved tag or a version range selects now.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from reconciler.catalog.files import BlobId, CommitId, File, FileTree
from reconciler.controllers.results import RevisionPin
from reconciler.krm.findings import Finding
from reconciler.krm.json_text import encode_indented_json
from reconciler.krm.yaml import Document, YamlFile
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.planning.model.codes import PlanningCodes
from reconciler.planning.model.state import STATE_FORMAT, EngineTooOldError, StateUnreadableError

PROPOSAL_STATE_FILE = "config.json"
ProposalStage = Literal["offered", "taken", "declined"]
RevisionValue = str | int


@dataclass(frozen=True)
class ProposedRevision:
    """A revision that the reconciler proposed to the config.

    Attributes:
        stage: `offered`: the revision is on the proposal branch. `taken`: the proposal was merged. `declined`: a person
            rejected the revision.
    """

    revision: RevisionValue
    stage: ProposalStage = "offered"

    def is_same_revision(self, revision: RevisionValue | None) -> bool:
        """Return whether both values mean the same revision. For example, `2` and `v2` are the same revision."""
        return revision is not None and _format_revision(self.revision) == _format_revision(revision)


@dataclass(frozen=True)
class ProposalState:
    """Recorded state of the config proposal.

    Attributes:
        proposal_head: The head of the proposal branch that was pushed last.
        base: The config commit that the proposal is based on.
        revisions: Maps each `RevisionPin.id` to the revision that was proposed last for this pin. When the tag of the
            pin moves, this revision is replaced or deleted.
    """

    branch: str = ""
    proposal_head: CommitId | None = None
    base: CommitId | None = None
    revisions: Mapping[str, ProposedRevision] = field(default_factory=dict)


@dataclass(frozen=True)
class RevisionEdit:
    """A change of one revision in the config."""

    pin: RevisionPin
    revision: RevisionValue


@dataclass(frozen=True)
class ConfigBranchSnapshot:
    """The config repository at the start of a pass.

    Attributes:
        branch: The name of the proposal branch.
        proposal_head: The head of the proposal branch. None if the branch does not exist.
        is_complete: False if a config file cannot be read.
        read_base_blob: Returns the blob at a path in the config commit that the current proposal is based on.
    """

    branch: str
    config_commit: CommitId
    proposal_head: CommitId | None
    state: ProposalState
    files: FileTree
    is_complete: bool
    read_base_blob: Callable[[str], BlobId | None]
    parse_file: Callable[[bytes], YamlFile]

    @property
    def known_state(self) -> ProposalState:
        """The recorded state. Its commits are removed if they belong to a previously configured proposal branch."""
        return self.state if self.state.branch == self.branch else replace(self.state, proposal_head=None, base=None)

    @property
    def is_edited(self) -> bool:
        """Whether the head of the proposal branch was not pushed by the reconciler."""
        return self.proposal_head is not None and self.proposal_head != self.known_state.proposal_head


@dataclass(frozen=True)
class ConfigProposal:
    """The planned action on the proposal branch, with the changes that the branch contains.

    Attributes:
        action: `write`: create the branch again on the head of the config. `end`: delete the branch. `keep`: do not
            change the branch.
        files_before, files_after: The changed files before and after the edits.
        state: The state to record, without the new head of the branch.
    """

    branch: str = ""
    action: Literal["write", "end", "keep"] = "keep"
    edits: tuple[RevisionEdit, ...] = ()
    files_before: FileTree = field(default_factory=FileTree)
    files_after: FileTree = field(default_factory=FileTree)
    state: ProposalState = ProposalState()
    findings: tuple[Finding, ...] = ()

    @property
    def seconds(self) -> int:
        """The date of the newest tagged commit in the proposal, in seconds since 1970."""
        return max((edit.pin.seconds for edit in self.edits), default=0)


def plan_proposal(pins: Iterable[RevisionPin], snapshot: ConfigBranchSnapshot) -> ConfigProposal:
    """Return the proposal for the config repository.

    A revision that a person rejected or reverted is not proposed again until its tag moves.
    """
    pins = tuple(pins)
    revisions = _compute_next_revisions(pins, snapshot)
    edits = tuple(
        RevisionEdit(pin, revisions[pin.id].revision)
        for pin in pins
        if pin.id in revisions and revisions[pin.id].stage == "offered"
    )
    before, after = _edit_files(edits, snapshot.files, snapshot.parse_file)
    action = _choose_action(edits, after, revisions, snapshot)
    if snapshot.is_edited:
        revisions = _keep_written_revisions(revisions, snapshot)
    state = replace(snapshot.known_state, branch=snapshot.branch, revisions=revisions)
    if snapshot.proposal_head is None:
        state = replace(state, proposal_head=None, base=None)
    findings = _list_findings(pins, edits, revisions, snapshot)
    return ConfigProposal(snapshot.branch, action, edits, before, after, state, findings)


def plan_manual_proposal(
    pins: Iterable[RevisionPin], files: FileTree, parse_file: Callable[[bytes], YamlFile]
) -> ConfigProposal:
    """Return the proposal for a config in a plain folder. Its findings describe the changes that the user must make."""
    edits = tuple(
        RevisionEdit(pin, pin.tagged_revision)
        for pin in pins
        if pin.tagged_revision is not None and not pin.is_same_package
    )
    before, after = _edit_files(edits, files, parse_file)
    findings = tuple(
        PlanningCodes.PROPOSAL_NOT_POSSIBLE.finding(
            f"{format_tag_move(edit)}. The daemon cannot propose the change, because the config is a plain folder. "
            f"Next step: set `{_format_field(edit)}`",
            edit.pin.location,
        )
        for edit in edits
    )
    return ConfigProposal("", "write" if edits else "keep", edits, before, after, findings=findings)


def format_tag_move(edit: RevisionEdit) -> str:
    """Return a text with the revision that a tag or version range selects now, and the revision in the config."""
    pin = edit.pin
    followed = f'version range "{pin.range}"' if pin.range else f'tag "{pin.tag}"'
    older = "the older " if pin.is_downgrade else ""
    selected = f"{followed} of {pin.package} selects {older}{_format_value(edit)}"
    if pin.written_revision is None:
        return f"{selected}, but {_format_field_path(pin)} is missing"
    written = _format_value(replace(edit, revision=pin.written_revision))
    return f"{selected}, but {_format_field_path(pin)} is {written}"


def _format_revision(revision: RevisionValue) -> str:
    text = str(revision)
    return f"v{text}" if text.isdecimal() else text


def _format_value(edit: RevisionEdit) -> str:
    return _format_revision(edit.revision) if edit.pin.field_name == "revision" else str(edit.revision)


def _format_field_path(pin: RevisionPin) -> str:
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in pin.path)
    return f"{steps[1:]}.{pin.field_name}"


def _format_field(edit: RevisionEdit) -> str:
    return f"{edit.pin.field_name}: {edit.revision if edit.pin.field_name == 'revision' else json.dumps(edit.revision)}"


def _compute_next_revisions(pins: Iterable[RevisionPin], snapshot: ConfigBranchSnapshot) -> dict[str, ProposedRevision]:
    known = snapshot.known_state
    is_branch_deleted = known.proposal_head is not None and snapshot.proposal_head is None
    revisions = {pin.id: _compute_next_revision(pin, known.revisions.get(pin.id), is_branch_deleted) for pin in pins}
    if not snapshot.is_complete:
        # Keep the recorded revisions of objects that are not found, because the objects can be in a file that cannot be
        # read.
        revisions = {**known.revisions, **revisions}
    return {name: revision for name, revision in sorted(revisions.items()) if revision}


def _compute_next_revision(
    pin: RevisionPin, known: ProposedRevision | None, is_branch_deleted: bool
) -> ProposedRevision | None:
    if known and known.is_same_revision(pin.written_revision):
        known = replace(known, stage="taken")
    elif known and (known.stage == "taken" or is_branch_deleted):
        # Mark the revision as declined, because a person reverted the merge of the proposal or deleted its branch.
        known = replace(known, stage="declined")
    if pin.tagged_revision is None:
        return known
    if known is None or not known.is_same_revision(pin.tagged_revision):
        known = None if pin.is_same_package else ProposedRevision(pin.tagged_revision)
    # Do not propose a revision with an identical package, because there is nothing to review.
    return None if known and pin.is_same_package and known.stage == "offered" else known


def _keep_written_revisions(
    revisions: Mapping[str, ProposedRevision], snapshot: ConfigBranchSnapshot
) -> dict[str, ProposedRevision]:
    """Replace each newly proposed revision by the recorded revision. If no revision is recorded, omit it.

    Call this function if the proposal branch has local changes, because no new revision is written to such a branch.
    """
    known = snapshot.known_state.revisions
    return {
        name: revision if revision.stage != "offered" else known[name]
        for name, revision in revisions.items()
        if revision.stage != "offered" or name in known
    }


def _choose_action(
    edits: tuple[RevisionEdit, ...],
    after: FileTree,
    revisions: Mapping[str, ProposedRevision],
    snapshot: ConfigBranchSnapshot,
) -> Literal["write", "end", "keep"]:
    if snapshot.is_edited or _has_unreadable_pins(revisions, edits):
        return "keep"
    if not edits:
        return "end" if snapshot.proposal_head else "keep"
    is_written = snapshot.proposal_head is not None and _open_revisions(revisions) == _open_revisions(
        snapshot.known_state.revisions
    )
    has_moved = any(snapshot.read_base_blob(path) != snapshot.files[path].id for path in after)
    return "keep" if is_written and not has_moved else "write"


def _has_unreadable_pins(revisions: Mapping[str, ProposedRevision], edits: tuple[RevisionEdit, ...]) -> bool:
    """Return whether an object with a proposed revision cannot be read now.

    In this case, a new proposal commit must not be written, because it would not contain the proposed revision of this
    object.
    """
    return len(_open_revisions(revisions)) > len(edits)


def _open_revisions(revisions: Mapping[str, ProposedRevision]) -> dict[str, RevisionValue]:
    return {name: revision.revision for name, revision in revisions.items() if revision.stage == "offered"}


def _edit_files(
    edits: Iterable[RevisionEdit], files: FileTree, parse_file: Callable[[bytes], YamlFile]
) -> tuple[FileTree, FileTree]:
    by_file: dict[str, list[RevisionEdit]] = {}
    for edit in edits:
        by_file.setdefault(edit.pin.file, []).append(edit)
    before = {path: files[path] for path in by_file}
    after = {path: _edit_file(file, by_file[path], parse_file) for path, file in before.items()}
    return FileTree(before), FileTree(after)


def _edit_file(file: File, edits: Iterable[RevisionEdit], parse_file: Callable[[bytes], YamlFile]) -> File:
    content = parse_file(file.data)
    lines = [document.line for document in content.documents]
    for edit in edits:
        index = lines.index(edit.pin.line)
        content = content.replace(index, _edit_document(content.documents[index], edit))
    return File(content.to_bytes(), file.executable)


def _edit_document(document: Document, edit: RevisionEdit) -> Document:
    return document.with_data(_set_revision(document.data, edit.pin.path, edit.pin.field_name, edit.revision))


def _set_revision(data: Any, path: tuple[str | int, ...], field_name: str, revision: RevisionValue) -> Any:
    if path:
        changed = _set_revision(data[path[0]], path[1:], field_name, revision)
        if isinstance(data, list):
            return [changed if index == path[0] else item for index, item in enumerate(data)]
        return {key: changed if key == path[0] else value for key, value in data.items()}
    if field_name in data:
        return {**data, field_name: revision}
    # Insert the missing field before the field `tag` or `ref`.
    added: dict[str, Any] = {}
    for key, value in data.items():
        added |= {field_name: revision, key: value} if key in ("tag", "ref") else {key: value}
    return added


def _list_findings(
    pins: Iterable[RevisionPin],
    edits: tuple[RevisionEdit, ...],
    revisions: Mapping[str, ProposedRevision],
    snapshot: ConfigBranchSnapshot,
) -> tuple[Finding, ...]:
    if edits and snapshot.is_edited:
        return tuple(
            PlanningCodes.PROPOSAL_EDITED.finding(
                f"{format_tag_move(edit)}. The daemon cannot propose the change, because branch"
                f' "{snapshot.branch}" has '
                "local changes. Next step: merge or delete this branch",
                edit.pin.location,
            )
            for edit in edits
        )
    offered = (
        PlanningCodes.REVISION_PROPOSED.finding(
            f'{format_tag_move(edit)}. The change is proposed on branch "{snapshot.branch}"{_format_end(edit.pin)}',
            edit.pin.location,
        )
        for edit in edits
    )
    declined = (
        PlanningCodes.REVISION_DECLINED.finding(
            f"{format_tag_move(RevisionEdit(pin, revisions[pin.id].revision))}. A person rejected this change. The "
            "daemon proposes a change again when the tag moves or the range selects another version",
            pin.location,
        )
        for pin in pins
        if pin.id in revisions and revisions[pin.id].stage == "declined"
    )
    return (*offered, *declined)


def _format_end(pin: RevisionPin) -> str:
    """Return the next step if the merge of a proposal replaces a version range by one version. Else return ""."""
    if not pin.is_replaced_range:
        return ""
    return f'. Next step: to get later versions of the range after the merge, set `tagPolicy.range: "{pin.range}"`'


def serialize_proposal_state(state: ProposalState) -> dict[str, bytes]:
    """Return the files of the state commit of the config proposal. Equal states give equal bytes."""
    revisions = {
        name: {"revision": revision.revision, "stage": revision.stage} for name, revision in state.revisions.items()
    }
    data = {
        "format": STATE_FORMAT,
        "branch": state.branch,
        "head": state.proposal_head,
        "base": state.base,
        "revisions": revisions,
    }
    return {PROPOSAL_STATE_FILE: encode_indented_json(data)}


def parse_proposal_state(files: Mapping[str, bytes]) -> ProposalState:
    """Read the result of `serialize_proposal_state`.

    Raises:
        EngineTooOldError: A newer version of the reconciler wrote the state.
        StateUnreadableError: The state is corrupt.
    """
    try:
        data = json.loads(files[PROPOSAL_STATE_FILE])
        if data["format"] > STATE_FORMAT:
            raise EngineTooOldError(data["format"])
        # Read the key `offers` too, because format 1 has this key instead of `revisions`.
        recorded = data["revisions"] if "revisions" in data else data["offers"]
        revisions = {name: ProposedRevision(entry["revision"], entry["stage"]) for name, entry in recorded.items()}
        return ProposalState(data["branch"], data["head"], data["base"], revisions)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StateUnreadableError(f"the state was not written by the reconciler, or is corrupt ({error!r})") from error
