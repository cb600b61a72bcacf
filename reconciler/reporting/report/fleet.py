"""The values of a report: what was read of a fleet, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from shlex import quote
from typing import Any, Literal

from reconciler.planning.cells import STATES, Cell, State
from reconciler.planning.destination import Destination
from reconciler.reporting.open_drafts import PackageSheet, Sheet
from reconciler.reporting.report.alike import Own

Kind = Literal["blocked", "held", "conflict", "gate", "clash", "rejected", "proposed", "removal", "draft", "declined"]

_BULK: tuple[Kind, ...] = ("clash", "proposed", "removal", "draft")
_COMMANDS: Mapping[Kind, tuple[str, tuple[str, ...]]] = {
    "blocked": ("explain", ()), "held": ("explain", ()), "declined": ("explain", ()), "conflict": ("show", ()),
    "gate": ("show", ()), "rejected": ("show", ()), "clash": ("reject", ("--drop",)), "proposed": ("approve", ()),
    "removal": ("approve", ("--propose",)), "draft": ("propose", ()),
}  # fmt: skip


@dataclass(frozen=True)
class ReadPackage:
    """One package as it was read: its cell, and what tells of it, the draft's `status` before the branch's status file.

    `since` is when it came to stand as it does, in seconds since 1970 by the dates of Git; None where no commit says.
    """

    cell: Cell
    since: int | None
    sheet: PackageSheet | None = None
    file: bytes = b""

    @property
    def status(self) -> Mapping[str, Any]:
        """What the status file on the draft says; {} without a draft, or where it cannot be read."""
        return self.cell.drafted.status if self.cell.drafted else {}


@dataclass(frozen=True)
class ReadCluster:
    """One destination as it was read, or the `trouble` that kept it from being read. `seconds`: its latest commit."""

    destination: Destination
    labels: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[ReadPackage, ...] = ()
    sheets: Mapping[str, Sheet] = field(default_factory=dict)
    seconds: int = 0
    trouble: str = ""

    def own(self, one: ReadPackage) -> Own:
        """Return the names that are this cluster's own in what is told of a package."""
        return Own(self.destination.name, one.cell.record.owner.key.name)


@dataclass(frozen=True, order=True)
class Place:
    """A package on a cluster, in order of their names."""

    cluster: str
    package: str

    def __str__(self) -> str:
        return f"{self.cluster}/{self.package}"


@dataclass(frozen=True)
class Entry:
    """A cell of the matrix: what it says, and by which keys its change and its explanation are found, "" without one.

    `version` counts published revisions, 0 where there is none of ours. `conflicts` and `unmet` count those of an open
    draft; `note` says in a phrase what there is beside the state.
    """

    place: Place
    state: State
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
class Row:
    """A cluster with its entries by package, or why there are none."""

    cluster: str
    labels: Mapping[str, str]
    entries: Mapping[str, Entry]
    trouble: str = ""

    @property
    def is_well(self) -> bool:
        """Whether nothing here needs anybody."""
        return not self.trouble and all(one.is_well for one in self.entries.values())


@dataclass(frozen=True)
class Waiting:
    """What waits, on all places where it is the same: for whom, since when, and how to go on.

    `varies`: the sentence is that of the first place; on the others their own names stand in it. `changes` are the keys
    of what their drafts change.
    """

    kind: Kind
    who: str
    what: str
    places: tuple[Place, ...]
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

    def command_for(self, places: Iterable[Place]) -> str:
        """Return the command with which somebody goes on, on these places or, where it takes one, on the first."""
        verb, more = _COMMANDS[self.kind]
        return " ".join((f"reconciler {verb}", *(quote(str(one)) for one in places), *more))


@dataclass(frozen=True)
class Disputed:
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
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Change:
    """A change that drafts make, told once for all places that get it; the lines and diffs are those of the first.

    `varies`: on the others their own names stand in them. `unshown`: it has diffs for which there is no room.
    """

    key: str
    package: str
    what: str
    owner: str
    places: tuple[Place, ...]
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
class Step:
    """One step of a value: the layer and the object by which it came, the field that says so, and what it did."""

    by: str
    where: str
    change: str


@dataclass(frozen=True)
class Value:
    """A value that rules set, with the steps that led to it; the last one won."""

    resource: str
    pointer: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Explanation:
    """What made a package, as its status file tells, on all places where that is the same; see `Change.varies`.

    `more` counts values for which there is no room.
    """

    key: str
    package: str
    places: tuple[Place, ...]
    facts: tuple[tuple[str, str], ...]
    values: tuple[Value, ...]
    more: int
    conflicts: tuple[str, ...]
    children: tuple[str, ...]
    command: str
    varies: bool = False


def earlier(one: int | None, other: int | None) -> int | None:
    """Return the earlier of two dates, or the one that is known."""
    return min((when for when in (one, other) if when is not None), default=None)


@dataclass(frozen=True)
class FleetReport:
    """The whole fleet as it is told. `seconds` is the latest date of a commit that it was read from, 0 without one.

    `summary` is that of the status branch, {} where there is none.
    """

    config: str
    seconds: int
    rows: tuple[Row, ...]
    packages: tuple[str, ...]
    waiting: tuple[Waiting, ...]
    disputed: tuple[Disputed, ...]
    changes: tuple[Change, ...]
    explanations: tuple[Explanation, ...]
    summary: Mapping[str, Any]

    @property
    def counts(self) -> Mapping[State, int]:
        """How many packages there are in each state that there is."""
        found = [entry.state for row in self.rows for entry in row.entries.values()]
        return {state: found.count(state) for state in STATES if state in found}

    @property
    def troubles(self) -> tuple[Row, ...]:
        """The clusters that could not be read."""
        return tuple(row for row in self.rows if row.trouble)
