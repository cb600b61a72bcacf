"""GitOps Promoter's contract: which drafts it may take over, and the file that it finds on them (peers, idea 11)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from reconciler.planning.branches import Grow, Layout
from reconciler.planning.destination import Destination

METADATA = "hydrator.metadata"
_SUFFIX = "-next"


def metadata_path(destination: Destination, draft: str) -> str | None:
    """Return where Promoter looks for the metadata of a draft branch; None where it does not look at the branch.

    It goes by names alone: `<branch>-next` proposes all of the branch, `<branch>-next/<directory>` that directory.
    """
    proposed = f"{destination.branch}{_SUFFIX}"
    if draft == proposed:
        return METADATA
    is_its_own = destination.directory and draft == f"{proposed}/{destination.directory}"
    return destination.path(METADATA) if is_its_own else None


def with_metadata(
    layouts: Iterable[Layout], destination: Destination, removals: Collection[str], content: bytes
) -> tuple[Layout, ...]:
    """Return the layouts with the metadata on each commit of drafts that Promoter takes over, removals left out.

    Only what gets a commit anyway has it: a new config commit moves nothing by itself (design 10.9).
    """
    return tuple(one if one.branch in removals else _noted(one, destination, content) for one in layouts)


def _noted(layout: Layout, destination: Destination, content: bytes) -> Layout:
    path = metadata_path(destination, layout.branch)
    return replace(layout, metadata=(path, content)) if path and isinstance(layout, Grow) else layout
