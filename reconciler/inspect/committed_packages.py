"""Reads committed packages and the configs that they were rendered from.

The inputs in a status file are sufficient to re-render the package, while Git still has the recorded objects. If an
object is missing, the result is a `ReRenderFailure` with the name of the object. This module does not judge differences
between renders: the modules `verify` and `why` do this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.status.package_status import compute_inputs_digest
from reconciler.planning.attribution.re_render import (
    TREE_PREFIX,
    RecordedRender,
    RecordedRuleTexts,
    RecordedTrees,
    RenderCandidates,
    ReRenderedPackage,
    parse_recorded_render,
    pin_recorded_upstream,
    re_render_package,
    render_alternative,
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

_TAG_PREFIX = "refs/tags/"
_SHORT_ID_LENGTH = 12
# Walk at most this number of commits in this process. For longer histories, start `git`, which finds the last change of
# a file in any history.
_MAX_WALKED_COMMITS = 50
_REFERENCE_FIELDS = ("repo", "directory", "ref")
_PREVIOUS_OUTPUT_UNKNOWN_NOTE = (
    "the previous output of the package is unknown; the values that a render copies from the previous output, for "
    "example keys of the package context, come from the recorded output"
)
TEXTS_UNKNOWN_NOTE = "the state does not contain the rollout rules of this render any more"


@dataclass(frozen=True)
class CommittedPackage:
    """A package at a commit of its target, with the content of its status file.

    Attributes:
        tree: The tree of the package. The value is None if the commit has the status file but not the package.
        status: The blob of the status file.
        recorded: The inputs and the result of the render, from the status file.
        branch: The name that resolved to the commit: a branch, or a commit name that the user specified.
    """

    target: Target
    remote: Remote
    package: str
    commit: CommitId
    tree: TreeId | None
    status: BlobId
    recorded: RecordedRender
    branch: str = ""

    @property
    def package_target(self) -> PackageTarget:
        """The location of the package: namespace, name of the target, and package path."""
        return PackageTarget(self.target.key.namespace, self.target.name, self.package)

    @property
    def is_edited(self) -> bool:
        """Whether the content of the package differs from the output of the recorded render."""
        return self.tree != self.recorded.rendered


@dataclass(frozen=True)
class ReRenderFailure:
    """The reason why a package cannot be rendered again from its recorded inputs.

    Attributes:
        is_mismatch: Whether all recorded inputs exist but cannot produce this package. If the value is False, an input
            is missing.
    """

    message: str
    is_mismatch: bool = False


@dataclass(frozen=True, eq=False)
class PastConfig:
    """The config of one commit, and the result of the controllers for this config.

    Attributes:
        list_targets: Returns the targets that this config contains.
    """

    snapshot: ConfigSnapshot
    catalog: Catalog
    controller_result: ControllerResult
    renderer: PackageRenderer
    list_targets: Callable[[], Sequence[Target]]

    @cached_property
    def _target_keys(self) -> Mapping[tuple[str, str, str], list[ObjectKey]]:
        """The keys of the targets of each repository, branch and directory."""
        keys: dict[tuple[str, str, str], list[ObjectKey]] = {}
        for target in self.list_targets():
            keys.setdefault((target.repository_id, target.branch, target.directory), []).append(target.key)
        return keys

    @cached_property
    def _variants(self) -> Mapping[PackageTarget, list[Variant]]:
        variants: dict[PackageTarget, list[Variant]] = {}
        for variant in self.controller_result.variants:
            variants.setdefault(variant.target, []).append(variant)
        return variants

    @cached_property
    def _stalled_variants(self) -> Mapping[PackageTarget | None, list[StalledVariant]]:
        stalled_variants: dict[PackageTarget | None, list[StalledVariant]] = {}
        for stalled in self.controller_result.stalled:
            stalled_variants.setdefault(stalled.target, []).append(stalled)
        return stalled_variants

    def find_variant(self, package: CommittedPackage) -> Variant | ReRenderFailure:
        """Return the variant of this config that produced the package.

        Return a `ReRenderFailure` with the reason if no variant of this config produced the package.
        """
        owner = package.recorded.owner
        package_targets = list(self._list_package_targets(package))
        for package_target in package_targets:
            for variant in self._variants.get(package_target, ()):
                if variant.owner.as_data() == owner:
                    return variant
        owner_name = "/".join(filter(None, (owner.get("kind"), owner.get("namespace"), owner.get("name"))))
        config = f"config {shorten_id(self.snapshot.id)}"
        for package_target in package_targets:
            for stalled in self._stalled_variants.get(package_target, ()):
                if stalled.owner.as_data() == owner:
                    return ReRenderFailure(f"with {config}, {owner_name} is blocked: {stalled.conditions[-1].message}")
        if not self.catalog.is_complete:
            return ReRenderFailure(
                f"{config} has files that cannot be read; one of these files can contain {owner_name}"
            )
        return ReRenderFailure(
            f"in {config}, {owner_name} does not request the package {package.package_target}", is_mismatch=True
        )

    def _list_package_targets(self, package: CommittedPackage) -> Iterator[PackageTarget]:
        """Yield the possible locations of the package in this config.

        The target of the package can have another name or namespace in this config than in the current config.
        """
        yield package.package_target
        target = package.target
        for key in self._target_keys.get((target.repository_id, target.branch, target.directory), ()):
            if (key.namespace, key.name) != (target.key.namespace, target.name):
                yield PackageTarget(key.namespace, key.name, package.package)


@dataclass(frozen=True)
class CurrentConfig:
    """The current config, with the selected targets and their states.

    Attributes:
        all_targets: All targets of the config.
        targets: The selected targets.
        states: The state of each selected target whose state can be read.
        unreadable: The error message of each selected target whose state cannot be read.
    """

    snapshot: ConfigSnapshot
    catalog: Catalog
    all_targets: tuple[Target, ...]
    targets: tuple[Target, ...]
    states: Mapping[Target, TargetState] = field(default_factory=dict)
    unreadable: Mapping[Target, str] = field(default_factory=dict)

    def find_record(self, package: CommittedPackage) -> PackageRecord | None:
        """Return the record of the package in the state of its target, or None if the state has no such record."""
        state = self.states.get(package.target)
        return state.packages.get(package.package) if state else None


class PastReader:
    """Reads committed packages and their configs, and renders the packages again.

    Do not close the remotes while the reader is in use.
    """

    def __init__(
        self,
        source: ConfigSource,
        open_history: Callable[[], ConfigHistory],
        remotes: Remotes,
        services: PassServices,
    ) -> None:
        self._source = source
        self._open_history = open_history
        self._remotes = remotes
        self._services = services
        self._fetched: set[str] = set()

    @cached_property
    def history(self) -> ConfigHistory:
        """The commits of the config. Access raises `GitError` if the config is a folder outside a Git repository."""
        return self._open_history()

    def open_config(self, select_targets: Callable[[Iterable[Target]], Collection[Target]]) -> CurrentConfig:
        """Read the current config, and fetch the upstream repositories and the repositories of the selected targets.

        Args:
            select_targets: Receives all targets and returns the selected targets. Exceptions of this function propagate
                to the caller.

        Raises:
            GitError: The config cannot be read.
        """
        snapshot = self._source.read()
        catalog = self._read_catalog(snapshot)
        all_targets = tuple(self._services.list_targets(catalog))
        targets = tuple(select_targets(all_targets))
        upstream_urls, _ = self._services.list_urls(catalog)
        self._fetch(upstream_urls, {target.url for target in targets})
        results = read_target_states(targets, self._remotes, self._services.state_ref)
        states = {target: state for target, state in results.items() if isinstance(state, TargetState)}
        unreadable = {target: error.message for target, error in results.items() if isinstance(error, Finding)}
        return CurrentConfig(snapshot, catalog, all_targets, targets, states, unreadable)

    def report_progress(self, stage: str, done: int, total: int) -> None:
        """Report that `done` of `total` steps of a stage are complete."""
        self._services.report_progress(stage, done, total)

    def _read_catalog(self, snapshot: ConfigSnapshot) -> Catalog:
        catalog = self._services.read_catalog(snapshot)
        return resolve_definition_conflicts(catalog, snapshot, self._remotes, self._services, self._fetch_targets)

    def _fetch_targets(self, urls: Collection[str]) -> None:
        self._fetch((), urls)

    def _fetch(self, upstream_urls: Collection[str], target_urls: Collection[str]) -> None:
        self.report_progress("fetching", 0, 1)
        new_urls = {*upstream_urls, *target_urls} - self._fetched
        self._remotes.fetch(new_urls.intersection(upstream_urls), new_urls.intersection(target_urls))
        self._fetched |= new_urls
        self.report_progress("fetching", 1, 1)

    def get_remote(self, target: Target) -> Remote | None:
        """Return the remote of a target, or None if the fetch failed."""
        return self._remotes.get(target.url)

    def has_earlier_branch(self, target: Target, current_config: CurrentConfig) -> bool:
        """Return whether the target branch existed earlier, according to the recorded state or to the cache."""
        state = current_config.states.get(target)
        return bool(state and state.observed_commit) or self._services.known_heads.find(target) is not None

    def describe_fetch_failure(self, target: Target) -> str:
        """Return the reason why the repository of a target cannot be read."""
        failure = self._remotes.failures.get(target.url)
        return f"{target.title}: {failure.full_message if failure else 'the repository was not fetched'}"

    def read_package(
        self, target: Target, remote: Remote, package: str, commit: CommitId
    ) -> CommittedPackage | str | None:
        """Read a package, with its status file, at a commit.

        Returns:
            The package. The error message if the status file is invalid. None if the commit has no status file of the
                package.
        """
        status = remote.find_blob_at(commit, target.get_status_file_path(package))
        if status is None:
            return None
        recorded = parse_recorded_render(remote.read_blob(status))
        if isinstance(recorded, str):
            return recorded
        tree = remote.find_tree_at(commit, target.get_package_path(package))
        return CommittedPackage(target, remote, package, commit, tree, status, recorded)

    def list_packages(self, target: Target, remote: Remote, commit: CommitId) -> tuple[str, ...]:
        """Return the names of the packages that have a status file in the commit."""
        folder = remote.find_tree_at(commit, target.get_package_path(STATUS_FOLDER))
        paths = remote.read_files(folder) if folder else ()
        return tuple(sorted(path.removesuffix(".yaml") for path in paths if path.endswith(".yaml")))

    def read_config(
        self,
        config: str,
        current_config: CurrentConfig,
        packages: Iterable[CommittedPackage],
        *,
        has_original_refs: bool = False,
    ) -> PastConfig | ReRenderFailure:
        """Read the config of a commit, and run the controllers on this config.

        The controllers receive past refs: the branch of each target points to the commit of its package. A deleted
        upstream ref points to the recorded upstream commit.

        Args:
            config: The ID of a commit, or `tree:<id>` for a config that was a plain folder.
            current_config: The current config. The controllers receive its target states.
            packages: The packages whose commits and recorded upstreams replace the current refs.
            has_original_refs: Whether upstream refs that still exist also point to the recorded upstream commit, and
                whether the branch of the target points to the commit before the package. Set this for a single package
                only.

        Returns:
            The config with the result of the controllers, or the reason why the config cannot be read.
        """
        self.report_progress(f"config {shorten_id(config)}", 0, 1)
        snapshot = self._read_config_snapshot(config, current_config)
        if isinstance(snapshot, ReRenderFailure):
            return snapshot
        past_config = self.evaluate_config(snapshot, current_config, packages, has_original_refs=has_original_refs)
        self.report_progress(f"config {shorten_id(config)}", 1, 1)
        return past_config

    def evaluate_config(
        self,
        snapshot: ConfigSnapshot,
        current_config: CurrentConfig,
        packages: Iterable[CommittedPackage],
        *,
        has_original_refs: bool = False,
    ) -> PastConfig:
        """Run the controllers on a config snapshot. For the other arguments, see `read_config`."""
        is_current = snapshot is current_config.snapshot
        catalog = current_config.catalog if is_current else self._read_catalog(snapshot)
        upstream_urls, _ = self._services.list_urls(catalog)
        self._fetch(upstream_urls, ())
        refs = self._find_past_refs(catalog, tuple(packages), has_original_refs=has_original_refs)
        controller_result = self._services.run_controllers(
            catalog, self._remotes.with_refs_at(refs), current_config.states, int(self._services.clock())
        )
        # Keep the stages of each render, because they show which step of a render caused a difference.
        renderer = keep_stages(self._services).create_renderer(catalog)
        return PastConfig(snapshot, catalog, controller_result, renderer, partial(self._services.list_targets, catalog))

    def _read_config_snapshot(self, config: str, current_config: CurrentConfig) -> ConfigSnapshot | ReRenderFailure:
        if config == current_config.snapshot.id:
            return current_config.snapshot
        try:
            if config.startswith(TREE_PREFIX):
                return self.history.read_tree(TreeId(config.removeprefix(TREE_PREFIX)))
            return self.history.source_at(self.history.find_commit(config)).read()
        except GitError as error:
            if config.startswith(TREE_PREFIX):
                return ReRenderFailure(
                    "the recorded config was a folder with uncommitted content; the folder has changed since then, and "
                    "no commit contains the recorded content"
                )
            return ReRenderFailure(f"the recorded config {shorten_id(config)} cannot be read: {error.message}")

    def re_render_with_current_config(
        self, package: CommittedPackage, current_config: CurrentConfig, evaluated: PastConfig | ReRenderFailure
    ) -> ReRenderedPackage | None:
        """Re-render a package with the current config, because the recorded config cannot be read.

        Args:
            package: The committed package.
            current_config: The current config.
            evaluated: The result of the controllers for the current config.

        Returns:
            The package. None if the package cannot be rendered, or if its inputs or its output differ from the record.

        Raises:
            InterruptedFunctionError: A function of the package did not finish.
        """
        if not isinstance(evaluated, PastConfig):
            return None
        re_rendered = self.re_render(package, evaluated, current_config)
        if not isinstance(re_rendered, ReRenderedPackage):
            return None
        if not has_recorded_inputs(package.recorded, re_rendered.trace):
            return None
        return re_rendered if re_rendered.rendered.files.id == package.recorded.rendered else None

    def _find_past_refs(
        self, catalog: Catalog, packages: Collection[CommittedPackage], *, has_original_refs: bool
    ) -> dict[str, dict[str, CommitId | None]]:
        """Return the replacement commits of refs, as `{URL: {ref: commit}}`. The commit None removes a ref."""
        refs: dict[str, dict[str, CommitId | None]] = {}
        for package in packages:
            commit = self.find_commit_before(package) if has_original_refs else package.commit
            refs.setdefault(package.target.url, {})[BRANCH_PREFIX + package.target.branch] = commit
        for recorded in (package.recorded for package in packages if package.recorded.upstream):
            for url, remote in self._list_upstream_remotes(recorded, catalog):
                recorded_refs = _find_recorded_refs(recorded, remote, has_original_refs=has_original_refs)
                refs.setdefault(url, {}).update(recorded_refs)
        return refs

    def _list_upstream_remotes(self, recorded: RecordedRender, catalog: Catalog) -> Iterator[tuple[str, Remote]]:
        for url in self._services.find_upstream_urls(recorded.upstream["repo"], catalog):
            if remote := self._remotes.get(url):
                yield url, remote

    def find_upstream(self, recorded: RecordedRender, current_config: CurrentConfig) -> Remote | None:
        """Return the repository of the recorded upstream, or None if the current config has no such repository."""
        return next((remote for _, remote in self._list_upstream_remotes(recorded, current_config.catalog)), None)

    def re_render(
        self, package: CommittedPackage, past_config: PastConfig, current_config: CurrentConfig
    ) -> ReRenderedPackage | ReRenderFailure:
        """Re-render a package with its recorded inputs.

        Returns:
            The rendered package, or the reason why the package cannot be rendered again.

        Raises:
            InterruptedFunctionError: A function of the package did not finish.
        """
        variant = past_config.find_variant(package)
        if isinstance(variant, ReRenderFailure):
            return variant
        variant = pin_recorded_upstream(variant, package.recorded)
        trees = self._read_recorded_trees(package, variant)
        if isinstance(trees, ReRenderFailure):
            return trees
        candidates = RenderCandidates(
            self._list_previous_renders(package, variant, trees),
            self._list_rule_texts(package, past_config, current_config),
            partial(self._list_related_trees, package, past_config),
        )
        return re_render_package(
            variant, package.recorded, trees, candidates, past_config.renderer, package.remote.read_files,
            partial(has_recorded_inputs, package.recorded),
        )  # fmt: skip

    def re_render_with_other_config(
        self,
        package: CommittedPackage,
        past_config: PastConfig,
        current_config: CurrentConfig,
        upstreams: Iterable[RecordedRender],
    ) -> ReRenderedPackage | ReRenderFailure:
        """Render a package with a config that is not its recorded config. The other inputs have their recorded values.

        Args:
            package: The committed package.
            past_config: The config to render with.
            current_config: The current config.
            upstreams: Recorded renders that can provide the upstream commit. The first one whose upstream has the same
                repository, directory and ref provides it. If there is none, the current commit of the ref is used.

        Returns:
            The rendered package, or the reason why the render is not possible.

        Raises:
            InterruptedFunctionError: A function of the package did not finish.
        """
        variant = past_config.find_variant(package)
        if isinstance(variant, ReRenderFailure):
            return variant
        recorded = next((render for render in upstreams if _has_same_reference(variant.source, render)), None)
        variant = pin_recorded_upstream(variant, recorded) if recorded else variant
        source_files = self._read_source_files(package, variant)
        if isinstance(source_files, ReRenderFailure):
            return source_files
        trees = RecordedTrees(source_files, source_files, self._read_rendered_files(package, source_files))
        if package.recorded.is_edited:
            recorded_trees = self._read_recorded_trees(package, pin_recorded_upstream(variant, package.recorded))
            if isinstance(recorded_trees, ReRenderFailure):
                return recorded_trees
            trees = recorded_trees
        candidates = RenderCandidates(
            ((self._find_previous_render(package), ""),),
            self._list_rule_texts(package, past_config, current_config),
            partial(self._list_related_trees, package, past_config),
        )
        return render_alternative(
            variant, source_files, trees, candidates, past_config.renderer, package.remote.read_files
        )

    def _read_rendered_files(self, package: CommittedPackage, default: FileTree) -> FileTree:
        trees = (tree for tree in (package.recorded.rendered, package.tree) if tree)
        contents = (read_files(package.remote, tree) for tree in trees)
        return next((files for files in contents if files is not None), default)

    def _read_recorded_trees(self, package: CommittedPackage, variant: Variant) -> RecordedTrees | ReRenderFailure:
        recorded = package.recorded
        base = self._read_source_files(package, variant)
        if isinstance(base, ReRenderFailure):
            return base
        merged = read_files(package.remote, recorded.merged) if recorded.is_edited else base
        if merged is None:
            return ReRenderFailure(
                f"the source with local changes (tree {shorten_id(recorded.merged)}) does not exist any more; "
                "the state contains such trees only for recent revisions"
            )
        return RecordedTrees(base, merged, self._read_rendered_files(package, merged))

    def _read_source_files(self, package: CommittedPackage, variant: Variant) -> FileTree | ReRenderFailure:
        """Return the files of the source of a variant, or the reason why these files cannot be read.

        If the upstream repository does not have the recorded tree, search in the repository of the target, whose state
        keeps a copy of recent upstream packages.
        """
        if isinstance(variant.source, GeneratedSource):
            return variant.source.files
        upstream = variant.source
        remote = self._remotes.get(upstream.url)
        if remote and has_commit(remote, upstream.commit):
            tree = remote.find_tree_at(upstream.commit, upstream.directory)
            if tree != upstream.tree:
                location = f"{upstream.directory} of {upstream.repo} at {shorten_id(upstream.commit)}"
                problem = f"is the tree {shorten_id(tree)}" if tree else "does not exist"
                return ReRenderFailure(
                    f"{location} {problem}; the status file records the tree {shorten_id(upstream.tree)}",
                    is_mismatch=True,
                )
        contents = (read_files(candidate, upstream.tree) for candidate in (remote, package.remote) if candidate)
        files = next((files for files in contents if files is not None), None)
        if files is not None:
            return files
        return ReRenderFailure(
            f"the upstream commit {shorten_id(upstream.commit)} of {upstream.repo} does not exist any more, and "
            f"neither {upstream.repo} nor {package.target.title} contains the tree {shorten_id(upstream.tree)}"
        )

    def find_commit_before(self, package: CommittedPackage) -> CommitId | None:
        """Return the parent of the commit that added this version of a package. Return None for a root commit."""
        introducing_commit = self.find_introducing_commit(package)
        parents = package.remote.read_commit(introducing_commit).parents if introducing_commit else ()
        return parents[0] if parents else None

    def find_introducing_commit(self, package: CommittedPackage) -> CommitId | None:
        """Return the commit that added the status file of a package. Follow only first parents."""
        commit, path = package.commit, package.target.get_status_file_path(package.package)
        for _ in range(_MAX_WALKED_COMMITS):
            parents = package.remote.read_commit(commit).parents
            if not parents or package.remote.find_blob_at(parents[0], path) != package.status:
                return commit
            commit = parents[0]
        return package.remote.find_last_change(commit, path)

    def _list_previous_renders(
        self, package: CommittedPackage, variant: Variant, trees: RecordedTrees
    ) -> Iterator[tuple[PreviousRender | None, str]]:
        """Yield the possible previous outputs of a package, each with a note for the user.

        The candidates are, in this order:

        - the version of the package before this one,
        - None, which means that the package was new,
        - the output of the package itself. A render changes nothing if the previous output equals the new output.
        """
        if isinstance(variant.source, GeneratedSource):
            # Yield only None, because the controller generates the complete package and does not read the previous
            # output.
            yield None, ""
            return
        if previous_render := self._find_previous_render(package):
            yield previous_render, ""
        yield None, ""
        yield PreviousRender(trees.rendered, trees.base), _PREVIOUS_OUTPUT_UNKNOWN_NOTE

    def _find_previous_render(self, package: CommittedPackage) -> PreviousRender | None:
        commit = self.find_commit_before(package)
        previous = self.read_package(package.target, package.remote, package.package, commit) if commit else None
        if not isinstance(previous, CommittedPackage):
            return None
        rendered = read_files(package.remote, previous.recorded.rendered)
        if rendered is None:
            return None
        base = read_files(package.remote, previous.recorded.base)
        return PreviousRender(rendered, base if base is not None else FileTree())

    def _list_rule_texts(
        self, package: CommittedPackage, past_config: PastConfig, current_config: CurrentConfig
    ) -> tuple[tuple[RecordedRuleTexts | None, str], ...]:
        """Return the possible sets of rollout rules that the render of a package used, each with a note for the user.

        The state contains the rules of recent versions. For an older version, return two candidates: all rules applied,
        or no rule applied.
        """
        if not past_config.renderer.cluster_overrides.rollouts:
            return ((None, ""),)
        record = current_config.find_record(package)
        version = record.find_version(package.status) if record else None
        return ((version.rules, ""),) if version else ((None, TEXTS_UNKNOWN_NOTE), ({}, TEXTS_UNKNOWN_NOTE))

    def _list_related_trees(self, package: CommittedPackage, past_config: PastConfig) -> tuple[PackageTrees, ...]:
        """Return the possible trees of the other packages with Kafka templates at the time of the render of a package.

        The candidates are the trees at three commits: the commit of the package, the commit that added its status file,
        and the parent of the commit that added its status file.
        """
        commits = (package.commit, self.find_introducing_commit(package), self.find_commit_before(package))
        candidates = [
            self.read_related_packages(package, past_config, commit) for commit in dict.fromkeys(commits) if commit
        ]
        return tuple(trees for index, trees in enumerate(candidates) if trees not in candidates[:index])

    def read_related_packages(
        self, package: CommittedPackage, past_config: PastConfig, commit: CommitId
    ) -> PackageTrees:
        """At a commit, return the trees of the other packages that contain or inherit Kafka templates."""
        target, remote, template_merger = package.target, package.remote, past_config.renderer.template_merger
        names = (name for name in self.list_packages(target, remote, commit) if name != package.package)
        trees = {name: tree for name in names if (tree := remote.find_tree_at(commit, target.get_package_path(name)))}
        return {
            name: tree
            for name, tree in trees.items()
            if template_merger.has_template_roles_in_tree(tree, partial(remote.read_files, tree))
        }


def _has_same_reference(source: UpstreamPackage | GeneratedSource, recorded: RecordedRender) -> bool:
    """Return whether a package source and a recorded upstream have the same repository, directory and ref."""
    data = source.as_data()
    return bool(recorded.upstream) and all(data.get(name) == recorded.upstream[name] for name in _REFERENCE_FIELDS)


def has_recorded_inputs(recorded: RecordedRender, trace: Trace) -> bool:
    """Return whether the inputs in a trace equal the inputs of a recorded render."""
    return compute_inputs_digest(trace) == recorded.digest


def read_files(remote: Remote, tree: TreeId) -> FileTree | None:
    """Return the files of a tree, or None if the tree is missing or exceeds the size limit of packages."""
    try:
        return remote.read_package_tree(tree)
    except (ObjectMissingError, TooLargeError):
        return None


def shorten_id(name: Any) -> str:
    """Return the first characters of an object ID. Keep the prefix `tree:` if the ID has this prefix."""
    prefix = TREE_PREFIX if str(name).startswith(TREE_PREFIX) else ""
    return prefix + str(name).removeprefix(TREE_PREFIX)[:_SHORT_ID_LENGTH]


def _find_recorded_refs(
    recorded: RecordedRender, remote: Remote, *, has_original_refs: bool
) -> dict[str, CommitId | None]:
    """Return replacements for refs of an upstream repository: the recorded ref resolves to the recorded commit.

    If `has_original_refs` is False, return no refs if the recorded ref still exists. If it is True, replace existing
    refs too, and remove the other tags of the package, because they can be newer than the render.
    """
    ref, commit = recorded.upstream["ref"], CommitId(recorded.upstream["commit"])
    existing = [name for name in (_TAG_PREFIX + ref, BRANCH_PREFIX + ref) if name in remote.refs]
    if (existing and not has_original_refs) or not has_commit(remote, commit):
        return {}
    prefix = _TAG_PREFIX + ref.rpartition("/")[0]
    other_tags = [name for name in remote.refs if has_original_refs and name.startswith(f"{prefix}/")]
    names = existing or (_TAG_PREFIX + ref, BRANCH_PREFIX + ref)
    return {**dict.fromkeys(other_tags), **dict.fromkeys(names, commit)}


def has_commit(remote: Remote, commit: CommitId) -> bool:
    """Return whether a repository has a commit, also if no ref leads to this commit."""
    try:
        remote.read_commit(commit)
    except ObjectMissingError:
        return _fetch_commit(remote, commit)
    return True


def _fetch_commit(remote: Remote, commit: CommitId) -> bool:
    """Fetch a commit by its ID, and return whether the fetch succeeded."""
    try:
        remote.mirror.ensure_commit(commit)
    except GitError:
        return False
    return True
