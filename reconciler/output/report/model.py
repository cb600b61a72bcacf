"""Alike: texts that differ from cluster to cluster by the cluster's own names alone.

The values of a report: what was read of a fleet, and what is told of it.

A report as JSON data; what is empty is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from shlex import quote
from typing import Any, Literal

from reconciler.catalog.files import File, FileTree
from reconciler.krm.times import format_rfc3339
from reconciler.output.data import drop_empty
from reconciler.output.review.open_drafts import DraftDetails, DraftPackageDetails
from reconciler.planning.lifecycle.open_drafts import PACKAGE_STATES, PackageState, TargetPackage
from reconciler.planning.model.targets import Target

# private to whoever uses them, and so in no name
_CLUSTER, _OWNER, _PACKAGE = "\ue000", "\ue001", "\ue002"


@dataclass(frozen=True)
class OwnNames:
    """Names that are a place's own: the cluster's, that of whoever owns the package, and the package's if it counts.

    Two texts that `apart` makes equal are the same text, but for these names.
    """

    cluster: str
    owner: str = ""
    package: str = ""

    def mask_names(self, text: str) -> str:
        """Return a text with its own names taken out."""
        if any(mark in text for mark in (_CLUSTER, _OWNER, _PACKAGE)):
            # like no other's: elsewhere no letter stands right behind a mark
            return f"{_CLUSTER}{self.cluster}{_CLUSTER}{text}"
        marks = {self.package: _PACKAGE, self.owner: _OWNER, self.cluster: _CLUSTER}
        # the longest first, for the others may be a part of it
        for name in sorted(filter(None, marks), key=len, reverse=True):
            text = _replaced(text, name, marks[name])
        return text

    def mask_file_names(self, files: FileTree) -> FileTree:
        """Return files with their own names taken out; paths, and what is no text, stay."""
        return FileTree({path: File(self._bytes(one.data), one.executable) for path, one in files.items()})

    def _bytes(self, data: bytes) -> bytes:
        try:
            return self.mask_names(data.decode()).encode()
        except UnicodeDecodeError:
            return data


def _replaced(text: str, name: str, mark: str) -> str:
    """Return a text with a mark for each whole name, which is one between what is no letter and no digit."""
    # a pattern for each of ten thousand owners would take longer than all else
    return "".join(_pieces(text, name, mark)) if name in text else text


def _pieces(text: str, name: str, mark: str) -> Iterator[str]:
    start, at = 0, text.find(name)
    while at >= 0:
        end = at + len(name)
        if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
            yield text[start:at]
            yield mark
            start = end
        at = text.find(name, end)
    yield text[start:]


WaitingKind = Literal[
    "blocked", "held", "conflict", "gate", "clash", "rejected", "proposed", "removal", "draft", "declined"
]

_BULK: tuple[WaitingKind, ...] = ("clash", "proposed", "removal", "draft")
_COMMANDS: Mapping[WaitingKind, tuple[str, tuple[str, ...]]] = {
    "blocked": ("explain", ()), "held": ("explain", ()), "declined": ("explain", ()), "conflict": ("show", ()),
    "gate": ("show", ()), "rejected": ("show", ()), "clash": ("reject", ("--drop",)), "proposed": ("approve", ()),
    "removal": ("approve", ("--propose",)), "draft": ("propose", ()),
}  # fmt: skip


@dataclass(frozen=True)
class ReportPackage:
    """One package as it was read: its cell, and what tells of it, the draft's `status` before the branch's status file.

    `since` is when it came to stand as it does, in seconds since 1970 by the dates of Git; None where no commit says.
    """

    package_state: TargetPackage
    since: int | None
    details: DraftPackageDetails | None = None
    file: bytes = b""

    @property
    def status(self) -> Mapping[str, Any]:
        """What the status file on the draft says; {} without a draft, or where it cannot be read."""
        return self.package_state.drafted_package.status if self.package_state.drafted_package else {}


@dataclass(frozen=True)
class ReportCluster:
    """One destination as it was read, or the `trouble` that kept it from being read. `seconds`: its latest commit."""

    destination: Target
    labels: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[ReportPackage, ...] = ()
    drafts: Mapping[str, DraftDetails] = field(default_factory=dict)
    seconds: int = 0
    read_error: str = ""

    def get_own_names(self, one: ReportPackage) -> OwnNames:
        """Return the names that are this cluster's own in what is told of a package."""
        return OwnNames(self.destination.name, one.package_state.record.owner.key.name)


@dataclass(frozen=True, order=True)
class ReportTarget:
    """A package on a cluster, in order of their names."""

    cluster: str
    package: str

    def __str__(self) -> str:
        return f"{self.cluster}/{self.package}"


@dataclass(frozen=True)
class MatrixEntry:
    """A cell of the matrix: what it says, and by which keys its change and its explanation are found, "" without one.

    `version` counts published revisions, 0 where there is none of ours. `conflicts` and `unmet` count those of an open
    draft; `note` says in a phrase what there is beside the state.
    """

    place: ReportTarget
    state: PackageState
    version: int = 0
    since: int | None = None
    conflicts: int = 0
    unmet: int = 0
    notes: tuple[str, ...] = ()
    change: str = ""
    explanation: str = ""

    @property
    def is_well(self) -> bool:
        """Whether it needs nobody."""
        return self.state in ("published", "orphaned")


@dataclass(frozen=True)
class ClusterRow:
    """A cluster with its entries by package, or why there are none."""

    cluster: str
    labels: Mapping[str, str]
    entries: Mapping[str, MatrixEntry]
    trouble: str = ""

    @property
    def is_well(self) -> bool:
        """Whether nothing here needs anybody."""
        return not self.trouble and all(one.is_well for one in self.entries.values())


@dataclass(frozen=True)
class WaitingItem:
    """What waits, on all places where it is the same: for whom, since when, and how to go on.

    `varies`: the sentence is that of the first place; on the others their own names stand in it. `changes` are the keys
    of what their drafts change.
    """

    kind: WaitingKind
    who: str
    what: str
    places: tuple[ReportTarget, ...]
    since: int | None
    varies: bool = False
    changes: tuple[str, ...] = ()

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that it is about, by name."""
        return tuple(sorted({one.package for one in self.places}))

    @property
    def is_bulk(self) -> bool:
        """Whether one command does it on all places."""
        return self.kind in _BULK

    def command_for(self, places: Iterable[ReportTarget]) -> str:
        """Return the command with which somebody goes on, on these places or, where it takes one, on the first."""
        verb, more = _COMMANDS[self.kind]
        return " ".join((f"reconciler {verb}", *(quote(str(one)) for one in places), *more))


@dataclass(frozen=True)
class ReportedConflict:
    """A conflict of an open draft, on all places where it is the same; a side that has nothing is "nothing"."""

    package: str
    file: str
    resource: str
    pointer: str
    base: str
    local: str
    upstream: str
    chosen: str
    rule: str
    places: tuple[ReportTarget, ...]


@dataclass(frozen=True)
class ReportedChange:
    """A change that drafts make, told once for all places that get it; the lines and diffs are those of the first.

    `varies`: on the others their own names stand in them. `unshown`: it has diffs for which there is no room.
    """

    key: str
    package: str
    what: str
    owner: str
    places: tuple[ReportTarget, ...]
    since: int | None
    lines: tuple[str, ...]
    causes: tuple[str, ...]
    templates: tuple[str, ...]
    diffs: tuple[tuple[str, str], ...]
    command: str
    reproduce: str
    varies: bool = False
    unshown: bool = False


@dataclass(frozen=True)
class ReportedStep:
    """One step of a value: the layer and the object by which it came, the field that says so, and what it did."""

    by: str
    where: str
    change: str


@dataclass(frozen=True)
class ReportedValue:
    """A value that rules set, with the steps that led to it; the last one won."""

    resource: str
    pointer: str
    steps: tuple[ReportedStep, ...]


@dataclass(frozen=True)
class ReportedExplanation:
    """What made a package, as its status file tells, on all places where that is the same; see `Change.varies`.

    `more` counts values for which there is no room.
    """

    key: str
    package: str
    places: tuple[ReportTarget, ...]
    facts: tuple[tuple[str, str], ...]
    values: tuple[ReportedValue, ...]
    more: int
    conflicts: tuple[str, ...]
    children: tuple[str, ...]
    command: str
    varies: bool = False


def find_earlier(one: int | None, other: int | None) -> int | None:
    """Return the earlier of two dates, or the one that is known."""
    return min((when for when in (one, other) if when is not None), default=None)


@dataclass(frozen=True)
class FleetReport:
    """The whole fleet as it is told. `seconds` is the latest date of a commit that it was read from, 0 without one.

    `summary` is that of the status branch, {} where there is none.
    """

    config: str
    seconds: int
    rows: tuple[ClusterRow, ...]
    packages: tuple[str, ...]
    waiting: tuple[WaitingItem, ...]
    disputed: tuple[ReportedConflict, ...]
    changes: tuple[ReportedChange, ...]
    explanations: tuple[ReportedExplanation, ...]
    summary: Mapping[str, Any]

    @property
    def counts(self) -> Mapping[PackageState, int]:
        """How many packages there are in each state that there is."""
        found = [entry.state for row in self.rows for entry in row.entries.values()]
        return {state: found.count(state) for state in PACKAGE_STATES if state in found}

    @property
    def troubles(self) -> tuple[ClusterRow, ...]:
        """The clusters that could not be read."""
        return tuple(row for row in self.rows if row.trouble)


def build_report_data(report: FleetReport) -> dict[str, Any]:
    """Return the report as JSON data; changes and explanations have keys, by which packages name theirs."""
    return {
        "config": report.config,
        "date": _date(report.seconds or None),
        "counts": dict(report.counts),
        "clusters": [_row(one) for one in report.rows],
        "waiting": [_waiting(one) for one in report.waiting],
        "conflicts": [_disputed(one) for one in report.disputed],
        "changes": [_change(one) for one in report.changes],
        "explanations": [_explanation(one) for one in report.explanations],
        "summary": dict(report.summary),
    }


def _date(seconds: int | None) -> str:
    return "" if seconds is None else format_rfc3339(seconds)


def _row(row: ClusterRow) -> dict[str, Any]:
    packages = [_entry(one) for one in row.entries.values()]
    return {
        "cluster": row.cluster,
        **drop_empty({"labels": dict(row.labels), "trouble": row.trouble}),
        "packages": packages,
    }


def _entry(one: MatrixEntry) -> dict[str, Any]:
    return drop_empty({
        "package": one.place.package, "state": one.state, "version": one.version or None, "since": _date(one.since),
        "conflicts": one.conflicts or None, "unmet": one.unmet or None, "notes": list(one.notes),
        "change": one.change, "explanation": one.explanation,
    })  # fmt: skip


def _waiting(one: WaitingItem) -> dict[str, Any]:
    fields = {name: value for name, value in vars(one).items() if value}
    command = one.command_for(one.places[:1])
    more = {"packages": one.packages, "places": [*map(str, one.places)], "command": command}
    return drop_empty({**fields, "since": _date(one.since), **more})


def _disputed(one: ReportedConflict) -> dict[str, Any]:
    return {**drop_empty(vars(one)), "places": [*map(str, one.places)]}


def _change(one: ReportedChange) -> dict[str, Any]:
    fields = {name: value for name, value in vars(one).items() if value}
    diffs = [{"path": path, "diff": diff} for path, diff in one.diffs]
    return drop_empty({**fields, "since": _date(one.since), "places": [*map(str, one.places)], "diffs": diffs})


def _explanation(one: ReportedExplanation) -> dict[str, Any]:
    fields = {name: value for name, value in vars(one).items() if value}
    facts = [{"what": what, "is": words} for what, words in one.facts]
    values = [_value(each) for each in one.values]
    return drop_empty({**fields, "places": [*map(str, one.places)], "facts": facts, "values": values})


def _value(one: ReportedValue) -> dict[str, Any]:
    return {"resource": one.resource, "pointer": one.pointer, "steps": [drop_empty(vars(step)) for step in one.steps]}
