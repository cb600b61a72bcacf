"""Removals of packages that no config object requests any more, as plan lines and as data for the status branch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.api.base import omit_empty
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.text import to_one_line
from reconciler.planning.decide.fleet_plan import FleetPlan, TargetPlan
from reconciler.planning.model.outcomes import RemovalOutcome
from reconciler.planning.model.targets import Target

# Kinds of removals that require a decision of a person. Removals of all other kinds are completed in the pass that
# detects them.
_PENDING = ("proposed", "declined")
_ACTIONS = {
    "proposed": "propose removal of",
    "withdrawn": "withdraw the draft of",
    "orphaned": "orphan",
}


@dataclass(frozen=True)
class PackageRemoval:
    """The removal of one package from a target."""

    target: Target
    removal: RemovalOutcome

    @property
    def target_name(self) -> str:
        """The package as `<repository>/<package>`."""
        return f"{self.target.name}/{self.removal.package}"

    @property
    def has_action(self) -> bool:
        """Whether this pass acts on the removal. False if an earlier pass already proposed the removal."""
        return self.removal.is_new or self.removal.kind in ("withdrawn", "orphaned")

    @property
    def title(self) -> str:
        """The action of this pass for the removal, on one line."""
        return to_one_line(f"{_ACTIONS[self.removal.kind]} {self.target_name} ({self.removal.owner.key})")

    @property
    def branch(self) -> str:
        """The branch of the removal draft, even if a person declined the draft. "" if there is no removal draft."""
        removal = self.removal.record.removal
        return removal.branch if removal else ""

    @property
    def tenant(self) -> str:
        """The tenant of the package, or "" for a package of the platform team."""
        return self.removal.record.tenant

    def as_data(self) -> dict[str, Any]:
        """Return the removal as JSON data."""
        return omit_empty({
            "repository": self.target.name, "package": self.removal.package,
            "owner": self.removal.owner.as_data(), "state": self.removal.kind, "branch": self.branch,
            "why": self.removal.reason,
        })  # fmt: skip


def list_removals(plan: FleetPlan) -> tuple[PackageRemoval, ...]:
    """Return the removals of all targets, sorted by target and package."""
    removals = [
        PackageRemoval(target_plan.target, removal) for target_plan in plan.targets for removal in target_plan.removals
    ]
    return tuple(sorted(removals, key=lambda removal: removal.target_name))


def list_pending_removals(plan: TargetPlan) -> tuple[PackageRemoval, ...]:
    """Return the proposed and declined removals of a target. A pass with the same input returns the same removals."""
    pending = [removal for removal in plan.removals if removal.kind in _PENDING]
    return tuple(
        PackageRemoval(plan.target, removal) for removal in sorted(pending, key=lambda removal: removal.package)
    )


def build_pending_removals_data(removals: Iterable[PackageRemoval]) -> Iterator[Mapping[str, Any]]:
    """Yield the data of proposed and declined removals for the status branch."""
    for pending in removals:
        yield omit_empty({
            "package": pending.target_name, "state": pending.removal.kind, "branch": pending.branch,
            "reason": pending.removal.reason,
        })  # fmt: skip
