"""Cloning: a new package from the files of an upstream one (kpt.md 4, porch.md 5.1)."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.krm.findings import Finding
from reconciler.packages.kptfile import KPTFILE, Kptfile, Profile, new_kptfile
from reconciler.packages.merge_comments import with_merge_comments
from reconciler.packages.package import Package
from reconciler.snapshot.files import FileTree


@dataclass(frozen=True)
class UpstreamAt:
    """An upstream package, resolved: what is written to upstream and upstreamLock.

    `repo` is final text, as design 10.18 wants it (the Repository's own, ending in `.git`, without credentials).
    """

    repo: str
    directory: str
    ref: str
    commit: str


def clone(
    upstream: FileTree, name: str, lock: UpstreamAt, profile: Profile = "safe"
) -> tuple[FileTree, tuple[Finding, ...]]:
    """Return the files of a new package called `name`, and findings.

    The Kptfile gets its name, upstream and upstreamLock, resources their merge comments; nothing else changes.
    A Kptfile that cannot be read is an error, and the files come back as they were.
    """
    kptfile = Package(upstream).kptfile if KPTFILE in upstream else new_kptfile(name)
    if not isinstance(kptfile, Kptfile):
        return upstream, kptfile
    # what the upstream package itself once followed is not ours, its strategy included
    named = kptfile.without_upstream().with_name(name)
    followed = named.with_upstream(lock.repo, lock.directory, lock.ref, lock.commit)
    return with_merge_comments(upstream.with_files({KPTFILE: followed.to_bytes()}), profile)
