"""Locks of required charts, which are the dependencies of a chart: the content of a version must not change.

The file `Chart.lock` contains only the versions of required charts. The recorded state contains their digests too. The
charts that overlays and functions use are not locked: new content of such a chart results in a draft.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.controllers.results import UpstreamPackage, Variant
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.lazy_dataclasses import replace
from reconciler.packages.artifacts import ChartDependencySource
from reconciler.packages.source_codes import SourceCodes
from reconciler.planning.model.outcomes import PackageOutcome

_Digests = Mapping[tuple[str, str, str], str]


def serialize_required_charts(upstream: UpstreamPackage) -> dict[str, Any]:
    """Return the charts that a chart requires, as the field `dependencies` of the recorded upstream.

    Return {} if the upstream is not a chart, or if the chart requires no other charts.
    """
    charts = upstream.chart_dependencies if upstream.chart else ()
    fields = [{**chart.as_data(), "repo": chart.repository.url} for chart in charts]
    return {"dependencies": fields} if fields else {}


def lock_required_charts(upstream: UpstreamPackage, known: Mapping[str, Any]) -> UpstreamPackage:
    """Return the upstream with the recorded digests of required charts.

    Return the same Python object if no digest changes.

    Args:
        known: The recorded upstream of the package, or {}.
    """
    by_name = {entry["name"]: entry for entry in known.get("sources", ())}
    sources = tuple(
        replace(source, upstream=_lock(source.upstream, by_name.get(source.name, {}))) for source in upstream.sources
    )
    locked = replace(upstream, sources=sources) if sources else _lock(upstream, known)
    return locked if locked != upstream else upstream


def find_changed_charts(outcomes: Iterable[PackageOutcome]) -> Iterator[Finding]:
    """Yield an error for each required chart whose repository now has different content for the locked version."""
    for outcome in outcomes:
        variant = outcome.variant
        packages = variant.upstream.packages if variant.upstream else ()
        charts = (chart for package in packages for chart in package.chart_dependencies if chart.other_digest)
        yield from dict.fromkeys(_create_finding(variant, chart) for chart in charts)


def _lock(upstream: UpstreamPackage, known: Mapping[str, Any]) -> UpstreamPackage:
    digests = {
        (entry["name"], entry["version"], entry["repo"]): entry["digest"] for entry in known.get("dependencies", ())
    }
    if not digests:
        return upstream
    return replace(
        upstream, chart_dependencies=tuple(_lock_chart(chart, digests) for chart in upstream.chart_dependencies)
    )


def _lock_chart(chart: ChartDependencySource, digests: _Digests) -> ChartDependencySource:
    version = chart.version
    digest = digests.get((chart.name, version.version, chart.repository.url), version.digest)
    if digest == version.digest:
        return chart
    return replace(chart, version=replace(version, digest=digest), other_digest=version.digest)


def _create_finding(variant: Variant, chart: ChartDependencySource) -> Finding:
    version, owner, package = chart.version, variant.owner.key.reference, str(variant.target)
    message = (
        f'package {package} stays unchanged, because version "{version.version}" of the required chart "{chart.name}"'
        f" at {chart.repository.url} must have the digest {version.digest}, but now it has {chart.other_digest}. Next"
        " step: require another version, or copy the chart into the folder `charts` of the upstream chart"
    )
    return SourceCodes.DIGEST_MISMATCH.finding(message, SourceLocation(object=owner, package=package, owner=owner))
