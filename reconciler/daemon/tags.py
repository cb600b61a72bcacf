"""Tagging: the tags that published revisions lack, made after everything else is in (git.md 4.9, 10, 11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from reconciler.daemon.backoff import Backoff
from reconciler.daemon.codes import TAG_FAILED, TAG_REFUSED, TAG_TAKEN
from reconciler.daemon.events import log
from reconciler.daemon.publish import Written, push_states
from reconciler.daemon.remotes import Remote
from reconciler.gitio.errors import GitError, ObjectMissingError
from reconciler.gitio.names import is_ref
from reconciler.gitio.verdicts import Done, Failed, Lost, Outcome, Refused
from reconciler.gitio.writer import NewTag
from reconciler.krm.findings import Code, Finding
from reconciler.planning.destination import Destination
from reconciler.planning.tags import MissingTag, note_tags, tag_start
from reconciler.reporting.tag_message import tag_message
from reconciler.snapshot.objects import CommitId, ObjectId

_TAGS = "refs/tags/"
_NAMED = 8


@dataclass(frozen=True)
class Tagged:
    """What became of the tags of a pass. `moved`: there are new ones, for which a next pass may have use.

    `failed`: the world kept one from being made, and another pass may make it though nothing moves.
    """

    findings: tuple[Finding, ...] = ()
    moved: bool = False
    failed: bool = False


def all_tagged(parts: Iterable[Tagged]) -> Tagged:
    """Return what became of the tags of several remotes as one."""
    known = list(parts)
    findings = tuple(finding for one in known for finding in one.findings)
    return Tagged(findings, any(one.moved for one in known), any(one.failed for one in known))


@dataclass(frozen=True)
class _Wish:
    one: Written
    tag: MissingTag

    @property
    def destination(self) -> Destination:
        return self.one.plan.destination

    @property
    def ref(self) -> str:
        return _TAGS + self.tag.name


@dataclass(frozen=True)
class _Trouble:
    """Why a tag was not made; `words` are equal for all that the same thing keeps back."""

    code: Code
    words: str


# the tag that stands there; None while another writer is at it, so that the next pass will know
_Fate = ObjectId | _Trouble | None


class Tags:
    """Makes tags. What a host refused rests, each tag on its own, and keeps nothing else from being made."""

    def __init__(self, state_ref: str, backoff: Backoff) -> None:
        self._state_ref = state_ref
        self._backoff = backoff
        self._refused: dict[str, _Trouble] = {}

    def make(self, remote: Remote, written: Sequence[Written]) -> Tagged:
        """Make the tags that these destinations of one remote lack, and note in their states which they have.

        A tag that names the revision's commit already is taken for it, whoever made it; one that names something else
        is left alone. Nothing is raised for what the remote does.
        """
        wishes = [_Wish(one, tag) for one in written for tag in one.plan.tags]
        if not wishes:
            return Tagged()
        try:
            fates = self._fates(remote, wishes)
            noted = self._note(remote, wishes, fates)
        except GitError as error:
            trouble = _Trouble(TAG_FAILED, error.told)
            return Tagged(tuple(_findings(wishes, [trouble] * len(wishes))), failed=True)
        failed = any(isinstance(fate, _Trouble) and fate.code == TAG_FAILED for fate in fates)
        return Tagged(tuple(_findings(wishes, fates)), noted or None in fates, failed)

    def _fates(self, remote: Remote, wishes: Sequence[_Wish]) -> list[_Fate]:
        usable = [wish for wish in wishes if is_ref(wish.ref)]
        remote.mirror.fetch_tags({tag_start(wish.destination, wish.tag.package) for wish in usable})
        # two Repositories may want one name: the first has it
        new = {wish.tag.name: wish for wish in reversed(usable) if self._look(remote, wish) is None}
        tags = [_new_tag(remote, wish) for wish in new.values()]
        report = remote.mirror.push_tags(dict(zip(new, remote.mirror.write_tags(tags), strict=True)))
        for name, wish in new.items():
            self._take_note(remote, wish, report[name])
        return [self._look(remote, wish) for wish in wishes]

    def _look(self, remote: Remote, wish: _Wish) -> _Fate:
        """Return what stands under the name, or why nothing can; None when nothing speaks against making it."""
        if not is_ref(wish.ref):
            return _Trouble(TAG_REFUSED, "Git has no such names")
        standing = remote.refs.get(wish.ref)
        if standing is not None:
            is_ours = remote.mirror.peeled(wish.ref) == wish.tag.revision.commit
            return ObjectId(standing) if is_ours else _Trouble(TAG_TAKEN, "")
        if not _is_known(remote, wish.tag.revision.commit):
            return _Trouble(TAG_REFUSED, "the commit of the revision is gone")
        return self._refused.get(_key(remote, wish)) if self._backoff.rests(_key(remote, wish)) else None

    def _take_note(self, remote: Remote, wish: _Wish, outcome: Outcome) -> None:
        key = _key(remote, wish)
        match outcome:
            case Done():
                log.info("revision_tagged", destination=wish.destination.name, tag=wish.tag.name)
                self._backoff.worked(key)
            case Refused(words):
                self._refused[key] = _Trouble(TAG_REFUSED, words)
                self._backoff.failed(key)
            case Failed(error):
                self._refused[key] = _Trouble(TAG_FAILED, error.told)
                self._backoff.failed(key)
            case Lost():
                log.info("race_lost", destinations=[wish.destination.name])

    def _note(self, remote: Remote, wishes: Sequence[_Wish], fates: Sequence[_Fate]) -> bool:
        """Write and push the states that know of tags now; return whether any remote state came to."""
        found: dict[str, tuple[Written, dict[tuple[str, int], ObjectId]]] = {}
        for wish, fate in zip(wishes, fates, strict=True):
            if isinstance(fate, str):
                _, made = found.setdefault(wish.one.name, (wish.one, {}))
                made[wish.tag.package, wish.tag.revision.number] = fate
        states = [(one.plan.destination, note_tags(one.state or one.plan.after, made)) for one, made in found.values()]
        outcomes = push_states(remote, states, self._state_ref)
        # whoever moved a state first knows more than this pass, and the next one notes what is left
        return any(isinstance(outcome, Done | Lost) for outcome in outcomes.values())


def _key(remote: Remote, wish: _Wish) -> str:
    return f"{remote.mirror.url} {wish.ref}"


def _is_known(remote: Remote, commit: CommitId) -> bool:
    try:
        remote.commit(commit)
    except ObjectMissingError:
        return False
    return True


def _new_tag(remote: Remote, wish: _Wish) -> NewTag:
    commit = wish.tag.revision.commit
    return NewTag(wish.tag.name, commit, tag_message(wish.tag, wish.destination), remote.commit(commit).seconds)


def _findings(wishes: Sequence[_Wish], fates: Sequence[_Fate]) -> Iterator[Finding]:
    """Yield one finding for each destination and each reason, however many tags it keeps back."""
    told: dict[tuple[str, _Trouble], list[_Wish]] = {}
    for wish, fate in zip(wishes, fates, strict=True):
        if isinstance(fate, _Trouble):
            told.setdefault((wish.one.name, fate), []).append(wish)
    for (name, trouble), kept in told.items():
        words = _words(trouble, [wish.tag.name for wish in kept])
        yield trouble.code.finding(f"Repository {name}: {words}", kept[0].destination.where)


def _words(trouble: _Trouble, names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    which = f"{'tag' if len(names) == 1 else 'tags'} {', '.join(names[:_NAMED])}{more}"
    if trouble.code == TAG_TAKEN:
        return f"{which} stood there before the revision was published, on another commit, and is left alone"
    return f"{which} could not be made: {trouble.words}"
