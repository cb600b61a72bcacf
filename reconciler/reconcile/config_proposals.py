"""Plans, writes and pushes config proposals: changes of the config that replace upstream revisions with newer
revisions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from reconciler.catalog.files import FALLBACK_COMMIT_SECONDS, BlobId, CommitId
from reconciler.controllers.results import RevisionPin
from reconciler.git.errors import GitError
from reconciler.git.mirror import Mirror
from reconciler.git.object_reader import ObjectReader
from reconciler.git.object_writer import NewCommit, PutFile
from reconciler.git.push_outcomes import (
    PushDone,
    PushFailed,
    PushOutcome,
    PushPostponed,
    PushRefused,
    PushStale,
    PushUnit,
    RefUpdate,
)
from reconciler.krm.findings import Finding, FindingCode, SourceLocation, downgrade_to_warning
from reconciler.krm.yaml import YamlFile
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.plan.proposals import format_config_state_message, format_proposal_message
from reconciler.planning.layout.config_proposal import (
    PROPOSAL_STATE_FILE,
    ConfigBranchSnapshot,
    ConfigProposal,
    ProposalState,
    parse_proposal_state,
    plan_manual_proposal,
    plan_proposal,
    serialize_proposal_state,
)
from reconciler.planning.model.state import EngineTooOldError, StateUnreadableError
from reconciler.planning.model.targets import are_paths_nested
from reconciler.reconcile.codes import PassCodes
from reconciler.reconcile.commits import describe_push_outcome
from reconciler.reconcile.config_source import ConfigSnapshot
from reconciler.reconcile.pass_inputs import digest_proposal_refs
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX

YamlReader = Callable[[bytes], YamlFile]


class ConfigProposals(Protocol):
    """Plans and pushes proposals for changes of the config."""

    def digest_heads(self) -> str:
        """Return a digest of all refs that a proposal depends on, except the config branch."""
        ...

    def plan(
        self,
        pins: Sequence[RevisionPin],
        config: ConfigSnapshot,
        is_complete: bool,
        taken_branches: Mapping[str, Collection[str]],
    ) -> ConfigProposal:
        """Return the proposal that replaces the revisions of `pins`.

        Args:
            pins: The revisions in the config that a proposal can replace with the revision of a tag.
            is_complete: Whether all files of the config could be read.
            taken_branches: The names of target branches and draft branches, by repository. The proposal must not use
                them.
        """
        ...

    def push(self, proposal: ConfigProposal, config: ConfigSnapshot) -> PushOutcome:
        """Push the proposal and its state in one atomic push."""
        ...


@dataclass(frozen=True)
class FolderConfigProposals:
    """Reports proposals for a plain folder as findings, because a plain folder has no branch for a proposal."""

    read_yaml: YamlReader

    def digest_heads(self) -> str:
        """Return "", because a plain folder has no refs."""
        return ""

    def plan(
        self,
        pins: Sequence[RevisionPin],
        config: ConfigSnapshot,
        is_complete: bool,
        taken_branches: Mapping[str, Collection[str]],
    ) -> ConfigProposal:
        """Return a proposal whose findings describe the changes that a person must make."""
        return plan_manual_proposal(pins, config.files, self.read_yaml)

    def push(self, proposal: ConfigProposal, config: ConfigSnapshot) -> PushOutcome:
        """Do nothing, because the findings already contain the proposed changes."""
        return PushDone()


class RepositoryConfigProposals:
    """Pushes config proposals to a branch of the config repository.

    The proposal branch always has one commit more than the config branch. The daemon stops changing the proposal branch
    when another writer moves it.
    """

    def __init__(
        self,
        mirror: Mirror,
        repository: str,
        config_branch: str,
        branch: str,
        state_ref: str,
        directory: str,
        read_yaml: YamlReader,
    ) -> None:
        self._mirror = mirror
        self._repository = repository
        self._config_branch = config_branch
        self._branch = branch
        self._state_ref = state_ref
        self._prefix = f"{directory.strip('/')}/" if directory.strip("/") else ""
        self._read_yaml = read_yaml

    def digest_heads(self) -> str:
        """Return a digest of the heads of the proposal branch and of the state ref."""
        return digest_proposal_refs(self._mirror, self._branch, self._state_ref)

    def plan(
        self,
        pins: Sequence[RevisionPin],
        config: ConfigSnapshot,
        is_complete: bool,
        taken_branches: Mapping[str, Collection[str]],
    ) -> ConfigProposal:
        """Return the proposal.

        If the proposal branch or the recorded state of the proposal cannot be used, the result contains only a finding.
        """
        if not pins and self._state_ref not in self._mirror.refs():
            return ConfigProposal()
        names = {self._config_branch, *taken_branches.get(self._repository, ())}
        if nested := sorted(name for name in names if are_paths_nested(name, self._branch)):
            reason = (
                "this branch already belongs to a target, a draft or the config"
                if nested[0] == self._branch
                else f'its name conflicts with the name of the branch "{nested[0]}"'
            )
            return _propose_nothing(
                PassCodes.PROPOSAL_BRANCH_TAKEN,
                f'the branch "{self._branch}" cannot be used for config proposals, because {reason}; set'
                " `drafts.config_branch` to another name",
            )
        try:
            with self._mirror.open_reader() as reader:
                return self._plan(pins, config, is_complete, reader)
        except EngineTooOldError as error:
            return _propose_nothing(
                PassCodes.ENGINE_TOO_OLD,
                f'the branch "{self._branch}" is not changed, because {error}. Next step: update the reconciler',
            )
        except StateUnreadableError as error:
            return _propose_nothing(
                PassCodes.STATE_UNREADABLE,
                f'the branch "{self._branch}" is not changed, because {error}. Next step: delete the ref'
                f" {self._state_ref}, so that the next pass creates it again",
            )
        except GitError as error:
            return _propose_nothing(PassCodes.PROPOSAL_FAILED, error.full_message)

    def _plan(
        self, pins: Sequence[RevisionPin], config: ConfigSnapshot, is_complete: bool, reader: ObjectReader
    ) -> ConfigProposal:
        commit, head = CommitId(config.id), self._mirror.refs().get(BRANCH_PREFIX + self._branch)
        state = self._read_state(reader)

        def read_base_blob(path: str) -> BlobId | None:
            return self._find_blob(reader, snapshot.known_state.base, commit, self._prefix + path)

        snapshot = ConfigBranchSnapshot(
            self._branch, commit, head, state, config.files, is_complete, read_base_blob, self._read_yaml
        )
        if snapshot.is_edited and (written := self._find_written_state(pins, snapshot, config)):
            snapshot = replace(snapshot, state=written)
        return plan_proposal(pins, snapshot)

    def _find_written_state(
        self, pins: Sequence[RevisionPin], snapshot: ConfigBranchSnapshot, config: ConfigSnapshot
    ) -> ProposalState | None:
        """Compute the missing state of a proposal after a push that moved the proposal branch but not the state ref.

        Return None if the head of the proposal branch is not the commit that the daemon would write now.
        """
        proposal = plan_proposal(
            pins,
            replace(snapshot, proposal_head=None, state=replace(snapshot.known_state, proposal_head=None, base=None)),
        )
        commit = self._write_commit(proposal, config) if proposal.action == "write" else None
        return (
            replace(proposal.state, proposal_head=commit, base=snapshot.config_commit)
            if commit and commit == snapshot.proposal_head
            else None
        )

    def _read_state(self, reader: ObjectReader) -> ProposalState:
        commit = self._mirror.refs().get(self._state_ref)
        if commit is None:
            return ProposalState()
        entry = reader.find_entry(reader.read_commit(commit).tree, PROPOSAL_STATE_FILE)
        return parse_proposal_state({PROPOSAL_STATE_FILE: reader.read_blob(BlobId(entry.id))} if entry else {})

    def _find_blob(self, reader: ObjectReader, base: CommitId | None, config: CommitId, path: str) -> BlobId | None:
        try:
            if base is None or not self._mirror.is_ancestor(base, config):
                return None
            entry = reader.find_entry(reader.read_commit(base).tree, path)
        except GitError:
            # Return None, because a rewrite of the config history has removed the commit that the proposal is based on.
            return None
        return BlobId(entry.id) if entry else None

    def _write_commit(self, proposal: ConfigProposal, config: ConfigSnapshot) -> CommitId:
        files = tuple(PutFile(self._prefix + path, file.data, file.mode) for path, file in proposal.files_after.items())
        seconds = max(config.seconds, proposal.seconds)
        message = format_proposal_message(proposal, config.id)
        (commit,) = self._mirror.write_commits([NewCommit((CommitId(config.id),), files, message, seconds)])
        return commit

    def push(self, proposal: ConfigProposal, config: ConfigSnapshot) -> PushOutcome:
        """Push the proposal branch and its state in one atomic push, if no other writer has moved these refs."""
        try:
            updates = tuple(self._list_updates(proposal, config))
        except GitError as error:
            return PushFailed(error)
        return self._mirror.push([PushUnit("config", updates)])["config"] if updates else PushDone()

    def _list_updates(self, proposal: ConfigProposal, config: ConfigSnapshot) -> list[RefUpdate]:
        refs, state = self._mirror.refs(), proposal.state
        branch = BRANCH_PREFIX + proposal.branch
        updates = []
        match proposal.action:
            case "write":
                commit = self._write_commit(proposal, config)
                state = replace(state, proposal_head=commit, base=CommitId(config.id))
                updates.append(RefUpdate(branch, commit, refs.get(branch)))
            case "end":
                state = replace(state, proposal_head=None, base=None)
                updates.append(RefUpdate(branch, None, refs.get(branch)))
            case "keep":
                pass
        new_state = state if state.proposal_head or state.revisions else None
        # Compare the states and not their commits, because a new signing key gives a different commit for an equal
        # state.
        if proposal.branch and new_state != self._read_recorded_state():
            state_commit = self._write_state(new_state) if new_state else None
            updates.append(RefUpdate(self._state_ref, state_commit, refs.get(self._state_ref)))
        return updates

    def _read_recorded_state(self) -> ProposalState | None:
        if self._state_ref not in self._mirror.refs():
            return None
        with self._mirror.open_reader() as reader:
            return self._read_state(reader)

    def _write_state(self, state: ProposalState) -> CommitId:
        files = tuple(PutFile(path, data) for path, data in serialize_proposal_state(state).items())
        (commit,) = self._mirror.write_commits(
            [NewCommit((), files, format_config_state_message(), FALLBACK_COMMIT_SECONDS, has_empty_base=True)]
        )
        return commit


def _propose_nothing(code: FindingCode, message: str) -> ConfigProposal:
    return ConfigProposal(findings=(downgrade_to_warning(code.finding(message)),))


def create_proposal_findings(proposal: ConfigProposal, outcome: PushOutcome) -> tuple[Finding, ...]:
    """Return a finding if the proposal was not pushed."""
    if isinstance(outcome, PushDone):
        return ()
    codes = {
        PushStale: PassCodes.PROPOSAL_LOST,
        PushRefused: PassCodes.PROPOSAL_REFUSED,
        PushFailed: PassCodes.PROPOSAL_FAILED,
        PushPostponed: PassCodes.PROPOSAL_POSTPONED,
    }
    code = codes[type(outcome)]
    location = proposal.edits[0].pin.location if proposal.edits else SourceLocation()
    message = (
        f'revisions could not be proposed on the branch "{proposal.branch}" of the config,'
        f" because {describe_push_outcome(outcome)}"
    )
    return (code.finding(message, location),)
