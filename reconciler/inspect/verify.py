"""Verifying packages over real Git: each is made again as it was recorded, and compared by its tree (design 10.25)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from reconciler.catalog.files import CommitId, FileTree
from reconciler.git.mirror import Mirror
from reconciler.git.object_reader import Commit
from reconciler.inspect.past import (
    TEXTS_UNKNOWN_NOTE,
    CommittedPackage,
    CurrentConfig,
    PastConfig,
    PastReader,
    ReRenderFailure,
    has_recorded_inputs,
    read_files,
)
from reconciler.krm.findings import select_errors
from reconciler.krm.git_formats import parse_trailers
from reconciler.output.explain.builder import format_closest_names
from reconciler.output.explain.verification import (
    CommitInfo,
    FirstDifference,
    RerenderResult,
    VerificationResult,
    find_first_difference,
    find_setter,
    format_changed_inputs,
)
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.packages.kptfile import KPTFILE
from reconciler.planning.attribution.re_render import ReRenderedPackage
from reconciler.planning.model.codes import FUNCTION_UNAVAILABLE
from reconciler.planning.model.targets import Target
from reconciler.planning.render.renderer import RENDERED_CONDITION
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX, TargetReference, UnknownTargetError

_PACKAGE_TRAILER = "Reconciler-Package"


@dataclass(frozen=True)
class VerifyOptions:
    """What is to be verified: places, all without any; at a commit of the one place; on drafts instead of branches.

    `lines` is how long a diff may be.
    """

    references: tuple[TargetReference, ...] = ()
    at: str = ""
    should_verify_drafts: bool = False
    max_diff_lines: int = 40


CommitResolver = Callable[[Mirror, str], CommitId]
"""Who finds the commits of a mirror by the names that people give them; raises GitError."""


@dataclass(frozen=True)
class VerifyResult:
    """What came of the packages, by place, and why destinations could not be read."""

    packages: tuple[VerificationResult, ...]
    errors: tuple[str, ...] = ()


def verify(wanted: VerifyOptions, past: PastReader, names: CommitResolver) -> VerifyResult:
    """Make packages again and say what came of it; each config is read once.

    Raises UnknownPlaceError for a place that is none, GitError without a readable config or without the commit.
    """
    opened = past.open_config(lambda known: select_targets(wanted.references, known))
    run = _Run(wanted, past, opened, names)
    subjects = list(run.subjects())
    found = [one for one in subjects if isinstance(one, VerificationResult)]
    told = [one for one in subjects if isinstance(one, CommittedPackage)]
    for number, one in enumerate(run.verified(told)):
        past.report_progress("making again", number, len(told))
        found.append(one)
    return VerifyResult(tuple(sorted(found, key=lambda one: (one.target, one.branch))), tuple(run.troubles))


def select_targets(places: Collection[TargetReference], known: Iterable[Target]) -> list[Target]:
    """Return the destinations of places, all without any. Raises UnknownPlaceError for a name that is none."""
    by_name = {one.name: one for one in known}
    for place in places:
        if place.cluster not in by_name:
            listed = format_closest_names(place.cluster, by_name)
            raise UnknownTargetError(f"{place}: there is no Repository or cluster {place.cluster}; there are {listed}")
    asked = {place.cluster for place in places} or by_name
    return [one for name, one in by_name.items() if name in asked]


class _Run:
    """One verification on its way."""

    def __init__(self, wanted: VerifyOptions, past: PastReader, opened: CurrentConfig, names: CommitResolver) -> None:
        self._wanted = wanted
        self._past = past
        self._opened = opened
        self._names = names
        self.troubles: list[str] = []

    # what there is

    def subjects(self) -> Iterator[CommittedPackage | VerificationResult]:
        """Yield the packages that are to be verified; of those that record nothing it is told at once."""
        for destination in self._opened.targets:
            remote = self._past.get_remote(destination)
            if remote is None:
                self.troubles.append(self._past.describe_fetch_failure(destination))
                continue
            if reason := self._unknown_reason(destination, remote):
                self.troubles.append(reason)
                continue
            yield from self._at(destination, remote)

    def _unknown_reason(self, destination: Target, remote: Remote) -> str:
        """Return why the packages of a destination that can be fetched are unknown all the same; "" if they are not."""
        if self._wanted.should_verify_drafts:
            return self._opened.unreadable.get(destination, "")
        is_gone = (
            not self._wanted.at
            and BRANCH_PREFIX + destination.branch not in remote.refs
            and self._past.had_branch(destination, self._opened)
        )
        return (
            f"{destination.title}: branch {destination.branch} is gone, though it was there before" if is_gone else ""
        )

    def _at(self, destination: Target, remote: Remote) -> Iterator[CommittedPackage | VerificationResult]:
        asked = {one.package for one in self._wanted.references if one.cluster == destination.name}
        seen: set[str] = set()
        for branch, commit in self._heads(destination, remote):
            named = asked - {""} if "" not in asked else set()
            packages = tuple(named) or self._past.list_packages(destination, remote, commit)
            for package in sorted(packages):
                if found := self._subject(destination, remote, branch, package, commit):
                    seen.add(package)
                    yield found
            if packages and not named and not self._wanted.should_verify_drafts:
                yield from self._foreign(destination, remote, branch, commit, packages)
        if missing := sorted((asked - {""}) - seen):
            raise UnknownTargetError(self._unknown(destination, remote, missing[0]))

    def _heads(self, destination: Target, remote: Remote) -> list[tuple[str, CommitId]]:
        """Return the commits that are looked at, each with the name of its branch."""
        if self._wanted.at:
            return [(self._wanted.at, self._names(remote.mirror, self._wanted.at))]
        state = self._opened.states.get(destination)
        drafts = [name for name, one in state.drafts.items() if not one.removes] if state else []
        branches = sorted(drafts) if self._wanted.should_verify_drafts else [destination.branch]
        return [(name, remote.refs[BRANCH_PREFIX + name]) for name in branches if BRANCH_PREFIX + name in remote.refs]

    def _subject(
        self, destination: Target, remote: Remote, branch: str, package: str, commit: CommitId
    ) -> CommittedPackage | VerificationResult | None:
        told = self._past.read_package(destination, remote, package, commit)
        if self._wanted.should_verify_drafts and self._is_published(told):
            return None
        if isinstance(told, CommittedPackage):
            return replace(told, branch=branch)
        place = f"{destination.name}/{package}"
        if told is not None:
            return VerificationResult(
                place, branch, commit, RerenderResult("unknowable", f"its status file cannot be used: {told}")
            )
        if remote.find_tree_at(commit, destination.package_path(package)):
            return VerificationResult(place, branch, commit, RerenderResult("foreign"))
        return None

    def _is_published(self, told: CommittedPackage | str | None) -> bool:
        """Return whether a package on a draft is as on the cluster branch, so that the draft says nothing of it."""
        if not isinstance(told, CommittedPackage):
            return True
        head = told.remote.refs.get(BRANCH_PREFIX + told.target.branch)
        where = told.target.status_file_path(told.package)
        return head is not None and told.remote.find_blob_at(head, where) == told.status

    def _foreign(
        self, destination: Target, remote: Remote, branch: str, commit: CommitId, ours: Collection[str]
    ) -> Iterator[VerificationResult]:
        """Yield the packages that stand there without a status file."""
        root = remote.find_tree_at(commit, destination.directory) if destination.directory else None
        files = remote.list_paths(root or remote.read_commit(commit).tree) if root or not destination.directory else ()
        folders = {path.removesuffix(f"/{KPTFILE}") for path in files if path.endswith(f"/{KPTFILE}")}
        for folder in sorted(folders):
            if not any(folder == one or folder.startswith(f"{one}/") for one in ours):
                yield VerificationResult(f"{destination.name}/{folder}", branch, commit, RerenderResult("foreign"))

    def _unknown(self, destination: Target, remote: Remote, package: str) -> str:
        heads = self._heads(destination, remote)
        there = {one for _, commit in heads for one in self._past.list_packages(destination, remote, commit)}
        what = "draft" if self._wanted.should_verify_drafts else "branch"
        where = f"at {self._wanted.at}" if self._wanted.at else f"on its {what}"
        name = destination.name
        return f"{name}/{package}: {name} has no such package {where}; it has {format_closest_names(package, there)}"

    # making them again

    def verified(self, told: Sequence[CommittedPackage]) -> Iterator[VerificationResult]:
        """Yield what came of each package, config by config."""
        by_config: dict[str, list[CommittedPackage]] = {}
        for one in told:
            by_config.setdefault(one.recorded.config, []).append(one)
        for config, some in by_config.items():
            then = self._past.read_config(config, self._opened, some)
            yield from (self._verify(one, then) for one in some)

    def _verify(self, told: CommittedPackage, then: PastConfig | ReRenderFailure) -> VerificationResult:
        again = self._again(told, then)
        place, config = str(told.package_target), told.recorded.config
        if not told.is_edited:
            return VerificationResult(place, told.branch, told.commit, again, config)
        return VerificationResult(
            place, told.branch, told.commit, again, config, tuple(self._edits(told)), self._edited(told), is_edited=True
        )

    def _edited(self, told: CommittedPackage) -> FirstDifference | None:
        made = read_files(told.remote, told.recorded.rendered)
        now = read_files(told.remote, told.tree) if told.tree else FileTree()
        return (
            find_first_difference(made, now, self._wanted.max_diff_lines)
            if made is not None and now is not None
            else None
        )

    def _again(self, told: CommittedPackage, then: PastConfig | ReRenderFailure) -> RerenderResult:
        if isinstance(then, ReRenderFailure):
            return self._by_today(told, then)
        found = self._judged(told, then)
        if found.verdict != "differs" or not self._may_be_otherwise(told, then):
            return found
        exactly = self._past.read_config(told.recorded.config, self._opened, [told], has_original_refs=True)
        return self._judged(told, exactly) if isinstance(exactly, PastConfig) else found

    def _by_today(self, told: CommittedPackage, unmade: ReRenderFailure) -> RerenderResult:
        """Return what came of a package whose config is gone: today's may give it the same inputs."""
        try:
            made = self._past.re_render_with_current_config(told, self._opened, self._today)
        except InterruptedFunctionError:
            made = None
        return (
            RerenderResult("reproduced", notes=(f"{unmade.message}; today's has the same for it",))
            if made
            else _unmade(unmade)
        )

    @cached_property
    def _today(self) -> PastConfig | ReRenderFailure:
        return self._past.read_config(self._opened.snapshot.id, self._opened, ())

    def _may_be_otherwise(self, told: CommittedPackage, then: PastConfig) -> bool:
        """Return whether the room would make something else of refs as they were when the package came."""
        variant = then.find_variant(told)
        if isinstance(variant, ReRenderFailure):
            return True
        source, recorded = variant.source, told.recorded
        return (source.as_data() or {}) != recorded.upstream if recorded.upstream else True

    def _judged(self, told: CommittedPackage, then: PastConfig) -> RerenderResult:
        try:
            made = self._past.re_render(told, then, self._opened)
        except InterruptedFunctionError as error:
            return RerenderResult("unknowable", f"{error} (next step: retry)")
        if isinstance(made, ReRenderFailure):
            return _unmade(made)
        if made.is_usable and made.rendered.files.id == told.recorded.rendered:
            return RerenderResult("reproduced", notes=made.notes)
        return _doubt(told, made, then) or self._differing(told, made)

    def _differing(self, told: CommittedPackage, made: ReRenderedPackage) -> RerenderResult:
        recorded = told.recorded
        was = read_files(told.remote, recorded.rendered)
        record = self._opened.find_record(told)
        moved: tuple[str, ...] = ()
        if has_recorded_inputs(recorded, made.trace):
            why = "all that it is made of is as recorded, and something else comes out"
        elif record and has_recorded_inputs(recorded, record.trace):
            why, moved = "something else comes out", format_changed_inputs(record.trace, made.trace)
        else:
            why = "something else comes out, of other inputs than are recorded; which, nobody remembers"
        if was is None:
            why = f"{why}; the recorded tree {recorded.rendered[:12]} is gone, and only its id can be compared"
        return RerenderResult("differs", why, self._difference(was, made), moved)

    def _difference(self, was: FileTree | None, made: ReRenderedPackage) -> FirstDifference | None:
        found = (
            find_first_difference(was, made.rendered.files, self._wanted.max_diff_lines) if was is not None else None
        )
        if found is None or not found.resource:
            return found
        return replace(found, set_by=find_setter(found.resource, found.pointer, made))

    # who edited them

    def _edits(self, told: CommittedPackage) -> Iterator[CommitInfo]:
        """Yield the commits since which a package is as people made it, newest first."""
        path, remote = told.target.package_path(told.package), told.remote
        brought = self._past.find_introducing_commit(told)
        since = remote.mirror.list_commits_changing(told.commit, path, brought) if brought else []
        for commit in [*since, *([brought] if brought else [])]:
            tree = remote.find_tree_at(commit, path)
            if tree == told.recorded.rendered:
                return
            parents = remote.read_commit(commit).parents
            if len(parents) > 1:
                sides = remote.mirror.list_merged_commits_changing(commit, path)
                people = [one for one in sides if not is_reconciler_commit(remote.read_commit(one))]
                yield from (create_person(remote.read_commit(one), commit) for one in people)
                if people:
                    continue
            yield create_person(remote.read_commit(commit))


def _doubt(told: CommittedPackage, made: ReRenderedPackage, then: PastConfig) -> RerenderResult | None:
    """Return why nobody can say whether a package comes out again, though it did not."""
    if faults := select_errors(made.rendered.findings):
        return RerenderResult("unknowable", f"by that config it is withheld today: {faults[0].message}")
    away = [one for one in made.rendered.findings if one.code == FUNCTION_UNAVAILABLE.name]
    if away and told.recorded.conditions.get(RENDERED_CONDITION) == "True":
        return RerenderResult("unknowable", away[0].message)
    if TEXTS_UNKNOWN_NOTE in made.notes:
        return RerenderResult("unknowable", TEXTS_UNKNOWN_NOTE)
    if not then.catalog.is_complete:
        why = "its config has files that cannot be read, and what stood there before counted for what they may hold"
        return RerenderResult("unknowable", why)
    return None


def _unmade(unmade: ReRenderFailure) -> RerenderResult:
    return RerenderResult("differs" if unmade.is_mismatch else "unknowable", unmade.message)


def is_reconciler_commit(commit: Commit) -> bool:
    """Return whether a commit says that it is one of ours; for readers alone, since anybody may say so."""
    return _PACKAGE_TRAILER in parse_trailers(commit.message)


def create_person(commit: Commit, brought: CommitId | None = None) -> CommitInfo:
    """Return who made a commit, which a merge may have `brought`."""
    subject = commit.message.partition("\n")[0]
    return CommitInfo(
        commit.id, commit.author.name, commit.committer.name, commit.author.seconds, subject, str(brought or "")
    )
