"""Results of the read API: the revisions of a package, the differences of a change, and the objects of a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal

from pydantic import Field

from reconciler.output.changes.objects import ChangeType
from reconciler.output.envelope import CommandResult, OutputModel
from reconciler.output.fleet.model import ChangeVariant, DraftMember, FleetIndex, PackageRow, ReviewChange
from reconciler.output.fleet.publications import Publication
from reconciler.output.fleet.resource_diffs import DiffBlock, DiffLine, ResourceDiff
from reconciler.output.fleet.results import PublicationEntry, build_publication_entry, create_api_metadata


class PackageHistorySummary(OutputModel):
    """The package, and the number of its recorded revisions."""

    target: str
    package: str
    revisions: int


class PackageHistoryResult(CommandResult):
    """The recorded revisions of a package, the newest first."""

    kind: Literal["PackageHistory"] = "PackageHistory"
    items: tuple[PublicationEntry, ...]
    summary: PackageHistorySummary


class ResourceDiffEntry(OutputModel):
    """The differences of one resource, or of a file without resources. Secrets are masked."""

    resource: str = Field(description="The resource as `Kind namespace/name`, or the path of the file.")
    change_type: ChangeType
    file: str
    is_noise: bool = Field(default=False, description="Whether the difference has no effect on the cluster.")
    note: str = Field(default="", description="The reason why there is no diff.")
    diff: str = Field(default="", description="The hunks of the unified diff.")


class ChangeDiffSummary(OutputModel):
    """The draft whose differences the result contains, and the numbers of these differences."""

    change: str
    variant: str
    target: str
    package: str
    draft_head: str
    branch_head: str
    resources: int
    changed_lines: int = Field(description="The number of added and removed lines, without noise.")


class ChangeDiffResult(CommandResult):
    """The differences of one draft of a variant."""

    kind: Literal["ChangeDiff"] = "ChangeDiff"
    items: tuple[ResourceDiffEntry, ...]
    summary: ChangeDiffSummary


class FoundObject(OutputModel):
    """An object that a search found."""

    type: Literal["change", "target", "package", "resource", "object", "finding"]
    title: str
    page: str = Field(description="The path of the page of the console.")
    detail: str = Field(
        default="", description="The owner of a package or change, the fields of a resource, or the use of an object."
    )


class SearchSummary(OutputModel):
    """The number of found objects by type."""

    found: Mapping[str, int]


class SearchResult(CommandResult):
    """The changes with their resources, targets, packages, config objects and finding codes that a search found."""

    kind: Literal["Search"] = "Search"
    items: tuple[FoundObject, ...]
    summary: SearchSummary


def build_package_history(
    index: FleetIndex, row: PackageRow, publications: Sequence[Publication], total: int, cursor: str | None
) -> PackageHistoryResult:
    """Return the result with these publications of a package. `total` is the number of publications on all pages."""
    return PackageHistoryResult(
        metadata=create_api_metadata(index),
        items=tuple(build_publication_entry(row, publication) for publication in publications),
        summary=PackageHistorySummary(target=row.target, package=row.package, revisions=total),
        next=cursor,
    )


def build_change_diff(
    index: FleetIndex,
    change: ReviewChange,
    variant: ChangeVariant,
    member: DraftMember,
    diffs: Sequence[ResourceDiff],
    shown: Iterable[ResourceDiff],
    cursor: str | None,
) -> ChangeDiffResult:
    """Return the result with the differences of one draft.

    Args:
        diffs: The differences on all pages.
        shown: The differences on this page.
    """
    return ChangeDiffResult(
        metadata=create_api_metadata(index),
        items=tuple(map(_build_resource_diff, shown)),
        summary=ChangeDiffSummary(
            change=change.key,
            variant=variant.key,
            target=member.target,
            package=member.package,
            draft_head=member.head,
            branch_head=member.published_head,
            resources=len(diffs),
            changed_lines=sum(diff.changed_lines for diff in diffs if not diff.is_noise),
        ),
        next=cursor,
    )


def _build_resource_diff(diff: ResourceDiff) -> ResourceDiffEntry:
    return ResourceDiffEntry(
        resource=diff.title,
        change_type=diff.change_type,
        file=diff.file,
        is_noise=diff.is_noise,
        note=diff.note,
        diff=format_hunks(diff.blocks),
    )


def format_hunks(blocks: Iterable[DiffBlock]) -> str:
    """Return the blocks as the hunks of a unified diff. Omit blocks with hidden lines: they separate the hunks."""
    groups = groupby(blocks, key=lambda block: bool(block.hidden_count))
    return "".join(f"{line}\n" for is_hidden, hunk in groups if not is_hidden for line in _list_hunk_lines([*hunk]))


def _list_hunk_lines(blocks: Sequence[DiffBlock]) -> Iterator[str]:
    old, new = ([line for block in blocks for line in getattr(block, side)] for side in ("old", "new"))
    yield f"@@ -{_format_range(old)} +{_format_range(new)} @@"
    for block in blocks:
        if block.is_changed:
            yield from (f"-{line.text}" for line in block.old)
            yield from (f"+{line.text}" for line in block.new)
        else:
            yield from (f" {line.text}" for line in block.new)


def _format_range(lines: Sequence[DiffLine]) -> str:
    return f"{lines[0].number if lines else 0},{len(lines)}"


def build_search_result(
    index: FleetIndex, items: Iterable[FoundObject], counts: Mapping[str, int], cursor: str | None
) -> SearchResult:
    """Return the result with these objects. `counts` maps each type to the number of objects on all pages."""
    return SearchResult(
        metadata=create_api_metadata(index), items=tuple(items), summary=SearchSummary(found=counts), next=cursor
    )
