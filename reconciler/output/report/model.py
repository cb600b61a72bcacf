"""Data classes of a report. The module `builder` creates the report, and the module `page` formats it as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from shlex import quote
from typing import Annotated, Literal

from pydantic import Field, PlainSerializer

from reconciler.lazy_dataclasses import dataclass
from reconciler.output.changes.data import FileDiff
from reconciler.output.envelope import DATACLASS_CONFIG, Timestamp
from reconciler.output.fleet.model import FleetIndex
from reconciler.output.fleet.resource_diffs import ResourceDiff
from reconciler.output.fleet.risk import RiskLevel
from reconciler.output.status.result import StatusResult
from reconciler.planning.lifecycle.open_drafts import PackageState

PendingKind = Literal[
    "blocked", "held", "conflict", "refused", "collision", "rejected", "proposed", "removal", "draft", "declined"
]

_BULK_KINDS: tuple[PendingKind, ...] = ("collision", "proposed", "removal", "draft")
_COMMANDS: Mapping[PendingKind, tuple[str, tuple[str, ...]]] = {
    "blocked": ("explain", ()), "held": ("explain", ()), "declined": ("explain", ()), "conflict": ("show", ()),
    "refused": ("show", ()), "rejected": ("show", ()), "collision": ("reject", ("--drop",)),
    "proposed": ("approve", ()), "removal": ("approve", ("--propose",)), "draft": ("propose", ()),
}  # fmt: skip


@dataclass(frozen=True, order=True)
class ReportTarget:
    """The name of a package on a cluster, as `CLUSTER/PACKAGE`."""

    cluster: str
    package: str

    def __str__(self) -> str:
        return f"{self.cluster}/{self.package}"


SerializedTarget = Annotated[ReportTarget, PlainSerializer(str, return_type=str)]
"""A package on a cluster. JSON data contains the text `CLUSTER/PACKAGE`."""


@dataclass(frozen=True)
class MatrixEntry:
    """One cell of the matrix of clusters and packages: a package on a cluster.

    Attributes:
        column: The name of the package, with `*` instead of the name of its cluster. Packages of the same preset have
            the same column.
        version: The number of the published revision. 0 if the published content has no revision number.
        since: The date of the first commit with the current content, in seconds since 1970. None if it is unknown.
        conflict_count: The number of conflicts in the open draft.
        refusal_count: The number of other reasons that block publication of the draft.
        notes: Short texts with facts about the package that `state` does not contain.
        change_key: The key of the change in `FleetReport.changes`. "" if there is no change.
        explanation_key: The key of the explanation in `FleetReport.explanations`. "" if there is no explanation.
    """

    __pydantic_config__ = DATACLASS_CONFIG

    target: SerializedTarget
    state: PackageState
    column: Annotated[str, Field(exclude=True)]
    version: int = 0
    since: Timestamp | None = None
    conflict_count: int = 0
    refusal_count: int = 0
    notes: tuple[str, ...] = ()
    change_key: str = ""
    explanation_key: str = ""

    @property
    def has_pending_work(self) -> bool:
        """Whether the package requires an action or a review."""
        return self.state not in ("published", "orphaned")


@dataclass(frozen=True)
class ClusterRow:
    """A cluster with its matrix entries by package, or the error message if the cluster cannot be read."""

    __pydantic_config__ = DATACLASS_CONFIG

    cluster: str
    labels: Mapping[str, str]
    entries: Annotated[Mapping[str, MatrixEntry], Field(serialization_alias="packages")]
    read_error: str = ""

    @property
    def has_pending_work(self) -> bool:
        """Whether a package requires an action or a review, or the cluster cannot be read."""
        return bool(self.read_error) or any(entry.has_pending_work for entry in self.entries.values())


@dataclass(frozen=True)
class PendingItem:
    """One kind of work that is pending for the same reason on one or more targets.

    Attributes:
        responsible: The role of the people who handle the item.
        message: The reason. Names in the message are the names of the first target.
        since: The earliest date of the work on all targets, in seconds since 1970. None if it is unknown.
        has_target_names: Whether the message contains names that differ on the other targets.
        change_keys: Identifies the changes in the drafts of the targets. Empty if no target has a draft.
    """

    __pydantic_config__ = DATACLASS_CONFIG

    kind: PendingKind
    responsible: str
    message: str
    targets: tuple[SerializedTarget, ...]
    since: Timestamp | None
    has_target_names: bool = False
    change_keys: tuple[str, ...] = ()

    @property
    def packages(self) -> tuple[str, ...]:
        """The names of the packages, sorted."""
        return tuple(sorted({target.package for target in self.targets}))

    @property
    def has_bulk_command(self) -> bool:
        """Whether one command can handle all targets."""
        return self.kind in _BULK_KINDS

    def format_command(self, targets: Iterable[ReportTarget]) -> str:
        """Return the command that a person runs next for these targets."""
        verb, options = _COMMANDS[self.kind]
        return " ".join((f"reconciler {verb}", *(quote(str(target)) for target in targets), *options))


@dataclass(frozen=True)
class ReportedConflict:
    """A conflict in open drafts, and its targets. If one side has no value, its text is "nothing"."""

    __pydantic_config__ = DATACLASS_CONFIG

    package: str
    file: str
    resource: str
    pointer: str
    base: str
    local: str
    upstream: str
    chosen: str
    rule: str
    targets: tuple[SerializedTarget, ...]


@dataclass(frozen=True)
class ReportedChange:
    """A variant of a change: drafts with one cause and equal effects. Texts and diffs are those of the first target.

    Attributes:
        review_key: The key of the change, which is the same in the console, in the API and in notifications.
        action: The effect of the draft on the package, such as `update v1 → v2` or `remove`.
        summary_lines: The changed fields and files.
        has_target_names: Whether the texts contain names that differ on the other targets.
        is_diff_omitted: Whether the report omits the diffs because of its size limit.
        resource_diffs: The diffs of resources on the page. Empty for other formats, which contain the diffs of files.
    """

    __pydantic_config__ = DATACLASS_CONFIG

    key: str
    review_key: str
    package: str
    action: str
    owner: str
    targets: tuple[SerializedTarget, ...]
    since: Timestamp | None
    risk: RiskLevel
    summary_lines: tuple[str, ...]
    causes: tuple[str, ...]
    template_effects: tuple[str, ...]
    diffs: tuple[FileDiff, ...]
    show_command: str
    reproduce_command: str
    risk_reasons: tuple[str, ...] = ()
    has_target_names: bool = False
    is_diff_omitted: bool = False
    resource_diffs: Annotated[tuple[ResourceDiff, ...], Field(exclude=True)] = ()


@dataclass(frozen=True)
class ReportedStep:
    """One step in the provenance of a value.

    Attributes:
        source: The layer and the object that changed the value.
        location: The file and the field of this object.
        change: The values before and after the change.
    """

    __pydantic_config__ = DATACLASS_CONFIG

    source: str
    location: str
    change: str


@dataclass(frozen=True)
class ReportedValue:
    """A field with its provenance: the steps that set its value. The last step determines the value."""

    __pydantic_config__ = DATACLASS_CONFIG

    resource: str
    pointer: str
    steps: tuple[ReportedStep, ...]


def _serialize_facts(facts: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    return [{"label": label, "text": text} for label, text in facts]


@dataclass(frozen=True)
class ReportedExplanation:
    """The inputs and provenance of a package, and all targets with equal inputs and provenance.

    Attributes:
        facts: Pairs of a label and a text, such as `owner` and `PackageVariant default/web`.
        omitted_value_count: The number of values that the report omits because of its size limit.
        conflicts: One line per recorded conflict.
        children: One line per child resource of templates.
        has_target_names: Whether the texts contain names that differ on the other targets.
    """

    __pydantic_config__ = DATACLASS_CONFIG

    key: str
    package: str
    targets: tuple[SerializedTarget, ...]
    facts: Annotated[tuple[tuple[str, str], ...], PlainSerializer(_serialize_facts, return_type=list[dict[str, str]])]
    values: tuple[ReportedValue, ...]
    omitted_value_count: int
    conflicts: tuple[str, ...]
    children: tuple[str, ...]
    explain_command: str
    has_target_names: bool = False


def find_earlier_date(first: int | None, second: int | None) -> int | None:
    """Return the earlier of two dates. An unknown date is None and is ignored."""
    return min((date for date in (first, second) if date is not None), default=None)


@dataclass(frozen=True)
class FleetReport:
    """The report about the whole fleet.

    Attributes:
        index: The fleet as the console shows it. The time of the index is the date of the latest commit.
        rows: One row per cluster.
        columns: The columns of the matrix, sorted.
        changes: The variants of all changes, in the order of the index.
        status: The status of the fleet after the last pass. None if it is unknown.
    """

    index: FleetIndex
    rows: tuple[ClusterRow, ...]
    columns: tuple[str, ...]
    pending_items: tuple[PendingItem, ...]
    conflicts: tuple[ReportedConflict, ...]
    changes: tuple[ReportedChange, ...]
    explanations: tuple[ReportedExplanation, ...]
    status: StatusResult | None

    @property
    def seconds(self) -> int:
        """The date of the latest commit in the report, in seconds since 1970. 0 if there is no commit."""
        return self.index.completed_at

    @property
    def counts(self) -> Mapping[PackageState, int]:
        """The number of packages by state. States without packages are omitted."""
        return self.index.state_counts

    @property
    def unread_rows(self) -> tuple[ClusterRow, ...]:
        """The rows of clusters that cannot be read."""
        return tuple(row for row in self.rows if row.read_error)
