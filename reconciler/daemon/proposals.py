"""Proposals to the config repository: read, written and pushed through the mirror that the config is read from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from reconciler.daemon.codes import (
    ENGINE_TOO_OLD,
    PROPOSAL_BRANCH_TAKEN,
    PROPOSAL_FAILED,
    PROPOSAL_LOST,
    PROPOSAL_POSTPONED,
    PROPOSAL_REFUSED,
    STATE_UNREADABLE,
)
from reconciler.daemon.config import ConfigSnapshot
from reconciler.daemon.publish import HEADS, describe
from reconciler.gitio.errors import GitError
from reconciler.gitio.mirror import Mirror
from reconciler.gitio.reader import ObjectReader
from reconciler.gitio.verdicts import Done, Failed, Lost, Outcome, Postponed, PushUnit, RefUpdate, Refused
from reconciler.gitio.writer import NewCommit, Put
from reconciler.krm.digest import digest
from reconciler.krm.findings import Code, Finding, Where, softened
from reconciler.krm.yaml import YamlFile
from reconciler.planning.destination import are_nested
from reconciler.planning.proposal import (
    STATE_FILE,
    ConfigGround,
    Proposal,
    ProposalState,
    propose,
    read_proposal_state,
    suggest,
    write_proposal_state,
)
from reconciler.planning.state import EngineTooOldError, StateUnreadableError
from reconciler.reporting.proposal import config_state_message, proposal_message
from reconciler.rules.variant import Pin
from reconciler.snapshot.objects import UNDATED_SECONDS, BlobId, CommitId

# no Repository can be called so: its state is not a destination's
STATE_NAME = "_config"
ReadFile = Callable[[bytes], YamlFile]


class Proposals(Protocol):
    """The side of the config that revisions are proposed to."""

    def heads(self) -> str:
        """Return a digest of the refs that a proposal depends on besides the config's own."""
        ...

    def plan(
        self, pins: Sequence[Pin], snapshot: ConfigSnapshot, complete: bool, taken: Mapping[str, Collection[str]]
    ) -> Proposal:
        """Return what is to be proposed. `taken` are the branches that destinations have, by repository."""
        ...

    def push(self, proposal: Proposal, snapshot: ConfigSnapshot) -> Outcome:
        """Bring the proposal there, with what is to be remembered of it."""
        ...


@dataclass(frozen=True)
class FolderProposals:
    """A plain folder takes no proposals: people are told what to write."""

    read: ReadFile

    def heads(self) -> str:
        """Return nothing: there are no refs."""
        return ""

    def plan(
        self, pins: Sequence[Pin], snapshot: ConfigSnapshot, complete: bool, taken: Mapping[str, Collection[str]]
    ) -> Proposal:
        """Return what people are to write."""
        return suggest(pins, snapshot.files, self.read)

    def push(self, proposal: Proposal, snapshot: ConfigSnapshot) -> Outcome:
        """Leave the folder to people: its findings say it all."""
        return Done()


class RepositoryProposals:
    """A branch of the config repository, ours as long as nobody else moves it; always one commit on the config."""

    def __init__(
        self, mirror: Mirror, repository: str, config: str, branch: str, state_ref: str, directory: str, read: ReadFile
    ) -> None:
        self._mirror = mirror
        self._repository = repository
        self._config = config
        self._branch = branch
        self._state_ref = state_ref
        self._start = f"{directory.strip('/')}/" if directory.strip("/") else ""
        self._read = read

    def heads(self) -> str:
        """Return a digest of the heads of the branch and of its state."""
        refs = self._mirror.refs()
        return digest({ref: refs.get(ref) for ref in (HEADS + self._branch, self._state_ref)})

    def plan(
        self, pins: Sequence[Pin], snapshot: ConfigSnapshot, complete: bool, taken: Mapping[str, Collection[str]]
    ) -> Proposal:
        """Return what is to be proposed; what cannot be told of the branch is a finding, and nothing is proposed."""
        if not pins and self._state_ref not in self._mirror.refs():
            return Proposal()
        names = {self._config, *taken.get(self._repository, ())}
        if clash := sorted(name for name in names if are_nested(name, self._branch)):
            return _nothing(PROPOSAL_BRANCH_TAKEN, f"branch {clash[0]} stands where {self._branch} needs a place;"
                            " give proposals another name with drafts.config_branch")  # fmt: skip
        try:
            with self._mirror.read() as reader:
                return self._plan(pins, snapshot, complete, reader)
        except EngineTooOldError as error:
            return _nothing(ENGINE_TOO_OLD, f"proposals to the config: {error}; left alone")
        except StateUnreadableError as error:
            return _nothing(
                STATE_UNREADABLE, f"proposals to the config: {error}; delete {self._state_ref} to begin anew"
            )
        except GitError as error:
            return _nothing(PROPOSAL_FAILED, error.told)

    def _plan(self, pins: Sequence[Pin], snapshot: ConfigSnapshot, complete: bool, reader: ObjectReader) -> Proposal:
        config, head = CommitId(snapshot.id), self._mirror.refs().get(HEADS + self._branch)
        state = self._state(reader)

        def at_base(path: str) -> BlobId | None:
            return self._blob(reader, ground.known.base, config, self._start + path)

        ground = ConfigGround(self._branch, config, head, state, snapshot.files, complete, at_base, self._read)
        if ground.is_edited and (mine := self._made_before(pins, ground, snapshot)):
            ground = replace(ground, state=mine)
        return propose(pins, ground)

    def _made_before(self, pins: Sequence[Pin], ground: ConfigGround, snapshot: ConfigSnapshot) -> ProposalState | None:
        """Return the state that a push left unwritten: a head that is the commit we would make is ours (git.md 4.9)."""
        anew = propose(pins, replace(ground, head=None, state=replace(ground.known, head=None, base=None)))
        made = self._commit(anew, snapshot) if anew.layout == "write" else None
        return replace(anew.state, head=made, base=ground.config) if made and made == ground.head else None

    def _state(self, reader: ObjectReader) -> ProposalState:
        commit = self._mirror.refs().get(self._state_ref)
        if commit is None:
            return ProposalState()
        entry = reader.entry(reader.commit(commit).tree, STATE_FILE)
        return read_proposal_state({STATE_FILE: reader.blob(BlobId(entry.id))} if entry else {})

    def _blob(self, reader: ObjectReader, base: CommitId | None, config: CommitId, path: str) -> BlobId | None:
        try:
            if base is None or not self._mirror.is_ancestor(base, config):
                return None
            found = reader.entry(reader.commit(base).tree, path)
        except GitError:
            # the config's history was rewritten: nothing is known of what the proposal was made on
            return None
        return BlobId(found.id) if found else None

    def _commit(self, proposal: Proposal, snapshot: ConfigSnapshot) -> CommitId:
        puts = tuple(Put(self._start + path, file.data, file.mode) for path, file in proposal.after.items())
        seconds = max(snapshot.seconds, proposal.seconds)
        message = proposal_message(proposal, snapshot.id)
        (commit,) = self._mirror.write([NewCommit((CommitId(snapshot.id),), puts, message, seconds)])
        return commit

    def push(self, proposal: Proposal, snapshot: ConfigSnapshot) -> Outcome:
        """Bring the proposal there: its branch and its state move together, and only from where they were seen."""
        try:
            updates = tuple(self._updates(proposal, snapshot))
        except GitError as error:
            return Failed(error)
        return self._mirror.push([PushUnit("config", updates)])["config"] if updates else Done()

    def _updates(self, proposal: Proposal, snapshot: ConfigSnapshot) -> list[RefUpdate]:
        refs, state = self._mirror.refs(), proposal.state
        branch = HEADS + proposal.branch
        updates = []
        match proposal.layout:
            case "write":
                new = self._commit(proposal, snapshot)
                state = replace(state, head=new, base=CommitId(snapshot.id))
                updates.append(RefUpdate(branch, new, refs.get(branch)))
            case "end":
                state = replace(state, head=None, base=None)
                updates.append(RefUpdate(branch, None, refs.get(branch)))
            case "keep":
                pass
        remembered = self._state_commit(state) if state.head or state.offers else None
        if proposal.branch and remembered != refs.get(self._state_ref):
            updates.append(RefUpdate(self._state_ref, remembered, refs.get(self._state_ref)))
        return updates

    def _state_commit(self, state: ProposalState) -> CommitId:
        puts = tuple(Put(path, data) for path, data in write_proposal_state(state).items())
        (commit,) = self._mirror.write([NewCommit((), puts, config_state_message(), UNDATED_SECONDS, fresh=True)])
        return commit


def _nothing(code: Code, message: str) -> Proposal:
    return Proposal(findings=(softened(code.finding(message)),))


def push_findings(proposal: Proposal, outcome: Outcome) -> tuple[Finding, ...]:
    """Return what people are told of a push of the proposal that did not get through."""
    if isinstance(outcome, Done):
        return ()
    codes = {Lost: PROPOSAL_LOST, Refused: PROPOSAL_REFUSED, Failed: PROPOSAL_FAILED, Postponed: PROPOSAL_POSTPONED}
    code = codes[type(outcome)]
    where = proposal.edits[0].pin.where if proposal.edits else Where()
    message = f"revisions could not be proposed on branch {proposal.branch} of the config: {describe(outcome)}"
    return (code.finding(message, where),)
