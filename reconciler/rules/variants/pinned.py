"""Pinning: from what a floating tag names to the immutable revision that stands there (porch 14.1, tagMode rewrite)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from reconciler.rules.variants.revision_names import in_order, looks_immutable, number_of, tag_starts
from reconciler.rules.variants.upstream import Resolved, Unresolved, UpstreamRefs, UpstreamRepository
from reconciler.snapshot.objects import CommitId


def find_revision(
    found: Resolved, tag: str, repository: UpstreamRepository, refs: UpstreamRefs
) -> Resolved | Unresolved:
    """Return the immutable revision that a floating tag, which was resolved, names: by its commit, else by its tree.

    A channel file and `latest` say it themselves; a Git tag `stable` stands where a tag such as `v3` stands, too.
    """
    if found.suffix != tag and looks_immutable(found.suffix):
        return found
    starts = tag_starts(repository.tag_prefix, repository.directory, found.package)
    names = {f"{start}/{suffix}": suffix for start in reversed(starts) for suffix in _suffixes(start, refs)}
    pinned = {name: commit for name, suffix in names.items() if suffix != tag and (commit := refs.tag(name))}
    same = [name for name, commit in pinned.items() if commit == found.commit]
    same = same or [name for name, commit in pinned.items() if _has(commit, found, repository, refs)]
    if not same:
        message = (
            f"tag {tag} of {repository.name}/{found.package} names commit {found.commit[:12]}, which no revision names:"
            f" tag it, for example as {starts[-1]}/v1, or name a revision in a channel file"
        )
        return Unresolved("TagUnpinned", message)
    name = max(same, key=lambda name: (number_of(names[name]), in_order(names[name])))
    return replace(found, ref=name, number=number_of(names[name]), commit=pinned[name])


def _suffixes(start: str, refs: UpstreamRefs) -> Iterator[str]:
    suffixes = (name.removeprefix(f"{start}/") for name in refs.tags(f"{start}/"))
    return (suffix for suffix in suffixes if "/" not in suffix and looks_immutable(suffix))


def _has(commit: CommitId, found: Resolved, repository: UpstreamRepository, refs: UpstreamRefs) -> bool:
    package = refs.package(commit, repository.directory, found.package)
    return package is not None and package.tree == found.tree
