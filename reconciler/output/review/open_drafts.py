"""Open drafts with data from their Git history, and the results of `reconciler drafts` and `reconciler show`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding
from reconciler.krm.times import format_rfc3339
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.changes.data import build_diffs
from reconciler.output.changes.package_changes import PackageChanges, compare_packages
from reconciler.output.entries import build_conflict_entries, read_owner_entry
from reconciler.output.envelope import create_cli_metadata
from reconciler.output.findings.entries import build_finding_entries
from reconciler.output.json_data import read_mappings
from reconciler.output.release_effects import ReleaseEffect
from reconciler.output.review.models import (
    BaseEntry,
    DraftContent,
    DraftEntry,
    DraftListResult,
    DraftListSummary,
    DraftPackageEntry,
    Rejection,
    UpstreamRefs,
)
from reconciler.output.status.package_sections import (
    format_task,
    read_inputs,
    read_overrides,
    read_text,
    read_upstream,
)
from reconciler.planning.lifecycle.open_drafts import DraftedPackage, OpenDraft

_COMMIT_CHARACTERS = 12


@dataclass(frozen=True)
class DraftPackageDetails:
    """A package of a draft, with its files on the target branch and on the draft branch.

    Attributes:
        before: The files on the target branch.
        after: The files on the draft branch.
        causes: The causes of the draft, from the message of the draft commit.
        templates: The effects of template changes, from the message of the draft commit.
        since: The date of the first draft commit for this package, in seconds since 1970. None if the date is unknown.
        release_effects: The effects of changed HelmReleases, if they were computed.
    """

    package: DraftedPackage
    before: FileTree
    after: FileTree
    causes: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    since: int | None = None
    release_effects: tuple[ReleaseEffect, ...] = ()

    @cached_property
    def changes(self) -> PackageChanges:
        """The differences between the target branch and the draft branch."""
        return compare_packages(self.before, self.after)


@dataclass(frozen=True)
class DraftDetails:
    """A draft with data from its Git history.

    Attributes:
        base_seconds: The date of the base commit, in seconds since 1970. None if nothing is published yet.
        behind_count: The number of commits on the target branch after the base commit.
        editors: The authors of commits on the draft branch, without the reconciler.
        packages: The packages to show with all details.
        approved_by: The names of the people who have approved the current version, while more people must approve it.
    """

    draft: OpenDraft
    base_seconds: int | None
    behind_count: int
    editors: tuple[str, ...] = ()
    rejection: Rejection | None = None
    packages: tuple[DraftPackageDetails, ...] = ()
    approved_by: tuple[str, ...] = ()

    @property
    def extra_paths(self) -> tuple[str, ...]:
        """The paths of files that are outside of all packages and have local changes on the draft branch."""
        return tuple(file.path for file in self.draft.files_outside_packages)


def build_draft_list_result(
    drafts: Sequence[DraftDetails], config: str, errors: Iterable[Finding] = (), max_diff_lines: int = 0
) -> DraftListResult:
    """Return the result with these drafts.

    Args:
        config: The ID of the config.
        errors: One finding per target that cannot be read.
        max_diff_lines: The maximum number of diff lines per file. The value 0 omits the diffs.
    """
    findings = build_finding_entries(errors)
    return DraftListResult(
        metadata=create_cli_metadata(config),
        items=tuple(build_draft_entry(details, max_diff_lines) for details in drafts),
        findings=findings,
        summary=DraftListSummary(
            drafts=len(drafts),
            proposed=sum(details.draft.lifecycle == "Proposed" for details in drafts),
            unreadable_targets=len(findings),
        ),
    )


def build_draft_entry(details: DraftDetails, max_diff_lines: int = 0) -> DraftEntry:
    """Return the entry of a draft, with the content of the packages in `details.packages`."""
    draft, is_stale = details.draft, details.draft.lifecycle == "Stale"
    contents = {
        package.package.package: _build_content(details, package, max_diff_lines) for package in details.packages
    }
    return DraftEntry(
        target=draft.target.name,
        branch=draft.branch,
        head=draft.head,
        lifecycle="Proposed" if draft.lifecycle == "Proposed" else "Draft",
        stale_proposal=draft.proposed_head or "" if is_stale else "",
        base=BaseEntry(
            commit=draft.base,
            date="" if details.base_seconds is None else format_rfc3339(details.base_seconds),
            behind=details.behind_count,
        ),
        is_deployment=draft.target.is_deployment,
        is_removal=draft.is_removal,
        is_edited=draft.is_edited,
        edited_by=details.editors,
        pull_request=draft.pull_request_number or None,
        files_outside_packages=details.extra_paths,
        rejection=details.rejection,
        approved_by=details.approved_by,
        refusals=draft.list_refusals(),
        warnings=draft.list_warnings(),
        packages=tuple(_build_package_entry(package, contents.get(package.package)) for package in draft.packages),
    )


def _build_package_entry(package: DraftedPackage, content: DraftContent | None) -> DraftPackageEntry:
    status = package.status
    refs = {name: read_text(read_upstream(status, side), "ref") for name, side in (("from_", "from"), ("to", "to"))}
    return DraftPackageEntry(
        package=package.package,
        task="propose-delete" if package.is_removed else read_text(status, "task"),
        action="removed" if package.is_removed else format_task(status),
        owner=read_owner_entry(status.get("owner")),
        upstream=UpstreamRefs(**refs),
        is_edited=package.is_edited,
        labels={} if package.is_removed else dict(package.record.labels),
        annotations={} if package.is_removed else dict(package.record.annotations),
        conflicts=build_conflict_entries(list(package.conflicts)),
        conditions=package.conditions,
        unmet_gates=package.unmet_gates,
        errors=package.errors,
        content=content,
    )


def _build_content(details: DraftDetails, package: DraftPackageDetails, max_diff_lines: int) -> DraftContent:
    status = package.package.status
    folder = details.draft.target.get_package_path(package.package.package)
    return DraftContent(
        causes=package.causes,
        changes=package.changes,
        overrides=read_overrides(status.get("overrides")),
        template_effects=package.templates,
        templates=tuple(read_mappings(status, "templates")),
        release_effects=package.release_effects,
        diffs=build_diffs(package.before, package.after, folder, max_diff_lines),
        commands=tuple(format_reproduce_commands(details, package)),
    )


def format_reproduce_commands(details: DraftDetails, package: DraftPackageDetails) -> Iterator[str]:
    """Yield the commands with which a person can show the change again and render the package again."""
    draft = details.draft
    path = draft.target.get_package_path(package.package.package)
    published, head = draft.published_head[:_COMMIT_CHARACTERS], draft.head[:_COMMIT_CHARACTERS]
    yield f"git diff {published} {head} -- {path}"
    config = read_text(read_inputs(package.package.status), "config")
    if config and not package.package.is_removed:
        version = config if config.startswith("tree:") else f"commit {config[:_COMMIT_CHARACTERS]}"
        output = f"OUT/{draft.target.name}/{path}"
        yield f"reconciler render CONFIG --output OUT, with CONFIG at {version}, writes {output}"
