"""Published packages of charts whose release name or namespace changes.

The names and the immutable selectors of the resources change with the release, so that the cluster replaces workloads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.krm.findings import Finding, SourceLocation
from reconciler.packages.source_codes import SourceCodes
from reconciler.planning.model.outcomes import Draft, PackageOutcome, Unchanged


def find_renamed_releases(outcomes: Iterable[PackageOutcome]) -> Iterator[Finding]:
    """Yield a warning for each published package whose draft has another release."""
    for outcome in outcomes:
        if not (isinstance(outcome, Draft) or (isinstance(outcome, Unchanged) and outcome.reason == "drafted")):
            continue
        variant, record = outcome.variant, outcome.record
        chart = variant.upstream.chart if variant.upstream else None
        published = record.published_version.release if record.published_version else ""
        if chart is None or published in ("", chart.release):
            continue
        message = (
            f"the release of package {variant.target} changes from {published} to {chart.release}: names and selectors"
            " change, so that the cluster replaces the workloads (next step: restore releaseName and namespace if this"
            " is not intended)"
        )
        owner = str(variant.owner.key)
        yield SourceCodes.RELEASE_RENAMED.finding(
            message, SourceLocation(object=owner, package=str(variant.target), owner=owner)
        )
