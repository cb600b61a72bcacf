"""Implements Protocols that the controllers and the planning use to read fetched remotes and recorded states.

The implementations provide:
- the files of Git trees,
- the refs and packages of upstream repositories,
- the recorded packages whose owners are of one kind,
- the published files of placed resources and of Plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from posixpath import dirname
from typing import Any, Protocol

from reconciler.api.greenhouse import GROUP, PLUGIN
from reconciler.catalog.files import CommitId, File, FileTree, ObjectId, TreeId
from reconciler.controllers.checked_commits import CheckedCommit
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.keyed_cache import KeyedCache
from reconciler.controllers.package_variants.artifact_resolution import ArtifactCatalog
from reconciler.controllers.package_variants.upstream_resolution import PackageDirectory
from reconciler.controllers.placement.model import OWNER_GROUP, OWNER_KIND, build_placement_owner
from reconciler.controllers.plugin_presets.package_files import PLUGIN_FILE
from reconciler.controllers.repositories import Repository
from reconciler.controllers.results import PackageOwner, PackageSource, UpstreamPackage
from reconciler.git.errors import GitError, ObjectMissingError, TooLargeError, TreeMalformedError
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import YamlFile
from reconciler.packages.charts.request import ChartRequest, RenderedSource
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.package import join_path
from reconciler.packages.parsing import parse_cached
from reconciler.packages.source_codes import SourceCodes
from reconciler.packages.source_union import join_folders, select_files
from reconciler.planning.model.config_completeness import ConfigCompleteness
from reconciler.planning.model.sources import (
    PackageMalformedError,
    PackageTooLargeError,
    SourceContent,
    SourceFailedError,
)
from reconciler.planning.model.state import PackageRecord, TargetState
from reconciler.planning.model.targets import Target
from reconciler.planning.observe.target_snapshot import TargetHeads, track_drafts, track_publications
from reconciler.reconcile.input_verifier import InputVerifier
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.repository import Remote, TargetRepository
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX, TargetStates


class SourceRenderer(Protocol):
    """Reads artifacts, and renders charts and overlays."""

    def read_artifact(self, upstream: UpstreamPackage) -> FileTree:
        """Return the files of a chart or OCI artifact. Raises SourceFailedError."""
        ...

    def add_dependencies(self, upstream: UpstreamPackage, source: FileTree) -> FileTree:
        """Return the files of a source together with the charts that it requires. Raises SourceFailedError."""
        ...

    def render(self, upstream: UpstreamPackage, files: FileTree) -> SourceContent:
        """Render the files of a source, and return the files of the package. Raises SourceFailedError."""
        ...

    def render_ahead(self, sources: Sequence[tuple[UpstreamPackage, FileTree]]) -> None:
        """Render several sources at the same time, so that `render` returns the results without a new render."""
        ...

    def preview_charts(self, previews: Sequence[tuple[UpstreamPackage, ChartRequest]]) -> tuple[RenderedSource, ...]:
        """Render previews of charts at the same time.

        If an upstream cannot be read, its result contains the findings about the error.
        """
        ...


class TargetContents:
    """Reads the contents of upstream packages and of trees for one target.

    `read_source` adds the files of each package to `source_files`. The keys are tree IDs, because the state of the
    target refers to files by tree ID.
    """

    def __init__(
        self,
        remotes: Remotes,
        remote: Remote,
        source_files: dict[TreeId, FileTree],
        find_locked_tree: Callable[[FileTree], TreeId | None],
        identify_function: Callable[[str], str],
        sources: SourceRenderer,
    ) -> None:
        self._remotes = remotes
        self._remote = remote
        self._source_files = source_files
        self.find_locked_tree = find_locked_tree
        self.read_function_fingerprint = identify_function
        self._sources = sources

    def read_source(self, upstream: UpstreamPackage) -> SourceContent:
        """Return the files of an upstream package. Charts and overlays are rendered.

        Raises:
            SourceFailedError: The source cannot be read or rendered now.
        """
        content = self._sources.render(upstream, self.read_unrendered_source(upstream))
        for program in content.programs:
            # Request the fingerprint, so that the pass records the program as an input.
            self.read_function_fingerprint(program)
        self._source_files[content.files.id] = content.files
        return content

    def read_unrendered_source(self, upstream: UpstreamPackage) -> FileTree:
        """Return the files of an upstream package before a render: the files of a chart and of its dependencies.

        If the package has several sources, the files of each source are in a folder with the name of the source.

        Raises:
            SourceFailedError: The source cannot be read now.
        """
        if upstream.sources:
            return join_folders({source.name: self._read_package_source(source) for source in upstream.sources})
        files = self._sources.read_artifact(upstream) if upstream.artifacts else self._read_git_source(upstream)
        return self._sources.add_dependencies(upstream, files) if upstream.chart_dependencies else files

    def _read_package_source(self, source: PackageSource) -> FileTree:
        """Return the files of one of the sources of a package.

        For a source that contributes only Helm values to the package, return only its values files.
        """
        if source.values_files is None:
            return self.read_unrendered_source(source.upstream)
        if source.upstream.artifacts:
            return select_files(self._sources.read_artifact(source.upstream), source.values_files)
        remote = self._get_upstream_remote(source.upstream)
        return read_values_files(remote, source.upstream, source.values_files)

    def _get_upstream_remote(self, upstream: UpstreamPackage) -> Remote:
        remote = self._remotes.get_upstream(upstream.url)
        if remote is None:
            # The remote could be read at the start of the pass, but a later fetch failed. Raise the error of this
            # fetch.
            raise self._remotes.failures[upstream.url]
        return remote

    def _read_git_source(self, upstream: UpstreamPackage) -> FileTree:
        """Return the files of a folder in Git.

        If a branch or tag has moved, the upstream repository may not contain the tree any more. The files then come
        from the copy in the state of the target.

        Raises:
            SourceFailedError: Neither the upstream repository nor the repository of the target contains the tree.
        """
        remote = self._get_upstream_remote(upstream)
        for repository in (remote, self._remote):
            with suppress(ObjectMissingError):
                return _read_upstream_tree(repository, upstream.tree)
        message = (
            f"neither {upstream.repo} nor the repository of the target contains the files of commit {upstream.commit}"
            f" in the folder {upstream.directory or '.'} any more (tree {upstream.tree})"
        )
        raise SourceFailedError((SourceCodes.DIGEST_UNAVAILABLE.finding(message),), should_retry=True)

    def is_ancestor(self, upstream: UpstreamPackage, commit: CommitId) -> bool:
        """Return whether the commit of `upstream` is an ancestor of `commit`. Return False if `commit` is missing."""
        remote = self._remotes.get_upstream(upstream.url) if upstream.type == "git" else None
        return remote is not None and remote.is_ancestor(upstream.commit, commit)

    def store_tree(self, files: FileTree) -> TreeId:
        """Store the files of a tree, because the state of the target will refer to this tree. Return the tree ID."""
        self._source_files.setdefault(files.id, files)
        return files.id

    def read_tree(self, tree: TreeId) -> FileTree:
        """Return the files of a tree from the stored source files, or from the repository of the target.

        Trees of a target branch can contain symbolic links and submodules. Upstream packages never contain them.
        """
        if tree in self._source_files:
            return self._source_files[tree]
        with _package_errors():
            return self._remote.read_package_tree(tree)


def _read_upstream_tree(remote: Remote, tree: TreeId) -> FileTree:
    with _package_errors():
        return remote.read_upstream_tree(tree)


def read_values_files(remote: Remote, upstream: UpstreamPackage, paths: Iterable[str]) -> FileTree:
    """Return the files at `paths` below the directory of an upstream in Git. Paths that are not files are omitted.

    Raises:
        SourceFailedError: The repository does not contain the commit any more.
    """
    try:
        blobs = {path: remote.find_blob_at(upstream.commit, join_path(upstream.directory, path)) for path in paths}
        with _package_errors():
            return FileTree({path: File(remote.read_blob(blob)) for path, blob in blobs.items() if blob})
    except ObjectMissingError as error:
        message = f"{upstream.repo} does not contain the commit {upstream.commit} any more: {error.message}"
        raise SourceFailedError((SourceCodes.DIGEST_UNAVAILABLE.finding(message),), should_retry=True) from error


@contextmanager
def _package_errors() -> Iterator[None]:
    """Convert the error about an unreadable tree into an error that affects only one package."""
    try:
        yield
    except TooLargeError as error:
        raise PackageTooLargeError(error.message) from error
    except TreeMalformedError as error:
        raise PackageMalformedError(error.message) from error


# Returned as the content of a file above the size limit. YAML parsers reject this content, so that the file is reported
# as unreadable.
_UNREADABLE = b"\0"


class FetchedUpstreamRefs:
    """The refs of one upstream repository after the fetch of this pass."""

    def __init__(self, remote: Remote, verifier: InputVerifier) -> None:
        self._remote = remote
        self._refs = remote.refs
        self._verifier = verifier

    def find_tag(self, name: str) -> CommitId | None:
        """Return the commit of a tag. Return None if the tag does not exist or does not point to a commit."""
        commit = self._remote.peel_ref(f"refs/tags/{name}") if f"refs/tags/{name}" in self._refs else None
        return commit if commit and self._is_commit(commit) else None

    def _is_commit(self, commit: CommitId) -> bool:
        try:
            self._remote.read_commit(commit)
        except ObjectMissingError:
            return False
        return True

    def find_branch(self, name: str) -> CommitId | None:
        """Return the head of a branch. Return None if the branch does not exist."""
        return self._refs.get(f"refs/heads/{name}")

    def check_tag(self, name: str, commit: CommitId) -> CheckedCommit:
        """Check the signature of a tag or of its commit, and return the commit to use."""
        return self._check(f"refs/tags/{name}", commit)

    def check_branch(self, name: str, commit: CommitId) -> CheckedCommit:
        """Check the signature of the head of a branch, and return the commit to use."""
        return self._check(f"refs/heads/{name}", commit)

    def _check(self, ref: str, commit: CommitId) -> CheckedCommit:
        if self._remote.has_earlier_refs:
            # Skip the check, because the caller explains an earlier render, which already used this commit.
            return CheckedCommit(commit)
        return self._verifier.check(self._remote.mirror, ref, ObjectId(self._refs[ref]), commit)

    def list_tags(self, prefix: str) -> Iterable[str]:
        """Return the names of all tags that start with `prefix`."""
        start = f"refs/tags/{prefix}"
        return [ref.removeprefix("refs/tags/") for ref in self._refs if ref.startswith(start)]

    def find_package(self, commit: CommitId, directory: str, package: str) -> PackageDirectory | None:
        """Return the folder of a package at a commit. Return None if the commit does not contain the folder."""
        path = join_path(directory, package)
        tree = self._remote.find_tree_at(commit, path)
        if tree is None:
            return None
        has_kptfile = self._remote.find_blob_at(commit, join_path(path, KPTFILE)) is not None
        return PackageDirectory(tree, self._remote.list_skipped_entries(tree), has_kptfile)

    def read_package(self, tree: TreeId) -> FileTree | str:
        """Return the files of a package directory. Return an error message if the package exceeds a limit."""
        try:
            return self._remote.read_upstream_tree(tree)
        except (TooLargeError, TreeMalformedError) as error:
            return error.message

    def read_kptfiles(self, tree: TreeId) -> tuple[bytes, ...]:
        """Return the contents of all Kptfiles below a package directory."""
        return self._remote.read_kptfiles(tree)

    def read_tag_seconds(self, name: str) -> int:
        """Return the date of a tag, in seconds since 1970."""
        return self._remote.read_tag_seconds(f"refs/tags/{name}")

    def read_message(self, name: str) -> str:
        """Return the message of an annotated tag. For a lightweight tag, return the message of its commit."""
        return self._remote.read_message(f"refs/tags/{name}")

    def read_change_seconds(self, commit: CommitId, path: str) -> int:
        """Return the date of the last change of a path, in seconds since 1970. Follow first parents from `commit`."""
        return self._remote.read_change_seconds(commit, path)

    def read_file(self, commit: CommitId, path: str) -> bytes | None:
        """Return the content of a file. Return None if the file does not exist.

        If the file is above the size limit, return content that no parser accepts.
        """
        blob = self._remote.find_blob_at(commit, path)
        try:
            return self._remote.read_blob(blob) if blob else None
        except TooLargeError:
            return _UNREADABLE


class FetchedUpstreams:
    """All upstream repositories of a pass. `resolve` converts the URL in a Repository to the URL of the remote."""

    def __init__(
        self,
        remotes: Remotes,
        resolve: Callable[[str], str],
        verifier: InputVerifier,
        artifacts: ArtifactCatalog,
    ) -> None:
        self._remotes = remotes
        self.artifacts = artifacts
        self._resolve = lru_cache(None)(resolve)
        self._refs = lru_cache(None)(partial(FetchedUpstreamRefs, verifier=verifier))

    def get_refs(self, repository: Repository) -> FetchedUpstreamRefs | str:
        """Return the refs of a Repository. If the Repository cannot be read now, return an error message."""
        try:
            url = self._resolve(repository.url)
        except GitError as error:
            return f"Repository {repository.key.name}: {error.message}"
        remote = self._remotes.get_upstream(url)
        if remote is not None:
            return self._refs(remote)
        failure = self._remotes.failures.get(url)
        message = failure.full_message if failure else "the repository was not fetched"
        return f"Repository {repository.key.name} cannot be read: {message}"

    def get_url(self, repository: Repository) -> str:
        """Return the URL of the remote of a Repository."""
        return self._resolve(repository.url)

    def get_commit_seconds(self, repository: Repository, commit: CommitId) -> int:
        """Return the date of a commit, in seconds since 1970."""
        remote = self._remotes.get_upstream(self.get_url(repository))
        assert remote is not None
        return remote.read_commit(commit).seconds


class OwnedPackages:
    """The recorded packages of one owner kind, on all clusters whose state can be read."""

    def __init__(self, states: TargetStates, group: str, kind: str) -> None:
        self._states = {target.name: state for target, state in states.items() if target.is_deployment}
        self._kind = (group, kind)

    def get_owned_packages(self) -> Mapping[PackageLocation, PackageOwner]:
        """Return the owners of all drafted and published packages, except packages whose removal is in progress."""
        return {location: record.owner for location, record in self._records()}

    def get_recorded_inputs(self) -> Mapping[PackageLocation, Collection[str]]:
        """Map each package to the names of the dependencies that its last render used."""
        return {location: record.trace.keys() for location, record in self._records()}

    def get_blocked_counts(self) -> Mapping[ObjectKey, Mapping[PackageLocation, int]]:
        """For each owner, return the packages whose removal is held. If an owner has a parent, use the parent instead.

        Each package is mapped to the number of packages that the owner or parent had when the removal was first held.
        """
        counts: dict[ObjectKey, dict[PackageLocation, int]] = {}
        for location, record in self._records():
            if count := record.outcome.get("existing"):
                counts.setdefault(record.owner.parent or record.owner.key, {})[location] = count
        return counts

    def _records(self) -> Iterator[tuple[PackageLocation, PackageRecord]]:
        for cluster, state in sorted(self._states.items()):
            for package, record in state.active_packages_by_kind.get(self._kind, ()):
                yield (cluster, package), record


class PlacedPackages(OwnedPackages):
    """The packages of placed resources, on all clusters whose state can be read, with their last drafts.

    Placed resources are config objects that a propagation policy copies to clusters.
    """

    def __init__(self, states: TargetStates, remotes: Remotes, completeness: ConfigCompleteness) -> None:
        super().__init__(states, OWNER_GROUP, OWNER_KIND)
        self._completeness = completeness
        self._targets = {target.name: (target, state) for target, state in states.items() if target.is_deployment}
        self._remotes = remotes

    def find_clusters_by_owner(self) -> dict[ObjectKey, list[str]]:
        """Return, for each owner, the clusters that have a package of this owner now."""
        clusters: dict[ObjectKey, list[str]] = {}
        for (cluster, _), owner in self.get_owned_packages().items():
            clusters.setdefault(owner.key, []).append(cluster)
        return clusters

    def is_config_complete(self, cluster: str, package: str) -> bool:
        """Return whether the config contains all resources that may belong to a package."""
        _, state = self._targets.get(cluster, (None, None))
        record = state.packages.get(package) if state else None
        return self._completeness.includes(record) if record else self._completeness.includes_all

    def find_tenants(self, namespace: str) -> frozenset[str] | None:
        """Return the tenants of the packages of a namespace. The platform team has the name "".

        Return None if a tenant is unknown.
        """
        return self._tenants_by_owner.get(build_placement_owner(namespace).key, frozenset())

    @cached_property
    def _tenants_by_owner(self) -> Mapping[ObjectKey, frozenset[str] | None]:
        result: dict[ObjectKey, frozenset[str] | None] = {}
        for _, record in self._records():
            tenants, others = self._completeness.find_tenants(record), result.get(record.owner.key, frozenset())
            result[record.owner.key] = None if tenants is None or others is None else tenants | others
        return result

    def read_last_draft(self, cluster: str, package: str) -> FileTree | None:
        """Return the source files of the last draft of a package. Return None if these files cannot be read."""
        target, state = self._targets.get(cluster, (None, None))
        remote = self._remotes.get(target.url) if target else None
        if target is None or state is None or remote is None or package not in state.packages:
            return None
        try:
            record = _read_current_record(target, state, package, remote)
            version = record.draft_version or record.published_version
            return remote.read_files(version.base) if version else None
        except GitError:
            # Ignore the error here, because the planning of the package reports it.
            return None


def _read_current_record(target: Target, state: TargetState, package: str, remote: Remote) -> PackageRecord:
    """Return the record of a package, updated from the current branches. The record contains no rejected draft."""
    record, refs = state.packages[package], remote.refs
    branch = refs.get(BRANCH_PREFIX + target.branch)
    if branch is None:
        return record
    draft_ref = BRANCH_PREFIX + record.draft_branch
    drafts = {record.draft_branch: refs[draft_ref]} if draft_ref in refs else {}
    heads, repository = TargetHeads(branch, drafts=drafts), TargetRepository(remote, target)
    only_package = replace(state, packages={package: record})
    published = track_publications(only_package, target, heads, repository)
    return track_drafts(published, target, heads, repository).packages[package]


_PLUGIN_FOLDER = "plugins"

PublishedPluginData = Mapping[str, Mapping[str, Any]]


class PublishedPlugins(OwnedPackages):
    """The recorded packages of Plugins on all clusters, and the published Plugins on the target branches."""

    def __init__(
        self,
        targets: Iterable[Target],
        states: TargetStates,
        remotes: Remotes,
        cache: KeyedCache[PublishedPluginData],
    ) -> None:
        super().__init__(states, GROUP, PLUGIN)
        self._targets = {target.name: target for target in targets if target.is_deployment}
        self._remotes = remotes
        self._cache = cache

    def read_published(self, cluster: str) -> PublishedPluginData:
        """Return all Plugins on the target branch of a cluster, by package. Return {} if the branch cannot be read.

        The result includes Plugins that no package variant manages. While the folder of the Plugins does not change,
        each call returns the same Python object.
        """
        target = self._targets.get(cluster)
        remote = self._remotes.get(target.url) if target else None
        head = remote.refs.get(BRANCH_PREFIX + target.branch) if remote and target else None
        if target is None or remote is None or head is None:
            return {}
        try:
            tree = remote.find_tree_at(head, target.get_package_path(_PLUGIN_FOLDER))
            return self._cache.get_or_create(tree, lambda: _parse_plugins(remote.read_files(tree))) if tree else {}
        except GitError:
            # Ignore the error here, because the planning of the target reports it.
            return {}


def _parse_plugins(files: FileTree) -> PublishedPluginData:
    plugin_files = ((path, file) for path, file in files.items() if path.endswith(f"/{PLUGIN_FILE}"))
    plugins = ((dirname(path), _parse_plugin(file.data)) for path, file in plugin_files)
    return {f"{_PLUGIN_FOLDER}/{package}": data for package, data in plugins if data is not None and "/" not in package}


def _parse_plugin(content: bytes) -> Mapping[str, Any] | None:
    parsed = parse_cached(content)
    documents = parsed.documents if isinstance(parsed, YamlFile) else ()
    data = documents[0].data if len(documents) == 1 else None
    return data if isinstance(data, dict) and data.get("kind") == PLUGIN else None
