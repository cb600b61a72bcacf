"""Which clusters serve an environment, and what templates see of it (design 3, 10.22, 10.32)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.rules.clusters.inventory import Inventory
from reconciler.rules.codes import UNKNOWN_CLUSTER
from reconciler.rules.composition.memory import Memory
from reconciler.rules.composition.model import ENVIRONMENT, GLUE_GROUP, Environment
from reconciler.rules.composition.read_glue import read_environment
from reconciler.snapshot.catalog import Catalog


@dataclass(frozen=True)
class Environments:
    """The environments of a config by their name; `None` stands for one that cannot be read, or not be told apart."""

    by_name: Mapping[str, Sequence[Environment | None]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    doubtful: frozenset[str] = frozenset()

    def find(self, name: str, namespace: str) -> tuple[Environment | None, str]:
        """Return the environment that a binding in a namespace means, or None and why there is none.

        It is that of its own namespace, else that of none, else the only one of its name.
        """
        found = self.by_name.get(name, ())
        if name in self.doubtful:
            return None, f"Environment {name} cannot be used"
        known = [one for one in found if one is not None]
        for wanted in (namespace, ""):
            if here := [one for one in known if one.one.key.namespace == wanted]:
                return here[0], ""
        if len(known) == 1:
            return known[0], ""
        if known:
            return (
                None,
                f"there are several Environments {name}, in {', '.join(one.one.key.namespace for one in known)}",
            )
        return None, f"there is no Environment {name}; there are {', '.join(sorted(self.by_name)) or 'none at all'}"


def read_environments(catalog: Catalog, inventory: Inventory, memory: Memory) -> Environments:
    """Return the environments of a config, and what is wrong with them."""
    named: dict[str, list[Environment | None]] = {}
    doubtful = {key.name for key in catalog.duplicates if _is_environment(key)}
    findings: list[Finding] = []
    for one in catalog.of_kind(GLUE_GROUP, ENVIRONMENT):
        environment, told = memory.read(read_environment, one)
        findings += told
        if environment is None:
            doubtful.add(one.key.name)
        else:
            named.setdefault(one.key.name, []).append(environment)
            findings += _unknown_clusters(environment, inventory)
    return Environments(named, tuple(findings), frozenset(doubtful))


def clusters_of(environment: Environment, inventory: Inventory) -> tuple[str, ...]:
    """Return the clusters that serve an environment, by name in order: those it names, and those it selects."""
    named = {name for name in environment.clusters if name in inventory.clusters}
    selector = environment.selector
    if selector is not None:
        named |= {one.name for one in inventory.clusters.values() if selector.matches(one.labels)}
    return tuple(sorted(named))


def _unknown_clusters(environment: Environment, inventory: Inventory) -> Iterator[Finding]:
    for index, name in enumerate(environment.clusters):
        if name not in inventory.clusters:
            message = f"spec.clusters[{index}] names {name}, and there is no such cluster"
            yield UNKNOWN_CLUSTER.finding(message, environment.one.where_at(("spec", "clusters", index)))


def _is_environment(key: ObjectKey) -> bool:
    return (key.group, key.kind) == (GLUE_GROUP, ENVIRONMENT)
