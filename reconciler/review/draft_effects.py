"""The effects of changed HelmReleases in an open draft. The charts are rendered with the current config."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.controllers.results import PackageTarget, UpstreamPackage
from reconciler.lazy_dataclasses import replace
from reconciler.output.release_effects import ReleaseEffect
from reconciler.output.review.open_drafts import DraftDetails, DraftPackageDetails
from reconciler.output.status.package_sections import read_upstream
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.decide.target_inputs import resolve_claims
from reconciler.planning.model.targets import Target
from reconciler.reconcile.pass_inputs import ConfigSource
from reconciler.reconcile.release_effects import ChangedPackage, find_draft_effects
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.services import PassServices
from reconciler.reconcile.snapshot import prepare_pass, take_snapshot


class DraftEffects:
    """Computes the effects of HelmReleases in drafts. The controllers run once for each target.

    The caller must keep `remotes` open while this object is in use.
    """

    def __init__(self, source: ConfigSource, remotes: Remotes, services: PassServices) -> None:
        self._snapshot = take_snapshot(source, remotes, services)
        self._remotes = remotes
        self._services = services
        self._upstreams: dict[Target, Mapping[str, UpstreamPackage | None]] = {}

    def add_to(self, details: DraftDetails) -> DraftDetails:
        """Return the draft with the effects of its packages."""
        target = details.draft.target
        if target not in self._upstreams:
            self._upstreams[target] = self._read_upstreams(target)
        upstreams = self._upstreams[target]
        packages = (
            replace(package, release_effects=self._find_effects(target, package, upstreams))
            for package in details.packages
        )
        return replace(details, packages=tuple(packages))

    def _read_upstreams(self, target: Target) -> Mapping[str, UpstreamPackage | None]:
        """Return the upstreams that the current config requests for the packages of a target."""
        prepared = prepare_pass(self._snapshot, self._remotes, self._services, only_target=target)
        surveyed = prepared.context.survey_target(target, prepared.targets)
        if isinstance(surveyed, TargetPlan):
            return {}
        winners, _ = resolve_claims(surveyed.claims, surveyed.snapshot.state)
        return {name: variant.upstream for name, variant in winners.items()}

    def _find_effects(
        self, target: Target, package: DraftPackageDetails, upstreams: Mapping[str, UpstreamPackage | None]
    ) -> tuple[ReleaseEffect, ...]:
        name, status = package.package.package, package.package.status
        upstream = upstreams.get(name)
        changed = ChangedPackage(
            PackageTarget(target.key.namespace, target.name, name),
            # Use the version of the draft, because the config can already request another version.
            upstream.pin(read_upstream(status, "to")) if upstream else None,
            package.before,
            package.after,
        )
        return find_draft_effects(changed, self._services.sources)
