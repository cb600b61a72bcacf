"""Stages: groups of targets on which people publish a change one after the other. The order is a recommendation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from reconciler.krm.selectors import LabelSelector
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.model import FleetIndex, PackageRow, ReviewChange, TargetEntry

_UNPUBLISHED_STATES = ("blocked", "held")


@dataclass(frozen=True)
class Stage:
    """A group of targets. A target belongs to the first stage whose selector matches its labels."""

    name: str
    targets: LabelSelector


@dataclass(frozen=True)
class StageProgress:
    """The progress of a change on the targets of a stage.

    Attributes:
        waiting: The targets with a draft of the change.
        published: The number of targets that have the package, and no draft of the change. Targets on which the
            package is blocked or held are not counted.
        total: The number of targets that have the package or its draft.
    """

    name: str
    waiting: tuple[str, ...]
    published: int
    total: int

    def __str__(self) -> str:
        return f"{self.name}: {self.published} of {self.total} published"


def find_stage(target: TargetEntry, stages: Iterable[Stage]) -> str:
    """Return the name of the stage of a target. Return "" if it belongs to no stage."""
    return next((stage.name for stage in stages if stage.targets.matches(target.labels)), "")


def find_current_stage(index: FleetIndex, change: ReviewChange, stages: Sequence[Stage]) -> str:
    """Return the first stage with an open draft of a change, such as `stage 1 of 3: canary`. Return "" without one."""
    names = {find_stage(index.by_target[member.target], stages) for member in change.members} if stages else set()
    found = ((number, stage.name) for number, stage in enumerate(stages, 1) if stage.name in names)
    return next((f"stage {number} of {len(stages)}: {name}" for number, name in found), "")


def list_progress(index: FleetIndex, change: ReviewChange, stages: Sequence[Stage]) -> tuple[StageProgress, ...]:
    """Return the progress of a change on each stage, in order."""
    waiting = {member.target for member in change.members}
    members = (index.by_target[member.target].by_package[member.package] for member in change.members)
    packages = {(row.column, row.owner) for row in members}
    rows: dict[str, list[PackageRow]] = {stage.name: [] for stage in stages}
    for target in index.targets if stages else ():
        found = [row for row in target.packages if (row.column, row.owner) in packages]
        if found and (name := find_stage(target, stages)):
            rows[name].append(found[0])
    return tuple(
        StageProgress(
            name,
            tuple(row.target for row in stage_rows if row.target in waiting),
            sum(row.target not in waiting and row.state not in _UNPUBLISHED_STATES for row in stage_rows),
            len(stage_rows),
        )
        for name, stage_rows in rows.items()
    )


def list_unpublished(progress: Sequence[StageProgress], targets: Collection[str]) -> tuple[StageProgress, ...]:
    """Return the stages that should publish a change before `targets`, but have open drafts on other targets.

    `progress` contains all stages of the change. The returned stages come before the last stage in which one of
    `targets` has an open draft.
    """
    positions = [position for position, stage in enumerate(progress) if not set(stage.waiting).isdisjoint(targets)]
    earlier = progress[: max(positions, default=0)]
    return tuple(stage for stage in earlier if not set(stage.waiting).issubset(targets))
