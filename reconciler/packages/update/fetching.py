"""Operations that fetch upstream packages, like `kpt pkg get` and `kpt pkg update`.

A remote subpackage is a subpackage with its own upstream.
"""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import normpath
from typing import Any, Protocol

from reconciler.api.kpt import GitUpstream, UpdateStrategy
from reconciler.catalog.files import FileTree
from reconciler.krm.findings import SourceLocation
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.clone import add_merge_comments
from reconciler.packages.codes import PackageCodes
from reconciler.packages.kptfile import KPTFILE, Kptfile, create_kptfile, read_kptfile
from reconciler.packages.package import Package, join_path
from reconciler.packages.update.kptfile_merge import merge_kptfile
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.sides import MergeSides, UpdateResult, find_kptfile, is_below, is_unfetched
from reconciler.packages.update.three_way import add_comments_to_changed_files, get_update_strategy, update_package_tree


@dataclass(frozen=True)
class FetchedPackage:
    """A fetched upstream package.

    Attributes:
        ref: The full name of the requested branch, tag or commit in the repository, e.g. `a/b/v1` for `v1`.
    """

    files: FileTree
    commit: str
    ref: str


class PackageFetcher(Protocol):
    """Fetches upstream packages from Git repositories."""

    def fetch(self, repo: str, directory: str, ref: str) -> FetchedPackage:
        """Return the package in `directory` of the repository `repo`. "/" is the root of the repository.

        `ref` is a branch, tag or commit. The first name of `list_ref_candidates` that exists in the repository is used.
        """


def list_ref_candidates(directory: str, ref: str) -> tuple[str, ...]:
    """Return the names that `ref` can have in the repository of a package. Tags of the package directory come first.

    For example, the ref `v1` of a package in `a/b` can be `a/b/v1`, `a/v1` or `v1`.
    """
    parts = [part for part in directory.split("/") if part not in ("", ".")]
    prefixes = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return (*(f"{prefix}/{ref}" for prefix in prefixes), ref)


def set_upstream_lock(kptfile: Kptfile, git: GitUpstream, fetched: FetchedPackage) -> Kptfile:
    """Set `upstreamLock` to the location `git` and to the commit of the fetched package. Return the changed Kptfile."""
    lock = {"repo": git.repo, "directory": git.directory, "ref": fetched.ref, "commit": fetched.commit}
    return kptfile.with_data({**kptfile.data, "upstreamLock": {"type": "git", "git": lock}})


def set_upstream_source(kptfile: Kptfile, ref: str, strategy: UpdateStrategy | None) -> Kptfile:
    """Set the ref and the update strategy in the section `upstream`. Return the changed Kptfile.

    A ref "" and a strategy None do not change the current values.
    """
    upstream: Mapping[str, Any] = kptfile.data.get("upstream") or {}
    git_field = {"git": {**(upstream.get("git") or {}), "ref": ref}} if ref else {}
    strategy_field = {"updateStrategy": strategy} if strategy else {}
    return kptfile.with_data({**kptfile.data, "upstream": {**upstream, **git_field, **strategy_field}})


def update_from_upstream(
    local: FileTree,
    fetcher: PackageFetcher,
    options: MergeOptions,
    ref: str = "",
    strategy: UpdateStrategy | None = None,
) -> UpdateResult:
    """Update a package and its remote subpackages to `ref`.

    If `ref` is "", each package is updated to the current commit of its own ref.

    A remote subpackage follows `ref` if it has the same repository and the same old ref as the root package. If the
    update fails, the result contains the local files.
    """
    kptfile = Package(local).kptfile
    if isinstance(kptfile, tuple):
        return UpdateResult(local, (), kptfile)
    root = _get_git_upstream(kptfile)
    if root is None:
        text = "the Kptfile must have the field upstream.git, because an update reads the upstream from this repository"
        return UpdateResult(
            local, (), (PackageCodes.UPSTREAM_MISSING.finding(text, SourceLocation(KPTFILE, pointer="upstream.git")),)
        )
    result, pending = UpdateResult(_replace_kptfile(local, "", set_upstream_source(kptfile, ref, strategy))), [""]
    while pending and not result.has_failed:
        package = pending.pop()
        result = _update_single(result, package, fetcher, options)
        remote_packages = _find_remote_below(result.files, package)
        pending += reversed(remote_packages)
        result = replace(result, files=_set_refs(result.files, remote_packages, root, ref, strategy))
    return replace(result, files=local) if result.has_failed else add_comments_to_changed_files(result, local, options)


def _update_single(
    current_result: UpdateResult, package: str, fetcher: PackageFetcher, options: MergeOptions
) -> UpdateResult:
    """Return the files after one package is updated to the current commit of its upstream ref."""
    kptfile = find_kptfile(current_result.files, package)
    git = _get_git_upstream(kptfile)
    if kptfile is None or git is None:
        return current_result
    fetched = fetcher.fetch(git.repo, git.directory, git.ref)
    lock = kptfile.upstream_lock.git if kptfile.upstream_lock else None
    origin = fetcher.fetch(lock.repo, lock.directory, lock.commit).files if lock else FileTree()
    sides = MergeSides(origin, fetched.files, current_result.files.subtree(package))
    if options.profile == "compat":
        sides = sides.map_sides(lambda side: add_merge_comments(side, options.profile)[0])
    # A manual update always sets `vendored`, so that remote subpackages are updated from their copies in the upstream
    # package.
    updated = update_package_tree(sides, get_update_strategy(kptfile.upstream), replace(options, vendored=True))
    updated_kptfile = find_kptfile(updated.files, "")
    if updated_kptfile and not updated.has_failed:
        updated = replace(
            updated, files=_replace_kptfile(updated.files, "", set_upstream_lock(updated_kptfile, git, fetched))
        )
    return replace_package(current_result, package, updated)


def replace_package(current_result: UpdateResult, package: str, updated: UpdateResult) -> UpdateResult:
    """Return `current_result` with the files of `package` replaced by the files in `updated`.

    Paths in `updated` are relative to `package`.
    """
    outside = {path: file for path, file in current_result.files.items() if package and not is_below(path, package)}
    inside = {join_path(package, path): file for path, file in updated.files.items()}
    conflicts = (replace(conflict, file=join_path(package, conflict.file)) for conflict in updated.conflicts)
    findings = (
        replace(finding, location=replace(finding.location, file=join_path(package, finding.location.file)))
        for finding in updated.findings
    )
    return UpdateResult(
        FileTree({**outside, **inside}), (*current_result.conflicts, *conflicts), (*current_result.findings, *findings)
    )


def _find_remote_below(files: FileTree, package: str) -> list[str]:
    """Return the sorted remote subpackages of a package, without those that are inside other remote subpackages."""
    nested = [path for path in Package(files).subpackages if path != package and is_below(path, package)]
    remote = [path for path in nested if _get_git_upstream(find_kptfile(files, path))]
    return [path for path in remote if not any(is_below(path, other) for other in remote)]


def _set_refs(
    files: FileTree, packages: list[str], root: GitUpstream, ref: str, strategy: UpdateStrategy | None
) -> FileTree:
    """Set `ref` and `strategy` in the Kptfiles of subpackages that follow the root package. Return all files.

    Change only subpackages in `packages` for which `follows_same_ref` is true.
    """
    for package in packages:
        kptfile = find_kptfile(files, package)
        git = _get_git_upstream(kptfile)
        if kptfile and git and follows_same_ref(git, root):
            files = _replace_kptfile(files, package, set_upstream_source(kptfile, ref, strategy))
    return files


def follows_same_ref(git: GitUpstream, root: GitUpstream) -> bool:
    """Return whether a remote subpackage follows the ref of the root package.

    The result is true if both packages have the same upstream repository and ref. In addition, the upstream directory
    of the subpackage must be the upstream directory of the root package, or a folder below it.
    """
    if (git.repo, git.ref) != (root.repo, root.ref):
        return False
    inner, outer = (normpath(f"/{upstream.directory.strip('/')}") for upstream in (git, root))
    return inner == outer or is_below(inner, outer.rstrip("/"))


def _get_git_upstream(kptfile: Kptfile | None) -> GitUpstream | None:
    return kptfile.upstream.git if kptfile and kptfile.upstream else None


def _replace_kptfile(files: FileTree, package: str, kptfile: Kptfile) -> FileTree:
    return files.with_files({join_path(package, KPTFILE): kptfile.to_bytes()})


# Maximum nesting depth of remote subpackages. Without a limit, a package that contains itself would be fetched forever.
_MAX_DEPTH = 16


def get_package(
    fetcher: PackageFetcher,
    source: GitUpstream,
    name: str,
    options: MergeOptions,
    strategy: UpdateStrategy = "resource-merge",
) -> UpdateResult:
    """Create the package `name` from the upstream package `source`. Fetch its remote subpackages too.

    If the findings contain an error, the result has no files.
    """
    location = {"repo": source.repo, "directory": source.directory, "ref": source.ref}
    kptfile = create_kptfile(name)
    upstream = {"type": "git", "git": location, "updateStrategy": strategy}
    new_file = kptfile.with_data({**kptfile.data, "upstream": upstream})
    result = UpdateResult(FileTree().with_files({KPTFILE: new_file.to_bytes()}))
    pending = [("", 0)]
    while pending and not result.has_failed:
        package, depth = pending.pop()
        result = (
            _report_depth(result, package) if depth > _MAX_DEPTH else _fetch_content(result, package, fetcher, options)
        )
        pending += [(path, depth + 1) for path in reversed(_find_unfetched_below(result.files, package))]
    if result.has_failed:
        return replace(result, files=FileTree())
    files, findings = add_merge_comments(result.files, options.profile)
    return replace(result, files=files, findings=(*result.findings, *findings))


def _fetch_content(
    current_result: UpdateResult, package: str, fetcher: PackageFetcher, options: MergeOptions
) -> UpdateResult:
    """Fetch the content of a package that has only a Kptfile with an upstream. Return the files with this content."""
    kptfile = find_kptfile(current_result.files, package)
    git = kptfile.upstream.git if kptfile and kptfile.upstream else None
    if kptfile is None or git is None:
        return current_result
    fetched = fetcher.fetch(git.repo, git.directory, git.ref)
    updated = read_kptfile(fetched.files[KPTFILE].data) if KPTFILE in fetched.files else None
    if isinstance(updated, tuple):
        return replace_package(current_result, package, UpdateResult(fetched.files, (), updated))
    merged_kptfile, _ = merge_kptfile(None, updated, kptfile, options)
    content = set_upstream_lock(merged_kptfile, git, fetched).to_bytes()
    files = current_result.files.subtree(package).with_files(fetched.files).with_files({KPTFILE: content})
    return replace_package(current_result, package, UpdateResult(files))


def _find_unfetched_below(files: FileTree, package: str) -> list[str]:
    nested = [path for path in Package(files).subpackages if path != package and is_below(path, package)]
    unfetched = [path for path in nested if is_unfetched(find_kptfile(files, path))]
    return [path for path in unfetched if not any(is_below(path, other) for other in unfetched)]


def _report_depth(current_result: UpdateResult, package: str) -> UpdateResult:
    text = f"packages with their own upstreams must not be nested more than {_MAX_DEPTH} levels deep"
    return current_result.with_details(
        (), [PackageCodes.SUBPACKAGE_DEPTH.finding(text, SourceLocation(join_path(package, KPTFILE)))]
    )
