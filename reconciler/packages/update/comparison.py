"""Comparing a package with its upstream: what people, or functions, made of it since it came (kpt.md 5.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconciler.krm.findings import Finding, Where
from reconciler.packages.codes import UPSTREAM_MISSING
from reconciler.packages.kptfile import KPTFILE, GitUpstream, Kptfile, new_kptfile, read_kptfile
from reconciler.packages.merge_comments import with_comments
from reconciler.packages.package import Package, join
from reconciler.packages.parsing import Unparsable
from reconciler.packages.resource import UPSTREAM_IDENTIFIER
from reconciler.packages.update.difference import is_yaml, package_diff
from reconciler.packages.update.fetching import Fetch, Fetched
from reconciler.packages.update.sides import is_below, kptfile_in
from reconciler.packages.update.walk import moves_along
from reconciler.snapshot.files import File, FileTree

LATEST = "latest"
_OF_THE_PLACE = ("upstream", "upstreamLock")


@dataclass(frozen=True)
class Comparison:
    """The files that differ, as they are upstream and as they are here, and what of upstream was compared with.

    What tools write into a package that comes, its name, upstream and merge comments, is the same on both sides.
    """

    upstream: FileTree
    local: FileTree
    against: Fetched


def compare_with_upstream(local: FileTree, fetch: Fetch, ref: str = "") -> Comparison | tuple[Finding, ...]:
    """Return how a package differs from its upstream, or why it cannot be compared.

    `ref` is "" for what was merged last, "latest" for where the upstream that is followed stands now, or another ref.
    Remote subpackages are compared with their own upstreams; with a `ref`, those that would move along with the root.
    """
    kptfile = Package(local).kptfile
    if isinstance(kptfile, tuple):
        return kptfile
    against = _fetched(kptfile, kptfile, fetch, ref)
    if against is None:
        section = "upstream" if ref else "upstreamLock"
        text = f"a package must say in {section}.git what it is to be compared with"
        return (UPSTREAM_MISSING.finding(text, Where(KPTFILE, pointer=f"{section}.git")),)
    upstream = _at(FileTree(), "", against.files, kptfile)
    for package in Package(local).subpackages:
        own = kptfile_in(local, package)
        came = _fetched(own, kptfile, fetch, ref) if own else None
        if own and came:
            upstream = _at(upstream, package, came.files, own)
    differing = package_diff(upstream, local)
    return Comparison(_shown(upstream, differing, local), _shown(local, differing, local), against)


def _fetched(kptfile: Kptfile, root: Kptfile, fetch: Fetch, ref: str) -> Fetched | None:
    git, lock = _git(kptfile), kptfile.upstream_lock.git if kptfile.upstream_lock else None
    followed, own = _git(root), kptfile is root
    if git and ref == LATEST:
        return fetch.fetch(git.repo, git.directory, git.ref)
    if git and followed and ref and (own or moves_along(git, followed)):
        return fetch.fetch(git.repo, git.directory, ref)
    if lock is None or (own and ref):
        return None
    # a commit tells people little: the ref that it came by is shown beside it
    return replace(fetch.fetch(lock.repo, lock.directory, lock.commit), ref=lock.ref)


def _git(kptfile: Kptfile) -> GitUpstream | None:
    return kptfile.upstream.git if kptfile.upstream else None


def _at(files: FileTree, package: str, came: FileTree, local: Kptfile) -> FileTree:
    """Return the files with a package as it would have come to where the local one stands."""
    read = read_kptfile(came[KPTFILE].data) if KPTFILE in came else new_kptfile(local.name)
    if isinstance(read, Kptfile):
        came = came.with_files({KPTFILE: _placed_like(read, local).to_bytes()})
    outside = {path: file for path, file in files.items() if package and not is_below(path, package)}
    return FileTree({**outside, **{join(package, path): file for path, file in came.items()}})


def _placed_like(kptfile: Kptfile, local: Kptfile) -> Kptfile:
    rest = {key: value for key, value in kptfile.with_name(local.name).data.items() if key not in _OF_THE_PLACE}
    return kptfile.with_data({**rest, **{key: local.data[key] for key in _OF_THE_PLACE if key in local.data}})


def _shown(files: FileTree, paths: tuple[str, ...], local: FileTree) -> FileTree:
    return FileTree({path: _commented(path, files[path], local.get(path)) for path in paths if path in files})


def _commented(path: str, file: File, local: File | None) -> File:
    """Return the file with the merge comments that it has or would get, so that these are no difference."""
    if local is None or not is_yaml(path):
        return file
    content = with_comments(file.data, "compat" if UPSTREAM_IDENTIFIER.encode() in local.data else "safe")
    return file if isinstance(content, Unparsable) else File(content, file.executable)
