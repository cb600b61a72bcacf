"""The review loop without a forge: what lies open on every destination (design 7); nothing is rendered or written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from reconciler.daemon.claims import settle_claims
from reconciler.daemon.isolation import log_if_internal, repository_boundary
from reconciler.daemon.open_drafts import Bench, DraftReader
from reconciler.daemon.publish import HEADS
from reconciler.daemon.remotes import Remotes
from reconciler.daemon.states import read_states
from reconciler.daemon.tools import ConfigSource, Tools
from reconciler.gitio.errors import InternalGitError
from reconciler.gitio.verdicts import PushReport, PushUnit
from reconciler.krm.isolation import ExpectedError
from reconciler.krm.label_query import matches_query
from reconciler.planning.destination import Destination
from reconciler.planning.open_drafts import OpenDraft
from reconciler.planning.resets import reset_finding
from reconciler.rules.clusters.inventory import read_inventory
from reconciler.rules.clusters.model import Cluster
from reconciler.rules.repository import read_repositories
from reconciler.snapshot.catalog import Catalog
from reconciler.snapshot.objects import CommitId

_NAMED = 20


class UnknownPlaceError(ExpectedError):
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


class Review(DraftReader):
    """Reads one config and the refs of its destinations; `remotes` is open as long as this is used."""

    def __init__(self, source: ConfigSource, remotes: Remotes, tools: Tools) -> None:
        super().__init__(remotes, tools.names)
        self._source = source
        self._tools = tools
        self.config = ""
        """The id of the config as it was last read, a commit's or `tree:` and a tree's."""

    def open(self, asked: Asked) -> tuple[Bench, ...]:
        """Fetch the destinations that are asked for and return what is open there, by name.

        Raises GitError without a readable config, UnknownPlaceError for a name that is none.
        """
        snapshot = self._source.read()
        self.config = snapshot.id
        read = self._tools.read_catalog(snapshot)
        catalog = settle_claims(read, snapshot, self._remotes, self._tools, self.fetch)
        known = self._tools.destinations(catalog)
        _check_clusters(asked, known)
        clusters = read_inventory(catalog, read_repositories(catalog)[0]).clusters
        chosen, labels, failed = self._choose(asked, known, partial(_labels, catalog=catalog, clusters=clusters))
        self.fetch({one.url for one in chosen})
        # one destination at a time would ask git for each of them
        read_states(chosen, self._remotes, self.state_ref)
        clashes = self._tools.conflicts(catalog)
        benches = [
            Bench(one, trouble=clashes[one.key].message) if one.key in clashes else self.look(one) for one in chosen
        ]
        checked = [self._check_reset_alone(bench, catalog) for bench in benches]
        labelled = [*failed, *(replace(bench, labels=labels[bench.destination]) for bench in checked)]
        return tuple(sorted(labelled, key=lambda bench: bench.destination.key.name))

    def _choose(
        self, request: Asked, known: Iterable[Destination], labels_of: Callable[[Destination], Mapping[str, str]]
    ) -> tuple[Sequence[Destination], Mapping[Destination, Mapping[str, str]], Sequence[Bench]]:
        """Return the targets that are asked for, their labels, and those for which this cannot be decided."""
        chosen: dict[Destination, Mapping[str, str]] = {}
        failed: list[Bench] = []
        for one in known:
            try:
                with repository_boundary(one.title):
                    labels = labels_of(one)
                    if request.wants(one.name, labels):
                        chosen[one] = labels
            except InternalGitError as error:
                log_if_internal(error)
                if not request.places or request.wants(one.name, {}):
                    failed.append(Bench(one, trouble=error.told))
        return tuple(chosen), chosen, failed

    def _check_reset_alone(self, opened: Bench, catalog: Catalog) -> Bench:
        """Return a checked target; an unexpected exception is the result of this target alone."""
        try:
            with repository_boundary(opened.destination.title):
                return self._check_reset(opened, catalog)
        except InternalGitError as error:
            log_if_internal(error)
            return Bench(opened.destination, trouble=error.told)

    def _check_reset(self, opened: Bench, catalog: Catalog) -> Bench:
        """Return a target; one that lacks branch and state, and had a branch, with the error that a pass reports."""
        target = opened.destination
        remote = None if opened.trouble or opened.ground else self._remotes.get(target.url)
        if remote is None or HEADS + target.branch in remote.refs:
            return opened
        known = self._tools.known_heads.find(target)
        finding = reset_finding(target, known, catalog.objects[target.key].annotations) if known else None
        return replace(opened, trouble=finding.message) if finding else opened

    @property
    def state_ref(self) -> str:
        """The template of the refs that states are on."""
        return self._names.state

    @property
    def max_pushes(self) -> int:
        """How many remotes are written to at once."""
        return self._tools.max_pushes

    def progress(self, stage: str, done: int, total: int) -> None:
        """Show how far a command has come."""
        self._tools.progress(stage, done, total)

    def act_seconds(self) -> int | None:
        """Return the time that dates what a person publishes; None: it is taken from the commits."""
        return int(self._tools.clock()) if self._tools.dates_actions else None

    def now(self) -> int:
        """Return the time in seconds since 1970, for ages."""
        return int(self._tools.clock())

    def fetch(self, urls: Iterable[str]) -> None:
        """Fetch these remotes, and what their forges say."""
        known = set(urls)
        self._remotes.fetch((), known)
        if self._tools.requests.options.merge:
            self._tools.requests.board.look(known)

    def merges(self, draft: OpenDraft) -> bool:
        """Return whether a draft is published by merging its pull request, and not by a push."""
        return self._tools.requests.merges(draft.destination)

    def merge(self, draft: OpenDraft, message: str) -> str:
        """Merge the pull request of a draft as it was read; return its address. Raises ForgeError."""
        return self._tools.requests.merge(draft.destination, draft.branch, draft.head, message)

    def push(self, destination: Destination, units: Sequence[PushUnit]) -> PushReport:
        """Push to a destination's remote, each unit whole or not at all."""
        remote = self._remotes.get(destination.url)
        assert remote is not None, "what is pushed was made there"
        return remote.mirror.push(units)

    def branches_now(self, destination: Destination) -> Mapping[str, CommitId] | None:
        """Return the branches of a destination's remote as they are now; None if the remote does not answer."""
        return self._remotes.branches_now(destination.url)


def _labels(one: Destination, catalog: Catalog, clusters: Mapping[str, Cluster]) -> Mapping[str, str]:
    """Return the labels of a destination: all of a cluster's, whichever of its objects says them (design 10.3)."""
    return clusters[one.name].labels if one.deployment else catalog.objects[one.key].labels


def _check_clusters(asked: Asked, known: Iterable[Destination]) -> None:
    names = sorted({one.name for one in known})
    for place in asked.places:
        if place.cluster not in names:
            message = f"{place}: there is no Repository or cluster {place.cluster}; there are {_listed(names)}"
            raise UnknownPlaceError(message)


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
