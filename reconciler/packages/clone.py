"""Cloning: a new package from the files of an upstream one (kpt.md 4, porch.md 5.1)."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.caching import cached
from reconciler.krm.findings import Finding
from reconciler.packages.kptfile import KPTFILE, Kptfile, Profile, Upstream, new_kptfile
from reconciler.packages.merge_comments import with_merge_comments
from reconciler.packages.package import Package
from reconciler.snapshot.files import FileTree

# the packages in flight: most clusters have the same clone of an upstream
_REMEMBERED_PACKAGES = 256


@dataclass(frozen=True)
class UpstreamAt:
    """An upstream package, resolved: what is written to upstream and upstreamLock.

    `repo` is final text, as design 10.18 wants it (the Repository's own, ending in `.git`, without credentials).
    """

    repo: str
    directory: str
    ref: str
    commit: str


@cached(_REMEMBERED_PACKAGES)
def clone(
    source: FileTree, name: str, lock: UpstreamAt, profile: Profile = "safe", base: FileTree | None = None
) -> tuple[FileTree, tuple[Finding, ...]]:
    """Return the files of the package `name` that stands at `lock`, and findings.

    `base` is the upstream as it came where `source` is that with people's edits in it. The Kptfile gets its name,
    upstream and upstreamLock, resources their merge comments; nothing else changes. A Kptfile that cannot be read is
    an error, and the files come back as they were.
    """
    kptfile = Package(source).kptfile if KPTFILE in source else new_kptfile(name)
    if not isinstance(kptfile, Kptfile):
        return source, kptfile
    # what the upstream package itself once followed is not ours, its strategy included; what people wrote there is
    own = base is not None and upstream_of(source) != upstream_of(base)
    named = (kptfile if own else kptfile.without_upstream()).with_name(name)
    followed = named.with_upstream(lock.repo, lock.directory, lock.ref, lock.commit)
    return with_merge_comments(source.with_files({KPTFILE: followed.to_bytes()}), profile)


def lock_of(files: FileTree) -> UpstreamAt | None:
    """Return what a package's upstreamLock says; None when its Kptfile has none, or cannot be read."""
    kptfile = Package(files).kptfile if KPTFILE in files else ()
    lock = kptfile.upstream_lock.git if isinstance(kptfile, Kptfile) and kptfile.upstream_lock else None
    return UpstreamAt(lock.repo, lock.directory, lock.ref, lock.commit) if lock and lock.ref else None


def upstream_of(files: FileTree) -> Upstream | None:
    """Return what a package's Kptfile says that it follows."""
    kptfile = Package(files).kptfile if KPTFILE in files else ()
    return kptfile.upstream if isinstance(kptfile, Kptfile) else None
