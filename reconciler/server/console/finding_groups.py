"""Groups of findings with equal codes and messages. A page shows each group as one row."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache

from reconciler.krm.findings import Finding, Severity, SourceLocation
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.model import shorten_digest
from reconciler.output.fleet.target_names import TargetNames

# Cache IDs, because most findings of a pass are also findings of the next pass.
_KNOWN_IDS = 20_000


@dataclass(frozen=True)
class FindingPlace:
    """A location of findings, and the packages with these findings. The field `location.package` is empty."""

    location: SourceLocation
    packages: tuple[str, ...]


@dataclass(frozen=True)
class FindingGroup:
    """Findings with equal codes and messages, except for the names of their targets."""

    id: str
    first: Finding
    findings: tuple[Finding, ...]

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The names of the targets, sorted."""
        names = {finding.location.package.partition("/")[0] for finding in self.findings}
        return tuple(sorted(names - {""}))

    @cached_property
    def places(self) -> tuple[FindingPlace, ...]:
        """The locations of the findings. Each entry also contains the affected packages, as `target/package`."""
        places: dict[tuple[str, int, str, str], list[SourceLocation]] = {}
        for finding in self.findings:
            location = finding.location
            # Do not group the findings about packages by object. The object can have a different name on each target.
            named_object = "" if location.package else location.object
            places.setdefault((location.file, location.line, named_object, location.pointer), []).append(location)
        return tuple(
            FindingPlace(
                SourceLocation(*place), tuple(dict.fromkeys(location.package for location in found if location.package))
            )
            for place, found in places.items()
        )


def compute_group_id(finding: Finding) -> str:
    """Return the ID of the group of a finding."""
    target = finding.location.package.partition("/")[0]
    return _compute_id(finding.code, finding.message, finding.severity.value, target)


@lru_cache(_KNOWN_IDS)
def _compute_id(code: str, message: str, severity: str, target: str) -> str:
    masked = TargetNames(target).mask_names(message) if target else message
    return shorten_digest(compute_digest([code, masked, severity]))


def group_findings(findings: Iterable[Finding]) -> list[FindingGroup]:
    """Return the groups of findings: errors first, then the largest groups."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(compute_group_id(finding), []).append(finding)
    rows = [FindingGroup(identifier, members[0], tuple(members)) for identifier, members in groups.items()]
    order = {severity: rank for rank, severity in enumerate(Severity)}
    return sorted(rows, key=lambda group: (order[group.first.severity], -len(group.findings), group.id))
