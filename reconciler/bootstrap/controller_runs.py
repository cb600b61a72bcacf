"""Runs controllers. Each controller has a cache, isolates faulty objects, and runs in its own OpenTelemetry span.

The inputs of the controllers do not belong here. `CatalogServices` builds these inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.object_isolation import FaultyObjectSearch
from reconciler.controllers.components.inputs import ComponentCache
from reconciler.controllers.package_variants.controller import PackageVariantCache
from reconciler.controllers.plugin_presets.controller import PluginPresetCache
from reconciler.controllers.results import ConfigStatus, ControllerResult
from reconciler.krm.findings import Finding, create_internal_error_finding
from reconciler.krm.internal_errors import ScopeFailedError
from reconciler.krm.objects import Condition
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.planning.model.state import TargetState
from reconciler.planning.model.targets import Target
from reconciler.telemetry.traces import span

_Cache = TypeVar("_Cache")


class IsolatedController(Generic[_Cache]):
    """One controller with its cache. If an object causes an exception, the controller runs again without the object."""

    def __init__(self, scope: str, create_cache: Callable[[], _Cache]) -> None:
        self._scope = scope
        self._create_cache = create_cache
        self._cache = create_cache()
        self._search: FaultyObjectSearch[ControllerResult] = FaultyObjectSearch(scope)

    def run(
        self,
        catalog: Catalog,
        control: Callable[[Catalog, _Cache], ControllerResult],
        states: Mapping[Target, TargetState],
    ) -> ControllerResult:
        """Run the controller on the catalog.

        If the controller fails and no single object causes the failure, return a result that keeps all existing
        packages.
        """

        def run_without_cache(part: Catalog) -> ControllerResult:
            self._cache = self._create_cache()
            return control(part, self._cache)

        try:
            outcome = self._search.run(catalog, lambda whole: control(whole, self._cache), run_without_cache)
        except ScopeFailedError as error:
            recorded = (record.owner for state in states.values() for record in state.packages.values())
            kept_owners = frozenset(key for owner in recorded for key in (owner.key, owner.parent) if key)
            return ControllerResult(findings=(create_internal_error_finding(error.failure),), kept_owners=kept_owners)
        statuses = map(_build_error_status, outcome.excluded, outcome.findings)
        return replace(
            outcome.result,
            kept_owners=outcome.result.kept_owners.union(excluded.key for excluded in outcome.excluded),
            findings=(*outcome.result.findings, *outcome.findings),
            statuses=(*outcome.result.statuses, *statuses),
        )


def _build_error_status(source: ConfigObject, finding: Finding) -> ConfigStatus:
    condition = Condition("Ready", "False", finding.code, finding.message)
    return ConfigStatus(source.key, source.api_version, (condition,))


@dataclass(frozen=True)
class TenantControllers:
    """The controllers that run separately for each tenant, with their caches."""

    variants: IsolatedController[PackageVariantCache] = field(
        default_factory=lambda: IsolatedController("PackageVariants and PackageVariantSets", PackageVariantCache)
    )
    plugins: IsolatedController[PluginPresetCache] = field(
        default_factory=lambda: IsolatedController("PluginPresets and Plugins", PluginPresetCache)
    )
    components: IsolatedController[ComponentCache] = field(
        default_factory=lambda: IsolatedController("Components and EnvBindings", ComponentCache)
    )


def run_traced(controller: str, run: Callable[[], ControllerResult]) -> ControllerResult:
    """Run a controller in a span of the trace of the pass."""
    with span(f"reconciler.controller {controller}", {}) as opened:
        result = run()
        if opened is not None:
            opened.set_attributes({"variants": len(result.variants), "findings": len(result.findings)})
    return result
