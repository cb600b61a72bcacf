"""Data classes of a report.

The class `TargetNames` compares texts without the names of their targets. The module `builder` creates the report, and
the module `page` formats it as HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from shlex import quote
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer

from reconciler.catalog.files import File, FileTree
from reconciler.krm.yaml.resolve import resolve_plain
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.changes.data import FileDiff
from reconciler.output.envelope import DATACLASS_CONFIG, Timestamp
from reconciler.output.fleet.publications import Publication
from reconciler.output.review.open_drafts import DraftDetails, DraftPackageDetails
from reconciler.output.status.result import StatusResult
from reconciler.planning.lifecycle.open_drafts import PACKAGE_STATES, PackageState, TargetPackage
from reconciler.planning.model.targets import Target

# Use private-use characters of Unicode as marks, because valid names do not contain them.
_MARKS = _CLUSTER_MARK, _OWNER_MARK, _PACKAGE_MARK, _COMMON_MARK = "\ue000", "\ue001", "\ue002", "\ue003"
# Names that are versions or numbers also occur in other values, such as the version of an image.
_VERSION = re.compile(r"v?[0-9.-]+")


@dataclass(frozen=True)
class TargetNames:
    """The names that differ between equal items of several targets: cluster, owner of the package and package.

    Two texts are equal except for these names if `mask_names` returns the same text for both. `package` can be "".

    Attributes:
        common: A name that is equal on all targets, such as the name of a PluginPreset. The name of the cluster is not
            replaced in this name.
    """

    cluster: str
    owner: str = ""
    package: str = ""
    common: str = ""

    def mask_names(self, text: str) -> str:
        """Replace the names of the cluster, the owner and the package in a text by marks."""
        if any(mark in text for mark in _MARKS):
            # If the text already contains a mark, add a prefix with the name of the cluster. The result then differs
            # from the masked text of every other target, because no other masked text has a letter after a mark.
            return f"{_CLUSTER_MARK}{self.cluster}{_CLUSTER_MARK}{text}"
        for name, mark in self._marks:
            text = _replace_name(text, name, mark)
        return text

    @cached_property
    def _marks(self) -> tuple[tuple[str, str], ...]:
        """The marks of names. Longer names are first, because a name can contain another name."""
        names = {
            self.common: _COMMON_MARK, self.package: _PACKAGE_MARK, self.owner: _OWNER_MARK,
            self.cluster: _CLUSTER_MARK,
        }  # fmt: skip
        return tuple((name, names[name]) for name in sorted(filter(_is_distinctive, names), key=len, reverse=True))

    def replace_cluster(self, text: str, replacement: str) -> str:
        """Replace the name of the cluster in a short text, such as the path of a package.

        If the name of the owner ends with the name of the cluster, only this end of the name is replaced. For example,
        the PluginPreset `eu-logs` creates the owner `eu-logs-eu` for the cluster `eu`.
        """
        suffix = f"-{self.cluster}"
        if self.owner.endswith(suffix):
            text = _replace_name(text, self.owner, _OWNER_MARK)
        text = _replace_name(text, self.cluster, replacement)
        return text.replace(_OWNER_MARK, f"{self.owner.removesuffix(suffix)}-{replacement}")

    def mask_file_names(self, files: FileTree) -> FileTree:
        """Return the files with masked names in their contents. Paths and binary files do not change."""
        return FileTree({path: File(self._mask_bytes(file.data), file.executable) for path, file in files.items()})

    def _mask_bytes(self, data: bytes) -> bytes:
        try:
            return self.mask_names(data.decode()).encode()
        except UnicodeDecodeError:
            return data


def _is_distinctive(name: str) -> bool:
    """Return whether a name can be replaced in texts. A number, a version or a word such as `true` is another value."""
    return bool(name) and not _VERSION.fullmatch(name) and isinstance(resolve_plain(name), str)


def _replace_name(text: str, name: str, mark: str) -> str:
    """Replace the name if no letter and no digit is directly before or after the name."""
    # Do not use regular expressions. A pattern for each of 10,000 owners would take longer than the rest of the report.
    return "".join(_split_at_name(text, name, mark)) if name in text else text


def _split_at_name(text: str, name: str, mark: str) -> Iterator[str]:
    """Yield the parts of the text between the names, and the mark in place of each name."""
    start, position = 0, text.find(name)
    while position >= 0:
        end = position + len(name)
        if not (text[position - 1 : position].isalnum() or text[end : end + 1].isalnum()):
            yield text[start:position]
            yield mark
            start = end
        position = text.find(name, end)
    yield text[start:]


PendingKind = Literal[
    "blocked", "held", "conflict", "refused", "collision", "rejected", "proposed", "removal", "draft", "declined"
]

_BULK_KINDS: tuple[PendingKind, ...] = ("collision", "proposed", "removal", "draft")
_COMMANDS: Mapping[PendingKind, tuple[str, tuple[str, ...]]] = {
    "blocked": ("explain", ()), "held": ("explain", ()), "declined": ("explain", ()), "conflict": ("show", ()),
    "refused": ("show", ()), "rejected": ("show", ()), "collision": ("reject", ("--drop",)),
    "proposed": ("approve", ()), "removal": ("approve", ("--propose",)), "draft": ("propose", ()),
}  # fmt: skip


@dataclass(frozen=True)
class ReportPackage:
    """One package of one target, with the data that the report shows.

    Attributes:
        since: The date of the first commit with the current content, in seconds since 1970. None if it is unknown.
        details: The files and causes of the draft. None if there is no draft.
        status_file: The content of the status file on the target branch. b"" if there is no such file.
        publication: The publication of the current revision. None if there is no revision.
    """

    package_state: TargetPackage
    since: int | None
    details: DraftPackageDetails | None = None
    status_file: bytes = b""
    publication: Publication | None = None

    @property
    def draft_status(self) -> Mapping[str, Any]:
        """The content of the status file on the draft branch. {} if there is no draft, or if the file is invalid."""
        return self.package_state.drafted_package.status if self.package_state.drafted_package else {}


@dataclass(frozen=True)
class ReportCluster:
    """One target with its packages and drafts, or the reason why the target cannot be read.

    Attributes:
        drafts: The draft details by name of the draft branch.
        seconds: The date of the latest commit, in seconds since 1970. 0 if there is no commit.
        read_error: The error message if the target cannot be read. "" if the target was read.
        head: The head of the target branch. "" if there is no such branch.
    """

    target: Target
    labels: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[ReportPackage, ...] = ()
    drafts: Mapping[str, DraftDetails] = field(default_factory=dict)
    seconds: int = 0
    read_error: str = ""
    head: str = ""

    def get_target_names(self, package: ReportPackage) -> TargetNames:
        """Return the names of this cluster and of the owner of the package."""
        return TargetNames(self.target.name, package.package_state.record.owner.key.name)


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
        version: The number of the published revision. 0 if the published content has no revision number.
        since: The date of the first commit with the current content, in seconds since 1970. None if it is unknown.
        conflict_count: The number of conflicts in the open draft.
        refusal_count: The number of other reasons that block publication of the draft.
        notes: Phrases about the package that the state does not contain.
        change_key: The key of the change in `FleetReport.changes`. "" if there is no change.
        explanation_key: The key of the explanation in `FleetReport.explanations`. "" if there is no explanation.
    """

    __pydantic_config__ = DATACLASS_CONFIG

    target: SerializedTarget
    state: PackageState
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
        change_keys: The keys of the changes of the drafts.
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
    """A conflict in open drafts, and its targets. The text of a side without a value is "nothing"."""

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
    """An equal change of drafts on one or more targets. Texts and diffs are those of the first target.

    Attributes:
        action: The effect of the draft on the package, such as `update v1 → v2` or `remove`.
        summary_lines: The changed fields and files.
        has_target_names: Whether the texts contain names that differ on the other targets.
        is_diff_omitted: Whether the report omits the diffs because of its size limit.
    """

    __pydantic_config__ = DATACLASS_CONFIG

    key: str
    package: str
    action: str
    owner: str
    targets: tuple[SerializedTarget, ...]
    since: Timestamp | None
    summary_lines: tuple[str, ...]
    causes: tuple[str, ...]
    template_effects: tuple[str, ...]
    diffs: tuple[FileDiff, ...]
    show_command: str
    reproduce_command: str
    has_target_names: bool = False
    is_diff_omitted: bool = False


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
    """The inputs and provenance of a package, and all targets whose status files contain the same.

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
        config: The ID of the config, such as its commit.
        seconds: The date of the latest commit in the report, in seconds since 1970. 0 if there is no commit.
        rows: One row per cluster.
        status: The status of the fleet after the last pass. None if it is unknown.
    """

    config: str
    seconds: int
    rows: tuple[ClusterRow, ...]
    packages: tuple[str, ...]
    pending_items: tuple[PendingItem, ...]
    conflicts: tuple[ReportedConflict, ...]
    changes: tuple[ReportedChange, ...]
    explanations: tuple[ReportedExplanation, ...]
    status: StatusResult | None

    @property
    def counts(self) -> Mapping[PackageState, int]:
        """The number of packages by state. States without packages are omitted."""
        states = [entry.state for row in self.rows for entry in row.entries.values()]
        return {state: states.count(state) for state in PACKAGE_STATES if state in states}

    @property
    def unread_rows(self) -> tuple[ClusterRow, ...]:
        """The rows of clusters that cannot be read."""
        return tuple(row for row in self.rows if row.read_error)
