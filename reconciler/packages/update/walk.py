"""The update of a package by hand: the root and all remote subpackages, each from its own upstream (kpt.md 5.1)."""

from __future__ import annotations

from dataclasses import replace
from posixpath import normpath

from reconciler.krm.findings import Where
from reconciler.packages.codes import UPSTREAM_MISSING
from reconciler.packages.kptfile import KPTFILE, GitUpstream, Kptfile, Strategy
from reconciler.packages.merge_comments import with_merge_comments
from reconciler.packages.package import Package, join
from reconciler.packages.update.fetching import Fetch, with_lock, with_source
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.remote import update_tree
from reconciler.packages.update.result import Updated
from reconciler.packages.update.sides import Sides, is_below, kptfile_in
from reconciler.packages.update.three_way import commented, strategy_of
from reconciler.snapshot.files import FileTree


def update_from_upstream(
    local: FileTree, fetch: Fetch, options: MergeOptions, ref: str = "", strategy: Strategy | None = None
) -> Updated:
    """Return the package updated to `ref`, or to where its own ref stands now, with its remote subpackages.

    Subpackages from the same repository that followed the root's old ref move along with it. With an error among the
    findings the files are the local ones.
    """
    kptfile = Package(local).kptfile
    if isinstance(kptfile, tuple):
        return Updated(local, (), kptfile)
    root = _git(kptfile)
    if root is None:
        text = "a package must name the Git repository it comes from in upstream.git to be updated"
        return Updated(local, (), (UPSTREAM_MISSING.finding(text, Where(KPTFILE, pointer="upstream.git")),))
    result, waiting = Updated(_with_kptfile(local, "", with_source(kptfile, ref, strategy))), [""]
    while waiting and not result.has_failed:
        package = waiting.pop()
        result = _update_one(result, package, fetch, options)
        found = _remote_below(result.files, package)
        waiting += reversed(found)
        result = replace(result, files=_moved_along(result.files, found, root, ref, strategy))
    return replace(result, files=local) if result.has_failed else commented(result, local, options)


def _update_one(before: Updated, package: str, fetch: Fetch, options: MergeOptions) -> Updated:
    """Return the files with one package brought to where its upstream stands."""
    kptfile = kptfile_in(before.files, package)
    git = _git(kptfile)
    if kptfile is None or git is None:
        return before
    fetched = fetch.fetch(git.repo, git.directory, git.ref)
    lock = kptfile.upstream_lock.git if kptfile.upstream_lock else None
    origin = fetch.fetch(lock.repo, lock.directory, lock.commit).files if lock else FileTree()
    sides = Sides(origin, fetched.files, before.files.below(package))
    if options.profile == "compat":
        sides = sides.each(lambda side: with_merge_comments(side, options.profile)[0])
    # by hand, what upstream distributes is always part of the package
    updated = update_tree(sides, strategy_of(kptfile.upstream), replace(options, vendored=True))
    after = kptfile_in(updated.files, "")
    if after and not updated.has_failed:
        updated = replace(updated, files=_with_kptfile(updated.files, "", with_lock(after, git, fetched)))
    return placed(before, package, updated)


def placed(before: Updated, package: str, updated: Updated) -> Updated:
    """Return the files with those of one package, whose paths start there, in place of what stood there."""
    outside = {path: file for path, file in before.files.items() if package and not is_below(path, package)}
    inside = {join(package, path): file for path, file in updated.files.items()}
    conflicts = (replace(conflict, file=join(package, conflict.file)) for conflict in updated.conflicts)
    findings = (
        replace(finding, where=replace(finding.where, file=join(package, finding.where.file)))
        for finding in updated.findings
    )
    return Updated(FileTree({**outside, **inside}), (*before.conflicts, *conflicts), (*before.findings, *findings))


def _remote_below(files: FileTree, package: str) -> list[str]:
    """Return the remote subpackages below a package that lie below no other one, sorted."""
    below = [path for path in Package(files).subpackages if path != package and is_below(path, package)]
    remote = [path for path in below if _git(kptfile_in(files, path))]
    return [path for path in remote if not any(is_below(path, other) for other in remote)]


def _moved_along(
    files: FileTree, packages: list[str], root: GitUpstream, ref: str, strategy: Strategy | None
) -> FileTree:
    """Return the files with the subpackages following `ref` that followed the root's old one from inside its folder."""
    for package in packages:
        kptfile = kptfile_in(files, package)
        git = _git(kptfile)
        if kptfile and git and moves_along(git, root):
            files = _with_kptfile(files, package, with_source(kptfile, ref, strategy))
    return files


def moves_along(git: GitUpstream, root: GitUpstream) -> bool:
    """Tell whether a remote subpackage follows the ref that the root follows, from inside the root's folder."""
    if (git.repo, git.ref) != (root.repo, root.ref):
        return False
    inner, outer = (normpath(f"/{each.directory.strip('/')}") for each in (git, root))
    return inner == outer or is_below(inner, outer.rstrip("/"))


def _git(kptfile: Kptfile | None) -> GitUpstream | None:
    return kptfile.upstream.git if kptfile and kptfile.upstream else None


def _with_kptfile(files: FileTree, package: str, kptfile: Kptfile) -> FileTree:
    return files.with_files({join(package, KPTFILE): kptfile.to_bytes()})
