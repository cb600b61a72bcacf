"""Making the packages of a component in an environment: the same on every cluster that serves it (design 3, 10.22)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from reconciler.rules.clusters.inventory import Inventory
from reconciler.rules.composition.bindings import Bound
from reconciler.rules.composition.model import Build
from reconciler.rules.composition.package import AsComposed, facts_of, files_of, sources, tree_of
from reconciler.rules.composition.plan import Plan
from reconciler.rules.composition.provenance import ComponentProvenance
from reconciler.rules.composition.render import Composed
from reconciler.rules.composition.sources import Sources
from reconciler.rules.variant import AdoptionPolicy, Generated, Owner, Place, Variant, sources_of
from reconciler.snapshot.catalog import ConfigObject

ADOPT = "reconciler.dev/adopt"


@dataclass(frozen=True, eq=False)
class Made:
    """A component in an environment that can be written, and its package on each cluster."""

    bound: Bound
    plan: Plan
    composed: Composed
    variants: tuple[Variant, ...]


@dataclass(frozen=True, eq=False)
class Maker:
    """What makes packages of what was rendered; `said` returns the digest of what an object says."""

    inventory: Inventory
    said: Callable[[ConfigObject], str]
    engine: str

    def places(self, bound: Bound) -> tuple[Place, ...]:
        """Return where the package of a component goes: to each of the clusters of its environment."""
        homes = self.inventory.homes
        return tuple(Place(homes[cluster].namespace, cluster, bound.package) for cluster in bound.clusters)

    def make(self, bound: Bound, plan: Plan, build: Build | None, composed: Composed) -> Made:
        """Return the packages of a component, whose owner is the binding (design 10.22)."""
        binding = bound.binding.one
        files, made_of = files_of(composed.objects), tuple(sources(bound, plan, build, composed))
        facts = facts_of(made_of, self.said, self.engine)
        hashes = {one: facts[str(one.key)] for one in made_of}
        provenance = ComponentProvenance(Sources(bound, plan, build, composed), files, hashes)
        owner = Owner(binding.key, binding.api_version)
        adoption: AdoptionPolicy = "adoptExisting" if binding.annotations.get(ADOPT) == "true" else "adoptNone"
        first = Variant(
            owner, Place("", "", bound.package), Generated(tree_of(files)), AsComposed(), facts, adoption=adoption,
            findings=composed.findings, spreads=True, provenance=provenance,
            sources=sources_of((binding, bound.component.one, bound.environment.one)),
        )  # fmt: skip
        return Made(bound, plan, composed, tuple(replace(first, place=place) for place in self.places(bound)))
