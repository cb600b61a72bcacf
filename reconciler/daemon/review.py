"""The review loop without a forge: what lies open on every destination (design 7); nothing is rendered or written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.daemon.acts import note_ref
from reconciler.daemon.publish import HEADS, proposed_ref
from reconciler.daemon.remotes import DestinationObjects, Remote, Remotes
from reconciler.daemon.states import read_state
from reconciler.daemon.tools import ConfigSource, Tools
from reconciler.gitio.errors import GitError
from reconciler.gitio.reader import Commit
from reconciler.gitio.verdicts import PushReport, PushUnit
from reconciler.krm.findings import Finding
from reconciler.krm.label_query import matches_query
from reconciler.planning.destination import Destination, conflicts, draft_branch
from reconciler.planning.ground import Ground
from reconciler.planning.open_drafts import DraftedPackage, OpenDraft, open_drafts
from reconciler.planning.plan import gone_from
from reconciler.planning.standing import Heads, recognise, removal_names, settle_drafts
from reconciler.planning.state import DestinationState
from reconciler.reporting.commit_message import sync_message
from reconciler.reporting.open_drafts import PackageSheet, Rejection, Sheet
from reconciler.reporting.review_messages import PACKAGE_TRAILER, causes_in, reason_in
from reconciler.rules.repository import read_repositories
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import EMPTY_TREE, TreeId

_NAMED = 20


class UnknownPlaceError(Exception):
    """Somebody names a cluster or a package that is not there; the text says which there are."""


@dataclass(frozen=True)
class Place:
    """A cluster by name, or one package of it."""

    cluster: str
    package: str = ""

    def __str__(self) -> str:
        return f"{self.cluster}/{self.package}" if self.package else self.cluster


@dataclass(frozen=True)
class Asked:
    """What people ask for: places by name, else the clusters whose labels match the selector, else all of them.

    `removals`: drafts that remove packages are meant where only their cluster is named.
    """

    places: tuple[Place, ...] = ()
    selector: str = ""
    removals: bool = False

    def wants(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether a cluster is meant."""
        if self.places:
            return any(place.cluster == name for place in self.places)
        return matches_query(self.selector, labels)

    def packages(self, name: str) -> frozenset[str]:
        """Return the packages that are named of a cluster; none when all of it is meant."""
        mine = [place.package for place in self.places if place.cluster == name]
        return frozenset() if "" in mine else frozenset(mine)


@dataclass(frozen=True)
class Bench:
    """A destination under review: its open drafts, the packages that are known there, or why it cannot be read."""

    destination: Destination
    drafts: tuple[OpenDraft, ...] = ()
    packages: frozenset[str] = frozenset()
    trouble: str = ""


class Review:
    """Reads one config and the refs of its destinations; `remotes` is open as long as this is used."""

    def __init__(self, source: ConfigSource, remotes: Remotes, tools: Tools) -> None:
        self._source = source
        self._remotes = remotes
        self._tools = tools

    def open(self, asked: Asked) -> tuple[Bench, ...]:
        """Fetch the destinations that are asked for and return what is open there, by name.

        Raises GitError without a readable config, UnknownPlaceError for a name that is none.
        """
        catalog = self._tools.read_catalog(self._source.read())
        known = self._tools.destinations(catalog)
        labels = {one.key: one.labels for one in read_repositories(catalog)[0].values()}
        _check_clusters(asked, known)
        chosen = [one for one in known if asked.wants(one.name, labels[one.key])]
        self._remotes.fetch((), {one.url for one in chosen})
        clashes = conflicts(known)
        benches = [
            Bench(one, trouble=clashes[one.key].message) if one.key in clashes else self.look(one) for one in chosen
        ]
        return tuple(sorted(benches, key=lambda bench: bench.destination.key.name))

    def look(self, destination: Destination) -> Bench:
        """Return a destination as its refs were when they were last fetched or pushed."""
        try:
            return self._read(destination)
        except GitError as error:
            return Bench(destination, trouble=f"Repository {destination.name}: {error.told}")

    def _read(self, destination: Destination) -> Bench:
        remote = self._remotes.get(destination.url)
        if remote is None:
            error = self._remotes.failures.get(destination.url)
            why = error.told if error else "it was not fetched"
            return Bench(destination, trouble=f"Repository {destination.name}: {why}")
        state = read_state(destination, remote, self._tools.state_ref)
        if state is None:
            return Bench(destination, trouble=self._forgotten(destination, remote))
        heads = Heads() if isinstance(state, Finding) else self._heads(destination, remote, state)
        trouble = state if isinstance(state, Finding) else gone_from(destination, state, heads)
        if isinstance(state, Finding) or trouble:
            return Bench(destination, trouble=trouble.message if trouble else "")
        objects = DestinationObjects(remote, destination)
        now = settle_drafts(recognise(state, destination, heads, objects), destination, heads, objects)
        ground = Ground(destination, now, heads, objects, self._tools.draft_template)
        return Bench(destination, open_drafts(ground, objects), frozenset(now.packages))

    def _forgotten(self, destination: Destination, remote: Remote) -> str:
        branch = draft_branch(self._tools.draft_template, destination, "")
        if HEADS + branch not in remote.refs:
            return ""
        return f"Repository {destination.name}: nothing is remembered of {branch}; sync first, which reads it anew"

    def _heads(self, destination: Destination, remote: Remote, state: DestinationState) -> Heads:
        refs = remote.refs
        names = {draft_branch(self._tools.draft_template, destination, package) for package in state.packages}
        removals = removal_names(self._tools.removal_template, destination, state)
        drafts = {one: refs[HEADS + one] for one in sorted({*names, *removals, *state.drafts}) if HEADS + one in refs}
        proposed = {name: refs[proposed_ref(name)] for name in drafts if proposed_ref(name) in refs}
        return Heads(refs.get(HEADS + destination.branch), False, drafts, proposed, removals)

    def sheet(self, draft: OpenDraft, packages: frozenset[str] = frozenset(), *, whole: bool = False) -> Sheet:
        """Return a draft with what its history tells; `whole` adds the files of these packages, or of all."""
        remote = self.remote(draft)
        objects = DestinationObjects(remote, draft.destination)
        commits = [remote.commit(one) for one in objects.first_parents(draft.base, draft.head) or ()]
        people = [one.author.name for one in commits if _is_a_persons(one, draft.destination)]
        contents, base = draft.chosen(packages) if whole else (), remote.commit(draft.base)
        date = base.seconds if base.tree != EMPTY_TREE else None
        behind = len(objects.first_parents(draft.base, draft.published) or ())
        return Sheet(
            draft, date, behind, tuple(dict.fromkeys(people)), self._rejection(draft, remote),
            tuple(_package_sheet(one, remote, [commit.message for commit in commits]) for one in contents),
        )  # fmt: skip

    @property
    def state_ref(self) -> str:
        """The template of the refs that states are on."""
        return self._tools.state_ref

    def now(self) -> int:
        """Return the time in seconds since 1970, for ages."""
        return int(self._tools.clock())

    def fetch(self, urls: Iterable[str]) -> None:
        """Fetch these remotes again."""
        self._remotes.fetch((), urls)

    def push(self, destination: Destination, units: Sequence[PushUnit]) -> PushReport:
        """Push to a destination's remote, each unit whole or not at all."""
        remote = self._remotes.get(destination.url)
        assert remote is not None, "what is pushed was made there"
        return remote.mirror.push(units)

    def remote(self, draft: OpenDraft) -> Remote:
        """Return the remote that a draft was read from."""
        remote = self._remotes.get(draft.destination.url)
        assert remote is not None, "a draft was read from it"
        return remote

    def _rejection(self, draft: OpenDraft, remote: Remote) -> Rejection | None:
        ref = note_ref(self._tools.state_ref, draft.branch)
        note = remote.commit(remote.refs[ref]) if ref in remote.refs else None
        # an older note is about what the draft was then
        if note is None or note.parents != (draft.head,):
            return None
        return Rejection(note.author.name, reason_in(note.message))


def _is_a_persons(commit: Commit, destination: Destination) -> bool:
    # for readers alone: whether a draft is edited is told by its trees
    return PACKAGE_TRAILER not in commit.message and commit.message != sync_message(destination)


def _package_sheet(one: DraftedPackage, remote: Remote, messages: Sequence[str]) -> PackageSheet:
    trailer = f"{PACKAGE_TRAILER}{one.package}"
    mine = [message for message in messages if trailer in message.splitlines()]
    before, after = (_files(tree, remote.files) for tree in (one.published, one.drafted))
    return PackageSheet(one, before, after, causes_in(mine[-1]) if mine else ())


def _files(tree: TreeId | None, read: Callable[[TreeId], FileTree]) -> FileTree:
    return read(tree) if tree else FileTree()


def _check_clusters(asked: Asked, known: Iterable[Destination]) -> None:
    names = sorted({one.name for one in known})
    for place in asked.places:
        if place.cluster not in names:
            raise UnknownPlaceError(f"{place}: there is no Repository {place.cluster}; there are {_listed(names)}")


def check_packages(asked: Asked, benches: Iterable[Bench]) -> None:
    """Raise UnknownPlaceError when a package is named that its cluster does not know."""
    for bench in benches:
        for package in sorted(asked.packages(bench.destination.name)):
            if not bench.trouble and package not in bench.packages:
                name = bench.destination.name
                raise UnknownPlaceError(
                    f"{name}/{package}: {name} has no such package; it has {_listed(sorted(bench.packages))}"
                )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}" if names else "none"
