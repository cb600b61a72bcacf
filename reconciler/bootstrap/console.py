"""The index of the console, as the settings describe it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from reconciler.bootstrap.services import build_services
from reconciler.controllers.clusters.inventory import read_cluster_labels
from reconciler.inspect.fleet_index import FleetIndexer, ObservedPass
from reconciler.reconcile.remotes.targets import DraftReader

if TYPE_CHECKING:
    from reconciler.git.errors import GitError
    from reconciler.planning.decide.fleet_plan import FleetPlan
    from reconciler.planning.model.targets import Target
    from reconciler.reconcile.reconcile_pass import PassReport
    from reconciler.settings import Settings


def build_fleet_indexer(settings: Settings, config: str) -> FleetIndexer:
    """Build the indexer of the console. It reads only the mirrors in the cache, and contacts no remote."""
    return FleetIndexer(partial(_open_reader, settings, config))


@contextmanager
def _open_reader(settings: Settings, config: str, urls: frozenset[str]) -> Iterator[DraftReader]:
    services = build_services(settings, config, can_fetch=False, can_call_forges=False)
    with services.remotes as remotes:
        remotes.fetch((), urls)
        yield DraftReader(remotes, services.pass_services.ref_templates)


def observe_pass(report: PassReport, failures: Mapping[str, GitError], completed_at: int) -> ObservedPass:
    """Return the data of a pass that the index needs.

    Args:
        failures: The error of each remote that the pass could not read, by URL.
        completed_at: The end of the pass, in seconds since 1970.
    """
    plan = report.plan
    labels = read_cluster_labels(plan.objects)
    targets = {target_plan.target: labels.get(target_plan.target.name, {}) for target_plan in plan.targets}
    errors = {target: failures[target.url].message for target in targets if target.url in failures}
    errors |= dict(_list_unread(plan))
    return ObservedPass(plan.config_id, completed_at, targets, plan.list_findings(), errors)


def _list_unread(plan: FleetPlan) -> Iterator[tuple[Target, str]]:
    for target_plan in plan.targets:
        if target_plan.findings and not target_plan.outcomes:
            yield target_plan.target, target_plan.findings[0].message
