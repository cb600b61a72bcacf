"""Which clusters serve an environment, and what templates see of it (design 3, 10.22, 10.32)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.krm.findings import Finding
from reconciler.rules.clusters.inventory import Inventory
from reconciler.rules.codes import UNKNOWN_CLUSTER
from reconciler.rules.composition.library import named, untold
from reconciler.rules.composition.memory import Memory
from reconciler.rules.composition.model import ENVIRONMENT, GLUE_GROUP, Environment
from reconciler.rules.composition.read_glue import read_environment
from reconciler.rules.fields import listed
from reconciler.snapshot.catalog import Catalog


@dataclass(frozen=True)
class Environments:
    """The environments of a config by their name, which is theirs alone; `unusable` says of others why not.

    `clusters` are those that serve each of those `found`, by name in order.
    """

    found: Mapping[str, Environment] = field(default_factory=dict)
    clusters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unusable: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def why_not(self, name: str) -> str:
        """Return why there is no environment of a name that can be used."""
        if name in self.unusable:
            return f"Environment {name} {self.unusable[name]}"
        return f"there is no Environment {name}; there are {listed(sorted(self.found)) or 'none at all'}"


def read_environments(catalog: Catalog, inventory: Inventory, memory: Memory) -> Environments:
    """Return the environments of a config, and what is wrong with them."""
    found: dict[str, Environment] = {}
    unusable: dict[str, str] = {}
    findings: list[Finding] = []
    for name, objects in named(catalog, GLUE_GROUP, ENVIRONMENT).items():
        if len(objects) > 1:
            unusable[name] = "is there more than once"
            findings += untold(objects)
            continue
        environment, told = memory.read(read_environment, objects[0])
        findings += told
        if environment is None:
            unusable[name] = "cannot be used"
        else:
            found[name] = environment
            findings += _unknown_clusters(environment, inventory)
    clusters = {name: _clusters_of(one, inventory) for name, one in found.items()}
    return Environments(found, clusters, unusable, tuple(findings))


def _clusters_of(environment: Environment, inventory: Inventory) -> tuple[str, ...]:
    """Return the clusters that serve an environment: those it names, and those it selects."""
    wanted = {name for name in environment.clusters if name in inventory.clusters}
    selector = environment.selector
    if selector is not None:
        wanted |= {one.name for one in inventory.clusters.values() if selector.matches(one.labels)}
    return tuple(sorted(wanted))


def _unknown_clusters(environment: Environment, inventory: Inventory) -> Iterator[Finding]:
    for index, name in enumerate(environment.clusters):
        if name not in inventory.clusters and name not in inventory.doubtful:
            message = f"spec.clusters[{index}] names {name}, and there is no such cluster"
            yield UNKNOWN_CLUSTER.finding(message, environment.one.where_at(("spec", "clusters", index)))
