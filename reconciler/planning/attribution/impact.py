"""Impact of a config change: the packages that differ between the plans of two configs for the same targets.

For a package that a plan does not change, the comparison uses the published content.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from reconciler.catalog.files import FileTree, TreeId
from reconciler.catalog.trace import Trace
from reconciler.controllers.results import ControllerResult, PackageOwner, StalledVariant
from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.objects import Condition, ObjectKey
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.planning.decide.fleet_plan import FleetPlan, TargetPlan
from reconciler.planning.model.outcomes import Blocked, Draft, HeldRemoval, PackageOutcome, Unchanged
from reconciler.planning.model.targets import Target

ProjectedKind = Literal["requested", "declined", "blocked", "stalled", "held", "undecided", "removal", "none"]
"""Result of a plan for a package. The values are part of the output format.

- `requested`: the package is requested, and is rendered or unchanged.
- `declined`: a person rejected the requested content, so that the published content is kept.
- `blocked`: the package cannot be rendered.
- `stalled`: the package that the owner requests cannot be computed.
- `held`: the package is no longer requested, but must not be removed yet.
- `undecided`: the package is kept, because it is unknown whether it is still requested.
- `removal`: the package is no longer requested, and is removed.
- `none`: the package does not exist.
"""
ConflictLocation = tuple[str, str, str]
"""File, resource and JSON pointer of a conflict."""
BLOCKED_KINDS = frozenset({"blocked", "stalled", "held", "undecided"})
"""Kinds of results in which the package cannot be changed now."""
TARGET_GONE = "DestinationGone"
"""Reason for a package that is kept because its target is no longer in the config."""
_TARGET_GONE_MESSAGE = "the target of the package is no longer in the config, so the package stays unchanged"
UNREADABLE_CODES = frozenset({"RepositoryUnreachable", "UpstreamUnreachable", "StateUnreadable", "EngineTooOld"})
"""Codes of findings about data that cannot be read. A plan with such a finding is not complete."""
_UNKNOWN_MESSAGE = "the packages that the owner requests cannot be computed, so this package stays unchanged"


@dataclass(frozen=True)
class ProjectedPackage:
    """Result of a plan for one package.

    Attributes:
        tree: The tree of the requested package, or the published tree if the package is kept.
        review: The digest of the data that reviewers see in addition to the files (`compute_review_digest`).
        reason: The finding code of a package that cannot be changed, or `RemovalOutcome.kind` of a removal.
        outcome: The outcome of a requested package.
    """

    kind: ProjectedKind = "none"
    owner: PackageOwner | None = None
    tree: TreeId | None = None
    review: str = ""
    reason: str = ""
    message: str = ""
    outcome: PackageOutcome | None = None

    @property
    def comparison_key(self) -> tuple[object, ...]:
        """Key for the comparison of two results. Equal results have equal keys."""
        message = self.message if self.kind in BLOCKED_KINDS else ""
        return self.kind, self.tree, self.review, self.reason, message

    @property
    def trace(self) -> Trace:
        """Dependencies of the render with their fingerprints, or {} if the package was not rendered."""
        match self.outcome:
            case Blocked(trace=trace):
                return trace
            case Draft(record=record) | Unchanged(record=record):
                return record.trace
            case None:
                return {}


@dataclass(frozen=True)
class PackageImpact:
    """A package with different results for the config before a change and the config after it.

    Attributes:
        target: The target of the package. None for an owner whose target cannot be computed.
        before, after: The results of the plans before and after the change.
        files_before, files_after: The files of the package before and after the change. If a plan does not change the
            package, these are the published files. None if the package is too large.
        known_conflicts: The conflicts of local changes that already exist before the change.
    """

    target: Target | None
    package: str
    before: ProjectedPackage
    after: ProjectedPackage
    files_before: FileTree | None = field(default_factory=FileTree)
    files_after: FileTree | None = field(default_factory=FileTree)
    known_conflicts: frozenset[ConflictLocation] = frozenset()

    @property
    def target_name(self) -> str:
        """Name of the package in the form `<repository>/<package>`, or "" if its target is unknown."""
        return f"{self.target.name}/{self.package}" if self.target else ""

    @property
    def owner(self) -> PackageOwner | None:
        """The owner after the change, or else the owner before the change. None if the package has no owner."""
        return self.after.owner or self.before.owner

    @property
    def creates_draft(self) -> bool:
        """Whether a pass with the config after the change writes a draft of the package."""
        return isinstance(self.after.outcome, Draft)

    @property
    def causes(self) -> tuple[str, ...]:
        """The dependencies with a changed fingerprint.

        If no fingerprint changed, the added and removed dependencies.
        """
        before, after = self.before.trace, self.after.trace
        changed = tuple(name for name in sorted(before.keys() & after.keys()) if before[name] != after[name])
        if changed or not isinstance(self.after.outcome, Draft):
            return changed or tuple(sorted(before.keys() ^ after.keys()))
        return self.after.outcome.causes


def compare_plans(base: FleetPlan, head: FleetPlan) -> tuple[PackageImpact, ...]:
    """Return all packages with different results in two plans, sorted by target and package.

    Args:
        base: The plan of the config before the change.
        head: The plan of the config after the change.
    """
    before, after = _ProjectedFleet(base), _ProjectedFleet(head)
    keys = sorted({*before.packages, *after.packages}, key=lambda key: (key[0].name, *key))
    impacts = tuple(impact for key in keys if (impact := _compare_package(key, before, after)))
    listed_owners = frozenset(impact.owner.key for impact in impacts if impact.owner)
    return (*impacts, *_compare_owners_without_target(base, head, listed_owners))


@dataclass(frozen=True)
class UnknownImpact:
    """The reasons why the impact of a change cannot be computed completely.

    Attributes:
        findings: The errors about data that could not be read.
        clusters: The sorted names of the clusters that these errors affect. An error about an object without packages
            affects no cluster.
    """

    findings: tuple[Finding, ...] = ()
    clusters: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.findings)


def find_unknown_impact(plans: Sequence[FleetPlan], unread: Mapping[Target, Finding]) -> UnknownImpact:
    """Find the data that could not be read for the plans.

    The plans can be equal although the change has an impact, because the same data can be missing in both plans.

    Args:
        unread: The targets that could not be read, each with its finding.
    """
    clusters: dict[Finding, tuple[str, ...]] = {finding: (target.name,) for target, finding in unread.items()}
    for plan in plans:
        for target_plan in plan.targets:
            clusters |= dict.fromkeys(_select_unreadable(target_plan.findings), (target_plan.target.name,))
        for stalled in plan.controller_result.stalled:
            target = stalled.target
            names = (target.repository,) if target else _find_clusters_of_owner(stalled.owner.key.reference, plan)
            clusters |= dict.fromkeys(_select_unreadable(stalled.findings), names)
        for finding in _select_unreadable(plan.controller_result.findings):
            clusters[finding] = _find_clusters_of_owner(finding.location.object, plan)
        for outcome_target, outcome in plan.list_outcomes():
            if isinstance(outcome, Blocked) and outcome.should_retry:
                clusters |= dict.fromkeys(outcome.findings, (outcome_target.name,))
    return UnknownImpact(tuple(clusters), tuple(sorted({name for names in clusters.values() for name in names})))


def _select_unreadable(findings: Iterable[Finding]) -> Iterator[Finding]:
    return (finding for finding in findings if finding.code in UNREADABLE_CODES)


def _find_clusters_of_owner(owner: str, plan: FleetPlan) -> tuple[str, ...]:
    """Return the clusters that have recorded packages of `owner`.

    If `owner` is a PackageVariantSet or another set, include the packages of the owners that the set created.
    """
    return tuple(
        target_plan.target.name
        for target_plan in plan.targets
        if any(
            owner in [key.reference for key in (record.owner.key, record.owner.parent) if key]
            for _, record in target_plan.next_state.list_active_packages()
        )
    )


_PackageKey = tuple[ObjectKey, str, str]
"""Target, package and owner. If several owners request one package, all keys except the first contain the owner.

In all other keys, the owner is "".
"""


def _compare_package(key: _PackageKey, before: _ProjectedFleet, after: _ProjectedFleet) -> PackageImpact | None:
    previous, current = before.get_package(key), after.get_package(key)
    if previous.kind == "undecided" and key not in before.packages:
        # If the plan before the change contains no result for the package, the package is new and has no previous
        # content.
        previous = ProjectedPackage()
    if previous.comparison_key == current.comparison_key:
        return None
    target = after.targets.get(key[0]) or before.targets[key[0]]
    return PackageImpact(target, key[1], previous, current)


class _ProjectedFleet:
    """The results of one plan for all packages."""

    def __init__(self, plan: FleetPlan) -> None:
        self._plans = {target_plan.target.key: target_plan for target_plan in plan.targets}
        self._config_objects = plan.objects.keys()
        self.targets = {key: target_plan.target for key, target_plan in self._plans.items()}
        self.packages: dict[_PackageKey, ProjectedPackage] = {}
        result = plan.controller_result
        stalled, unknown_owners = _group_stalled(result.stalled), _project_unknown_owners(result)
        for key, target_plan in self._plans.items():
            stalled_here = stalled.get((key.namespace, target_plan.target.name), {})
            for package, owner, projected in _project_target(target_plan, stalled_here, unknown_owners):
                self.packages[key, package, owner] = projected

    def get_package(self, key: _PackageKey) -> ProjectedPackage:
        """Return the result for a package, even if the plan contains neither the package nor its target."""
        if key in self.packages:
            return self.packages[key]
        plan = self._plans.get(key[0])
        if plan is None:
            is_in_config = key[0] in self._config_objects
            gone = ProjectedPackage("undecided", reason=TARGET_GONE, message=_TARGET_GONE_MESSAGE)
            return ProjectedPackage() if is_in_config else gone
        return _project_unreadable_target(plan) if plan.findings else ProjectedPackage()


def _group_stalled(stalled: Iterable[StalledVariant]) -> dict[tuple[str, str], dict[str, StalledVariant]]:
    by_target: dict[tuple[str, str], dict[str, StalledVariant]] = {}
    for variant in stalled:
        if target := variant.target:
            by_target.setdefault((target.namespace, target.repository), {}).setdefault(target.package, variant)
    return by_target


def _project_unknown_owners(result: ControllerResult) -> Mapping[str, ProjectedPackage]:
    """Map the key of each owner with an error, as text, to the result for the packages of this owner."""
    findings = [*result.findings, *(finding for variant in result.stalled for finding in variant.findings)]
    # Read the errors in reverse order, so that the first error of an owner replaces its later errors in the mapping.
    by_owner = {
        error.location.object: ProjectedPackage("undecided", reason=error.code, message=error.message)
        for error in reversed(select_errors(findings))
        if error.location.object
    }
    return {**by_owner, **{variant.owner.key.reference: _project_stalled(variant) for variant in result.stalled}}


def _project_target(
    plan: TargetPlan, stalled: Mapping[str, StalledVariant], unknown_owners: Mapping[str, ProjectedPackage]
) -> Iterator[tuple[str, str, ProjectedPackage]]:
    """Yield tuples of a package, an owner and a result.

    If several owners request a package, each of them has its own tuple. The owner is "" in the first tuple of a
    package, so that only the later tuples of this package contain an owner.
    """
    listed: set[str] = set()
    for outcome in plan.outcomes:
        package = outcome.variant.target.package
        yield package, outcome.variant.owner.key.reference if package in listed else "", _project_outcome(outcome)
        listed.add(package)
    for held in plan.held:
        yield held.package, "", _project_held_removal(held)
    for removal in plan.removals:
        projected = ProjectedPackage("removal", removal.owner, reason=removal.kind, message=removal.reason)
        yield removal.package, "", projected
    listed |= {*(held.package for held in plan.held), *(removal.package for removal in plan.removals)}
    for package, variant in stalled.items():
        if package not in listed:
            yield package, "", _project_stalled(variant)
    for package, record in plan.next_state.packages.items():
        if record.is_owned and package not in listed | stalled.keys():
            yield package, "", _project_undecided(plan, record.owner, unknown_owners)


def _project_undecided(
    plan: TargetPlan, owner: PackageOwner, unknown_owners: Mapping[str, ProjectedPackage]
) -> ProjectedPackage:
    if plan.findings:
        return replace(_project_unreadable_target(plan), owner=owner)
    candidates = (unknown_owners.get(key.reference) for key in (owner.key, owner.parent) if key)
    default = ProjectedPackage("undecided", reason="Kept", message=_UNKNOWN_MESSAGE)
    return replace(next((projected for projected in candidates if projected), default), owner=owner)


def _project_unreadable_target(plan: TargetPlan) -> ProjectedPackage:
    return ProjectedPackage("undecided", reason=plan.findings[0].code, message=plan.findings[0].message)


def _project_outcome(outcome: PackageOutcome) -> ProjectedPackage:
    owner = outcome.variant.owner
    match outcome:
        case Draft(rendered=rendered):
            return ProjectedPackage("requested", owner, rendered.files.id, rendered.review_digest, outcome=outcome)
        case Unchanged(record=record, reason="declined"):
            return ProjectedPackage("declined", owner, record.observed.published, outcome=outcome)
        case Unchanged(record=record):
            return ProjectedPackage("requested", owner, record.desired_tree, record.review_digest, outcome=outcome)
        case Blocked(conditions=conditions):
            ready = _find_condition(conditions, "Ready")
            return ProjectedPackage("blocked", owner, reason=ready.reason, message=ready.message, outcome=outcome)


def _project_held_removal(held: HeldRemoval) -> ProjectedPackage:
    return ProjectedPackage("held", held.record.owner, reason=held.finding.code, message=held.finding.message)


def _project_stalled(stalled: StalledVariant) -> ProjectedPackage:
    condition = _find_condition(stalled.conditions, "Stalled")
    return ProjectedPackage("stalled", stalled.owner, reason=condition.reason, message=condition.message)


def _find_condition(conditions: Sequence[Condition], type_: str) -> Condition:
    return next((condition for condition in conditions if condition.type == type_), conditions[-1])


def _compare_owners_without_target(
    base: FleetPlan, head: FleetPlan, listed_owners: Collection[ObjectKey]
) -> Iterator[PackageImpact]:
    """Compare owners whose targets cannot be computed. Yield each owner with different outcomes in `base` and `head`.

    The owners in `listed_owners` are omitted.
    """
    before, after = (
        {
            variant.owner.key: _project_stalled(variant)
            for variant in plan.controller_result.stalled
            if variant.target is None
        }
        for plan in (base, head)
    )
    for key in sorted({*before, *after} - {*listed_owners}):
        previous, current = before.get(key, ProjectedPackage()), after.get(key, ProjectedPackage())
        if previous.comparison_key != current.comparison_key:
            yield PackageImpact(None, "", previous, current)
