"""Getting a package by hand: a new package from a place upstream, with its remote subpackages (kpt.md 4)."""

from __future__ import annotations

from dataclasses import replace

from reconciler.krm.findings import Where
from reconciler.packages.codes import SUBPACKAGE_DEPTH
from reconciler.packages.kptfile import KPTFILE, GitUpstream, Strategy, new_kptfile, read_kptfile
from reconciler.packages.merge_comments import with_merge_comments
from reconciler.packages.package import Package, join
from reconciler.packages.update.fetching import Fetch, with_lock
from reconciler.packages.update.kptfile_merge import merge_kptfile
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.result import Updated
from reconciler.packages.update.sides import is_below, is_unfetched, kptfile_in
from reconciler.packages.update.walk import placed
from reconciler.snapshot.files import FileTree

# a package may hold one from elsewhere that holds one from elsewhere; a circle would never end
_DEEPEST = 16


def get_package(
    fetch: Fetch, source: GitUpstream, name: str, options: MergeOptions, strategy: Strategy = "resource-merge"
) -> Updated:
    """Return a new package called `name` from upstream, unfetched subpackages included.

    With an error among the findings there is no package, and no files.
    """
    place = {"repo": source.repo, "directory": source.directory, "ref": source.ref}
    named = new_kptfile(name)
    upstream = {"type": "git", "git": place, "updateStrategy": strategy}
    followed = named.with_data({**named.data, "upstream": upstream})
    result = Updated(FileTree().with_files({KPTFILE: followed.to_bytes()}))
    waiting = [("", 0)]
    while waiting and not result.has_failed:
        package, depth = waiting.pop()
        result = _too_deep(result, package) if depth > _DEEPEST else _fetched(result, package, fetch, options)
        waiting += [(path, depth + 1) for path in reversed(_unfetched_below(result.files, package))]
    if result.has_failed:
        return replace(result, files=FileTree())
    files, findings = with_merge_comments(result.files, options.profile)
    return replace(result, files=files, findings=(*result.findings, *findings))


def _fetched(before: Updated, package: str, fetch: Fetch, options: MergeOptions) -> Updated:
    """Return the files with the content of an unfetched package, merged into the Kptfile that it already has."""
    kptfile = kptfile_in(before.files, package)
    git = kptfile.upstream.git if kptfile and kptfile.upstream else None
    if kptfile is None or git is None:
        return before
    fetched = fetch.fetch(git.repo, git.directory, git.ref)
    updated = read_kptfile(fetched.files[KPTFILE].data) if KPTFILE in fetched.files else None
    if isinstance(updated, tuple):
        return placed(before, package, Updated(fetched.files, (), updated))
    merged, _ = merge_kptfile(None, updated, kptfile, options)
    content = with_lock(merged, git, fetched).to_bytes()
    files = before.files.below(package).with_files(fetched.files).with_files({KPTFILE: content})
    return placed(before, package, Updated(files))


def _unfetched_below(files: FileTree, package: str) -> list[str]:
    below = [path for path in Package(files).subpackages if path != package and is_below(path, package)]
    waiting = [path for path in below if is_unfetched(kptfile_in(files, path))]
    return [path for path in waiting if not any(is_below(path, other) for other in waiting)]


def _too_deep(before: Updated, package: str) -> Updated:
    text = f"at most {_DEEPEST} packages may lie in each other, each from an upstream of its own"
    return before.noting((), [SUBPACKAGE_DEPTH.finding(text, Where(join(package, KPTFILE)))])
