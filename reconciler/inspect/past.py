"""The past: packages as commits have them, with the configs that they were made by, read from Git (design 10.28).

What a status file records is enough to make its package again as long as Git still has it; what is gone is named.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from reconciler.catalog.catalog import Catalog
from reconciler.catalog.files import BlobId, CommitId, FileTree, TreeId
from reconciler.catalog.trace import Trace
from reconciler.controllers.results import (
    ControllerResult,
    GeneratedSource,
    PackageTarget,
    PreviousRender,
    StalledVariant,
    UpstreamPackage,
    Variant,
)
from reconciler.git.errors import GitError, ObjectMissingError, TooLargeError
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey
from reconciler.output.status.package_status import compute_inputs_digest
from reconciler.planning.attribution.re_render import (
    TREE_PREFIX,
    RecordedRender,
    RecordedRuleTexts,
    RecordedTrees,
    RenderCandidates,
    ReRenderedPackage,
    parse_recorded_render,
    re_render_package,
    render_alternative,
    with_recorded_upstream,
)
from reconciler.planning.model.state import PackageRecord, TargetState
from reconciler.planning.model.targets import STATUS_FOLDER, Target
from reconciler.planning.render.renderer import PackageRenderer
from reconciler.planning.render.templates import PackageTrees
from reconciler.reconcile.config_source import ConfigHistory, ConfigSnapshot
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX, read_target_states
from reconciler.reconcile.services import ConfigSource, PassServices, keep_stages
from reconciler.reconcile.snapshot import resolve_definition_conflicts

_TAGS = "refs/tags/"
_SHORT = 12
# how far a branch is walked commit by commit before git is asked, which starts a process
_NEAR = 50
_REFERENCE = ("repo", "directory", "ref")
_BY_ITSELF = "what it keeps of its earlier output, such as keys of the package context, is told by itself alone"
TEXTS_UNKNOWN_NOTE = "by which texts of rules in rollouts it was made is not remembered any more"


@dataclass(frozen=True)
class CommittedPackage:
    """A package at a commit of a destination, with what its status file says there; `branch` is what led to it."""

    target: Target
    remote: Remote
    package: str
    commit: CommitId
    tree: TreeId | None
    status: BlobId
    recorded: RecordedRender
    branch: str = ""

    @property
    def place(self) -> PackageTarget:
        """Where it is."""
        return PackageTarget(self.target.key.namespace, self.target.name, self.package)

    @property
    def is_edited(self) -> bool:
        """Whether its content is another than the recorded one."""
        return self.tree != self.recorded.rendered


@dataclass(frozen=True)
class ReRenderFailure:
    """Why a package cannot be made again: something is gone, or (`is_wrong`) what is recorded makes no such package."""

    message: str
    is_mismatch: bool = False


@dataclass(frozen=True, eq=False)
class PastConfig:
    """A config as it was, with what the rooms make of it, and its `destinations`, which are asked for when needed."""

    snapshot: ConfigSnapshot
    catalog: Catalog
    controller_result: ControllerResult
    renderer: PackageRenderer
    list_targets: Callable[[], Sequence[Target]]

    @cached_property
    def _names(self) -> Mapping[tuple[str, str, str], list[ObjectKey]]:
        """What destinations are called, by where they are."""
        found: dict[tuple[str, str, str], list[ObjectKey]] = {}
        for one in self.list_targets():
            found.setdefault((one.repository_id, one.branch, one.directory), []).append(one.key)
        return found

    @cached_property
    def _variants(self) -> Mapping[PackageTarget, list[Variant]]:
        found: dict[PackageTarget, list[Variant]] = {}
        for one in self.controller_result.variants:
            found.setdefault(one.target, []).append(one)
        return found

    @cached_property
    def _stalled(self) -> Mapping[PackageTarget | None, list[StalledVariant]]:
        found: dict[PackageTarget | None, list[StalledVariant]] = {}
        for one in self.controller_result.stalled:
            found.setdefault(one.target, []).append(one)
        return found

    def find_variant(self, told: CommittedPackage) -> Variant | ReRenderFailure:
        """Return the variant that a package was made by, or why there is none."""
        owner = told.recorded.owner
        for place in self._places(told):
            for one in self._variants.get(place, ()):
                if one.owner.as_data() == owner:
                    return one
        name = "/".join(filter(None, (owner.get("kind"), owner.get("namespace"), owner.get("name"))))
        config = f"the config {shorten_id(self.snapshot.id)}"
        for stalled in (one for place in self._places(told) for one in self._stalled.get(place, ())):
            if stalled.owner.as_data() == owner:
                return ReRenderFailure(f"by {config}, {name} makes nothing today: {stalled.conditions[-1].message}")
        if not self.catalog.is_complete:
            return ReRenderFailure(f"{config} has files that cannot be read, and {name} may be in one of them")
        return ReRenderFailure(f"by {config}, {name} does not want a package at {told.place}", is_mismatch=True)

    def _places(self, told: CommittedPackage) -> Iterator[PackageTarget]:
        """Yield where the package was by this config: its destination may have got another name or namespace since."""
        yield told.place
        where = told.target
        for key in self._names.get((where.repository_id, where.branch, where.directory), ()):
            if (key.namespace, key.name) != (where.key.namespace, where.name):
                yield PackageTarget(key.namespace, key.name, told.package)


@dataclass(frozen=True)
class CurrentConfig:
    """The config as it is today, and the destinations that were asked for, with the states that can be read.

    `unreadable` says why the state of a destination cannot be read.
    """

    snapshot: ConfigSnapshot
    catalog: Catalog
    all_targets: tuple[Target, ...]
    targets: tuple[Target, ...]
    states: Mapping[Target, TargetState] = field(default_factory=dict)
    unreadable: Mapping[Target, str] = field(default_factory=dict)

    def find_record(self, told: CommittedPackage) -> PackageRecord | None:
        """Return what is remembered of a package."""
        state = self.states.get(told.target)
        return state.packages.get(told.package) if state else None


class PastReader:
    """Reads what was; `remotes` is open as long as this is used.

    The configs of `history` are read one after the other, and the last one is remembered.
    """

    def __init__(
        self, source: ConfigSource, history: Callable[[], ConfigHistory], remotes: Remotes, tools: PassServices
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

    def open_config(self, wants: Callable[[Iterable[Target]], Collection[Target]]) -> CurrentConfig:
        """Read today's config and fetch upstreams and the destinations that `wants` chooses of all.

        Raises GitError without a readable config, and whatever `wants` does.
        """
        snapshot = self._source.read()
        catalog = self._read_catalog(snapshot)
        known = tuple(self._tools.list_targets(catalog))
        chosen = tuple(wants(known))
        upstreams, _ = self._tools.list_urls(catalog)
        self._fetch(upstreams, {one.url for one in chosen})
        states = read_target_states(chosen, self._remotes, self._tools.state_ref)
        sound = {one: state for one, state in states.items() if isinstance(state, TargetState)}
        unreadable = {one: state.message for one, state in states.items() if isinstance(state, Finding)}
        return CurrentConfig(snapshot, catalog, known, chosen, sound, unreadable)

    def report_progress(self, stage: str, done: int, total: int) -> None:
        """Say how far the work is."""
        self._tools.report_progress(stage, done, total)

    def _read_catalog(self, snapshot: ConfigSnapshot) -> Catalog:
        read = self._tools.read_catalog(snapshot)
        return resolve_definition_conflicts(read, snapshot, self._remotes, self._tools, self._fetch_targets)

    def _fetch_targets(self, urls: Collection[str]) -> None:
        self._fetch((), urls)

    def _fetch(self, upstreams: Collection[str], destinations: Collection[str]) -> None:
        self.report_progress("fetching", 0, 1)
        new = {*upstreams, *destinations} - self._fetched
        self._remotes.fetch(new.intersection(upstreams), new.intersection(destinations))
        self._fetched |= new
        self.report_progress("fetching", 1, 1)

    # what stands where

    def get_remote(self, destination: Target) -> Remote | None:
        """Return the remote of a destination, None where it could not be fetched."""
        return self._remotes.get(destination.url)

    def had_branch(self, destination: Target, opened: CurrentConfig) -> bool:
        """Return whether the branch of a destination was there before, by its state or by the cache."""
        state = opened.states.get(destination)
        return bool(state and state.observed_commit) or self._tools.known_heads.find(destination) is not None

    def describe_fetch_failure(self, destination: Target) -> str:
        """Return why a destination cannot be read."""
        failure = self._remotes.failures.get(destination.url)
        return f"{destination.title}: {failure.full_message if failure else 'it was not fetched'}"

    def read_package(
        self, destination: Target, remote: Remote, package: str, commit: CommitId
    ) -> CommittedPackage | str | None:
        """Return a package at a commit; what its status file should say, or None where it has none."""
        status = remote.find_blob_at(commit, destination.status_file_path(package))
        if status is None:
            return None
        recorded = parse_recorded_render(remote.read_blob(status))
        if isinstance(recorded, str):
            return recorded
        tree = remote.find_tree_at(commit, destination.package_path(package))
        return CommittedPackage(destination, remote, package, commit, tree, status, recorded)

    def list_packages(self, destination: Target, remote: Remote, commit: CommitId) -> tuple[str, ...]:
        """Return the packages that have a status file at a commit."""
        folder = remote.find_tree_at(commit, destination.package_path(STATUS_FOLDER))
        names = remote.read_files(folder) if folder else ()
        return tuple(sorted(one.removesuffix(".yaml") for one in names if one.endswith(".yaml")))

    # the config of then

    def read_config(
        self, config: str, opened: CurrentConfig, told: Iterable[CommittedPackage], *, has_original_refs: bool = False
    ) -> PastConfig | ReRenderFailure:
        """Return a config as it was, with what rooms make of it today, or why it cannot be read.

        The branches of destinations are where these packages are looked at, and references that are gone lead again to
        what the packages have recorded. `exactly`: those that are there do so, too, and branches are as they were
        before the packages came; that can be said of one package at a time.
        """
        self.report_progress(f"config {shorten_id(config)}", 0, 1)
        snapshot = self._config(config, opened)
        if isinstance(snapshot, ReRenderFailure):
            return snapshot
        found = self.evaluate_config(snapshot, opened, told, has_original_refs=has_original_refs)
        self.report_progress(f"config {shorten_id(config)}", 1, 1)
        return found

    def evaluate_config(
        self,
        snapshot: ConfigSnapshot,
        opened: CurrentConfig,
        told: Iterable[CommittedPackage],
        *,
        has_original_refs: bool = False,
    ) -> PastConfig:
        """Return what `then` does of a config that was read."""
        catalog = opened.catalog if snapshot is opened.snapshot else self._read_catalog(snapshot)
        upstreams, _ = self._tools.list_urls(catalog)
        self._fetch(upstreams, ())
        moved = self._moved(catalog, tuple(told), exactly=has_original_refs)
        room = self._tools.run_controllers(
            catalog, self._remotes.with_refs_at(moved), opened.states, int(self._tools.clock())
        )
        # what comes out is looked at closely, where it is not what stands there
        renderer = keep_stages(self._tools).create_renderer(catalog)
        return PastConfig(snapshot, catalog, room, renderer, partial(self._tools.list_targets, catalog))

    def _config(self, config: str, opened: CurrentConfig) -> ConfigSnapshot | ReRenderFailure:
        if config == opened.snapshot.id:
            return opened.snapshot
        try:
            if config.startswith(TREE_PREFIX):
                return self.history.read_tree(TreeId(config.removeprefix(TREE_PREFIX)))
            return self.history.source_at(self.history.find_commit(config)).read()
        except GitError as error:
            if config.startswith(TREE_PREFIX):
                return ReRenderFailure("its config was a plain folder, which is another one today and in no commit")
            return ReRenderFailure(f"its config {shorten_id(config)} cannot be read any more: {error.message}")

    def re_render_with_current_config(
        self, told: CommittedPackage, opened: CurrentConfig, today: PastConfig | ReRenderFailure
    ) -> ReRenderedPackage | None:
        """Return a package made by today's config, if that gives it the very inputs and tree that are recorded.

        What else the config of then said is gone, and of no account. Raises InterruptedFunctionError.
        """
        made = self.re_render(told, today, opened) if isinstance(today, PastConfig) else None
        if not isinstance(made, ReRenderedPackage) or not has_recorded_inputs(told.recorded, made.trace):
            return None
        return made if made.rendered.files.id == told.recorded.rendered else None

    def _moved(
        self, catalog: Catalog, told: Collection[CommittedPackage], *, exactly: bool
    ) -> dict[str, dict[str, CommitId | None]]:
        """Return the refs that are elsewhere than today, by URL."""
        moved: dict[str, dict[str, CommitId | None]] = {}
        for one in told:
            here = self.find_commit_before(one) if exactly else one.commit
            moved.setdefault(one.target.url, {})[BRANCH_PREFIX + one.target.branch] = here
        for recorded in (one.recorded for one in told if one.recorded.upstream):
            for url, remote in self._upstreams(recorded, catalog):
                moved.setdefault(url, {}).update(_references(recorded, remote, exactly=exactly))
        return moved

    def _upstreams(self, recorded: RecordedRender, catalog: Catalog) -> Iterator[tuple[str, Remote]]:
        for url in self._tools.find_upstream_urls(recorded.upstream["repo"], catalog):
            if remote := self._remotes.get(url):
                yield url, remote

    def find_upstream(self, recorded: RecordedRender, opened: CurrentConfig) -> Remote | None:
        """Return the repository that a recorded upstream is in, None where today's config has it no more."""
        return next((remote for _, remote in self._upstreams(recorded, opened.catalog)), None)

    # making again

    def re_render(
        self, told: CommittedPackage, then: PastConfig, opened: CurrentConfig
    ) -> ReRenderedPackage | ReRenderFailure:
        """Return a package made again by its config, or why that cannot be. Raises InterruptedFunctionError."""
        variant = then.find_variant(told)
        if isinstance(variant, ReRenderFailure):
            return variant
        variant = with_recorded_upstream(variant, told.recorded)
        materials = self._materials(told, variant)
        if isinstance(materials, ReRenderFailure):
            return materials
        around = RenderCandidates(
            self._earlier(told, variant, materials),
            self._texts(told, then, opened),
            partial(self._partners, told, then),
        )
        return re_render_package(
            variant, told.recorded, materials, around, then.renderer, told.remote.read_files,
            partial(has_recorded_inputs, told.recorded),
        )  # fmt: skip

    def re_render_with_other_config(
        self, told: CommittedPackage, then: PastConfig, opened: CurrentConfig, upstreams: Iterable[RecordedRender]
    ) -> ReRenderedPackage | ReRenderFailure:
        """Return a package as it would have been by another config than its own, or why that cannot be.

        Its upstream is, of `upstreams`, the first of the same reference, else what that leads to today; people's edits
        and all else are its own. Raises InterruptedFunctionError.
        """
        variant = then.find_variant(told)
        if isinstance(variant, ReRenderFailure):
            return variant
        alike = next((one for one in upstreams if _is_of(variant.source, one)), None)
        variant = with_recorded_upstream(variant, alike) if alike else variant
        came = variant.source.files if isinstance(variant.source, GeneratedSource) else self._base(told, variant.source)
        if isinstance(came, ReRenderFailure):
            return came
        materials = RecordedTrees(came, came, self._rendered(told, came))
        if told.recorded.is_edited:
            own = self._materials(told, with_recorded_upstream(variant, told.recorded))
            if isinstance(own, ReRenderFailure):
                return own
            materials = own
        texts, earlier = self._texts(told, then, opened), self._standing_before(told)
        around = RenderCandidates(((earlier, ""),), texts, partial(self._partners, told, then))
        return render_alternative(variant, came, materials, around, then.renderer, told.remote.read_files)

    def _rendered(self, told: CommittedPackage, otherwise: FileTree) -> FileTree:
        known = (read_files(told.remote, one) for one in (told.recorded.rendered, told.tree) if one)
        return next((files for files in known if files is not None), otherwise)

    def _materials(self, told: CommittedPackage, variant: Variant) -> RecordedTrees | ReRenderFailure:
        recorded, here = told.recorded, told.remote
        base = variant.source.files if isinstance(variant.source, GeneratedSource) else self._base(told, variant.source)
        if isinstance(base, ReRenderFailure):
            return base
        merged = read_files(here, recorded.merged) if recorded.is_edited else base
        if merged is None:
            what = f"the source with people's edits, tree {shorten_id(recorded.merged)}"
            return ReRenderFailure(f"{what}, is gone: state keeps it for the last revisions only")
        return RecordedTrees(base, merged, self._rendered(told, merged))

    def _base(self, told: CommittedPackage, upstream: UpstreamPackage) -> FileTree | ReRenderFailure:
        """Return the upstream package that was recorded, from its repository, else as the destination has kept it."""
        remote = self._remotes.get(upstream.url)
        if remote and has_commit(remote, upstream.commit):
            tree = remote.find_tree_at(upstream.commit, upstream.directory)
            if tree != upstream.tree:
                what = f"tree {shorten_id(tree)}" if tree else "nothing"
                where = f"{upstream.directory} of {upstream.repo} at {shorten_id(upstream.commit)}"
                return ReRenderFailure(
                    f"{where} is {what}, and not the recorded {shorten_id(upstream.tree)}", is_mismatch=True
                )
        read = (read_files(one, upstream.tree) for one in (remote, told.remote) if one)
        found = next((files for files in read if files is not None), None)
        if found is not None:
            return found
        return ReRenderFailure(
            f"the upstream commit {shorten_id(upstream.commit)} of {upstream.repo} is gone, and so is what it held"
        )

    def find_commit_before(self, told: CommittedPackage) -> CommitId | None:
        """Return the commit before the one that brought a package as it is recorded; None where it was the first."""
        brought = self.find_introducing_commit(told)
        parents = told.remote.read_commit(brought).parents if brought else ()
        return parents[0] if parents else None

    def find_introducing_commit(self, told: CommittedPackage) -> CommitId | None:
        """Return the commit that brought a package as it is recorded, along first parents."""
        at, path = told.commit, told.target.status_file_path(told.package)
        for _ in range(_NEAR):
            parents = told.remote.read_commit(at).parents
            if not parents or told.remote.find_blob_at(parents[0], path) != told.status:
                return at
            at = parents[0]
        return told.remote.find_last_change(at, path)

    def _earlier(
        self, told: CommittedPackage, variant: Variant, materials: RecordedTrees
    ) -> Iterator[tuple[PreviousRender | None, str]]:
        """Yield what the output before this may have been: what stood there, nothing, or the very same (design 10.7).

        A second render over the own output is silent, and so it would do, too.
        """
        if isinstance(variant.source, GeneratedSource):
            # a room has made all of it
            yield None, ""
            return
        if earlier := self._standing_before(told):
            yield earlier, ""
        yield None, ""
        yield PreviousRender(materials.rendered, materials.base), _BY_ITSELF

    def _standing_before(self, told: CommittedPackage) -> PreviousRender | None:
        commit = self.find_commit_before(told)
        known = self.read_package(told.target, told.remote, told.package, commit) if commit else None
        if not isinstance(known, CommittedPackage):
            return None
        rendered, base = (read_files(told.remote, one) for one in (known.recorded.rendered, known.recorded.base))
        if rendered is None:
            return None
        return PreviousRender(rendered, base if base is not None else FileTree())

    def _texts(
        self, told: CommittedPackage, then: PastConfig, opened: CurrentConfig
    ) -> tuple[tuple[RecordedRuleTexts | None, str], ...]:
        """Return by which texts of rules in rollouts a package may have been made: as state tells, else all or none."""
        if not then.renderer.cluster_overrides.rollouts:
            return ((None, ""),)
        record = opened.find_record(told)
        offer = record.find_version(told.status) if record else None
        return ((offer.rules, ""),) if offer else ((None, TEXTS_UNKNOWN_NOTE), ({}, TEXTS_UNKNOWN_NOTE))

    def _partners(self, told: CommittedPackage, then: PastConfig) -> tuple[PackageTrees, ...]:
        """Return what other packages with parents or children may have been at that pass (design 10.17).

        They are as they are at the commit, as they were when the package came, or as they were before it did.
        """
        commits = (told.commit, self.find_introducing_commit(told), self.find_commit_before(told))
        found = [self.read_related_packages(told, then, one) for one in dict.fromkeys(commits) if one]
        return tuple(one for index, one in enumerate(found) if one not in found[:index])

    def read_related_packages(self, told: CommittedPackage, then: PastConfig, commit: CommitId) -> PackageTrees:
        """Return the other packages with parents or children of templates at a commit."""
        where, remote, templating = told.target, told.remote, then.renderer.template_merger
        names = (one for one in self.list_packages(where, remote, commit) if one != told.package)
        trees = {one: tree for one in names if (tree := remote.find_tree_at(commit, where.package_path(one)))}
        return {
            one: tree
            for one, tree in trees.items()
            if templating.has_template_roles_in_tree(tree, partial(remote.read_files, tree))
        }


def _is_of(source: UpstreamPackage | GeneratedSource, recorded: RecordedRender) -> bool:
    """Return whether a recorded upstream is what a reference led to."""
    known = source.as_data()
    return bool(recorded.upstream) and all(known.get(one) == recorded.upstream[one] for one in _REFERENCE)


def has_recorded_inputs(recorded: RecordedRender, trace: Trace) -> bool:
    """Return whether a render has asked, and was answered, exactly what is recorded."""
    return compute_inputs_digest(trace) == recorded.digest


def read_files(remote: Remote, tree: TreeId) -> FileTree | None:
    """Return the files of a tree, None where it is gone, or beyond what is read."""
    try:
        return remote.read_package_tree(tree)
    except (ObjectMissingError, TooLargeError):
        return None


def shorten_id(name: Any) -> str:
    """Return an id, or `tree:<id>`, as people say it."""
    start = TREE_PREFIX if str(name).startswith(TREE_PREFIX) else ""
    return start + str(name).removeprefix(TREE_PREFIX)[:_SHORT]


def _references(recorded: RecordedRender, remote: Remote, *, exactly: bool) -> dict[str, CommitId | None]:
    """Return the references by which an upstream repository leads to a recorded upstream, where they do not by today.

    `exactly`: those that are there do so, too, and tags that came later are not there, to be the latest.
    """
    ref, commit = recorded.upstream["ref"], CommitId(recorded.upstream["commit"])
    known = [name for name in (_TAGS + ref, BRANCH_PREFIX + ref) if name in remote.refs]
    if (known and not exactly) or not has_commit(remote, commit):
        return {}
    start = _TAGS + ref.rpartition("/")[0]
    others = [name for name in remote.refs if exactly and name.startswith(f"{start}/")]
    return {**dict.fromkeys(others), **dict.fromkeys(known or (_TAGS + ref, BRANCH_PREFIX + ref), commit)}


def has_commit(remote: Remote, commit: CommitId) -> bool:
    """Return whether a remote has a commit, though no ref of it may lead there any more."""
    try:
        remote.read_commit(commit)
    except ObjectMissingError:
        return _is_brought(remote, commit)
    return True


def _is_brought(remote: Remote, commit: CommitId) -> bool:
    try:
        remote.mirror.ensure_commit(commit)
    except GitError:
        return False
    return True
