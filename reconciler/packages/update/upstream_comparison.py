"""Comparison of a package with its upstream package, to show its local changes (`kpt pkg diff`)."""

from __future__ import annotations

from reconciler.api.kpt import GitUpstream
from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.clone import add_comments_to_content
from reconciler.packages.codes import PackageCodes
from reconciler.packages.kptfile import KPTFILE, Kptfile, create_kptfile, read_kptfile
from reconciler.packages.package import Package, join_path
from reconciler.packages.parsing import ParseFailure
from reconciler.packages.resource import UPSTREAM_IDENTIFIER
from reconciler.packages.update.fetching import FetchedPackage, PackageFetcher, follows_same_ref
from reconciler.packages.update.package_diff import is_resource_file, list_changed_files
from reconciler.packages.update.sides import find_kptfile, is_below

LATEST = "latest"
_UPSTREAM_SECTIONS = ("upstream", "upstreamLock")


@dataclass(frozen=True)
class UpstreamComparison:
    """The files that differ between a package and its upstream package.

    Differences in the name, the upstream and the merge comments are ignored, because every clone changes these fields.

    Attributes:
        upstream: The differing files in the upstream package.
        local: The differing files in the local package.
    """

    upstream: FileTree
    local: FileTree
    upstream_package: FetchedPackage


def compare_with_upstream(
    local: FileTree, fetcher: PackageFetcher, ref: str = ""
) -> UpstreamComparison | tuple[Finding, ...]:
    """Compare a package with its upstream package. Return findings if the comparison is not possible.

    A subpackage with its own upstream is compared with that upstream. `ref` also applies to this subpackage if it has
    the same repository and ref as the root package.

    Args:
        ref: The upstream version: "" for the version of the last clone or update, "latest" for the current commit of
            the upstream ref, or any other ref.
    """
    kptfile = Package(local).kptfile
    if isinstance(kptfile, tuple):
        return kptfile
    upstream_package = _fetch_upstream(kptfile, kptfile, fetcher, ref)
    if upstream_package is None:
        section = "upstream" if ref else "upstreamLock"
        text = f"the Kptfile must have the field {section}.git, because the package is compared with this upstream"
        return (PackageCodes.UPSTREAM_MISSING.finding(text, SourceLocation(KPTFILE, pointer=f"{section}.git")),)
    upstream = _add_package(FileTree(), "", upstream_package.files, kptfile)
    for package in Package(local).subpackages:
        subpackage_kptfile = find_kptfile(local, package)
        subpackage = _fetch_upstream(subpackage_kptfile, kptfile, fetcher, ref) if subpackage_kptfile else None
        if subpackage_kptfile and subpackage:
            upstream = _add_package(upstream, package, subpackage.files, subpackage_kptfile)
    differing = list_changed_files(upstream, local)
    return UpstreamComparison(
        _select_files(upstream, differing, local), _select_files(local, differing, local), upstream_package
    )


def _fetch_upstream(kptfile: Kptfile, root: Kptfile, fetcher: PackageFetcher, ref: str) -> FetchedPackage | None:
    git, lock = _get_git_upstream(kptfile), kptfile.upstream_lock.git if kptfile.upstream_lock else None
    root_git, is_root = _get_git_upstream(root), kptfile is root
    if git and ref == LATEST:
        return fetcher.fetch(git.repo, git.directory, git.ref)
    if git and root_git and ref and (is_root or follows_same_ref(git, root_git)):
        return fetcher.fetch(git.repo, git.directory, ref)
    if lock is None or (is_root and ref):
        return None
    # Report the ref of the lock instead of its commit, because a ref such as "v1" is easier to recognize.
    return replace(fetcher.fetch(lock.repo, lock.directory, lock.commit), ref=lock.ref)


def _get_git_upstream(kptfile: Kptfile) -> GitUpstream | None:
    return kptfile.upstream.git if kptfile.upstream else None


def _add_package(files: FileTree, package: str, upstream: FileTree, local: Kptfile) -> FileTree:
    """Add an upstream package to `files` at the path `package`. Its Kptfile gets the local name and upstream."""
    kptfile = read_kptfile(upstream[KPTFILE].data) if KPTFILE in upstream else create_kptfile(local.name)
    if isinstance(kptfile, Kptfile):
        upstream = upstream.with_files({KPTFILE: _copy_local_identity(kptfile, local).to_bytes()})
    outside = {path: file for path, file in files.items() if package and not is_below(path, package)}
    return FileTree({**outside, **{join_path(package, path): file for path, file in upstream.items()}})


def _copy_local_identity(kptfile: Kptfile, local: Kptfile) -> Kptfile:
    other_sections = {
        key: value for key, value in kptfile.with_name(local.name).data.items() if key not in _UPSTREAM_SECTIONS
    }
    return kptfile.with_data(
        {**other_sections, **{key: local.data[key] for key in _UPSTREAM_SECTIONS if key in local.data}}
    )


def _select_files(files: FileTree, paths: tuple[str, ...], local: FileTree) -> FileTree:
    return FileTree({path: _add_merge_comments(path, files[path], local.get(path)) for path in paths if path in files})


def _add_merge_comments(path: str, file: File, local: File | None) -> File:
    """Return the file with the merge comments of the local file, so that these comments are not differences."""
    if local is None or not is_resource_file(path):
        return file
    content = add_comments_to_content(file.data, "compat" if UPSTREAM_IDENTIFIER.encode() in local.data else "safe")
    return file if isinstance(content, ParseFailure) else File(content, file.executable)
