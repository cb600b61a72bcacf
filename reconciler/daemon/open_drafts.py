"""Open drafts as the refs of their destinations tell them; nothing is rendered or written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.daemon.acts import rejection
from reconciler.daemon.isolation import log_if_internal, repository_boundary
from reconciler.daemon.publish import HEADS, proposed_ref
from reconciler.daemon.remotes import DestinationObjects, Remote, Remotes
from reconciler.daemon.states import read_state
from reconciler.gitio.errors import GitError
from reconciler.gitio.reader import Commit
from reconciler.krm.findings import Finding
from reconciler.planning.destination import Destination, draft_branch
from reconciler.planning.ground import Ground
from reconciler.planning.open_drafts import DraftedPackage, OpenDraft, open_drafts
from reconciler.planning.promoter import is_resting, proposed_branch
from reconciler.planning.standing import Heads, recognise, removal_names, settle_drafts
from reconciler.planning.state import DestinationState
from reconciler.planning.survey import gone_from
from reconciler.reporting.commit_message import sync_message
from reconciler.reporting.open_drafts import PackageSheet, Rejection, Sheet
from reconciler.reporting.review_messages import PACKAGE_TRAILER, causes_in, reason_in, templates_in
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import EMPTY_TREE, UNDATED_SECONDS, TreeId


@dataclass(frozen=True)
class RefNames:
    """Templates of names: the refs of states, the branches of drafts and of removals."""

    state: str
    draft: str
    removal: str


@dataclass(frozen=True)
class Bench:
    """A destination under review: its open drafts, the packages that are known there, or why it cannot be read.

    `ground` is what all that was read from, None where nothing was; `labels` are the destination's.
    """

    destination: Destination
    drafts: tuple[OpenDraft, ...] = ()
    packages: frozenset[str] = frozenset()
    trouble: str = ""
    ground: Ground | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


class DraftReader:
    """Reads the open drafts of destinations from their refs; `remotes` is open as long as this is used.

    `names` are the templates of refs: of states, of drafts, of removals.
    """

    def __init__(self, remotes: Remotes, names: RefNames) -> None:
        self._remotes = remotes
        self._names = names

    def look(self, destination: Destination) -> Bench:
        """Return a destination as its refs were when they were last fetched or pushed."""
        try:
            with repository_boundary(destination.title):
                return self._read(destination)
        except GitError as error:
            log_if_internal(error)
            return Bench(destination, trouble=f"{destination.title}: {error.told}")

    def _read(self, destination: Destination) -> Bench:
        remote = self._remotes.get(destination.url)
        if remote is None:
            error = self._remotes.failures.get(destination.url)
            why = error.told if error else "it was not fetched"
            return Bench(destination, trouble=f"{destination.title}: {why}")
        state = read_state(destination, remote, self._names.state)
        if state is None:
            return Bench(destination, trouble=self._forgotten(destination, remote))
        heads = Heads() if isinstance(state, Finding) else self._heads(destination, remote, state)
        objects = DestinationObjects(remote, destination)
        trouble = state if isinstance(state, Finding) else gone_from(destination, state, heads, objects)
        if isinstance(state, Finding) or trouble:
            return Bench(destination, trouble=trouble.message if trouble else "")
        now = settle_drafts(recognise(state, destination, heads, objects), destination, heads, objects)
        ground = Ground(destination, now, heads, objects, self._names.draft)
        return Bench(destination, open_drafts(ground, objects), frozenset(now.packages), ground=ground)

    def _forgotten(self, destination: Destination, remote: Remote) -> str:
        branch = draft_branch(self._names.draft, destination, "")
        if HEADS + branch not in remote.refs:
            return ""
        return f"{destination.title}: nothing is remembered of {branch}; sync first, which reads it anew"

    def _heads(self, destination: Destination, remote: Remote, state: DestinationState) -> Heads:
        refs = remote.refs
        names = {draft_branch(self._names.draft, destination, package) for package in state.packages}
        removals = removal_names(self._names.removal, destination, state)
        drafts = {one: refs[HEADS + one] for one in sorted({*names, *removals, *state.drafts}) if HEADS + one in refs}
        published, mine = refs.get(HEADS + destination.branch), proposed_branch(destination, self._names.draft)
        if mine and is_resting(drafts.get(mine), published, state.seen):
            del drafts[mine]
        proposed = {name: refs[proposed_ref(name)] for name in drafts if proposed_ref(name) in refs}
        return Heads(published, False, drafts, proposed, removals)

    def sheet(self, draft: OpenDraft, packages: frozenset[str] = frozenset(), *, whole: bool = False) -> Sheet:
        """Return a draft with what its history tells; `whole` adds the files of these packages, or of all."""
        remote = self.remote(draft.destination)
        objects = DestinationObjects(remote, draft.destination)
        commits = [remote.commit(one) for one in objects.first_parents(draft.base, draft.head) or ()]
        people = [one.author.name for one in commits if _is_a_persons(one, draft.destination)]
        contents, base = draft.chosen(packages) if whole else (), remote.commit(draft.base)
        date = base.seconds if base.tree != EMPTY_TREE else None
        behind = len(objects.first_parents(draft.base, draft.published) or ())
        return Sheet(
            draft, date, behind, tuple(dict.fromkeys(people)), self._rejection(draft, remote),
            tuple(_package_sheet(one, remote, commits) for one in contents),
        )  # fmt: skip

    def remote(self, destination: Destination) -> Remote:
        """Return the remote that a destination was read from."""
        remote = self._remotes.get(destination.url)
        assert remote is not None, "the destination was read from it"
        return remote

    def _rejection(self, draft: OpenDraft, remote: Remote) -> Rejection | None:
        note = rejection(draft, remote, self._names.state)
        return Rejection(note.author.name, reason_in(note.message)) if note else None


def _is_a_persons(commit: Commit, destination: Destination) -> bool:
    # for readers alone: whether a draft is edited is told by its trees
    return PACKAGE_TRAILER not in commit.message and commit.message != sync_message(destination)


def _package_sheet(one: DraftedPackage, remote: Remote, commits: Sequence[Commit]) -> PackageSheet:
    trailer = f"{PACKAGE_TRAILER}{one.package}"
    mine = [commit for commit in commits if trailer in commit.message.splitlines()]
    before, after = (_files(tree, remote.files) for tree in (one.published, one.drafted))
    ours = mine[-1].message if mine else ""
    first = next(iter(mine or commits), None)
    since = first.seconds if first and first.seconds != UNDATED_SECONDS else None
    return PackageSheet(one, before, after, causes_in(ours), templates_in(ours), since)


def _files(tree: TreeId | None, read: Callable[[TreeId], FileTree]) -> FileTree:
    return read(tree) if tree else FileTree()
