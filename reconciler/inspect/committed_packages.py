"""Packages at a commit of their target, with the config and the inputs of their render.

This module reads single packages. The module `package_history` renders the packages again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from reconciler.catalog.catalog import Catalog
from reconciler.catalog.files import BlobId, CommitId, FileTree, TreeId
from reconciler.catalog.trace import Trace
from reconciler.controllers.results import ControllerResult, PackageTarget, StalledVariant, Variant
from reconciler.git.errors import GitError, ObjectMissingError, TooLargeError
from reconciler.krm.internal_errors import ExpectedError
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.status.package_status import compute_inputs_digest
from reconciler.output.text import shorten_id
from reconciler.planning.attribution.re_render import RecordedRender, parse_recorded_render
from reconciler.planning.model.targets import STATUS_FOLDER, Target
from reconciler.planning.render.renderer import PackageRenderer
from reconciler.reconcile.config_source import ConfigSnapshot
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX

_TAG_PREFIX = "refs/tags/"
# Walk at most this number of commits in this process. For longer histories, start `git`, which finds the last change of
# a file in any history.
_MAX_WALKED_COMMITS = 50


class ReRenderError(ExpectedError):
    """A package cannot be rendered again from its recorded inputs.

    Attributes:
        is_mismatch: Whether all recorded inputs exist but cannot produce this package. If the value is False, an input
            is missing.
    """

    def __init__(self, message: str, *, is_mismatch: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.is_mismatch = is_mismatch


@dataclass(frozen=True)
class CommittedPackage:
    """A package at a commit of its target, with the content of its status file.

    Attributes:
        tree: The tree of the package. The value is None if the commit has the status file but not the package.
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

    def find_commit_before(self) -> CommitId | None:
        """Return the parent of the commit that added this version of the package. Return None if there is no parent."""
        introducing_commit = self.find_introducing_commit()
        parents = self.remote.read_commit(introducing_commit).parents if introducing_commit else ()
        return parents[0] if parents else None

    def find_introducing_commit(self) -> CommitId | None:
        """Return the commit that added this version of the status file. Return None if no such commit is found.

        Only first parents are followed.
        """
        commit, path = self.commit, self.target.get_status_file_path(self.package)
        for _ in range(_MAX_WALKED_COMMITS):
            parents = self.remote.read_commit(commit).parents
            if not parents or self.remote.find_blob_at(parents[0], path) != self.status:
                return commit
            commit = parents[0]
        return self.remote.find_last_change(commit, path)

    def read_rendered_files(self, default: FileTree) -> FileTree:
        """Return the recorded output of the render. If Git no longer has this output, return the current content."""
        trees = (tree for tree in (self.recorded.rendered, self.tree) if tree)
        contents = (read_files(self.remote, tree) for tree in trees)
        return next((files for files in contents if files is not None), default)

    def read_merged_files(self) -> FileTree:
        """Return the package source with local changes. Raise `ReRenderError` if Git no longer has these files."""
        merged = read_files(self.remote, self.recorded.merged)
        if merged is None:
            raise ReRenderError(
                f"the source with local changes (tree {shorten_id(self.recorded.merged)}) does not exist any more; "
                "the state contains such trees only for recent revisions"
            )
        return merged


@dataclass(frozen=True, eq=False)
class PastConfig:
    """The config of one commit, and the result of the controllers for this config."""

    snapshot: ConfigSnapshot
    catalog: Catalog
    controller_result: ControllerResult
    renderer: PackageRenderer
    list_targets: Callable[[], Sequence[Target]]

    @cached_property
    def _target_keys(self) -> Mapping[tuple[str, str, str], list[ObjectKey]]:
        """The keys of the targets, by repository, branch and directory."""
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

    def find_variant(self, package: CommittedPackage) -> Variant:
        """Return the variant of this config that produced the package.

        Raises:
            ReRenderError: No variant of this config produced the package.
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
                    raise ReRenderError(f"with {config}, {owner_name} is blocked: {stalled.conditions[-1].message}")
        if not self.catalog.is_complete:
            raise ReRenderError(f"{config} has files that cannot be read; one of these files can contain {owner_name}")
        raise ReRenderError(
            f"in {config}, {owner_name} does not request the package {package.package_target}", is_mismatch=True
        )

    def find_tenant(self, package: CommittedPackage) -> str | None:
        """Return the tenant whose object produced the package. The platform team has the name "".

        Return None if no object of this config produced the package.
        """
        for package_target in self._list_package_targets(package):
            variants: list[Variant | StalledVariant] = [*self._variants.get(package_target, ())]
            variants += self._stalled_variants.get(package_target, ())
            for variant in variants:
                if variant.owner.as_data() == package.recorded.owner:
                    return variant.tenant
        return None

    def _list_package_targets(self, package: CommittedPackage) -> Iterator[PackageTarget]:
        """Yield the possible locations of the package in this config.

        In this config, the target can have a name or namespace that differs from the current config.
        """
        yield package.package_target
        target = package.target
        for key in self._target_keys.get((target.repository_id, target.branch, target.directory), ()):
            if (key.namespace, key.name) != (target.key.namespace, target.name):
                yield PackageTarget(key.namespace, key.name, package.package)


def read_package(target: Target, remote: Remote, package: str, commit: CommitId) -> CommittedPackage | str | None:
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


def list_packages(target: Target, remote: Remote, commit: CommitId) -> tuple[str, ...]:
    """Return the names of the packages that have a status file in the commit."""
    folder = remote.find_tree_at(commit, target.get_package_path(STATUS_FOLDER))
    paths = remote.list_paths(folder) if folder else ()
    return tuple(sorted(path.removesuffix(".yaml") for path in paths if path.endswith(".yaml")))


def has_recorded_inputs(recorded: RecordedRender, trace: Trace) -> bool:
    """Return whether the inputs in a trace equal the inputs of a recorded render."""
    return compute_inputs_digest(trace) == recorded.digest


def read_files(remote: Remote, tree: TreeId) -> FileTree | None:
    """Return the files of a tree, or None if the tree is missing or exceeds the size limit of packages."""
    try:
        return remote.read_package_tree(tree)
    except (ObjectMissingError, TooLargeError):
        return None


def find_recorded_refs(
    upstream: Mapping[str, Any], remote: Remote, *, has_original_refs: bool
) -> dict[str, CommitId | None]:
    """Return the changes of refs in an upstream repository that a re-render needs.

    The result maps each ref to the commit that it must point to. None means that the ref must not exist. The tag or
    branch of the recorded upstream must point to the recorded commit. Return {} in two cases:

    - The repository does not have the recorded commit any more.
    - `has_original_refs` is False, and the tag or branch still exists.

    Args:
        upstream: A recorded upstream, from `RecordedRender.upstreams`.
        has_original_refs: Whether to change the tag or branch even if it still exists, and to remove the other tags of
            the package. The other tags can be newer than the render.
    """
    ref, commit = upstream["ref"], CommitId(upstream["commit"])
    existing = [name for name in (_TAG_PREFIX + ref, BRANCH_PREFIX + ref) if name in remote.refs]
    if (existing and not has_original_refs) or not has_commit(remote, commit):
        return {}
    prefix = _TAG_PREFIX + ref.rpartition("/")[0]
    other_tags = [name for name in remote.refs if has_original_refs and name.startswith(f"{prefix}/")]
    names = existing or (_TAG_PREFIX + ref, BRANCH_PREFIX + ref)
    return {**dict.fromkeys(other_tags), **dict.fromkeys(names, commit)}


def has_commit(remote: Remote, commit: CommitId) -> bool:
    """Return whether a repository has a commit, even if no ref leads to this commit."""
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
