"""Prepares the diffs of a draft for the page of a change.

This module determines the order of the diffs, the sign of each diff (for example "+" for a new resource), and the lines
that the page shows.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator

from reconciler.git.errors import GitError
from reconciler.inspect.draft_content import DraftMovedError, get_place
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.explain.verification import CommitInfo
from reconciler.output.fleet.model import DraftMember, TargetEntry, VariantContent
from reconciler.output.fleet.resource_diffs import ResourceDiff
from reconciler.output.fleet.target_names import TargetNames
from reconciler.output.text import format_object_reference
from reconciler.reconcile.failures import repository_boundary
from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.failed_parts import report_failed_part

MAX_LINES = 400
MAX_RESOURCE_LINES = 5_000
_SIGNS = {"added": "+", "changed": "~", "removed": "−"}
_CONFLICT_SIGN = "≠"
_NOT_IN_ANCHORS = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class ShownDiff:
    """The diff of a resource on a page.

    Attributes:
        anchor: The ID of the HTML element, such as `r-Deployment-edge-web`.
        sign: A character for the change type or for a conflict, such as `+` for an added resource.
        digest: A digest of the diff. Equal diffs on different targets have the same digest.
        are_lines_hidden: Whether the page omits the lines of the diff, because they exceed a limit.
        is_too_large: Whether all pages omit the lines of the diff.
        raw_url: The URL of the file on the forge. "" if the URL is unknown.
        path: The path of the file in the repository.
    """

    diff: ResourceDiff
    anchor: str
    sign: str
    digest: str
    are_lines_hidden: bool
    is_too_large: bool
    raw_url: str
    path: str


@dataclass(frozen=True)
class ShownDiffs:
    """The diffs of a draft on a page.

    Attributes:
        noise: The diffs without an effect on the cluster.
        local_commits: The commits of the local changes in conflicts, in the order of the conflicts. None if unknown.
        large_bytes: The size of the changed files, if the draft is too large to show all its differences. Otherwise 0.
        error: The reason why the diffs cannot be read. "" if they were read.
    """

    resources: tuple[ShownDiff, ...] = ()
    noise: tuple[ShownDiff, ...] = ()
    local_commits: tuple[CommitInfo | None, ...] = ()
    large_bytes: int = 0
    error: str = ""

    @property
    def hidden_resources(self) -> tuple[ShownDiff, ...]:
        """The resources whose lines the page does not contain."""
        return tuple(resource for resource in self.resources if resource.are_lines_hidden)

    @property
    def hidden_lines(self) -> int:
        """The number of changed lines that the page does not contain."""
        return sum(resource.diff.changed_lines for resource in self.hidden_resources)


def read_diffs(
    context: ConsoleContext, target: TargetEntry, member: DraftMember, content: VariantContent, resource: str = ""
) -> ShownDiffs:
    """Return the diffs of a draft. Resources with conflicts come first.

    Args:
        resource: The title of a resource. Its lines are always shown, unless it is too large.
    """
    try:
        with repository_boundary("the content of a draft"):
            draft = context.contents.read(member, content.changes, resource)
    except DraftMovedError:
        return ShownDiffs(error="The draft has changed since the last pass. The next pass shows its new content.")
    except GitError as error:
        return ShownDiffs(error=report_failed_part(error))
    conflicting = {format_object_reference(conflict.resource) for conflict in content.conflicts}
    conflicting |= {conflict.file for conflict in content.conflicts if not conflict.resource}
    ordered = sorted(draft.diffs, key=lambda diff: diff.title not in conflicting)
    names = TargetNames(member.target, package=member.package)
    # The draft does not contain a removed resource, so its link shows the published file.
    folder = posixpath.join(target.directory, member.package)

    def build_url(diff: ResourceDiff) -> str:
        commit = member.published_head if diff.change_type == "removed" else member.head
        return context.config.links.build_file_url(target.url, commit, posixpath.join(folder, diff.file))

    shown = [
        ShownDiff(
            diff,
            anchor,
            _CONFLICT_SIGN if diff.title in conflicting else _SIGNS[diff.change_type],
            diff.compute_digest(names),
            are_lines_hidden,
            (bool(diff.note) and not diff.is_omitted) or diff.changed_lines > MAX_RESOURCE_LINES,
            build_url(diff),
            posixpath.join(folder, diff.file),
        )
        for diff, anchor, are_lines_hidden in zip(
            ordered, _create_anchors(ordered), find_hidden(ordered, resource), strict=True
        )
    ]
    return ShownDiffs(
        tuple(item for item in shown if not item.diff.is_noise),
        tuple(item for item in shown if item.diff.is_noise),
        tuple(draft.local_commits.get(get_place(conflict)) for conflict in content.conflicts),
        0 if draft.is_complete else draft.changed_bytes,
    )


def find_hidden(diffs: Iterable[ResourceDiff], resource: str) -> Iterator[bool]:
    """For each diff, yield whether its lines are hidden.

    The lines of a diff are hidden in two cases:

    - The diff is large.
    - The diff and all diffs before it have more than `MAX_LINES` changed lines together, and it is not the diff of
      `resource`.
    """
    lines = 0
    for diff in diffs:
        lines += 0 if diff.is_noise else diff.changed_lines
        is_large = diff.changed_lines > MAX_RESOURCE_LINES
        yield is_large or (diff.title != resource and lines > MAX_LINES)


def _create_anchors(diffs: Collection[ResourceDiff]) -> Iterator[str]:
    """Yield a different ID for each diff. The IDs need no escapes in a CSS selector."""
    known: set[str] = set()
    for number, diff in enumerate(diffs):
        name = f"r-{_NOT_IN_ANCHORS.sub('-', diff.title)}"
        anchor = f"{name}-{number}" if name in known else name
        known.add(anchor)
        yield anchor
