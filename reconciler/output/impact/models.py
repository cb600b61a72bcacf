"""The result of `reconciler impact`: risks, changed config objects, and changes of packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from reconciler.krm.findings import Severity
from reconciler.output.changes.data import FileDiff
from reconciler.output.changes.package_changes import PackageChanges
from reconciler.output.entries import OwnerEntry
from reconciler.output.envelope import CommandResult, OutputModel
from reconciler.output.findings.entries import FindingEntry
from reconciler.output.impact.consequences import Consequence
from reconciler.output.impact.overview import ImpactKind
from reconciler.output.plan.models import ChangeCounts
from reconciler.planning.attribution.impact import ProjectedKind

RiskKind = Literal[
    "removes", "may destroy", "conflict", "blocked", "new error", "needs recreation", "stops pods", "restarts pods"
]

FindingStatus = Literal["new", "fixed", "unknown"]


class RiskEntry(OutputModel):
    """One risk of a config change."""

    type: Literal["risk"]
    kind: RiskKind
    packages: str = Field(
        description="The affected packages and clusters, such as `gateway on all 40 clusters with region=eu`."
    )
    reason: str


class ConfigChangeEntry(OutputModel):
    """A config object that was added, removed or changed."""

    group: str
    kind: str
    namespace: str = ""
    name: str
    change: Literal["added", "removed", "changed"]
    file: str
    summary: str = Field(description="The change, as one line of text.")


class ConfigChangeItem(ConfigChangeEntry):
    """A config object that differs between both configs."""

    type: Literal["configChange"]


class AffectedPackageEntry(OutputModel):
    """A package that a change affects."""

    target: str = Field(default="", description="The target of the package. Absent if the target cannot be computed.")
    package: str = ""
    owner: OwnerEntry = OwnerEntry()
    before: ProjectedKind = Field(description="The state of the package with the first config.")
    after: ProjectedKind = Field(description="The state of the package with the second config.")
    creates_draft: bool = Field(description="Whether a sync of the second config creates a draft.")
    reason: str = ""
    message: str = ""
    config_changes: tuple[ConfigChangeEntry, ...] = ()
    causes: tuple[str, ...] = ()
    changes: PackageChanges | None = Field(
        default=None,
        description="The changes of this package. Absent if the package has the same changes as the item.",
    )

    @property
    def title(self) -> str:
        """The package as `target/package`, or the owner if the target is unknown."""
        return f"{self.target}/{self.package}" if self.target else self.owner.title


class ImpactChange(OutputModel):
    """Packages with equal changes. The changes and diffs are those of the first package."""

    type: Literal["change"]
    kind: ImpactKind
    location: str = Field(description="The affected packages and clusters, as one line of text.")
    packages: tuple[AffectedPackageEntry, ...]
    clusters: tuple[str, ...] = ()
    label: str = Field(default="", description="A label that all these clusters have, and that no other cluster has.")
    blocked_reason: str = ""
    changes: PackageChanges | None = Field(
        default=None, description="The changes of the packages. Absent if the packages are too large to compare."
    )
    consequences: tuple[Consequence, ...] = ()
    conflicts: tuple[str, ...] = Field(default=(), description="The conflicts that the second config causes.")
    unmet_gates: tuple[str, ...] = Field(
        default=(), description="The conditions that block the publication of the draft."
    )
    template_effects: tuple[str, ...] = Field(default=(), description="The effects of changed templates on pods.")
    templates: tuple[Mapping[str, Any], ...] = Field(
        default=(), description="The child resources with changed templates, in the format of status files."
    )
    overrides: tuple[str, ...] = Field(
        default=(), description="The fields of the packages that override policies change."
    )
    causes: tuple[str, ...] = ()
    diffs: tuple[FileDiff, ...] = ()


ImpactItem = RiskEntry | ConfigChangeItem | ImpactChange


class ImpactFinding(FindingEntry):
    """A finding that only one of the configs has, or the reason why the impact is unknown."""

    status: FindingStatus


class ImpactSummary(ChangeCounts):
    """The numbers of affected packages and of findings. `errors` counts the errors that only the second config has."""

    base: str = Field(description="The ID of the first config.")
    head: str = Field(description="The ID of the second config.")
    packages: int
    drafts: int = Field(description="The number of packages for which a sync of the second config creates a draft.")
    unblocked: int
    kept: int = Field(description="The number of packages whose removal is canceled.")
    removed_resources: int
    destroys: int = Field(description="The number of packages with a change that may destroy data.")
    recreates: int = Field(description="The number of packages with a change that the cluster refuses.")
    stops: int = Field(description="The number of packages with a change that stops pods.")
    restarts: int = Field(description="The number of packages with a change that restarts pods.")
    fixed_errors: int
    existing_errors: int = Field(description="The number of errors that both configs have.")
    is_unknown: bool = Field(description="Whether the impact is unknown for some packages.")
    unknown_clusters: tuple[str, ...] = Field(default=(), description="The clusters whose impact is unknown.")


class ImpactResult(CommandResult):
    """The result of `reconciler impact`."""

    kind: Literal["Impact"] = "Impact"
    items: tuple[ImpactItem, ...]
    findings: tuple[ImpactFinding, ...]
    summary: ImpactSummary

    @property
    def risks(self) -> tuple[RiskEntry, ...]:
        """All risks, the most severe kind first."""
        return tuple(item for item in self.items if isinstance(item, RiskEntry))

    @property
    def config_changes(self) -> tuple[ConfigChangeItem, ...]:
        """The changed config objects."""
        return tuple(item for item in self.items if isinstance(item, ConfigChangeItem))

    @property
    def changes(self) -> tuple[ImpactChange, ...]:
        """The groups of packages with equal changes. Groups with the riskiest kind of impact come first."""
        return tuple(item for item in self.items if isinstance(item, ImpactChange))

    @property
    def has_failed(self) -> bool:
        """Whether the change adds an error, or the impact on a package is unknown."""
        return self.summary.is_unknown or any(
            finding.status == "new" and finding.severity is Severity.ERROR for finding in self.findings
        )

    def select_findings(self, status: FindingStatus) -> tuple[ImpactFinding, ...]:
        """Return the findings with this status."""
        return tuple(finding for finding in self.findings if finding.status == status)
