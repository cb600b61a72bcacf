"""Warnings about published packages whose Helm release name or namespace changes.

Such a change also changes the names and the immutable selectors of resources. Therefore, the cluster replaces the
workloads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.controllers.results import RELEASE_SEPARATOR
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.packages.source_codes import SourceCodes
from reconciler.planning.model.outcomes import Draft, PackageOutcome, Unchanged


def find_renamed_releases(outcomes: Iterable[PackageOutcome]) -> Iterator[Finding]:
    """Yield a warning for each published package whose draft has a different release name or namespace."""
    for outcome in outcomes:
        if not (isinstance(outcome, Draft) or (isinstance(outcome, Unchanged) and outcome.reason == "drafted")):
            continue
        variant, record = outcome.variant, outcome.record
        current = variant.upstream.chart_release if variant.upstream else ""
        published = record.published_version.release if record.published_version else ""
        for old, new in _find_changes(_parse_releases(published), _parse_releases(current)):
            message = (
                f'the Helm release of package {variant.target} changes from "{old}" to "{new}". Names and selectors of'
                " its resources change, so the cluster replaces the workloads. Next step: restore releaseName and"
                " namespace if this is not intended"
            )
            owner = variant.owner.key.reference
            yield SourceCodes.RELEASE_RENAMED.finding(
                message, SourceLocation(object=owner, package=str(variant.target), owner=owner)
            )


def _parse_releases(text: str) -> dict[str, str]:
    """Return a mapping from the name of a source to its release. If there is only one source, its name is ""."""
    entries = (entry.rpartition("=") for entry in text.split(RELEASE_SEPARATOR) if entry)
    return {name: release for name, _, release in entries}


def _find_changes(published: Mapping[str, str], current: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the published and the drafted release of each chart whose release differs between the two versions."""
    if len(published) == len(current) == 1:
        # Compare the only chart of both versions even if the name of its source has changed.
        published = dict(zip(current, published.values(), strict=True))
    yield from ((old, current[name]) for name, old in published.items() if current.get(name, old) != old)
