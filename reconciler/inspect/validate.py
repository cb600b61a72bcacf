"""Validation of a config. The result contains all findings, including findings that do not affect a pass.

The function `validate` checks the config. The function `validate_rendered` also renders every package, and checks its
resources against the API schemas of its cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.clusters.inventory import ClusterVersions, KnownClusters
from reconciler.controllers.override_policies.policy_usage import check_unreached_rules
from reconciler.controllers.results import ControllerResult, Variant
from reconciler.git.errors import GitError
from reconciler.krm.findings import Finding, SourceLocation, select_errors
from reconciler.krm.objects import ObjectKey
from reconciler.krm.schema.kubernetes_apis import KubernetesRelease
from reconciler.lazy_dataclasses import dataclass, replace
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
from reconciler.reconcile.codes import PassCodes
from reconciler.reconcile.failures import IsolatedSteps, error_finding, log_failures
from reconciler.reconcile.pass_context import create_read_only_finding, find_unread_targets
from reconciler.reconcile.pass_inputs import ConfigSource
from reconciler.reconcile.reconcile_pass import plan_config_proposal, plan_fleet
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.targets import read_target_states
from reconciler.reconcile.services import PassServices, keep_stages
from reconciler.reconcile.snapshot import (
    PassSnapshot,
    check_config_is_not_empty,
    collect_catalog_findings,
    find_unproven_config_deletions,
    prepare_pass,
    take_snapshot,
)

_NO_CLUSTERS = KnownClusters({}, {}, ClusterVersions())
_NO_FINDINGS: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class ValidatedConfig:
    """A config with its findings.

    Attributes:
        objects: The config objects. They are required to find the locations of the findings.
        owner_sets: Maps each owner to the object that created the owner, such as a PackageVariantSet. Keys and values
            have the form `Kind/namespace/name`.
        plan: The plan of the config. It is required to find the tenants of the findings.
    """

    config: str
    findings: tuple[Finding, ...]
    objects: Mapping[ObjectKey, ConfigObject]
    owner_sets: Mapping[str, str]
    plan: FleetPlan

    def select_tenant(self, tenant: str) -> ValidatedConfig:
        """Return the config with only the findings about the files and packages of a tenant."""
        findings = (finding for finding in self.findings if self.plan.find_finding_tenant(finding) == tenant)
        return replace(self, findings=tuple(findings))


@dataclass(frozen=True)
class ConformanceOptions:
    """Options for the check of rendered resources against API schemas.

    Attributes:
        release: The Kubernetes release for clusters whose config object contains no release. None selects the newest
            release with schemas.
    """

    schemas: SchemaSource
    release: KubernetesRelease | None = None


def validate(source: ConfigSource, remotes: Remotes, services: PassServices) -> ValidatedConfig:
    """Return all findings of the config: in files, objects and references, from controllers, and from lint checks."""
    snapshot = take_snapshot(source, remotes, services)
    result = services.run_controllers(snapshot.catalog, remotes, {}, snapshot.now)
    steps = IsolatedSteps()
    proposal = plan_config_proposal(snapshot, result, services, (), steps)
    targets = services.list_targets(snapshot.catalog)
    settings_findings = _run_settings_check(remotes, services, steps)
    target_findings = _check_used_targets(targets, result, remotes, services, steps)
    conflicts = steps.run(
        "conflicts between targets",
        lambda: tuple(services.find_target_conflicts(snapshot.catalog).values()),
        _NO_FINDINGS,
    )
    deletion_findings = steps.run(
        "evidence of deletions", partial(_check_deletions, snapshot, targets, remotes, services), _NO_FINDINGS
    )
    config_findings = (
        *check_config_is_not_empty(snapshot.catalog, snapshot.config, bool(snapshot.catalog.objects)),
        *collect_catalog_findings(snapshot.catalog),
        *deletion_findings,
        *snapshot.findings,
        *conflicts,
        *proposal.findings,
        *(finding for variant in result.variants for finding in variant.findings),
        *services.deprecation_findings,
        *settings_findings,
        *target_findings,
        *steps.findings,
    )
    catalog = snapshot.catalog
    plan = FleetPlan(
        snapshot.config.id, 0, result, (), config_findings, catalog.uncertain_tenants, objects=catalog.objects,
        tenants=catalog.tenants,
    )  # fmt: skip
    findings = plan.list_findings()
    lint_findings = _run_lint(findings, lambda: services.lint(catalog, remotes, result, snapshot.now))
    log_failures((*findings, *lint_findings))
    return ValidatedConfig(
        snapshot.config.id, (*findings, *lint_findings), catalog.objects, _find_owner_sets(result), plan
    )


def validate_rendered(
    source: ConfigSource, remotes: Remotes, services: PassServices, options: ConformanceOptions
) -> ValidatedConfig:
    """Return the findings of `validate` and of a plan, and the schema violations in the rendered resources.

    All packages are rendered, including packages without changes. Nothing is written to a repository.
    """
    snapshot = take_snapshot(source, remotes, services)
    steps = IsolatedSteps()
    clusters = steps.run(
        "the releases of clusters", lambda: services.read_cluster_versions(snapshot.catalog), _NO_CLUSTERS
    )
    releases = {name: options.release for name in clusters.clusters if options.release}
    releases |= dict(clusters.versions.by_cluster)
    checker = _RenderedChecker(ConformanceChecker(snapshot.catalog, releases, options.schemas))
    prepared = prepare_pass(snapshot, remotes, keep_stages(services), checker.decide)
    plan = plan_fleet(prepared, services)
    settings_findings = _run_settings_check(remotes, services, steps)
    plan = replace(plan, findings=(*plan.findings, *find_unread_targets(plan, remotes), *settings_findings))
    unreached_rules: Iterable[Finding] = ()
    if _is_fully_rendered(plan):
        unreached_rules = check_unreached_rules(plan.policy_usages, prepared.context.policies, clusters.clusters)
    undeclared = [name for name in clusters.clusters if name not in releases and name in checker.clusters]
    unknown_versions = UnknownVersionClusters(undeclared, options.schemas.describe_release(None), clusters.locations)
    findings = (
        *plan.list_findings(),
        *clusters.versions.findings,
        *unreached_rules,
        *build_rendered_findings(checker.checked, snapshot.catalog.objects),
        *build_unknown_version_findings(unknown_versions),
        *steps.findings,
    )
    lint_findings = _run_lint(
        findings, lambda: services.lint(snapshot.catalog, remotes, prepared.controller_result, snapshot.now)
    )
    log_failures((*steps.findings, *lint_findings))
    return ValidatedConfig(
        snapshot.config.id,
        tuple(dict.fromkeys((*findings, *lint_findings))),
        snapshot.catalog.objects,
        _find_owner_sets(prepared.controller_result),
        plan,
    )


def _check_deletions(
    snapshot: PassSnapshot, targets: Sequence[Target], remotes: Remotes, services: PassServices
) -> tuple[Finding, ...]:
    """Return an error for each recorded object that disappeared from the config without evidence of a deletion.

    Also return an error if the history of the config branch was replaced.
    """
    results = read_target_states(targets, remotes, services.state_ref).values()
    states = [state for state in results if isinstance(state, TargetState)]
    return find_unproven_config_deletions(
        snapshot.catalog, snapshot.config, targets, states, services.max_delete_percent
    )


def check_settings_repositories(remotes: Remotes, services: PassServices) -> tuple[Finding, ...]:
    """Return an error for each repository in the settings that cannot be read.

    Repositories that are not a target are included, because the daemon pushes the status to them.
    """
    urls = services.list_settings_urls()
    remotes.fetch((), {url for url in urls.values() if isinstance(url, str)} - remotes.fetched_urls)
    findings = (_check_settings_repository(setting, url, remotes) for setting, url in urls.items())
    return tuple(finding for finding in findings if finding is not None)


def _check_settings_repository(setting: str, url: str | GitError, remotes: Remotes) -> Finding | None:
    if isinstance(url, GitError):
        return PassCodes.URL_REFUSED.finding(
            f"the repository of the setting `{setting}` cannot be used: {url.full_message}",
            SourceLocation(pointer=setting),
        )
    error = remotes.failures.get(url)
    if error is None:
        return None
    return PassCodes.REPOSITORY_UNREACHABLE.finding(
        f"the repository of the setting `{setting}` cannot be read: {error.full_message}",
        SourceLocation(pointer=setting),
    )


def _run_settings_check(remotes: Remotes, services: PassServices, steps: IsolatedSteps) -> tuple[Finding, ...]:
    return steps.run(
        "the repositories of the settings", lambda: check_settings_repositories(remotes, services), _NO_FINDINGS
    )


def _check_used_targets(
    targets: Iterable[Target],
    result: ControllerResult,
    remotes: Remotes,
    services: PassServices,
    steps: IsolatedSteps,
) -> list[Finding]:
    """Return an error for each unreadable target that is a deployment repository or receives packages."""
    used_names = {(variant.target.namespace, variant.target.repository) for variant in result.variants}
    findings: list[Finding] = []
    for target in targets:
        if target.is_deployment or (target.key.namespace, target.name) in used_names:
            check = partial(_check_target, target, remotes, services)
            findings += steps.run(target.title, check, _NO_FINDINGS, target.location)
    return findings


def _check_target(target: Target, remotes: Remotes, services: PassServices) -> tuple[Finding, ...]:
    """Return an error if the repository of a target cannot be read, or is read-only.

    Return no error for unreadable repositories in the settings, because `check_settings_repositories` reports them.
    """
    error = remotes.failures.get(target.url)
    remote = remotes.get(target.url)
    if error is None and remote is not None and remote.mirror.is_read_only:
        return (create_read_only_finding(target),)
    if error is None or target.url in services.list_settings_urls().values():
        return ()
    return (
        error_finding(
            error, PassCodes.REPOSITORY_UNREACHABLE, f"{target.title}: {error.full_message}", target.location
        ),
    )


def _run_lint(findings: Sequence[Finding], lint: Callable[[], tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """Return the lint findings that are not already in `findings`."""
    steps = IsolatedSteps()
    lint_findings = steps.run("the additional checks of the config", lint, _NO_FINDINGS)
    return (*deduplicate_lint(findings, lint_findings), *steps.findings)


def _is_fully_rendered(plan: FleetPlan) -> bool:
    """Return whether all requested packages were rendered.

    If the result is False, the caller must not report override rules that match no rendered resource. Such a rule can
    match a resource of a package that was not rendered.
    """
    has_blocked = any(isinstance(outcome, Blocked) for _, outcome in plan.list_outcomes())
    return not (has_blocked or plan.controller_result.stalled or any(target.findings for target in plan.targets))


def _find_owner_sets(result: ControllerResult) -> Mapping[str, str]:
    """Return the parent of each owner that has a parent."""
    owners = (*(variant.owner for variant in result.variants), *(stalled.owner for stalled in result.stalled))
    return {owner.key.reference: owner.parent.reference for owner in owners if owner.parent}


class _RenderedChecker:
    """Checks the rendered packages of each target against API schemas. The check follows the render of the target.

    Attributes:
        checked: The packages that have violations or resources without a schema.
    """

    def __init__(self, conformance: ConformanceChecker) -> None:
        self._conformance = conformance
        self.checked: list[CheckedPackage] = []
        self.clusters: set[str] = set()

    def decide(self, prepared: PreparedTarget, context: PlanningContext) -> DecidedTarget:
        """Render the packages of a target, decide about these packages, and check the rendered resources."""
        decided, renders = re_decide_target(prepared, context)
        if prepared.target.is_deployment:
            cluster = prepared.target.name
            self.clusters.add(cluster)
            checked_packages = self._conformance.check_packages(cluster, _list_usable_renders(decided, renders))
            self.checked += (checked for checked in checked_packages if checked.violations or checked.unchecked)
        # Remove the stages of all renders to save memory. Only the explanation of violations uses stages. For packages
        # with violations, `self.checked` contains the renders with their stages.
        return replace(decided, outcomes=tuple(map(_remove_stages, decided.outcomes)))


def _remove_stages(outcome: PackageOutcome) -> PackageOutcome:
    if not isinstance(outcome, Draft):
        return outcome
    return replace(outcome, rendered=replace(outcome.rendered, stages=()))


def _list_usable_renders(
    decided: DecidedTarget, renders: Mapping[str, PackageRender]
) -> Sequence[tuple[Variant, PackageRender]]:
    """Return the packages that were rendered without errors, each with its render."""
    by_variant = ((outcome.variant, renders.get(outcome.variant.target.package)) for outcome in decided.outcomes)
    return [(variant, render) for variant, render in by_variant if render and not select_errors(render.findings)]
