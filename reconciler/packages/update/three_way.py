"""The two merges of whole packages: an update from upstream, and two sides of one package (kpt.md 5, git.md 3)."""

from __future__ import annotations

from dataclasses import replace

from reconciler.packages.clone import UpstreamAt
from reconciler.packages.kptfile import KPTFILE, Kptfile, Strategy, Upstream
from reconciler.packages.merge_comments import with_merge_comments
from reconciler.packages.package import Package
from reconciler.packages.update.difference import is_yaml
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.remote import update_tree
from reconciler.packages.update.result import Updated
from reconciler.packages.update.scope import merge_both
from reconciler.packages.update.sides import Sides
from reconciler.snapshot.files import FileTree


def update(
    origin: FileTree,
    updated: FileTree,
    local: FileTree,
    strategy: Strategy,
    options: MergeOptions,
    lock: UpstreamAt | None = None,
) -> Updated:
    """Return the local package with what upstream changed from `origin` to `updated` (kpt.md 5). Nothing is fetched.

    With `lock` the root's Kptfile says that it follows this from now on, and resources in the files that the update
    wrote get their merge comments. With an error among the findings the files are the local ones.
    """
    result = update_tree(Sides(origin, updated, local), strategy, options, is_locked=lock is not None)
    if not result.has_failed and lock:
        result = _locked(result, lock)
    if result.has_failed:
        return replace(result, files=local)
    return commented(result, local, options) if lock else result


def merge(base: FileTree, theirs: FileTree, ours: FileTree, options: MergeOptions) -> Updated:
    """Return what two sides of one package come to; in conflicts `upstream` is theirs and `local` ours (git.md 3).

    There is no strategy here, and no upstream that is followed: every part of every Kptfile is merged alike.
    """
    result = merge_both(Sides(base, theirs, ours), options)
    return replace(result, files=ours) if result.has_failed else result


def strategy_of(upstream: Upstream | None) -> Strategy:
    """Return how the package wants to be updated; resource-merge if it does not say."""
    return (upstream.update_strategy if upstream else None) or "resource-merge"


def commented(result: Updated, before: FileTree, options: MergeOptions) -> Updated:
    """Return the result with merge comments in the files that are not as they were before (kpt.md 5.4)."""
    untouched = (path for path in result.files if is_yaml(path) and result.files[path] == before.get(path))
    kept = list(untouched) if options.keep_untouched else []
    files, findings = with_merge_comments(result.files.without(*kept), options.profile)
    whole = FileTree({**result.files, **files})
    return Updated(whole, result.conflicts, (*result.findings, *findings))


def _locked(result: Updated, lock: UpstreamAt) -> Updated:
    kptfile = Package(result.files).kptfile
    if not isinstance(kptfile, Kptfile):
        return result.noting((), kptfile)
    followed = kptfile.with_upstream(lock.repo, lock.directory, lock.ref, lock.commit)
    return replace(result, files=result.files.with_files({KPTFILE: followed.to_bytes()}))
