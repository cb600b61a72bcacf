"""The result of `reconciler plan`: changes, removals, blocked packages and the config proposal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, InstanceOf, PlainSerializer

from reconciler.controllers.kafka_templates.effective_templates import TemplateChange
from reconciler.output.causes import DraftAction
from reconciler.output.changes.data import FileDiff
from reconciler.output.changes.package_changes import PackageChanges
from reconciler.output.entries import ConflictEntry, OwnerEntry
from reconciler.output.envelope import CommandResult, OutputModel
from reconciler.output.findings.entries import FindingCause, FindingEntry
from reconciler.output.release_effects import ReleaseEffect
from reconciler.output.text import shorten_id
from reconciler.planning.model.outcomes import RemovalKind

BlockedState = Literal["blocked", "stalled", "held"]


class PlannedPackage(OutputModel):
    """A package that a change affects."""

    target: str
    package: str
    owner: OwnerEntry
    causes: tuple[str, ...] = Field(default=(), description="The dependencies that changed since the last render.")

    @property
    def title(self) -> str:
        """The package as `target/package`."""
        return f"{self.target}/{self.package}"


class TemplateChangeEntry(OutputModel):
    """A change of the effective template of a child resource."""

    resource: str = Field(description="The child resource, as `Kind/namespace/name`.")
    properties: tuple[str, ...]
    affected_kinds: tuple[str, ...]
    restarts_pods: bool | None = Field(description="Whether pods restart. null means that this is unknown.")
    moved_from: str = Field(default="", description="The parent of the child resource before the change.")


def _build_template_change_entry(change: TemplateChange) -> TemplateChangeEntry:
    return TemplateChangeEntry(
        resource=change.child.reference,
        properties=change.properties,
        affected_kinds=change.affected_kinds,
        restarts_pods=change.restarts_pods,
        moved_from=change.previous_parent.reference if change.previous_parent else "",
    )


SerializedTemplateChange = Annotated[
    InstanceOf[TemplateChange], PlainSerializer(_build_template_change_entry, return_type=TemplateChangeEntry)
]
"""A change of a template. JSON data contains the `TemplateChangeEntry`."""


class PlannedChange(OutputModel):
    """Drafts with equal changes. `changes` and `diffs` are those of the first package."""

    type: Literal["change"]
    action: DraftAction
    task: str = Field(description="The task of the drafts, as in the field `status.task` of status files.")
    version: str = Field(default="", description="The version change of the upstream, such as `v1 → v2`.")
    packages: tuple[PlannedPackage, ...]
    conflicts: tuple[ConflictEntry, ...] = ()
    unmet_gates: tuple[str, ...] = Field(
        default=(), description="The conditions that block the publication of the draft."
    )
    changes: PackageChanges
    overrides: tuple[Mapping[str, Any], ...] = Field(
        default=(),
        description="The fields that override policies change in new packages, in the format of status files.",
    )
    template_changes: tuple[SerializedTemplateChange, ...] = ()
    templates: tuple[Mapping[str, Any], ...] = Field(
        default=(), description="The child resources with changed templates, in the format of status files."
    )
    release_effects: tuple[ReleaseEffect, ...] = Field(
        default=(), description="The effects of changed HelmReleases (`output: helmRelease`)."
    )
    diffs: tuple[FileDiff, ...] = ()


class PlannedRemoval(OutputModel):
    """A package that no config object requests any more."""

    type: Literal["removal"]
    state: RemovalKind
    is_new: bool = Field(
        description="Whether this pass changed the state of the removal. If false, an earlier pass did this."
    )
    target: str
    package: str
    owner: OwnerEntry
    branch: str = Field(default="", description="The branch of the removal draft.")
    reason: str

    @property
    def title(self) -> str:
        """The package as `target/package`."""
        return f"{self.target}/{self.package}"


class BlockedPackage(OutputModel):
    """A blocked package, a stalled owner, or a package that is kept although nothing requests it (held)."""

    type: Literal["blocked"]
    state: BlockedState
    target: str = ""
    package: str = ""
    owner: OwnerEntry
    reason: str
    message: str
    caused_by: tuple[FindingCause, ...] = Field(default=(), description="The findings that explain the state.")

    @property
    def title(self) -> str:
        """The package as `target/package`. "" if the package is unknown."""
        return "/".join(filter(None, (self.target, self.package)))


class RevisionEditEntry(OutputModel):
    """A new revision of one package in the config."""

    object: str = Field(description="The object, as `Kind/namespace/name`.")
    file: str
    line: int
    package: str
    tag: str = Field(
        description="The tag that selects the new revision. Empty if a version range selects the revision."
    )
    range: str = Field(default="", description="The version range that selects the new version.")
    before: str | int | None = Field(
        description="The revision, version or digest in the config. null if the field is missing."
    )
    after: str | int
    is_downgrade: bool

    @property
    def revisions(self) -> str:
        """The revisions before and after the edit. Digests are shortened."""
        after = _format_revision(self.after)
        if self.before is None:
            return f"at {after}"
        return f"{'downgrade ' if self.is_downgrade else ''}{_format_revision(self.before)} → {after}"

    @property
    def followed(self) -> str:
        """The tag or version range that selects the new revision."""
        return f"range {self.range}" if self.range else f"tag {self.tag}"


def _format_revision(revision: str | int) -> str:
    text = str(revision)
    return shorten_id(text) if text.startswith("sha256:") else text


class ConfigProposalEntry(OutputModel):
    """A new config proposal, or the deletion of its branch (`delete`)."""

    type: Literal["configProposal"]
    action: Literal["propose", "delete"]
    branch: str = Field(
        default="", description="The branch of the config proposal. Absent if the config is a plain folder."
    )
    edits: tuple[RevisionEditEntry, ...] = ()
    diffs: tuple[FileDiff, ...] = ()


class NewTargetBranch(OutputModel):
    """A target branch that does not exist. The first push of a draft for this target creates it."""

    type: Literal["targetBranch"]
    target: str
    remote: str = Field(description="The URL of the repository.")
    branch: str


PlanItem = PlannedChange | PlannedRemoval | BlockedPackage | ConfigProposalEntry | NewTargetBranch


class ChangeCounts(OutputModel):
    """The numbers of changed packages, and of their targets, conflicts and errors.

    `update` contains packages that are rendered again with the same upstream version, and adopted packages.
    """

    install: int
    update: int
    delete: int
    withdraw: int
    orphan: int
    blocked: int
    conflicts: int
    errors: int
    targets: int = Field(description="The number of targets with changed packages.")
    clusters: int = Field(description="The number of clusters among the targets with changed packages.")
    unchanged: int = 0
    stalled: int = Field(default=0, description="The number of owners whose packages cannot be computed.")
    held: int = Field(
        default=0, description="The number of packages that no object requests any more, and that are kept."
    )


NO_CHANGES = ChangeCounts(**dict.fromkeys(ChangeCounts.model_fields, 0))
"""The counts of a plan without packages."""


class PlanResult(CommandResult):
    """The result of `reconciler plan`."""

    kind: Literal["Plan"] = "Plan"
    items: tuple[PlanItem, ...]
    findings: tuple[FindingEntry, ...]
    summary: ChangeCounts

    @property
    def changes(self) -> tuple[PlannedChange, ...]:
        """The drafts, grouped by equal changes. The largest group is first."""
        return tuple(item for item in self.items if isinstance(item, PlannedChange))

    @property
    def new_removals(self) -> tuple[PlannedRemoval, ...]:
        """The removals that this pass acts on."""
        return tuple(item for item in self.items if isinstance(item, PlannedRemoval) and item.is_new)

    @property
    def blocked(self) -> tuple[BlockedPackage, ...]:
        """The blocked items: blocked packages, then stalled owners, then held packages."""
        return tuple(item for item in self.items if isinstance(item, BlockedPackage))

    @property
    def new_branches(self) -> tuple[NewTargetBranch, ...]:
        """The target branches that a sync would create."""
        return tuple(item for item in self.items if isinstance(item, NewTargetBranch))

    @property
    def proposal(self) -> ConfigProposalEntry | None:
        """The new config proposal."""
        return next((item for item in self.items if isinstance(item, ConfigProposalEntry)), None)

    @property
    def has_changes(self) -> bool:
        """Whether a sync would change a branch."""
        return bool(self.changes or self.new_removals or self.proposal)
