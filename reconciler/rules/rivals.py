"""Rivals: objects with different identities that claim one name, one binding or one file, so that only one may count.

Rivals for a branch or directory are in `planning/destination.py`, those for a package in `planning/claims.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import TypeVar

from reconciler.krm.identity import ObjectKey
from reconciler.rules.clusters.inventory import CLUSTER_KINDS
from reconciler.rules.composition.model import BINDING
from reconciler.rules.composition.model import GROUP as COMPONENTS
from reconciler.rules.composition.read_component import read_binding
from reconciler.rules.file_names import full_name
from reconciler.rules.overrides.model import CLUSTER_KIND
from reconciler.rules.overrides.model import GROUP as OVERRIDES
from reconciler.rules.placement.marks import is_marked, is_read_by_a_room, namespace_of
from reconciler.rules.placement.model import CLUSTER_KIND as CLUSTER_PROPAGATION
from reconciler.rules.placement.model import GROUP as PLACEMENT
from reconciler.snapshot.catalog import PORCH_GROUP, Catalog, ConfigObject
from reconciler.snapshot.claims import Conflict, git_place, group_by_name

_Bound = tuple[str, str, str]
_Key = TypeVar("_Key")

# kinds whose objects are found by name alone; Repositories with equal names clash as targets
_UNIQUE_BY_NAME = (
    *(kind for kind in CLUSTER_KINDS if kind != (PORCH_GROUP, "Repository")),
    *((COMPONENTS, kind) for kind in ("Addon", "ComponentDefinition", "ComponentType")),
    ("reconciler.dev", "Environment"),
    (OVERRIDES, CLUSTER_KIND),
    (PLACEMENT, CLUSTER_PROPAGATION),
)


def find_rivals(catalog: Catalog) -> Iterator[Conflict]:
    """Yield a conflict for each group of rivals of a config."""
    for kind in _UNIQUE_BY_NAME:
        for name, same in group_by_name(catalog.of_kind(*kind)).items():
            yield Conflict(same, f'has the name "{name}" that is unique in the whole config', place_of=git_place)
    yield from _bindings(catalog)
    yield from _placed(catalog)


def _bindings(catalog: Catalog) -> Iterator[Conflict]:
    """Yield the bindings of one component to one environment."""
    bindings = catalog.of_kind(COMPONENTS, BINDING)
    if len(bindings) < 2:
        return
    names = {(one.key.namespace, one.key.name) for one in catalog.objects.values() if one.key.kind != BINDING}
    place_of = partial(_binding_place, names=names)
    found: dict[_Bound, list[ConfigObject]] = {}
    for one in bindings:
        if place := place_of(one):
            found.setdefault(place, []).append(one)
    for (namespace, component, environment), same in _several(found):
        why = f'binds the component "{component}" to the environment "{environment}", which is done once'
        package = f"components/{environment}/{namespace}/{component}"
        yield Conflict(same, why, package=package, place_of=place_of)


def _binding_place(one: ConfigObject, names: Collection[tuple[str, str]]) -> _Bound | None:
    """Return what a binding binds; `names` are those of objects by namespace, for one that names no component."""
    binding, _ = read_binding(one)
    if binding is None:
        return None
    if binding.component:
        return binding.namespace, binding.component, binding.environment
    parts = binding.key.name.split("-")
    prefixes = ("-".join(parts[:end]) for end in range(1, len(parts)))
    near = [name for name in prefixes if (binding.namespace, name) in names]
    return (binding.namespace, near[0], binding.environment) if len(near) == 1 else None


def _placed(catalog: Catalog) -> Iterator[Conflict]:
    """Yield placed resources that would have one file, such as those of a cluster-scoped kind in two namespaces."""
    found: dict[tuple[str, str], list[ConfigObject]] = {}
    # most objects of a large config are of kinds that are never placed
    kinds = (catalog.of_kind(*kind) for kind in catalog.kinds if not is_read_by_a_room(ObjectKey(*kind, "", "")))
    for one in filter(is_marked, chain.from_iterable(kinds)):
        found.setdefault((namespace_of(one.key), full_name(one.key)), []).append(one)
    for (namespace, name), same in _several(found):
        yield Conflict(same, f'has the file "{name}" of the resources of "{namespace}"', place_of=git_place)


def _several(found: Mapping[_Key, list[ConfigObject]]) -> Iterator[tuple[_Key, tuple[ConfigObject, ...]]]:
    return ((key, tuple(same)) for key, same in found.items() if len(same) > 1)
