"""The past: packages as commits have them, with the configs that they were made by, read from Git (design 10.28).

What a status file records is enough to make its package again as long as Git still has it; what is gone is named.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from reconciler.daemon.claims import settle_claims
from reconciler.daemon.config import ConfigHistory, ConfigSnapshot
from reconciler.daemon.publish import HEADS
from reconciler.daemon.remotes import Remote, Remotes
from reconciler.daemon.states import read_states
from reconciler.daemon.tools import ConfigSource, Tools, keeping_stages
from reconciler.gitio.errors import GitError, ObjectMissingError, TooLargeError
from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.planning.destination import STATUS_FOLDER, Destination
from reconciler.planning.remake import (
    TREE,
    Materials,
    Recorded,
    Remade,
    Surroundings,
    Texts,
    as_recorded,
    make_otherwise,
    read_recorded,
    remake,
)
from reconciler.planning.render import Renderer
from reconciler.planning.state import DestinationState, PackageRecord
from reconciler.planning.templates import Contents
from reconciler.reporting.inputs import inputs_digest
from reconciler.rules.variant import Earlier, Generated, Place, RoomResult, Stalled, Upstream, Variant
from reconciler.snapshot.catalog import Catalog
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import BlobId, CommitId, TreeId
from reconciler.snapshot.trace import Trace

_TAGS = "refs/tags/"
_SHORT = 12
# how far a branch is walked commit by commit before git is asked, which starts a process
_NEAR = 50
_REFERENCE = ("repo", "directory", "ref")
_BY_ITSELF = "what it keeps of its earlier output, such as keys of the package context, is told by itself alone"
TEXTS_UNKNOWN = "by which texts of rules in rollouts it was made is not remembered any more"


@dataclass(frozen=True)
class Told:
    """A package at a commit of a destination, with what its status file says there; `branch` is what led to it."""

    destination: Destination
    remote: Remote
    package: str
    commit: CommitId
    tree: TreeId | None
    status: BlobId
    recorded: Recorded
    branch: str = ""

    @property
    def place(self) -> Place:
        """Where it is."""
        return Place(self.destination.key.namespace, self.destination.name, self.package)

    @property
    def is_edited(self) -> bool:
        """Whether its content is another than the recorded one."""
        return self.tree != self.recorded.rendered


@dataclass(frozen=True)
class Unmade:
    """Why a package cannot be made again: something is gone, or (`is_wrong`) what is recorded makes no such package."""

    why: str
    is_wrong: bool = False


@dataclass(frozen=True, eq=False)
class Then:
    """A config as it was, with what the rooms make of it, and its `destinations`, which are asked for when needed."""

    snapshot: ConfigSnapshot
    catalog: Catalog
    room: RoomResult
    renderer: Renderer
    destinations: Callable[[], Sequence[Destination]]

    @cached_property
    def _names(self) -> Mapping[tuple[str, str, str], list[ObjectKey]]:
        """What destinations are called, by where they are."""
        found: dict[tuple[str, str, str], list[ObjectKey]] = {}
        for one in self.destinations():
            found.setdefault((one.repository_id, one.branch, one.directory), []).append(one.key)
        return found

    @cached_property
    def _variants(self) -> Mapping[Place, list[Variant]]:
        found: dict[Place, list[Variant]] = {}
        for one in self.room.variants:
            found.setdefault(one.place, []).append(one)
        return found

    @cached_property
    def _stalled(self) -> Mapping[Place | None, list[Stalled]]:
        found: dict[Place | None, list[Stalled]] = {}
        for one in self.room.stalled:
            found.setdefault(one.place, []).append(one)
        return found

    def variant(self, told: Told) -> Variant | Unmade:
        """Return the variant that a package was made by, or why there is none."""
        owner = told.recorded.owner
        for place in self._places(told):
            for one in self._variants.get(place, ()):
                if one.owner.as_data() == owner:
                    return one
        name = "/".join(filter(None, (owner.get("kind"), owner.get("namespace"), owner.get("name"))))
        config = f"the config {short(self.snapshot.id)}"
        for stalled in (one for place in self._places(told) for one in self._stalled.get(place, ())):
            if stalled.owner.as_data() == owner:
                return Unmade(f"by {config}, {name} makes nothing today: {stalled.conditions[-1].message}")
        if not self.catalog.is_whole:
            return Unmade(f"{config} has files that cannot be read, and {name} may be in one of them")
        return Unmade(f"by {config}, {name} does not want a package at {told.place}", is_wrong=True)

    def _places(self, told: Told) -> Iterator[Place]:
        """Yield where the package was by this config: its destination may have got another name or namespace since."""
        yield told.place
        where = told.destination
        for key in self._names.get((where.repository_id, where.branch, where.directory), ()):
            if (key.namespace, key.name) != (where.key.namespace, where.name):
                yield Place(key.namespace, key.name, told.package)


@dataclass(frozen=True)
class Opened:
    """The config as it is today, and the destinations that were asked for, with the states that can be read.

    `unreadable` says why the state of a destination cannot be read.
    """

    snapshot: ConfigSnapshot
    catalog: Catalog
    known: tuple[Destination, ...]
    destinations: tuple[Destination, ...]
    states: Mapping[Destination, DestinationState] = field(default_factory=dict)
    unreadable: Mapping[Destination, str] = field(default_factory=dict)

    def record(self, told: Told) -> PackageRecord | None:
        """Return what is remembered of a package."""
        state = self.states.get(told.destination)
        return state.packages.get(told.package) if state else None


class Past:
    """Reads what was; `remotes` is open as long as this is used.

    The configs of `history` are read one after the other, and the last one is remembered.
    """

    def __init__(
        self, source: ConfigSource, history: Callable[[], ConfigHistory], remotes: Remotes, tools: Tools
    ) -> None:
        self._source = source
        self._open_history = history
        self._remotes = remotes
        self._tools = tools
        self._fetched: set[str] = set()

    @cached_property
    def history(self) -> ConfigHistory:
        """The commits of the config. Raises GitError for a folder that no repository is around."""
        return self._open_history()

    def open(self, wants: Callable[[Iterable[Destination]], Collection[Destination]]) -> Opened:
        """Read today's config and fetch upstreams and the destinations that `wants` chooses of all.

        Raises GitError without a readable config, and whatever `wants` does.
        """
        snapshot = self._source.read()
        catalog = self._read_catalog(snapshot)
        known = tuple(self._tools.destinations(catalog))
        chosen = tuple(wants(known))
        upstreams, _ = self._tools.urls(catalog)
        self._fetch(upstreams, {one.url for one in chosen})
        states = read_states(chosen, self._remotes, self._tools.state_ref)
        sound = {one: state for one, state in states.items() if isinstance(state, DestinationState)}
        unreadable = {one: state.message for one, state in states.items() if isinstance(state, Finding)}
        return Opened(snapshot, catalog, known, chosen, sound, unreadable)

    def tell(self, stage: str, done: int, total: int) -> None:
        """Say how far the work is."""
        self._tools.progress(stage, done, total)

    def _read_catalog(self, snapshot: ConfigSnapshot) -> Catalog:
        read = self._tools.read_catalog(snapshot)
        return settle_claims(read, snapshot, self._remotes, self._tools, self._fetch_targets)

    def _fetch_targets(self, urls: Collection[str]) -> None:
        self._fetch((), urls)

    def _fetch(self, upstreams: Collection[str], destinations: Collection[str]) -> None:
        self.tell("fetching", 0, 1)
        new = {*upstreams, *destinations} - self._fetched
        self._remotes.fetch(new.intersection(upstreams), new.intersection(destinations))
        self._fetched |= new
        self.tell("fetching", 1, 1)

    # what stands where

    def remote(self, destination: Destination) -> Remote | None:
        """Return the remote of a destination, None where it could not be fetched."""
        return self._remotes.get(destination.url)

    def had_branch(self, destination: Destination, opened: Opened) -> bool:
        """Return whether the branch of a destination was there before, by its state or by the cache."""
        state = opened.states.get(destination)
        return bool(state and state.seen) or self._tools.known_heads.find(destination) is not None

    def trouble(self, destination: Destination) -> str:
        """Return why a destination cannot be read."""
        failure = self._remotes.failures.get(destination.url)
        return f"{destination.title}: {failure.told if failure else 'it was not fetched'}"

    def told(self, destination: Destination, remote: Remote, package: str, commit: CommitId) -> Told | str | None:
        """Return a package at a commit; what its status file should say, or None where it has none."""
        status = remote.blob_at(commit, destination.status_path(package))
        if status is None:
            return None
        recorded = read_recorded(remote.blob(status))
        if isinstance(recorded, str):
            return recorded
        tree = remote.tree_at(commit, destination.path(package))
        return Told(destination, remote, package, commit, tree, status, recorded)

    def packages(self, destination: Destination, remote: Remote, commit: CommitId) -> tuple[str, ...]:
        """Return the packages that have a status file at a commit."""
        folder = remote.tree_at(commit, destination.path(STATUS_FOLDER))
        names = remote.files(folder) if folder else ()
        return tuple(sorted(one.removesuffix(".yaml") for one in names if one.endswith(".yaml")))

    # the config of then

    def then(self, config: str, opened: Opened, told: Iterable[Told], *, exactly: bool = False) -> Then | Unmade:
        """Return a config as it was, with what rooms make of it today, or why it cannot be read.

        The branches of destinations are where these packages are looked at, and references that are gone lead again to
        what the packages have recorded. `exactly`: those that are there do so, too, and branches are as they were
        before the packages came; that can be said of one package at a time.
        """
        self.tell(f"config {short(config)}", 0, 1)
        snapshot = self._config(config, opened)
        if isinstance(snapshot, Unmade):
            return snapshot
        found = self.by(snapshot, opened, told, exactly=exactly)
        self.tell(f"config {short(config)}", 1, 1)
        return found

    def by(self, snapshot: ConfigSnapshot, opened: Opened, told: Iterable[Told], *, exactly: bool = False) -> Then:
        """Return what `then` does of a config that was read."""
        catalog = opened.catalog if snapshot is opened.snapshot else self._read_catalog(snapshot)
        upstreams, _ = self._tools.urls(catalog)
        self._fetch(upstreams, ())
        moved = self._moved(catalog, tuple(told), exactly=exactly)
        room = self._tools.rooms(catalog, self._remotes.as_of(moved), opened.states, int(self._tools.clock()))
        # what comes out is looked at closely, where it is not what stands there
        renderer = keeping_stages(self._tools).renderer(catalog)
        return Then(snapshot, catalog, room, renderer, partial(self._tools.destinations, catalog))

    def _config(self, config: str, opened: Opened) -> ConfigSnapshot | Unmade:
        if config == opened.snapshot.id:
            return opened.snapshot
        try:
            if config.startswith(TREE):
                return self.history.at_tree(TreeId(config.removeprefix(TREE)))
            return self.history.at(self.history.find(config)).read()
        except GitError as error:
            if config.startswith(TREE):
                return Unmade("its config was a plain folder, which is another one today and in no commit")
            return Unmade(f"its config {short(config)} cannot be read any more: {error.message}")

    def stand_in(self, told: Told, opened: Opened, today: Then | Unmade) -> Remade | None:
        """Return a package made by today's config, if that gives it the very inputs and tree that are recorded.

        What else the config of then said is gone, and of no account. Raises InterruptedFunctionError.
        """
        made = self.remake(told, today, opened) if isinstance(today, Then) else None
        if not isinstance(made, Remade) or not is_recorded(told.recorded, made.trace):
            return None
        return made if made.rendered.files.id == told.recorded.rendered else None

    def _moved(
        self, catalog: Catalog, told: Collection[Told], *, exactly: bool
    ) -> dict[str, dict[str, CommitId | None]]:
        """Return the refs that are elsewhere than today, by URL."""
        moved: dict[str, dict[str, CommitId | None]] = {}
        for one in told:
            here = self.before(one) if exactly else one.commit
            moved.setdefault(one.destination.url, {})[HEADS + one.destination.branch] = here
        for recorded in (one.recorded for one in told if one.recorded.upstream):
            for url, remote in self._upstreams(recorded, catalog):
                moved.setdefault(url, {}).update(_references(recorded, remote, exactly=exactly))
        return moved

    def _upstreams(self, recorded: Recorded, catalog: Catalog) -> Iterator[tuple[str, Remote]]:
        for url in self._tools.upstreams_at(recorded.upstream["repo"], catalog):
            if remote := self._remotes.get(url):
                yield url, remote

    def upstream(self, recorded: Recorded, opened: Opened) -> Remote | None:
        """Return the repository that a recorded upstream is in, None where today's config has it no more."""
        return next((remote for _, remote in self._upstreams(recorded, opened.catalog)), None)

    # making again

    def remake(self, told: Told, then: Then, opened: Opened) -> Remade | Unmade:
        """Return a package made again by its config, or why that cannot be. Raises InterruptedFunctionError."""
        variant = then.variant(told)
        if isinstance(variant, Unmade):
            return variant
        variant = as_recorded(variant, told.recorded)
        materials = self._materials(told, variant)
        if isinstance(materials, Unmade):
            return materials
        around = Surroundings(
            self._earlier(told, variant, materials),
            self._texts(told, then, opened),
            partial(self._partners, told, then),
        )
        return remake(
            variant, told.recorded, materials, around, then.renderer, told.remote.files,
            partial(is_recorded, told.recorded),
        )  # fmt: skip

    def otherwise(self, told: Told, then: Then, opened: Opened, upstreams: Iterable[Recorded]) -> Remade | Unmade:
        """Return a package as it would have been by another config than its own, or why that cannot be.

        Its upstream is, of `upstreams`, the first of the same reference, else what that leads to today; people's edits
        and all else are its own. Raises InterruptedFunctionError.
        """
        variant = then.variant(told)
        if isinstance(variant, Unmade):
            return variant
        alike = next((one for one in upstreams if _is_of(variant.source, one)), None)
        variant = as_recorded(variant, alike) if alike else variant
        came = variant.source.files if isinstance(variant.source, Generated) else self._base(told, variant.source)
        if isinstance(came, Unmade):
            return came
        materials = Materials(came, came, self._rendered(told, came))
        if told.recorded.is_edited:
            own = self._materials(told, as_recorded(variant, told.recorded))
            if isinstance(own, Unmade):
                return own
            materials = own
        texts, earlier = self._texts(told, then, opened), self._standing_before(told)
        around = Surroundings(((earlier, ""),), texts, partial(self._partners, told, then))
        return make_otherwise(variant, came, materials, around, then.renderer, told.remote.files)

    def _rendered(self, told: Told, otherwise: FileTree) -> FileTree:
        known = (files_of(told.remote, one) for one in (told.recorded.rendered, told.tree) if one)
        return next((files for files in known if files is not None), otherwise)

    def _materials(self, told: Told, variant: Variant) -> Materials | Unmade:
        recorded, here = told.recorded, told.remote
        base = variant.source.files if isinstance(variant.source, Generated) else self._base(told, variant.source)
        if isinstance(base, Unmade):
            return base
        merged = files_of(here, recorded.merged) if recorded.is_edited else base
        if merged is None:
            what = f"the source with people's edits, tree {short(recorded.merged)}"
            return Unmade(f"{what}, is gone: state keeps it for the last revisions only")
        return Materials(base, merged, self._rendered(told, merged))

    def _base(self, told: Told, upstream: Upstream) -> FileTree | Unmade:
        """Return the upstream package that was recorded, from its repository, else as the destination has kept it."""
        remote = self._remotes.get(upstream.url)
        if remote and has_commit(remote, upstream.commit):
            tree = remote.tree_at(upstream.commit, upstream.directory)
            if tree != upstream.tree:
                what = f"tree {short(tree)}" if tree else "nothing"
                where = f"{upstream.directory} of {upstream.repo} at {short(upstream.commit)}"
                return Unmade(f"{where} is {what}, and not the recorded {short(upstream.tree)}", is_wrong=True)
        read = (files_of(one, upstream.tree) for one in (remote, told.remote) if one)
        found = next((files for files in read if files is not None), None)
        if found is not None:
            return found
        return Unmade(
            f"the upstream commit {short(upstream.commit)} of {upstream.repo} is gone, and so is what it held"
        )

    def before(self, told: Told) -> CommitId | None:
        """Return the commit before the one that brought a package as it is recorded; None where it was the first."""
        brought = self.brought(told)
        parents = told.remote.commit(brought).parents if brought else ()
        return parents[0] if parents else None

    def brought(self, told: Told) -> CommitId | None:
        """Return the commit that brought a package as it is recorded, along first parents."""
        at, path = told.commit, told.destination.status_path(told.package)
        for _ in range(_NEAR):
            parents = told.remote.commit(at).parents
            if not parents or told.remote.blob_at(parents[0], path) != told.status:
                return at
            at = parents[0]
        return told.remote.last_change(at, path)

    def _earlier(self, told: Told, variant: Variant, materials: Materials) -> Iterator[tuple[Earlier | None, str]]:
        """Yield what the output before this may have been: what stood there, nothing, or the very same (design 10.7).

        A second render over the own output is silent, and so it would do, too.
        """
        if isinstance(variant.source, Generated):
            # a room has made all of it
            yield None, ""
            return
        if earlier := self._standing_before(told):
            yield earlier, ""
        yield None, ""
        yield Earlier(materials.rendered, materials.base), _BY_ITSELF

    def _standing_before(self, told: Told) -> Earlier | None:
        commit = self.before(told)
        known = self.told(told.destination, told.remote, told.package, commit) if commit else None
        if not isinstance(known, Told):
            return None
        rendered, base = (files_of(told.remote, one) for one in (known.recorded.rendered, known.recorded.base))
        if rendered is None:
            return None
        return Earlier(rendered, base if base is not None else FileTree())

    def _texts(self, told: Told, then: Then, opened: Opened) -> tuple[tuple[Texts | None, str], ...]:
        """Return by which texts of rules in rollouts a package may have been made: as state tells, else all or none."""
        if not then.renderer.last_mile.rollouts:
            return ((None, ""),)
        record = opened.record(told)
        offer = record.offer_of(told.status) if record else None
        return ((offer.rules, ""),) if offer else ((None, TEXTS_UNKNOWN), ({}, TEXTS_UNKNOWN))

    def _partners(self, told: Told, then: Then) -> tuple[Contents, ...]:
        """Return what other packages with parents or children may have been at that pass (design 10.17).

        They are as they are at the commit, as they were when the package came, or as they were before it did.
        """
        commits = (told.commit, self.brought(told), self.before(told))
        found = [self.concerned(told, then, one) for one in dict.fromkeys(commits) if one]
        return tuple(one for index, one in enumerate(found) if one not in found[:index])

    def concerned(self, told: Told, then: Then, commit: CommitId) -> Contents:
        """Return the other packages with parents or children of templates at a commit."""
        where, remote, templating = told.destination, told.remote, then.renderer.templating
        names = (one for one in self.packages(where, remote, commit) if one != told.package)
        trees = {one: tree for one in names if (tree := remote.tree_at(commit, where.path(one)))}
        return {one: tree for one, tree in trees.items() if templating.concerns_tree(tree, partial(remote.files, tree))}


def _is_of(source: Upstream | Generated, recorded: Recorded) -> bool:
    """Return whether a recorded upstream is what a reference led to."""
    known = source.as_data()
    return bool(recorded.upstream) and all(known.get(one) == recorded.upstream[one] for one in _REFERENCE)


def is_recorded(recorded: Recorded, trace: Trace) -> bool:
    """Return whether a render has asked, and was answered, exactly what is recorded."""
    return inputs_digest(trace) == recorded.digest


def files_of(remote: Remote, tree: TreeId) -> FileTree | None:
    """Return the files of a tree, None where it is gone, or beyond what is read."""
    try:
        return remote.package_tree(tree)
    except (ObjectMissingError, TooLargeError):
        return None


def short(name: Any) -> str:
    """Return an id, or `tree:<id>`, as people say it."""
    start = TREE if str(name).startswith(TREE) else ""
    return start + str(name).removeprefix(TREE)[:_SHORT]


def _references(recorded: Recorded, remote: Remote, *, exactly: bool) -> dict[str, CommitId | None]:
    """Return the references by which an upstream repository leads to a recorded upstream, where they do not by today.

    `exactly`: those that are there do so, too, and tags that came later are not there, to be the latest.
    """
    ref, commit = recorded.upstream["ref"], CommitId(recorded.upstream["commit"])
    known = [name for name in (_TAGS + ref, HEADS + ref) if name in remote.refs]
    if (known and not exactly) or not has_commit(remote, commit):
        return {}
    start = _TAGS + ref.rpartition("/")[0]
    others = [name for name in remote.refs if exactly and name.startswith(f"{start}/")]
    return {**dict.fromkeys(others), **dict.fromkeys(known or (_TAGS + ref, HEADS + ref), commit)}


def has_commit(remote: Remote, commit: CommitId) -> bool:
    """Return whether a remote has a commit, though no ref of it may lead there any more."""
    try:
        remote.commit(commit)
    except ObjectMissingError:
        return _is_brought(remote, commit)
    return True


def _is_brought(remote: Remote, commit: CommitId) -> bool:
    try:
        remote.mirror.commit_of(commit)
    except GitError:
        return False
    return True
