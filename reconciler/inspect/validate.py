"""Validating: everything that is wrong with a config, or odd about it, whether or not a pass would stumble over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.clusters.inventory import ClusterVersions, KnownClusters
from reconciler.controllers.override_policies.policy_usage import check_unreached_rules
from reconciler.controllers.results import ControllerResult, Variant
from reconciler.git.errors import GitError
from reconciler.krm.findings import Finding, SourceLocation, select_errors
from reconciler.krm.objects import ObjectKey
from reconciler.krm.schema.kubernetes_apis import KubernetesRelease
from reconciler.output.findings.rendered_resources import (
    UnknownVersionClusters,
    build_rendered_findings,
    build_unknown_version_findings,
)
from reconciler.planning.attribution.re_render import re_decide_target
from reconciler.planning.attribution.validation import (
    CheckedPackage,
    ConformanceChecker,
    SchemaSource,
    deduplicate_lint,
)
from reconciler.planning.decide.fleet_plan import FleetPlan
from reconciler.planning.decide.target_inputs import PlanningContext, PreparedTarget
from reconciler.planning.decide.target_plan import DecidedTarget
from reconciler.planning.model.outcomes import Blocked, Draft, PackageOutcome, PackageRender
from reconciler.planning.model.state import TargetState
from reconciler.planning.model.targets import Target
from reconciler.reconcile.failures import (
    REPOSITORY_UNREACHABLE,
    URL_REFUSED,
    IsolatedSteps,
    error_finding,
    log_failures,
)
from reconciler.reconcile.pass_context import find_unread_targets
from reconciler.reconcile.reconcile_pass import plan_config_proposal, plan_fleet
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.targets import read_target_states
from reconciler.reconcile.services import ConfigSource, PassServices, keep_stages
from reconciler.reconcile.snapshot import (
    PassSnapshot,
    check_config_is_not_empty,
    collect_catalog_findings,
    find_unproven_config_deletions,
    prepare_pass,
    take_snapshot,
)

_NO_CLUSTERS = KnownClusters({}, {}, ClusterVersions())


@dataclass(frozen=True)
class ValidationResult:
    """What was found about a config, its objects, by which findings have their places, and who made their owners.

    `makers` are by owner, both as `Kind/namespace/name`.
    """

    findings: tuple[Finding, ...]
    objects: Mapping[ObjectKey, ConfigObject]
    owner_sets: Mapping[str, str]


@dataclass(frozen=True)
class ConformanceOptions:
    """By what rendered resources are judged: schemas, and the release of clusters that do not say theirs."""

    schemas: SchemaSource
    release: KubernetesRelease | None = None


def validate(source: ConfigSource, remotes: Remotes, tools: PassServices) -> ValidationResult:
    """Return every finding about the config: files, objects, references, and what rooms make of them."""
    found = take_snapshot(source, remotes, tools)
    room = tools.run_controllers(found.catalog, remotes, {}, found.now)
    steps = IsolatedSteps()
    proposal = plan_config_proposal(found, room, tools, (), steps)
    wanted = {(one.target.namespace, one.target.repository) for one in room.variants}
    destinations = tools.list_targets(found.catalog)
    used = [one for one in destinations if one.is_deployment or _name(one) in wanted]
    nothing: tuple[Finding, ...] = ()
    settings = steps.run(
        "the repositories that the settings name", lambda: check_settings_repositories(remotes, tools), nothing
    )
    targets = [
        steps.run(one.title, partial(_unread_target, one, remotes, tools), nothing, one.location) for one in used
    ]
    conflicts = steps.run(
        "conflicts between targets", lambda: tuple(tools.find_target_conflicts(found.catalog).values()), nothing
    )
    made = (finding for variant in room.variants for finding in variant.findings)
    empty = check_config_is_not_empty(found.catalog, found.config, bool(found.catalog.objects))
    absent = steps.run("evidence of deletions", partial(_absent, found, destinations, remotes, tools), nothing)
    told = (
        *empty,
        *collect_catalog_findings(found.catalog),
        *absent,
        *found.findings,
        *conflicts,
        *proposal.findings,
        *made,
        *settings,
        *(each for findings in targets for each in findings),
        *steps.findings,
    )
    is_whole = found.catalog.is_complete
    findings = FleetPlan(found.config.id, 0, room, (), told, is_whole, objects=found.catalog.objects).list_findings()
    odd = _lint(findings, lambda: tools.lint(found.catalog, remotes, room, found.now))
    log_failures((*findings, *odd))
    return ValidationResult((*findings, *odd), found.catalog.objects, _makers(room))


def validate_rendered(
    source: ConfigSource, remotes: Remotes, tools: PassServices, judge: ConformanceOptions
) -> ValidationResult:
    """Return what `validate` does, what a plan tells, and what is wrong with every package as it would be drafted.

    All packages are rendered, whether or not anything has moved; nothing is written anywhere.
    """
    found = take_snapshot(source, remotes, tools)
    steps = IsolatedSteps()
    nothing: tuple[Finding, ...] = ()
    fleet = steps.run("the releases of clusters", lambda: tools.read_cluster_versions(found.catalog), _NO_CLUSTERS)
    releases = {name: judge.release for name in fleet.clusters if judge.release} | dict(fleet.versions.by_cluster)
    examined = _Examined(ConformanceChecker(found.catalog, releases, judge.schemas))
    begun = prepare_pass(found, remotes, keep_stages(tools), examined.decide)
    planned = plan_fleet(begun, tools)
    settings = steps.run(
        "the repositories that the settings name", lambda: check_settings_repositories(remotes, tools), nothing
    )
    plan = replace(planned, findings=(*planned.findings, *find_unread_targets(planned, remotes), *settings))
    unreached = (
        check_unreached_rules(plan.policy_usages, begun.context.policies, fleet.clusters) if _is_all_made(plan) else ()
    )
    unsaid = [name for name in fleet.clusters if name not in releases and name in examined.clusters]
    told = (
        *plan.list_findings(), *fleet.versions.findings, *unreached,
        *build_rendered_findings(examined.checked, found.catalog.objects),
        *build_unknown_version_findings(UnknownVersionClusters(unsaid, judge.schemas.describe_release(None), fleet.locations)), *steps.findings,  # noqa: E501
    )  # fmt: skip
    odd = _lint(told, lambda: tools.lint(found.catalog, remotes, begun.controller_result, found.now))
    log_failures((*steps.findings, *odd))
    return ValidationResult(
        tuple(dict.fromkeys((*told, *odd))), found.catalog.objects, _makers(begun.controller_result)
    )


def _absent(
    found: PassSnapshot, destinations: Sequence[Target], remotes: Remotes, tools: PassServices
) -> tuple[Finding, ...]:
    """Return an error for each file that does not prove the deletion of the objects that a state records for it."""
    states = read_target_states(destinations, remotes, tools.state_ref).values()
    known = [one for one in states if isinstance(one, TargetState)]
    return find_unproven_config_deletions(found.catalog, found.config, destinations, known, tools.max_delete_percent)


def check_settings_repositories(remotes: Remotes, tools: PassServices) -> tuple[Finding, ...]:
    """Return an error for each repository that the settings name, and that cannot be used or read.

    A repository that no cluster lives in is read as well: it receives the status.
    """
    places = tools.list_settings_urls()
    remotes.fetch((), {url for url in places.values() if isinstance(url, str)} - remotes.fetched_urls)
    return tuple(
        found for setting, url in places.items() if (found := _unusable_setting(setting, url, remotes)) is not None
    )


def _unusable_setting(setting: str, url: str | GitError, remotes: Remotes) -> Finding | None:
    if isinstance(url, GitError):
        return URL_REFUSED.finding(
            f"{setting} must name a Git repository: {url.full_message}", SourceLocation(pointer=setting)
        )
    error = remotes.failures.get(url)
    if error is None:
        return None
    return REPOSITORY_UNREACHABLE.finding(
        f"{setting} must name a Git repository: {error.full_message}", SourceLocation(pointer=setting)
    )


def _unread_target(one: Target, remotes: Remotes, tools: PassServices) -> tuple[Finding, ...]:
    """Return an error for a target whose repository cannot be read; one that the settings name is reported by them."""
    error = remotes.failures.get(one.url)
    if error is None or one.url in tools.list_settings_urls().values():
        return ()
    return (error_finding(error, REPOSITORY_UNREACHABLE, f"{one.title}: {error.full_message}", one.location),)


def _name(one: Target) -> tuple[str, str]:
    return one.key.namespace, one.name


def _lint(known: Sequence[Finding], lint: Callable[[], tuple[Finding, ...]]) -> tuple[Finding, ...]:
    steps = IsolatedSteps()
    nothing: tuple[Finding, ...] = ()
    found = steps.run("the additional checks of the config", lint, nothing)
    return (*deduplicate_lint(known, found), *steps.findings)


def _is_all_made(plan: FleetPlan) -> bool:
    """Tell whether all that is wanted could be made: only then can be said what no resource meets."""
    blocked = any(isinstance(one, Blocked) for _, one in plan.list_outcomes())
    return not (blocked or plan.controller_result.stalled or any(one.findings for one in plan.targets))


def _makers(room: ControllerResult) -> Mapping[str, str]:
    owners = (*(one.owner for one in room.variants), *(one.owner for one in room.stalled))
    return {str(one.key): str(one.parent) for one in owners if one.parent}


class _Examined:
    """Looks at the packages of each destination as they are made."""

    def __init__(self, conformance: ConformanceChecker) -> None:
        self._conformance = conformance
        self.checked: list[CheckedPackage] = []
        self.clusters: set[str] = set()

    def decide(self, one: PreparedTarget, shop: PlanningContext) -> DecidedTarget:
        """Return what becomes of a destination, after a look at everything that is rendered for it."""
        decided, rendered = re_decide_target(one, shop)
        if one.target.is_deployment:
            self.clusters.add(one.target.name)
            usable = _usable(decided, rendered)
            self.checked += (
                found for found in self._conformance.check_packages(one.target.name, usable) if _tells(found)
            )
        # of what is sound nobody asks how it came to be
        return replace(decided, outcomes=tuple(map(_without_stages, decided.outcomes)))


def _without_stages(outcome: PackageOutcome) -> PackageOutcome:
    if not isinstance(outcome, Draft):
        return outcome
    return replace(outcome, rendered=replace(outcome.rendered, stages=()))


def _usable(decided: DecidedTarget, rendered: Mapping[str, PackageRender]) -> Sequence[tuple[Variant, PackageRender]]:
    """Return the packages that may be used as they are rendered."""
    made = ((one.variant, rendered.get(one.variant.target.package)) for one in decided.outcomes)
    return [(variant, one) for variant, one in made if one and not select_errors(one.findings)]


def _tells(found: CheckedPackage) -> bool:
    return bool(found.violations or found.unchecked)
