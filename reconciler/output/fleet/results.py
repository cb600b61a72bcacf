"""The results of the read API, built from the index of the fleet. They have the top-level fields of `-o json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from reconciler.krm.findings import Finding
from reconciler.output.changes.package_changes import PackageChanges
from reconciler.output.entries import ConflictEntry
from reconciler.output.envelope import CommandResult, OutputModel, ResultMetadata, Timestamp
from reconciler.output.findings.entries import FindingEntry, build_finding_entries
from reconciler.output.fleet.activity import ActivityAction, ActivityEvent
from reconciler.output.fleet.model import ChangeState, ChangeVariant, DraftMember, FleetIndex, PackageRow, ReviewChange
from reconciler.output.fleet.model import TargetEntry as IndexedTargetEntry
from reconciler.output.fleet.publications import Publication
from reconciler.output.fleet.risk import RiskLevel
from reconciler.planning.lifecycle.open_drafts import BlockingReason, PackageState


class ChangeDraft(OutputModel):
    """A draft of one package on one target."""

    target: str
    package: str
    branch: str
    draft_head: str = Field(
        description="The commit at the head of the draft branch. The request of a review action must contain this"
        " commit."
    )
    branch_head: str = Field(
        description="The commit at the head of the target branch. The request of a review action must contain this"
        " commit."
    )
    state: ChangeState
    since: Timestamp | None = None
    pull_request: int | None = None
    edited_by: tuple[str, ...] = ()
    rejection: str = ""
    refusals: tuple[BlockingReason, ...] = Field(default=(), description="The reasons that block the publication.")
    tenant: str = ""
    approved_by: tuple[str, ...] = Field(
        default=(),
        description="The people who have approved the draft. Present only while more approvals are necessary.",
    )


class VariantEntry(OutputModel):
    """The drafts of a change with equal effects."""

    key: str
    action: str
    risk: RiskLevel
    risk_reasons: tuple[str, ...] = ()
    conflicts: tuple[ConflictEntry, ...] = ()
    causes: tuple[str, ...] = ()
    changes: PackageChanges | None = Field(
        default=None, description="The differences of the first draft. Only the result for one change has this field."
    )
    drafts: tuple[ChangeDraft, ...]


class ChangeEntry(OutputModel):
    """All drafts that have the same cause, on all targets."""

    key: str
    title: str = Field(
        description="The operation, the package and the versions. `*` stands for the name of the target."
    )
    owner: str
    state: ChangeState
    risk: RiskLevel
    since: Timestamp | None = None
    targets: int
    variants: tuple[VariantEntry, ...]


class ChangeListSummary(OutputModel):
    """The numbers of changes and drafts."""

    changes: int
    drafts: int


class ChangeListResult(CommandResult):
    """The changes of open drafts. Targets that cannot be read have a finding."""

    kind: Literal["ChangeList"] = "ChangeList"
    items: tuple[ChangeEntry, ...]
    findings: tuple[FindingEntry, ...] = ()
    summary: ChangeListSummary


class PackageEntry(OutputModel):
    """A package of a target."""

    target: str
    package: str
    state: PackageState
    owner: str
    revision: int = Field(default=0, description="The number of the published revision. Absent if there is none.")
    upstream: str = ""
    since: Timestamp | None = None
    is_edited: bool = False
    reasons: tuple[BlockingReason, ...] = Field(default=(), description="Why the package is blocked or held.")
    change: str = Field(default="", description="The key of the change with the open draft of the package.")
    tenant: str = ""


class TargetListEntry(OutputModel):
    """A target with the numbers of its packages."""

    name: str
    labels: Mapping[str, str]
    repository: str
    branch: str
    directory: str = ""
    head: str = ""
    packages: Mapping[PackageState, int]
    last_commit: Timestamp | None = None
    read_error: str = ""


class TargetListSummary(OutputModel):
    """The number of targets, and of packages by state."""

    targets: int
    packages: Mapping[PackageState, int]


class TargetListResult(CommandResult):
    """The targets of the fleet."""

    kind: Literal["TargetList"] = "TargetList"
    items: tuple[TargetListEntry, ...]
    summary: TargetListSummary


class PackageListSummary(OutputModel):
    """The number of packages."""

    packages: int


class PackageListResult(CommandResult):
    """The packages of a target."""

    kind: Literal["PackageList"] = "PackageList"
    items: tuple[PackageEntry, ...]
    findings: tuple[FindingEntry, ...]
    summary: PackageListSummary


class FindingListSummary(OutputModel):
    """The number of findings."""

    findings: int


class FindingListResult(CommandResult):
    """The findings of the last pass."""

    kind: Literal["FindingList"] = "FindingList"
    items: tuple[FindingEntry, ...]
    summary: FindingListSummary


class PublicationEntry(OutputModel):
    """The last publication of a package."""

    target: str
    package: str
    revision: int
    commit: str
    by: str
    time: Timestamp
    subject: str
    reason: str = ""


class ActivityEntry(OutputModel):
    """An action of a person, or an effect of a pass."""

    actions: tuple[ActivityAction, ...] = Field(
        description="The actions. A publication that a person approved has the actions `approved` and `published`."
    )
    target: str = Field(default="", description="The target. Absent if the event is about a whole pass.")
    package: str = ""
    revision: int = Field(default=0, description="The number of the published revision. Absent for other actions.")
    commit: str = ""
    by: str = Field(default="", description="The person. Absent if the service itself acted.")
    time: Timestamp
    subject: str = ""
    reason: str = ""


class ActivityListSummary(OutputModel):
    """The number of events."""

    events: int


class ActivityListResult(CommandResult):
    """The activity of the fleet, the newest event first."""

    kind: Literal["ActivityList"] = "ActivityList"
    items: tuple[ActivityEntry, ...]
    summary: ActivityListSummary


class FleetSummary(OutputModel):
    """The numbers of the fleet after the last pass."""

    view: int = Field(description="A number that is different after each pass that changes the fleet.")
    completed_at: Timestamp
    targets: int
    packages: Mapping[PackageState, int]
    changes: int
    findings: Mapping[str, int] = Field(description="The number of findings by severity.")


class FleetResult(CommandResult):
    """The state of the fleet."""

    kind: Literal["Fleet"] = "Fleet"
    items: tuple[OutputModel, ...] = ()
    summary: FleetSummary


def create_api_metadata(index: FleetIndex) -> ResultMetadata:
    """Return the metadata of a result of the API."""
    return ResultMetadata(source="api", config=index.config)


def build_change_list(
    index: FleetIndex,
    changes: Iterable[ReviewChange],
    all_changes: Sequence[ReviewChange],
    cursor: str | None = None,
    *,
    findings: Iterable[Finding] = (),
    has_details: bool = False,
) -> ChangeListResult:
    """Return the result with these changes.

    Args:
        all_changes: The changes on all pages.
        cursor: The cursor of the next page.
        has_details: Whether the result contains the differences.
    """
    return ChangeListResult(
        metadata=create_api_metadata(index),
        items=tuple(_build_change(change, has_details=has_details) for change in changes),
        findings=build_finding_entries(findings),
        summary=ChangeListSummary(changes=len(all_changes), drafts=sum(len(change.members) for change in all_changes)),
        next=cursor,
    )


def _build_change(change: ReviewChange, *, has_details: bool) -> ChangeEntry:
    return ChangeEntry(
        key=change.key,
        title=change.title,
        owner=change.owner,
        state=change.state,
        risk=change.level,
        since=change.since,
        targets=len(change.members),
        variants=tuple(_build_variant(variant, has_details=has_details) for variant in change.variants),
    )


def _build_variant(variant: ChangeVariant, *, has_details: bool) -> VariantEntry:
    content = variant.content
    return VariantEntry(
        key=variant.key,
        action=content.action,
        risk=content.risk.level,
        risk_reasons=content.risk.reasons,
        conflicts=content.conflicts,
        causes=content.causes,
        changes=content.changes if has_details else None,
        drafts=tuple(map(_build_draft, variant.members)),
    )


def _build_draft(member: DraftMember) -> ChangeDraft:
    return ChangeDraft(
        target=member.target,
        package=member.package,
        branch=member.branch,
        draft_head=member.head,
        branch_head=member.published_head,
        state=member.state,
        since=member.since,
        pull_request=member.pull_request or None,
        edited_by=member.editors,
        rejection=member.rejection,
        refusals=member.refusals,
        tenant=member.tenant,
        approved_by=member.approved_by,
    )


def build_target_list(
    index: FleetIndex, targets: Sequence[IndexedTargetEntry], total: int, cursor: str | None = None
) -> TargetListResult:
    """Return the result with these targets. `total` is the number of targets on all pages."""
    return TargetListResult(
        metadata=create_api_metadata(index),
        items=tuple(
            TargetListEntry(
                name=target.name,
                labels=target.labels,
                repository=target.url,
                branch=target.branch,
                directory=target.directory,
                head=target.head,
                packages=target.state_counts,
                last_commit=target.last_commit_seconds or None,
                read_error=target.read_error,
            )
            for target in targets
        ),
        summary=TargetListSummary(targets=total, packages=index.state_counts),
        next=cursor,
    )


def build_package_list(
    index: FleetIndex, packages: Sequence[PackageRow], total: int, cursor: str | None = None
) -> PackageListResult:
    """Return the result with these packages and their findings. `total` is the number of packages on all pages."""
    names = {f"{row.target}/{row.package}" for row in packages}
    findings = [finding for finding in index.findings if finding.location.package in names]
    return PackageListResult(
        metadata=create_api_metadata(index),
        items=tuple(map(_build_package, packages)),
        findings=build_finding_entries(findings),
        summary=PackageListSummary(packages=total),
        next=cursor,
    )


def _build_package(row: PackageRow) -> PackageEntry:
    return PackageEntry(
        target=row.target,
        package=row.package,
        state=row.state,
        owner=row.owner,
        revision=row.version,
        upstream=row.upstream,
        since=row.since,
        is_edited=row.is_edited,
        reasons=row.reasons,
        change=row.draft.change_key if row.draft else "",
        tenant=row.tenant,
    )


def build_finding_list(
    index: FleetIndex, findings: Sequence[FindingEntry], total: int, cursor: str | None = None
) -> FindingListResult:
    """Return the result with these findings. `total` is the number of findings on all pages."""
    return FindingListResult(
        metadata=create_api_metadata(index),
        items=tuple(findings),
        summary=FindingListSummary(findings=total),
        next=cursor,
    )


def build_activity_list(
    index: FleetIndex, events: Iterable[ActivityEvent], total: int, cursor: str | None = None
) -> ActivityListResult:
    """Return the result with these events. `total` is the number of events on all pages."""
    return ActivityListResult(
        metadata=create_api_metadata(index),
        items=tuple(
            ActivityEntry(
                actions=event.actions,
                target=event.target,
                package=event.package,
                revision=event.revision,
                commit=event.commit,
                by=event.person,
                time=event.seconds,
                subject=event.message,
                reason=event.reason,
            )
            for event in events
        ),
        summary=ActivityListSummary(events=total),
        next=cursor,
    )


def build_publication_entry(row: PackageRow, publication: Publication) -> PublicationEntry:
    """Return the entry of a publication of the package in `row`."""
    return PublicationEntry(
        target=row.target,
        package=row.package,
        revision=publication.number,
        commit=publication.commit,
        by=publication.author,
        time=publication.seconds,
        subject=publication.subject,
        reason=publication.reason,
    )


def build_fleet_result(index: FleetIndex, severities: Mapping[str, int]) -> FleetResult:
    """Return the state of the fleet. `severities` is the number of findings by severity."""
    return FleetResult(
        metadata=create_api_metadata(index),
        summary=FleetSummary(
            view=index.number,
            completed_at=index.completed_at,
            targets=len(index.targets),
            packages=index.state_counts,
            changes=len(index.changes),
            findings=severities,
        ),
    )


def build_problem(status: int, title: str, code: str, detail: str, next_step: str = "") -> Mapping[str, Any]:
    """Return an error in the format of RFC 9457."""
    problem = {"type": "about:blank", "status": status, "title": title, "code": code, "detail": detail}
    return problem | ({"nextStep": next_step} if next_step else {})
