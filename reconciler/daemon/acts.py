"""Acts of people on drafts, as commits and moves of refs; the deciding is planning's (porch 7, git.md 3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from reconciler.daemon.publish import HEADS, proposed_ref
from reconciler.daemon.remotes import Remote
from reconciler.gitio.reader import Commit
from reconciler.gitio.verdicts import RefUpdate
from reconciler.gitio.writer import Change, Drop, Graft, NewCommit
from reconciler.planning import lifecycle
from reconciler.planning.lifecycle import Decision, Propose, Publish, Reject
from reconciler.planning.open_drafts import DraftedPackage, Offered, OpenDraft
from reconciler.reporting.review_messages import publish_message, reject_message, take_out_message
from reconciler.snapshot.objects import FILE, CommitId, ObjectId

Verb = Literal["propose", "approve", "reject", "drop"]
# what names the person: an option of the command, the person's Git, or the author of the settings
PersonSource = Literal["option", "git", "settings"]


@dataclass(frozen=True)
class Act:
    """What a person does: `words` are theirs, `at_once` approves what is not proposed yet.

    `person` is the author of what it commits; None for acts that commit nothing. `accepts_conflicts`: the person has
    reviewed the conflicts of the drafts. `via` is where the act comes from, and `person_from` what names the person.
    `seconds` is when the person acts, in seconds since 1970. It dates what is published; None takes the date from the
    commits that the act builds on, so that two replicas write the same commit.
    """

    verb: Verb
    person: tuple[str, str] | None = None
    words: str = ""
    at_once: bool = False
    accepts_conflicts: bool = False
    via: Literal["cli", "annotation"] = "cli"
    person_from: PersonSource = "settings"
    seconds: int | None = None

    def decide(self, draft: OpenDraft, packages: frozenset[str]) -> Decision:
        """Return what the act comes to on one draft, of which only these packages are meant; none means all."""
        match self.verb:
            case "propose":
                return lifecycle.propose(draft, packages, accepts_conflicts=self.accepts_conflicts)
            case "approve":
                return lifecycle.approve(draft, packages, self.at_once, accepts_conflicts=self.accepts_conflicts)
            case "reject":
                return lifecycle.reject(draft)
            case "drop":
                return lifecycle.drop(draft, packages)


@dataclass(frozen=True)
class Moves:
    """The refs that an act moves, each only from where it was seen, and the commit that it made."""

    updates: tuple[RefUpdate, ...]
    commit: CommitId | None = None


def note_ref(state_ref: str, branch: str) -> str:
    """Return the ref of the note that a draft was rejected: by whom, and why."""
    # beside the states, which every pass fetches; no Repository can have this name
    return state_ref.format(repository=f"_rejected/{branch}")


def rejection(draft: OpenDraft, remote: Remote, state_ref: str) -> Commit | None:
    """Return the note that a draft was rejected as it stands; an older one is about what the draft was then."""
    ref = note_ref(state_ref, draft.branch)
    note = remote.commit(remote.refs[ref]) if ref in remote.refs else None
    return note if note and note.parents == (draft.head,) else None


def carry_out(
    decision: Propose | Publish | Reject | lifecycle.Drop, draft: OpenDraft, act: Act, remote: Remote, state_ref: str
) -> Moves:
    """Write the commits that a decision needs, and return what is to be pushed, whole or not at all."""
    note = note_ref(state_ref, draft.branch)
    match decision:
        case Propose():
            proposal = RefUpdate(proposed_ref(draft.branch), draft.head, draft.proposed)
            return Moves((_unmoved(draft), proposal, *_without(note, remote)), draft.head)
        case Publish():
            # auditors rely on this date; only it is a person's: drafts and notes stay reproducible
            commit = _write(remote, act, draft, _publish_commit(draft, decision, act), act.seconds)
            ended = (*_ended(draft), *_without(note, remote)) if decision.whole else (_unmoved(draft),)
            return Moves((RefUpdate(HEADS + draft.destination.branch, commit, draft.published), *ended), commit)
        case Reject():
            return Moves((*_unproposed(draft), _note(note, draft, act, remote)))
        case lifecycle.Drop(whole=True):
            return Moves((*_ended(draft), _note(note, draft, act, remote)))
        case lifecycle.Drop():
            commit = _write(remote, act, draft, _taken_out(draft, decision.packages, act.words, remote))
            return Moves((RefUpdate(HEADS + draft.branch, commit, draft.head), *_unproposed(draft)), commit)


def _publish_commit(draft: OpenDraft, decision: Publish, act: Act) -> NewCommit:
    """Return the commit on the cluster branch: a merge of the draft when all of it goes, else one of its own.

    With the draft as a second parent, what is left of it would count as merged (git.md finding 6).
    """
    parents = (draft.published, draft.head) if decision.whole else (draft.published,)
    message = publish_message(draft, decision.packages, act.words, act.via, act.person)
    return NewCommit(parents, tuple(_changes(decision.paths)), message, 0)


def _changes(paths: Iterable[Offered]) -> Iterator[Change]:
    # what goes first makes room: a file may become a folder
    listed = tuple(paths)
    yield from (Drop(one.path) for one in listed if one.id is None)
    yield from (Graft(one.path, one.id, one.mode) for one in listed if one.id is not None)


def _note(ref: str, draft: OpenDraft, act: Act, remote: Remote) -> RefUpdate:
    commit = _write(remote, act, draft, NewCommit((draft.head,), (), reject_message(draft, act.words), 0))
    return RefUpdate(ref, commit, remote.refs.get(ref))


def _write(remote: Remote, act: Act, draft: OpenDraft, commit: NewCommit, now: int | None = None) -> CommitId:
    # no commit is older than its parents; `now` is read once per command, so that a retry writes the same commit
    seconds = max(now or 0, *(remote.commit(one).seconds for one in (draft.published, draft.head)))
    return remote.mirror.write([replace(commit, seconds=seconds, author=act.person)])[0]


def _taken_out(draft: OpenDraft, packages: tuple[DraftedPackage, ...], words: str, remote: Remote) -> NewCommit:
    changes = tuple(change for one in packages for change in _put_back(draft, one, remote))
    return NewCommit((draft.head,), changes, take_out_message(draft, packages, words), 0)


def _put_back(draft: OpenDraft, one: DraftedPackage, remote: Remote) -> Iterator[Change]:
    """Give a package back what the offer was made against, by which the next pass knows that it was declined."""
    where = draft.destination
    against = one.record.put.against if one.record.put else one.published
    source = draft.published if against == one.published else draft.base
    status = remote.blob_at(source, where.status_path(one.package))
    yield Drop(where.path(one.package))
    yield Drop(where.status_path(one.package))
    if against:
        yield Graft(where.path(one.package), against)
    if status:
        yield Graft(where.status_path(one.package), ObjectId(status), FILE)


def _unmoved(draft: OpenDraft) -> RefUpdate:
    # what was read of the draft must still be there when the push arrives
    return RefUpdate(HEADS + draft.branch, draft.head, draft.head)


def _unproposed(draft: OpenDraft) -> tuple[RefUpdate, ...]:
    return (RefUpdate(proposed_ref(draft.branch), None, draft.proposed),) if draft.proposed else ()


def _ended(draft: OpenDraft) -> tuple[RefUpdate, ...]:
    return (RefUpdate(HEADS + draft.branch, None, draft.head), *_unproposed(draft))


def _without(ref: str, remote: Remote) -> tuple[RefUpdate, ...]:
    return (RefUpdate(ref, None, remote.refs[ref]),) if ref in remote.refs else ()
