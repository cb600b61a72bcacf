"""The changes of open drafts in the report: one entry for each variant, with the texts of its first draft."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from shlex import quote

from reconciler.catalog.files import FileTree
from reconciler.krm.json_text import compute_digest
from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.changes.data import build_diffs
from reconciler.output.changes.package_changes import select_differing_files
from reconciler.output.fleet.model import ChangeVariant, IndexedDraft, ReviewChange
from reconciler.output.fleet.resource_diffs import DiffBlock, ResourceDiff, build_resource_diffs
from reconciler.output.report.model import ReportedChange, ReportTarget
from reconciler.output.review.open_drafts import DraftDetails, DraftPackageDetails, format_reproduce_commands
from reconciler.output.status.package_sections import format_recorded_owner
from reconciler.output.text import MAX_DIFF_LINES

_MAX_SUMMARY_LINES = 50
# Limit the diffs, so that a browser can open the report of a large fleet. `reconciler show` prints omitted diffs.
_MAX_DIFF_LINES = 40_000


@dataclass
class _FirstDraft:
    """The first draft of a variant, with the files that the draft changes.

    Attributes:
        before: The changed files before the draft.
        after: The changed files in the draft.
        digest: The digest of `before` and `after`.
        has_target_names: Whether another draft of the variant has a different digest. Drafts of a variant can differ
            in names, such as the name of the cluster, and in changes without an effect on a cluster.
    """

    folder: str
    before: FileTree
    after: FileTree
    details: DraftPackageDetails
    reproduce_command: str
    digest: str
    has_target_names: bool = False


class DraftTexts:
    """The texts of drafts. Only the files of the first draft of each variant are stored."""

    def __init__(self) -> None:
        self._drafts: dict[str, _FirstDraft] = {}

    def add(self, indexed: IndexedDraft, draft: DraftDetails, details: DraftPackageDetails) -> None:
        """Add a package of a draft to its variant."""
        first = self._drafts.get(indexed.variant_digest)
        if first and first.has_target_names:
            return
        before, after = select_differing_files(details.before, details.after)
        digest = compute_digest([before.id, after.id])
        if first:
            first.has_target_names = first.digest != digest
            return
        folder = draft.draft.target.get_package_path(details.package.package)
        reproduce_command = next(format_reproduce_commands(draft, details))
        self._drafts[indexed.variant_digest] = _FirstDraft(folder, before, after, details, reproduce_command, digest)

    def list_changes(self, changes: Iterable[ReviewChange], *, should_diff_resources: bool) -> Iterator[ReportedChange]:
        """Yield one entry for each variant of these changes, in order. Omit diffs after the size limit is reached."""
        remaining_lines = _MAX_DIFF_LINES
        for change in changes:
            for variant in change.variants:
                first = self._drafts[variant.digest]
                max_lines = MAX_DIFF_LINES if remaining_lines > 0 else 0
                reported = _build_change(change, variant, first, max_lines)
                if max_lines and should_diff_resources:
                    reported = replace(reported, resource_diffs=_build_resource_diffs(first))
                remaining_lines -= sum(diff.diff.count("\n") for diff in reported.diffs)
                yield replace(reported, is_diff_omitted=remaining_lines <= 0 and not reported.diffs)


def _build_change(change: ReviewChange, variant: ChangeVariant, first: _FirstDraft, max_lines: int) -> ReportedChange:
    """Return the entry of a variant. The value 0 of `max_lines` omits the diffs."""
    content, details = variant.content, first.details
    targets = tuple(ReportTarget(member.target, member.package) for member in variant.members)
    lines = (
        *content.changes.format_summary_lines(_MAX_SUMMARY_LINES),
        *content.changes.format_file_lines(_MAX_SUMMARY_LINES),
    )
    return ReportedChange(
        key=variant.digest,
        review_key=change.key,
        package=details.package.package,
        action=content.action,
        owner=format_recorded_owner(details.package.status),
        targets=targets,
        since=min((member.since for member in variant.members if member.since is not None), default=None),
        risk=content.risk.level,
        summary_lines=lines,
        causes=content.causes,
        template_effects=content.template_effects,
        diffs=build_diffs(first.before, first.after, first.folder, max_lines),
        show_command=f"reconciler show {quote(str(targets[0]))}",
        reproduce_command=first.reproduce_command,
        risk_reasons=content.risk.reasons,
        has_target_names=first.has_target_names,
    )


def _build_resource_diffs(first: _FirstDraft) -> tuple[ResourceDiff, ...]:
    return tuple(map(_limit_lines, build_resource_diffs(first.before, first.after, first.details.changes)))


def _limit_lines(diff: ResourceDiff) -> ResourceDiff:
    """Return the diff with the first changed lines only, and with a note about the other changed lines."""
    more = diff.changed_lines - MAX_DIFF_LINES
    if more <= 0:
        return diff
    note = f"{format_count(more, 'more changed line')}, not shown. The command prints the whole diff."
    return replace(diff, blocks=tuple(_limit_blocks(diff.blocks, MAX_DIFF_LINES)), note=note)


def _limit_blocks(blocks: Iterable[DiffBlock], max_lines: int) -> Iterator[DiffBlock]:
    """Yield the first blocks, with at most `max_lines` changed lines. The last block can be shortened."""
    remaining = max_lines
    for block in blocks:
        if not block.is_changed:
            yield block
            continue
        old = block.old[:remaining]
        new = block.new[: remaining - len(old)]
        yield replace(block, old=old, new=new)
        remaining -= len(old) + len(new)
        if not remaining:
            return
