"""The results of review commands: `reconciler drafts` and `show`, and `propose`, `approve` and `reject`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from reconciler.krm.objects import Condition
from reconciler.output.changes.data import FileDiff
from reconciler.output.changes.package_changes import PackageChanges
from reconciler.output.entries import ConflictEntry, OwnerEntry
from reconciler.output.envelope import CommandResult, OutputModel
from reconciler.output.findings.entries import FindingEntry
from reconciler.output.release_effects import ReleaseEffect
from reconciler.planning.lifecycle.open_drafts import BlockingReason

ReviewVerb = Literal["propose", "approve", "reject", "drop"]


class BaseEntry(OutputModel):
    """The commit of the target branch at which a draft branch starts."""

    commit: str
    date: str = Field(default="", description="The commit date. Absent if nothing is published yet.")
    behind: int = Field(description="The number of commits on the target branch after this commit.")


class Rejection(OutputModel):
    """The rejection of the current version of a draft."""

    by: str
    reason: str = Field(default="", description="The reason for the rejection. Empty if the reviewer gave no reason.")

    @property
    def line(self) -> str:
        """The rejection as a phrase."""
        return f"rejected by {self.by}{f': {self.reason}' if self.reason else ''}"


class UpstreamRefs(OutputModel):
    """The refs of the upstream package before and after the change."""

    from_: str = Field(default="", alias="from")
    to: str = ""


class DraftContent(OutputModel):
    """The changes of a package in a draft."""

    causes: tuple[str, ...] = Field(default=(), description="The dependencies that changed.")
    changes: PackageChanges
    overrides: tuple[Mapping[str, Any], ...] = Field(
        default=(), description="The fields that override policies changed, in the format of status files."
    )
    template_effects: tuple[str, ...] = Field(default=(), description="The effects of changed templates on pods.")
    templates: tuple[Mapping[str, Any], ...] = Field(
        default=(), description="The child resources that inherit templates, in the format of status files."
    )
    release_effects: tuple[ReleaseEffect, ...] = Field(
        default=(),
        description="The effects of changed HelmReleases (`output: helmRelease`), with the option `--effects`.",
    )
    diffs: tuple[FileDiff, ...] = ()
    commands: tuple[str, ...] = Field(
        default=(), description="Commands that show the change again, and that render the package again."
    )


class DraftPackageEntry(OutputModel):
    """A package that a draft changes."""

    package: str
    task: str = Field(
        default="",
        description="The task of the draft: `propose-delete`, or a value of the field `task` in status files.",
    )
    action: str = Field(default="", description="The effect on the package, such as `update v1 → v2` or `removed`.")
    owner: OwnerEntry = OwnerEntry()
    upstream: UpstreamRefs = UpstreamRefs()
    is_edited: bool
    labels: Mapping[str, str] = Field(default={})
    annotations: Mapping[str, str] = Field(default={})
    conflicts: tuple[ConflictEntry, ...] = ()
    conditions: tuple[Condition, ...] = ()
    unmet_gates: tuple[BlockingReason, ...] = ()
    errors: tuple[BlockingReason, ...] = ()
    content: DraftContent | None = Field(
        default=None, description="The content of the draft. Only the command `show` sets this field."
    )


class DraftEntry(OutputModel):
    """A draft branch."""

    target: str
    branch: str
    head: str
    lifecycle: Literal["Draft", "Proposed"]
    stale_proposal: str = Field(
        default="", description="The commit that was proposed, if the draft changed after this proposal."
    )
    base: BaseEntry
    is_deployment: bool = Field(description="Whether unmet readiness gates block the publication.")
    is_removal: bool = Field(description="Whether the draft only deletes packages.")
    is_edited: bool = Field(description="Whether the draft branch contains commits that people created.")
    edited_by: tuple[str, ...] = ()
    pull_request: int | None = None
    files_outside_packages: tuple[str, ...] = ()
    rejection: Rejection | None = None
    approved_by: tuple[str, ...] = Field(
        default=(),
        description="The people who have approved this version. Present only while more approvals are necessary.",
    )
    refusals: tuple[BlockingReason, ...] = Field(default=(), description="The reasons that block the publication.")
    warnings: tuple[BlockingReason, ...] = ()
    packages: tuple[DraftPackageEntry, ...]


class DraftListSummary(OutputModel):
    """The numbers of drafts."""

    drafts: int
    proposed: int
    unreadable_targets: int = Field(description="The number of targets whose drafts are unknown.")


class DraftListResult(CommandResult):
    """The result of `reconciler drafts` and `reconciler show`. Targets that cannot be read have a finding."""

    kind: Literal["DraftList"] = "DraftList"
    items: tuple[DraftEntry, ...]
    findings: tuple[FindingEntry, ...]
    summary: DraftListSummary


class ReviewSummary(OutputModel):
    """The action, and the number of drafts with a completed action."""

    action: ReviewVerb
    completed: int
    by: str = Field(default="", description="The person who performed the action, as `Name <mail>`.")
