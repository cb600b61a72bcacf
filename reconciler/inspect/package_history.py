"""Reads the history of packages and of the config, and renders committed packages again.

The inputs in a status file are sufficient to re-render the package, while Git still has the recorded objects. If an
object is missing, the functions raise `ReRenderError` with the name of the object. This module does not judge
differences between renders: the modules `verify` and `why` do this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial

from reconciler.catalog.catalog import Catalog
from reconciler.catalog.files import CommitId, FileTree, TreeId
from reconciler.controllers.keyed_cache import IdentityKey
from reconciler.controllers.results import GeneratedSource, PackageSource, UpstreamPackage, Variant
from reconciler.git.errors import GitError
from reconciler.git.mirror import Mirror
from reconciler.inspect.committed_packages import (
    CommittedPackage,
    PastConfig,
    ReRenderError,
    find_recorded_refs,
    has_commit,
    has_recorded_inputs,
    read_files,
)
from reconciler.inspect.recorded_inputs import list_previous_renders, list_related_trees
from reconciler.krm.findings import Finding
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.explain.builder import format_closest_names
from reconciler.output.text import shorten_id
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.packages.functions.registry import format_program_trace_key
from reconciler.packages.source_codes import SourceCodes
from reconciler.packages.source_union import join_folders, select_files
from reconciler.planning.attribution.explained_sources import ExplainedSources, find_explained_sources
from reconciler.planning.attribution.re_render import (
    TREE_PREFIX,
    RecordedInputs,
    RecordedRender,
    RecordedRuleTexts,
    RecordedTrees,
    ReRenderedPackage,
    list_re_renders,
    pin_recorded_upstream,
)
from reconciler.planning.model.sources import SourceContent, SourceFailedError
from reconciler.planning.model.state import PackageRecord, TargetState
from reconciler.planning.model.targets import Target
from reconciler.reconcile.config_source import ConfigHistory, ConfigSnapshot
from reconciler.reconcile.pass_inputs import ConfigSource
from reconciler.reconcile.remotes.ports import read_values_files
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX, TargetReference, UnknownTargetError, read_target_states
from reconciler.reconcile.services import PassServices, keep_stages
from reconciler.reconcile.snapshot import resolve_definition_conflicts

# Limit the number of cached configs, because one config contains the result of the controllers for the whole fleet.
_MAX_CACHED_CONFIGS = 4
_NO_PACKAGES: tuple[CommittedPackage, ...] = ()
_REFERENCE_FIELDS = ("repo", "directory", "ref")
TEXTS_UNKNOWN_NOTE = "the state does not contain the rollout rules of this render any more"

CommitResolver = Callable[[Mirror, str], CommitId]
"""Resolves a commit name in a mirror, for example a branch or an abbreviated ID. Raises GitError."""


@dataclass(frozen=True)
class PastReader:
    """Reads packages and the config at earlier commits.

    Attributes:
        open_history: Returns a reader of the config at any commit. Raises `GitError` if the config is a folder outside
            a Git repository.
    """

    source: ConfigSource
    open_history: Callable[[], ConfigHistory]
    remotes: Remotes
    services: PassServices
    resolve_commit: CommitResolver

    def open(self, references: Collection[TargetReference] = ()) -> PackageHistory:
        """Read the current config, and fetch the upstream repositories and the repositories of the selected targets.

        Args:
            references: The names of the selected targets. If there are none, all targets are selected.

        Raises:
            UnknownTargetError: No target has the name in a reference.
            GitError: The config cannot be read.
        """
        return PackageHistory(self, references)


@dataclass(frozen=True)
class _RecordedSources:
    """Reads the sources of a committed package. Implements `SourceReader`."""

    history: PackageHistory
    package: CommittedPackage

    def read_source(self, upstream: UpstreamPackage) -> SourceContent:
        """Return the rendered files of an upstream. Raises SourceFailedError."""
        with _source_errors():
            return self.history.read_source(self.package, upstream)

    def read_unrendered_source(self, upstream: UpstreamPackage) -> FileTree:
        """Return the files of an upstream before the render. Raises SourceFailedError."""
        with _source_errors():
            return self.history.read_unrendered_source(self.package, upstream)


@contextmanager
def _source_errors() -> Iterator[None]:
    """Convert a `ReRenderError`, e.g. about a missing upstream commit, into a `SourceFailedError`."""
    try:
        yield
    except ReRenderError as error:
        raise SourceFailedError((SourceCodes.DIGEST_UNAVAILABLE.finding(error.message),)) from error


class PackageHistory:
    """Reads the committed packages of selected targets and their configs, and renders the packages again.

    Do not close the remotes while the history is in use.

    Attributes:
        states: The state of each selected target whose state can be read.
        unreadable: The error message of each selected target whose state cannot be read.
    """

    def __init__(self, reader: PastReader, references: Collection[TargetReference]) -> None:
        self._reader = reader
        self._remotes = reader.remotes
        self._services = reader.services
        self._fetched: set[str] = set()
        self._configs: dict[tuple[object, ...], PastConfig | ReRenderError] = {}
        self.snapshot = reader.source.read()
        self.catalog = self._read_catalog(self.snapshot)
        self.targets = select_targets(references, self._services.list_targets(self.catalog))
        upstream_urls, _ = self._services.list_urls(self.catalog)
        self._fetch(upstream_urls, {target.url for target in self.targets})
        results = read_target_states(self.targets, self._remotes, self._services.state_ref)
        self.states = {target: state for target, state in results.items() if isinstance(state, TargetState)}
        self.unreadable = {target: error.message for target, error in results.items() if isinstance(error, Finding)}

    @cached_property
    def config_history(self) -> ConfigHistory:
        """The commits of the config. Access raises `GitError` if the config is a folder outside a Git repository."""
        return self._reader.open_history()

    def report_progress(self, stage: str, done: int, total: int) -> None:
        """Report that `done` of `total` steps of a stage are complete."""
        self._services.report_progress(stage, done, total)

    def _read_catalog(self, snapshot: ConfigSnapshot) -> Catalog:
        catalog = self._services.read_catalog(snapshot)
        return resolve_definition_conflicts(
            catalog, snapshot, self._remotes, self._services, lambda urls: self._fetch((), urls)
        )

    def _fetch(self, upstream_urls: Collection[str], target_urls: Collection[str]) -> None:
        self.report_progress("fetching", 0, 1)
        new_urls = {*upstream_urls, *target_urls} - self._fetched
        self._remotes.fetch(new_urls.intersection(upstream_urls), new_urls.intersection(target_urls))
        self._fetched |= new_urls
        self.report_progress("fetching", 1, 1)

    def get_remote(self, target: Target) -> Remote:
        """Return the repository of a target.

        Raises:
            UnknownTargetError: The repository cannot be read.
        """
        if remote := self._remotes.get(target.url):
            return remote
        failure = self._remotes.failures.get(target.url)
        reason = failure.full_message if failure else "the repository was not fetched"
        raise UnknownTargetError(f"{target.title}: {reason}")

    def resolve_commit(self, remote: Remote, name: str) -> CommitId:
        """Return the ID of a commit in the repository of a target.

        Args:
            name: The name of the commit, for example a branch or an abbreviated ID.

        Raises:
            GitError: There is no such commit.
        """
        return self._reader.resolve_commit(remote.mirror, name)

    def has_earlier_branch(self, target: Target) -> bool:
        """Return whether the target branch existed earlier, according to the recorded state or to the cache."""
        state = self.states.get(target)
        return bool(state and state.observed_commit) or self._services.known_heads.find(target) is not None

    def find_record(self, package: CommittedPackage) -> PackageRecord | None:
        """Return the record of the package in the state of its target, or None if the state has no such record."""
        state = self.states.get(package.target)
        return state.packages.get(package.package) if state else None

    def read_config(
        self, config: str, packages: Collection[CommittedPackage], *, has_original_refs: bool = False
    ) -> PastConfig:
        """Read the config of a commit, and run the controllers on this config. The latest results are cached.

        The controllers receive refs of the past instead of the current refs (see `has_original_refs`).

        Args:
            config: The ID of a commit, or `tree:<id>` for a config that was a plain folder.
            packages: The packages whose commits and recorded upstreams replace the current refs. A cached result is
                used only for the same Python object `packages`.
            has_original_refs: If False, each target branch points to the commit of its package, and each deleted
                upstream ref points to the recorded upstream commit. If True, the refs are those before the render: the
                target branch points to the parent of the package's commit, and all upstream refs point to recorded
                commits.
                True is possible for a single package only.

        Raises:
            ReRenderError: The config cannot be read.
        """
        # Compare the packages by identity, because comparing all packages of a fleet by value would be slow.
        key = (config, IdentityKey(packages), has_original_refs)
        if key not in self._configs:
            self._configs[key] = self._evaluate_past_config(config, packages, has_original_refs=has_original_refs)
            for oldest in [*self._configs][:-_MAX_CACHED_CONFIGS]:
                del self._configs[oldest]
        past_config = self._configs[key]
        if isinstance(past_config, ReRenderError):
            raise ReRenderError(past_config.message)
        return past_config

    def _evaluate_past_config(
        self, config: str, packages: Collection[CommittedPackage], *, has_original_refs: bool
    ) -> PastConfig | ReRenderError:
        self.report_progress(f"config {shorten_id(config)}", 0, 1)
        try:
            snapshot = self._read_config_snapshot(config)
        except ReRenderError as error:
            return error
        past_config = self.evaluate_config(snapshot, packages, has_original_refs=has_original_refs)
        self.report_progress(f"config {shorten_id(config)}", 1, 1)
        return past_config

    def evaluate_config(
        self, snapshot: ConfigSnapshot, packages: Collection[CommittedPackage], *, has_original_refs: bool = False
    ) -> PastConfig:
        """Run the controllers on a config snapshot. `read_config` documents `packages` and `has_original_refs`."""
        catalog = self.catalog if snapshot is self.snapshot else self._read_catalog(snapshot)
        upstream_urls, _ = self._services.list_urls(catalog)
        self._fetch(upstream_urls, ())
        refs = self._find_past_refs(catalog, packages, has_original_refs=has_original_refs)
        controller_result = self._services.run_controllers(
            catalog, self._remotes.with_refs_at(refs), self.states, int(self._services.clock())
        )
        # Keep the stages of each render, because they show which step of a render caused a difference.
        renderer = keep_stages(self._services).create_renderer(catalog)
        return PastConfig(snapshot, catalog, controller_result, renderer, partial(self._services.list_targets, catalog))

    def _read_config_snapshot(self, config: str) -> ConfigSnapshot:
        if config == self.snapshot.id:
            return self.snapshot
        try:
            if config.startswith(TREE_PREFIX):
                return self.config_history.read_tree(TreeId(config.removeprefix(TREE_PREFIX)))
            return self.config_history.source_at(self.config_history.find_commit(config)).read()
        except GitError as error:
            if config.startswith(TREE_PREFIX):
                raise ReRenderError(
                    "the recorded config was a folder with uncommitted content; the folder has changed since then, and "
                    "no commit contains the recorded content"
                ) from error
            message = f"the recorded config {shorten_id(config)} cannot be read: {error.message}"
            raise ReRenderError(message) from error

    def _find_past_refs(
        self, catalog: Catalog, packages: Collection[CommittedPackage], *, has_original_refs: bool
    ) -> dict[str, dict[str, CommitId | None]]:
        """Return the past commits of refs for a repeated render, as `{URL: {ref: commit}}`.

        For each ref in the result, the render uses this commit instead of the current commit. If the commit is None,
        the ref does not exist for the render.
        """
        refs: dict[str, dict[str, CommitId | None]] = {}
        for package in packages:
            commit = package.find_commit_before() if has_original_refs else package.commit
            refs.setdefault(package.target.url, {})[BRANCH_PREFIX + package.target.branch] = commit
        for upstream in (upstream for package in packages for upstream in package.recorded.upstreams):
            for url, remote in self._list_upstream_remotes(upstream["repo"], catalog):
                recorded_refs = find_recorded_refs(upstream, remote, has_original_refs=has_original_refs)
                replaced = refs.setdefault(url, {})
                # Do not remove a tag that another source of the package uses.
                replaced |= {name: commit for name, commit in recorded_refs.items() if commit or name not in replaced}
        return refs

    def _list_upstream_remotes(self, repo: str, catalog: Catalog) -> Iterator[tuple[str, Remote]]:
        for url in self._services.find_upstream_urls(repo, catalog):
            if remote := self._remotes.get(url):
                yield url, remote

    def find_upstream(self, repo: str) -> Remote | None:
        """Return the upstream repository with the URL `repo`.

        Return None if the current config has no Git repository with this URL.
        """
        remotes = self._list_upstream_remotes(repo, self.catalog)
        return next((remote for _, remote in remotes), None)

    def re_render_recorded(
        self, package: CommittedPackage, packages: Collection[CommittedPackage], *, has_original_refs: bool = False
    ) -> ReRenderedPackage:
        """Re-render a package with its recorded config. For the arguments, see `read_config`.

        If the recorded config cannot be read, render with the current config. Return this render only if its inputs and
        its output equal the recorded ones.

        Raises:
            ReRenderError: The package cannot be rendered again.
        """
        try:
            past_config = self.read_config(package.recorded.config, packages, has_original_refs=has_original_refs)
        except ReRenderError as error:
            re_rendered = self._re_render_with_current_config(package)
            if re_rendered is None:
                raise
            note = f"{error.message}; the current config provides the same inputs for this package"
            return replace(re_rendered, notes=(note,))
        return self.re_render(package, past_config)

    def _re_render_with_current_config(self, package: CommittedPackage) -> ReRenderedPackage | None:
        try:
            re_rendered = self.re_render(package, self.read_config(self.snapshot.id, _NO_PACKAGES))
        except ReRenderError:
            return None
        has_same_inputs = has_recorded_inputs(package.recorded, re_rendered.trace)
        return re_rendered if has_same_inputs and re_rendered.is_reproduced else None

    def identify_program(self, name: str) -> str:
        """Return the identity of a program that renders sources, such as helm. "" if it is not available."""
        return self._services.functions.identity(format_program_trace_key(name))

    def re_render(self, package: CommittedPackage, past_config: PastConfig) -> ReRenderedPackage:
        """Re-render a package with its recorded inputs.

        Returns:
            The first re-render whose output is equal to the recorded output. If no output is equal, the first re-render
            with the recorded dependencies. If no re-render has them, the first of all re-renders.

        Raises:
            ReRenderError: The package cannot be rendered again.
        """
        variant = pin_recorded_upstream(past_config.find_variant(package), package.recorded)
        attempts: list[ReRenderedPackage] = []
        for attempt in self._list_re_renders(package, variant, past_config):
            if attempt.is_reproduced:
                return attempt
            attempts.append(attempt)
        recorded = (attempt for attempt in attempts if has_recorded_inputs(package.recorded, attempt.trace))
        return next(recorded, attempts[0])

    def re_render_with_other_config(
        self, package: CommittedPackage, past_config: PastConfig, upstreams: Iterable[RecordedRender]
    ) -> ReRenderedPackage:
        """Render a package with a config that is not its recorded config. The other inputs have their recorded values.

        Args:
            upstreams: Recorded renders, in the order of preference. The upstream commit is taken from the first render
                with the same upstream repository, directory and ref. If there is no such render, the current commit of
                the ref is used.

        Raises:
            ReRenderError: The package cannot be rendered.
        """
        variant = past_config.find_variant(package)
        recorded = next((render for render in upstreams if _has_same_reference(variant.source, render)), None)
        variant = pin_recorded_upstream(variant, recorded) if recorded else variant
        return next(self._list_re_renders(package, variant, past_config))

    def _list_re_renders(
        self, package: CommittedPackage, variant: Variant, past_config: PastConfig
    ) -> Iterator[ReRenderedPackage]:
        """Render a package once for each possible combination of the inputs that its status file does not contain."""
        recorded, remote = package.recorded, package.remote
        content = self._read_variant_source(package, variant)
        base = merged = content.files
        if recorded.is_edited:
            base = self._read_variant_source(package, pin_recorded_upstream(variant, recorded)).files
            merged = package.read_merged_files()
        trees = RecordedTrees(base, merged, package.read_rendered_files(merged))
        inputs = RecordedInputs(
            content.files, trees, list_previous_renders(package, variant, trees),
            self._list_rule_texts(package, past_config), partial(list_related_trees, package, past_config),
            remote.read_files, content.charts,
        )  # fmt: skip
        folder = package.target.get_package_path(package.package)
        explained_sources = self._find_sources(package, variant, past_config)
        try:
            for attempt in list_re_renders(variant, inputs, past_config.renderer):
                is_reproduced = attempt.rendered is not None and attempt.rendered.files.id == recorded.rendered
                yield replace(attempt, folder=folder, is_reproduced=is_reproduced, sources=explained_sources)
        except InterruptedFunctionError as error:
            raise ReRenderError(f"{error} (next step: retry)") from error

    def find_recorded_sources(self, package: CommittedPackage, past_config: PastConfig) -> ExplainedSources | None:
        """Return the sources of a package at their recorded versions. Return None for a generated package.

        Raises:
            ReRenderError: The config does not request the package.
        """
        variant = pin_recorded_upstream(past_config.find_variant(package), package.recorded)
        return self._find_sources(package, variant, past_config)

    def _find_sources(
        self, package: CommittedPackage, variant: Variant, past_config: PastConfig
    ) -> ExplainedSources | None:
        reader = _RecordedSources(self, package)
        return find_explained_sources(variant.source, reader, past_config.snapshot.commit)

    def _read_variant_source(self, package: CommittedPackage, variant: Variant) -> SourceContent:
        """Return the source of a variant, or raise `ReRenderError` if its files cannot be read."""
        if isinstance(variant.source, GeneratedSource):
            return SourceContent(variant.source.files)
        try:
            return self.read_source(package, variant.source)
        except SourceFailedError as error:
            codes = ", ".join(sorted({finding.code for finding in error.findings}))
            raise ReRenderError(f"{codes}: {error}") from error

    def read_source(self, package: CommittedPackage, upstream: UpstreamPackage) -> SourceContent:
        """Return the rendered files of an upstream.

        If the upstream repository does not have the recorded tree, search in the repository of the target. The state of
        the target keeps a copy of recent upstream packages.

        Raises:
            ReRenderError, SourceFailedError: The upstream cannot be read or rendered.
        """
        return self._services.sources.render(upstream, self.read_unrendered_source(package, upstream))

    def read_unrendered_source(self, package: CommittedPackage, upstream: UpstreamPackage) -> FileTree:
        """Return the unrendered files of an upstream, including the files of all charts that the upstream requires.

        Raises:
            ReRenderError, SourceFailedError: The upstream cannot be read.
        """
        if upstream.sources:
            return join_folders(
                {source.name: self._read_package_source(package, source) for source in upstream.sources}
            )
        sources = self._services.sources
        files = sources.read_artifact(upstream) if upstream.artifacts else self._read_git_files(package, upstream)
        return sources.add_dependencies(upstream, files) if upstream.chart_dependencies else files

    def _read_package_source(self, package: CommittedPackage, source: PackageSource) -> FileTree:
        upstream = source.upstream
        if source.values_files is None:
            return self.read_unrendered_source(package, upstream)
        if upstream.artifacts:
            return select_files(self._services.sources.read_artifact(upstream), source.values_files)
        remote = self._remotes.get(upstream.url)
        if remote is None or not has_commit(remote, upstream.commit):
            commit = shorten_id(upstream.commit)
            raise ReRenderError(
                f"the commit {commit} of {upstream.repo} (source {source.name}) does not exist any more"
            )
        return read_values_files(remote, upstream, source.values_files)

    def _read_git_files(self, package: CommittedPackage, upstream: UpstreamPackage) -> FileTree:
        remote = self._remotes.get(upstream.url)
        if remote and has_commit(remote, upstream.commit):
            tree = remote.find_tree_at(upstream.commit, upstream.directory)
            if tree != upstream.tree:
                location = f"{upstream.directory} of {upstream.repo} at {shorten_id(upstream.commit)}"
                problem = f"is the tree {shorten_id(tree)}" if tree else "does not exist"
                raise ReRenderError(
                    f"{location} {problem}; the status file records the tree {shorten_id(upstream.tree)}",
                    is_mismatch=True,
                )
        contents = (read_files(candidate, upstream.tree) for candidate in (remote, package.remote) if candidate)
        files = next((files for files in contents if files is not None), None)
        if files is not None:
            return files
        raise ReRenderError(
            f"the upstream commit {shorten_id(upstream.commit)} of {upstream.repo} does not exist any more, and "
            f"neither {upstream.repo} nor {package.target.title} contains the tree {shorten_id(upstream.tree)}"
        )

    def _list_rule_texts(
        self, package: CommittedPackage, past_config: PastConfig
    ) -> tuple[tuple[RecordedRuleTexts | None, str], ...]:
        """Return the sets of rollout rules that the render of a package may have used, each with a note for the user.

        The recorded state contains the rules of recent versions. An older version has two candidates: None (all rules
        applied) and {} (no rule applied).
        """
        if not past_config.renderer.cluster_overrides.rollouts:
            return ((None, ""),)
        record = self.find_record(package)
        version = record.find_version(package.status) if record else None
        return ((version.rules, ""),) if version else ((None, TEXTS_UNKNOWN_NOTE), ({}, TEXTS_UNKNOWN_NOTE))


def select_targets(references: Collection[TargetReference], targets: Iterable[Target]) -> list[Target]:
    """Return the targets with the names in the references. Return all targets if there are no references.

    Raises:
        UnknownTargetError: No target has the name in a reference.
    """
    by_name = {target.name: target for target in targets}
    for reference in references:
        if reference.cluster not in by_name:
            names = format_closest_names(reference.cluster, by_name)
            raise UnknownTargetError(
                f'{reference}: there is no Repository or cluster "{reference.cluster}"; existing names: {names}'
            )
    selected_names = {reference.cluster for reference in references} or by_name
    return [target for name, target in by_name.items() if name in selected_names]


def _has_same_reference(source: UpstreamPackage | GeneratedSource, recorded: RecordedRender) -> bool:
    """Return whether a package source and a recorded upstream have the same repository, directory and ref."""
    data = source.as_data()
    return bool(recorded.upstream) and all(data.get(name) == recorded.upstream[name] for name in _REFERENCE_FIELDS)
