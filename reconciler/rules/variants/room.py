"""The room: from a catalog to the variants of its PackageVariants and PackageVariantSets (porch 5, 11)."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from itertools import chain

from reconciler.krm.findings import Finding
from reconciler.rules.remembered import same_objects
from reconciler.rules.repository import kptfile_url
from reconciler.rules.variant import RoomResult, joined
from reconciler.rules.variants.codes import UPSTREAM_WARNING
from reconciler.rules.variants.cycles import without_cycles
from reconciler.rules.variants.memory import Memory
from reconciler.rules.variants.pins import result_of_pins
from reconciler.rules.variants.set_results import result_of_set
from reconciler.rules.variants.singles import result_of_variant
from reconciler.rules.variants.surroundings import Surroundings, Upstreams, UpstreamWorld
from reconciler.snapshot.catalog import PORCH_GROUP, Catalog

__all__ = ["Memory", "Surroundings", "UpstreamWorld", "kptfile_url", "variants_of"]


def variants_of(catalog: Catalog, around: Surroundings, memory: Memory | None = None) -> RoomResult:
    """Return every variant that the config asks for, and what is wrong with the rest.

    `memory` takes over what the last pass worked out.
    """
    memory, upstreams = memory or Memory(), Upstreams(around)
    written = catalog.of_kind(PORCH_GROUP, "PackageVariant")
    taken: defaultdict[str, set[str]] = defaultdict(set)
    for one in written:
        taken[one.key.namespace].add(one.key.name)
    results: list[RoomResult] = []
    for one in catalog.of_kind(PORCH_GROUP, "PackageVariantSet"):
        names = taken[one.key.namespace]
        results.append(result := result_of_set(one, catalog, around, upstreams, names, memory))
        # two sets can come to one name: the first of them keeps it, and the other is told of the conflict
        names |= {status.key.name for status in result.statuses if status.spec is not None}
    results += (result_of_variant(one, around, upstreams) for one in written)
    odd = chain.from_iterable(memory.warnings.of((one.variants,), partial(_warnings_of_today, one)) for one in results)
    told = RoomResult(findings=tuple(odd))
    memory.end(one.key for one in catalog.of_kind(PORCH_GROUP, "PackageVariantSet"))
    found = joined([*results, result_of_pins(catalog, around, upstreams), told])
    # what goes where, and comes from where, is as it was: then there is no cycle either
    ground = (around.repositories, *found.variants, *found.stalled)
    if same_objects(ground, memory.acyclic):
        return found
    kept = without_cycles(found, catalog, around)
    memory.acyclic = ground if kept is found else ()
    return kept


def _warnings_of_today(result: RoomResult) -> tuple[Finding, ...]:
    """Return what is odd about references now; what a package remembers is what was odd when it was rendered."""
    known = chain.from_iterable(variant.findings for variant in result.variants)
    return tuple(finding for finding in known if finding.code == UPSTREAM_WARNING.name)
