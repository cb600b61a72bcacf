"""Entry point of the controller: it computes the package variants of all PackageVariants and PackageVariantSets."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from itertools import chain

from reconciler.catalog.catalog import Catalog
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.controllers.keyed_cache import are_identical
from reconciler.controllers.package_variants.codes import REFERENCE_FINDINGS
from reconciler.controllers.package_variants.inputs import PackageVariantInputs, UpstreamRepositories, UpstreamResolver
from reconciler.controllers.package_variants.package_variant import process_variant
from reconciler.controllers.package_variants.package_variant_set import process_set
from reconciler.controllers.package_variants.revision_pins import find_revision_pins
from reconciler.controllers.package_variants.set_expansion import PackageVariantCache
from reconciler.controllers.package_variants.upstream_cycles import stall_cycles
from reconciler.controllers.repositories import format_kptfile_url
from reconciler.controllers.results import ControllerResult, merge_results
from reconciler.krm.findings import Finding, upgrade_to_error
from reconciler.packages.source_codes import SourceCodes

__all__ = [
    "PackageVariantCache",
    "PackageVariantInputs",
    "UpstreamRepositories",
    "format_kptfile_url",
    "generate_package_variants",
]


def generate_package_variants(
    catalog: Catalog, inputs: PackageVariantInputs, cache: PackageVariantCache | None = None
) -> ControllerResult:
    """Return the package variants of all PackageVariants and PackageVariantSets in the catalog, with all findings.

    `cache` contains results of the previous pass. Without a cache, everything is computed again, with the same result.
    """
    cache, upstreams = cache or PackageVariantCache(), UpstreamResolver(inputs)
    variant_manifests = catalog.objects_of_kind(PORCH_GROUP, "PackageVariant")
    set_manifests = catalog.objects_of_kind(PORCH_GROUP, "PackageVariantSet")
    taken_names: defaultdict[str, set[str]] = defaultdict(set)
    for manifest in variant_manifests:
        taken_names[manifest.key.namespace].add(manifest.key.name)
    results: list[ControllerResult] = []
    for manifest in set_manifests:
        names = taken_names[manifest.key.namespace]
        results.append(result := process_set(manifest, catalog, inputs, upstreams, names, cache))
        # Reserve the names of the PackageVariants that this set generates. If a later set generates one of these names,
        # the later set reports the conflict.
        names |= {status.key.name for status in result.statuses if status.spec is not None}
    results += (process_variant(manifest, catalog, inputs, upstreams) for manifest in variant_manifests)
    warnings = chain.from_iterable(
        cache.reference_warnings.get_or_create((result.variants,), partial(_list_reference_warnings, result))
        for result in results
    )
    warning_result = ControllerResult(findings=tuple(warnings))
    cache.remove_expansions_except(manifest.key for manifest in set_manifests)
    cache.end_pass()
    merged = merge_results([*results, find_revision_pins(catalog, inputs, upstreams), warning_result])
    # Skip the search for upstream cycles if the variants and Repositories are the same objects as in the previous pass,
    # and the previous pass found no cycle.
    cycle_inputs = (inputs.repositories, *merged.variants, *merged.stalled)
    if are_identical(cycle_inputs, cache.acyclic_inputs):
        return merged
    without_cycles = stall_cycles(merged, catalog, inputs)
    cache.acyclic_inputs = cycle_inputs if without_cycles is merged else ()
    return without_cycles


def _list_reference_warnings(result: ControllerResult) -> tuple[Finding, ...]:
    """Return the findings about the refs of upstreams, such as channel files that differ from tags."""
    findings = chain.from_iterable(variant.findings for variant in result.variants)
    return tuple(
        upgrade_to_error(finding) if SourceCodes.SOURCE_UNAUTHORIZED.name == finding.code else finding
        for finding in findings
        if finding.code in REFERENCE_FINDINGS
    )
