"""GitOps Promoter's contract: which branches it looks at, and the file that it finds there (peers, idea 11).

It fails on a proposed branch that does not exist, so that ours stays when its draft has ended.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.planning.branches import Grow, Keep, Layout, Rest
from reconciler.planning.destination import Destination, draft_branch
from reconciler.planning.fleet import DestinationPlan
from reconciler.snapshot.objects import CommitId

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


def proposed_branch(destination: Destination, template: str) -> str | None:
    """Return the draft branch that Promoter looks at, if the template names one so that has all packages."""
    name = draft_branch(template, destination, "")
    return name if "{package}" not in template and metadata_path(destination, name) else None


def is_resting(head: CommitId | None, published: CommitId | None, seen: CommitId | None) -> bool:
    """Return whether there is no draft on Promoter's branch: it is at the cluster branch, as it is or was last seen."""
    return head is not None and head in (published, seen)


def for_promoter(plan: DestinationPlan, template: str, content: bytes) -> tuple[Layout, ...]:
    """Return the layouts as Promoter expects them: the metadata on each commit of its draft, or a branch at rest.

    Only what gets a commit anyway has the metadata: a new config commit moves nothing by itself (design 10.9).
    """
    branch = proposed_branch(plan.destination, template)
    if branch is None or plan.heads.branch is None:
        return plan.layouts
    mine = next((one for one in plan.layouts if one.branch == branch), None)
    others = tuple(one for one in plan.layouts if one.branch != branch)
    if isinstance(mine, Grow):
        return (*others, _noted(mine, plan, content))
    stands = branch in plan.after.drafts or plan.heads.absent
    return plan.layouts if stands else (*others, _at_rest(branch, plan.heads.branch, plan))


def _noted(grow: Grow, plan: DestinationPlan, content: bytes) -> Grow:
    path = metadata_path(plan.destination, grow.branch)
    assert path, "the branch is Promoter's"
    return replace(grow, old=grow.old or plan.heads.resting, metadata=(path, content))


def _at_rest(branch: str, published: CommitId, plan: DestinationPlan) -> Layout:
    old = plan.heads.drafts.get(branch, plan.heads.resting)
    return Keep(branch) if old == published else Rest(branch, old, published)
