"""The port through which upstream packages come, and what a Kptfile says of where they came from (kpt.md 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reconciler.packages.kptfile import GitUpstream, Kptfile, Strategy
from reconciler.snapshot.files import FileTree


@dataclass(frozen=True)
class Fetched:
    """A package as it stands upstream: its files, the commit, and the ref that was asked for."""

    files: FileTree
    commit: str
    ref: str


class Fetch(Protocol):
    """Brings upstream packages."""

    def fetch(self, repo: str, directory: str, ref: str) -> Fetched:
        """Return the package in a directory of a repository, "/" being all of it.

        `ref` is a branch, tag or commit; the first of `ref_candidates` that the repository has is meant.
        """


def ref_candidates(directory: str, ref: str) -> tuple[str, ...]:
    """Return the refs that a package's ref may mean, tags of its own first: `a/b/v1`, `a/v1`, `v1` (kpt.md 4.3)."""
    parts = [part for part in directory.split("/") if part not in ("", ".")]
    prefixes = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return (*(f"{prefix}/{ref}" for prefix in prefixes), ref)


def with_lock(kptfile: Kptfile, git: GitUpstream, fetched: Fetched) -> Kptfile:
    """Return the Kptfile with the commit in its upstreamLock."""
    place = {"repo": git.repo, "directory": git.directory, "ref": fetched.ref, "commit": fetched.commit}
    return kptfile.with_data({**kptfile.data, "upstreamLock": {"type": "git", "git": place}})


def with_source(kptfile: Kptfile, ref: str, strategy: Strategy | None) -> Kptfile:
    """Return the Kptfile following another ref of its upstream, by another strategy; "" and None leave them."""
    upstream: Mapping[str, Any] = kptfile.data.get("upstream") or {}
    changes = {"git": {**(upstream.get("git") or {}), "ref": ref}} if ref else {}
    chosen = {"updateStrategy": strategy} if strategy else {}
    return kptfile.with_data({**kptfile.data, "upstream": {**upstream, **changes, **chosen}})
