"""Verifying packages over real Git: each is made again as it was recorded, and compared by its tree (design 10.25)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from reconciler.daemon.past import TEXTS_UNKNOWN, Opened, Past, Then, Told, Unmade, files_of, is_recorded
from reconciler.daemon.publish import HEADS
from reconciler.daemon.remotes import Remote
from reconciler.daemon.review import Place, UnknownPlaceError
from reconciler.gitio.mirror import Mirror
from reconciler.gitio.reader import Commit
from reconciler.krm.findings import errors
from reconciler.krm.trailers import read_trailers
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.packages.kptfile import KPTFILE
from reconciler.planning.codes import FUNCTION_UNAVAILABLE
from reconciler.planning.destination import Destination
from reconciler.planning.remake import Remade
from reconciler.planning.render import RENDERED
from reconciler.reporting.differences import Difference, find_difference, setter_of
from reconciler.reporting.explain import alike_first
from reconciler.reporting.verify import Again, Person, Verified, moved_words
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import CommitId

_PACKAGE_TRAILER = "Reconciler-Package"


@dataclass(frozen=True)
class Wanted:
    """What is to be verified: places, all without any; at a commit of the one place; on drafts instead of branches.

    `lines` is how long a diff may be.
    """

    places: tuple[Place, ...] = ()
    at: str = ""
    drafts: bool = False
    lines: int = 40


Names = Callable[[Mirror, str], CommitId]
"""Who finds the commits of a mirror by the names that people give them; raises GitError."""


@dataclass(frozen=True)
class Outcome:
    """What came of the packages, by place, and why destinations could not be read."""

    packages: tuple[Verified, ...]
    troubles: tuple[str, ...] = ()


def verify(wanted: Wanted, past: Past, names: Names) -> Outcome:
    """Make packages again and say what came of it; each config is read once.

    Raises UnknownPlaceError for a place that is none, GitError without a readable config or without the commit.
    """
    opened = past.open(lambda known: chosen(wanted.places, known))
    run = _Run(wanted, past, opened, names)
    subjects = list(run.subjects())
    found = [one for one in subjects if isinstance(one, Verified)]
    told = [one for one in subjects if isinstance(one, Told)]
    for number, one in enumerate(run.verified(told)):
        past.tell("making again", number, len(told))
        found.append(one)
    return Outcome(tuple(sorted(found, key=lambda one: (one.place, one.branch))), tuple(run.troubles))


def chosen(places: Collection[Place], known: Iterable[Destination]) -> list[Destination]:
    """Return the destinations of places, all without any. Raises UnknownPlaceError for a name that is none."""
    by_name = {one.name: one for one in known}
    for place in places:
        if place.cluster not in by_name:
            listed = alike_first(place.cluster, by_name)
            raise UnknownPlaceError(f"{place}: there is no Repository or cluster {place.cluster}; there are {listed}")
    asked = {place.cluster for place in places} or by_name
    return [one for name, one in by_name.items() if name in asked]


class _Run:
    """One verification on its way."""

    def __init__(self, wanted: Wanted, past: Past, opened: Opened, names: Names) -> None:
        self._wanted = wanted
        self._past = past
        self._opened = opened
        self._names = names
        self.troubles: list[str] = []

    # what there is

    def subjects(self) -> Iterator[Told | Verified]:
        """Yield the packages that are to be verified; of those that record nothing it is told at once."""
        for destination in self._opened.destinations:
            remote = self._past.remote(destination)
            if remote is None:
                self.troubles.append(self._past.trouble(destination))
                continue
            if reason := self._unknown_reason(destination, remote):
                self.troubles.append(reason)
                continue
            yield from self._at(destination, remote)

    def _unknown_reason(self, destination: Destination, remote: Remote) -> str:
        """Return why the packages of a destination that can be fetched are unknown all the same; "" if they are not."""
        if self._wanted.drafts:
            return self._opened.unreadable.get(destination, "")
        is_gone = (
            not self._wanted.at
            and HEADS + destination.branch not in remote.refs
            and self._past.had_branch(destination, self._opened)
        )
        return (
            f"{destination.title}: branch {destination.branch} is gone, though it was there before" if is_gone else ""
        )

    def _at(self, destination: Destination, remote: Remote) -> Iterator[Told | Verified]:
        asked = {one.package for one in self._wanted.places if one.cluster == destination.name}
        seen: set[str] = set()
        for branch, commit in self._heads(destination, remote):
            named = asked - {""} if "" not in asked else set()
            packages = tuple(named) or self._past.packages(destination, remote, commit)
            for package in sorted(packages):
                if found := self._subject(destination, remote, branch, package, commit):
                    seen.add(package)
                    yield found
            if packages and not named and not self._wanted.drafts:
                yield from self._foreign(destination, remote, branch, commit, packages)
        if missing := sorted((asked - {""}) - seen):
            raise UnknownPlaceError(self._unknown(destination, remote, missing[0]))

    def _heads(self, destination: Destination, remote: Remote) -> list[tuple[str, CommitId]]:
        """Return the commits that are looked at, each with the name of its branch."""
        if self._wanted.at:
            return [(self._wanted.at, self._names(remote.mirror, self._wanted.at))]
        state = self._opened.states.get(destination)
        drafts = [name for name, one in state.drafts.items() if not one.removes] if state else []
        branches = sorted(drafts) if self._wanted.drafts else [destination.branch]
        return [(name, remote.refs[HEADS + name]) for name in branches if HEADS + name in remote.refs]

    def _subject(
        self, destination: Destination, remote: Remote, branch: str, package: str, commit: CommitId
    ) -> Told | Verified | None:
        told = self._past.told(destination, remote, package, commit)
        if self._wanted.drafts and self._is_published(told):
            return None
        if isinstance(told, Told):
            return replace(told, branch=branch)
        place = f"{destination.name}/{package}"
        if told is not None:
            return Verified(place, branch, commit, Again("unknowable", f"its status file cannot be used: {told}"))
        if remote.tree_at(commit, destination.path(package)):
            return Verified(place, branch, commit, Again("foreign"))
        return None

    def _is_published(self, told: Told | str | None) -> bool:
        """Return whether a package on a draft is as on the cluster branch, so that the draft says nothing of it."""
        if not isinstance(told, Told):
            return True
        head = told.remote.refs.get(HEADS + told.destination.branch)
        where = told.destination.status_path(told.package)
        return head is not None and told.remote.blob_at(head, where) == told.status

    def _foreign(
        self, destination: Destination, remote: Remote, branch: str, commit: CommitId, ours: Collection[str]
    ) -> Iterator[Verified]:
        """Yield the packages that stand there without a status file."""
        root = remote.tree_at(commit, destination.directory) if destination.directory else None
        files = remote.paths(root or remote.commit(commit).tree) if root or not destination.directory else ()
        folders = {path.removesuffix(f"/{KPTFILE}") for path in files if path.endswith(f"/{KPTFILE}")}
        for folder in sorted(folders):
            if not any(folder == one or folder.startswith(f"{one}/") for one in ours):
                yield Verified(f"{destination.name}/{folder}", branch, commit, Again("foreign"))

    def _unknown(self, destination: Destination, remote: Remote, package: str) -> str:
        heads = self._heads(destination, remote)
        there = {one for _, commit in heads for one in self._past.packages(destination, remote, commit)}
        what = "draft" if self._wanted.drafts else "branch"
        where = f"at {self._wanted.at}" if self._wanted.at else f"on its {what}"
        name = destination.name
        return f"{name}/{package}: {name} has no such package {where}; it has {alike_first(package, there)}"

    # making them again

    def verified(self, told: Sequence[Told]) -> Iterator[Verified]:
        """Yield what came of each package, config by config."""
        by_config: dict[str, list[Told]] = {}
        for one in told:
            by_config.setdefault(one.recorded.config, []).append(one)
        for config, some in by_config.items():
            then = self._past.then(config, self._opened, some)
            yield from (self._verify(one, then) for one in some)

    def _verify(self, told: Told, then: Then | Unmade) -> Verified:
        again = self._again(told, then)
        place, config = str(told.place), told.recorded.config
        if not told.is_edited:
            return Verified(place, told.branch, told.commit, again, config)
        return Verified(
            place, told.branch, told.commit, again, config, tuple(self._edits(told)), self._edited(told), is_edited=True
        )

    def _edited(self, told: Told) -> Difference | None:
        made = files_of(told.remote, told.recorded.rendered)
        now = files_of(told.remote, told.tree) if told.tree else FileTree()
        return find_difference(made, now, self._wanted.lines) if made is not None and now is not None else None

    def _again(self, told: Told, then: Then | Unmade) -> Again:
        if isinstance(then, Unmade):
            return self._by_today(told, then)
        found = self._judged(told, then)
        if found.verdict != "differs" or not self._may_be_otherwise(told, then):
            return found
        exactly = self._past.then(told.recorded.config, self._opened, [told], exactly=True)
        return self._judged(told, exactly) if isinstance(exactly, Then) else found

    def _by_today(self, told: Told, unmade: Unmade) -> Again:
        """Return what came of a package whose config is gone: today's may give it the same inputs."""
        try:
            made = self._past.stand_in(told, self._opened, self._today)
        except InterruptedFunctionError:
            made = None
        return Again("reproduced", notes=(f"{unmade.why}; today's has the same for it",)) if made else _unmade(unmade)

    @cached_property
    def _today(self) -> Then | Unmade:
        return self._past.then(self._opened.snapshot.id, self._opened, ())

    def _may_be_otherwise(self, told: Told, then: Then) -> bool:
        """Return whether the room would make something else of refs as they were when the package came."""
        variant = then.variant(told)
        if isinstance(variant, Unmade):
            return True
        source, recorded = variant.source, told.recorded
        return (source.as_data() or {}) != recorded.upstream if recorded.upstream else True

    def _judged(self, told: Told, then: Then) -> Again:
        try:
            made = self._past.remake(told, then, self._opened)
        except InterruptedFunctionError as error:
            return Again("unknowable", f"{error} (next step: retry)")
        if isinstance(made, Unmade):
            return _unmade(made)
        if made.is_usable and made.rendered.files.id == told.recorded.rendered:
            return Again("reproduced", notes=made.notes)
        return _doubt(told, made, then) or self._differing(told, made)

    def _differing(self, told: Told, made: Remade) -> Again:
        recorded = told.recorded
        was = files_of(told.remote, recorded.rendered)
        record = self._opened.record(told)
        moved: tuple[str, ...] = ()
        if is_recorded(recorded, made.trace):
            why = "all that it is made of is as recorded, and something else comes out"
        elif record and is_recorded(recorded, record.trace):
            why, moved = "something else comes out", moved_words(record.trace, made.trace)
        else:
            why = "something else comes out, of other inputs than are recorded; which, nobody remembers"
        if was is None:
            why = f"{why}; the recorded tree {recorded.rendered[:12]} is gone, and only its id can be compared"
        return Again("differs", why, self._difference(was, made), moved)

    def _difference(self, was: FileTree | None, made: Remade) -> Difference | None:
        found = find_difference(was, made.rendered.files, self._wanted.lines) if was is not None else None
        if found is None or not found.resource:
            return found
        return replace(found, by=setter_of(found.resource, found.pointer, made))

    # who edited them

    def _edits(self, told: Told) -> Iterator[Person]:
        """Yield the commits since which a package is as people made it, newest first."""
        path, remote = told.destination.path(told.package), told.remote
        brought = self._past.brought(told)
        since = remote.mirror.changes(told.commit, path, brought) if brought else []
        for commit in [*since, *([brought] if brought else [])]:
            tree = remote.tree_at(commit, path)
            if tree == told.recorded.rendered:
                return
            parents = remote.commit(commit).parents
            if len(parents) > 1:
                sides = remote.mirror.side_changes(commit, path)
                people = [one for one in sides if not is_ours(remote.commit(one))]
                yield from (person(remote.commit(one), commit) for one in people)
                if people:
                    continue
            yield person(remote.commit(commit))


def _doubt(told: Told, made: Remade, then: Then) -> Again | None:
    """Return why nobody can say whether a package comes out again, though it did not."""
    if faults := errors(made.rendered.findings):
        return Again("unknowable", f"by that config it is withheld today: {faults[0].message}")
    away = [one for one in made.rendered.findings if one.code == FUNCTION_UNAVAILABLE.name]
    if away and told.recorded.conditions.get(RENDERED) == "True":
        return Again("unknowable", away[0].message)
    if TEXTS_UNKNOWN in made.notes:
        return Again("unknowable", TEXTS_UNKNOWN)
    if not then.catalog.is_whole:
        why = "its config has files that cannot be read, and what stood there before counted for what they may hold"
        return Again("unknowable", why)
    return None


def _unmade(unmade: Unmade) -> Again:
    return Again("differs" if unmade.is_wrong else "unknowable", unmade.why)


def is_ours(commit: Commit) -> bool:
    """Return whether a commit says that it is one of ours; for readers alone, since anybody may say so."""
    return _PACKAGE_TRAILER in read_trailers(commit.message)


def person(commit: Commit, brought: CommitId | None = None) -> Person:
    """Return who made a commit, which a merge may have `brought`."""
    subject = commit.message.partition("\n")[0]
    return Person(
        commit.id, commit.author.name, commit.committer.name, commit.author.seconds, subject, str(brought or "")
    )
