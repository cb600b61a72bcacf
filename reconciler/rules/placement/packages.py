"""The packages of the resources of a namespace, one for each cluster that has any (design 3, 10.14, 10.16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.krm.identity import ObjectKey
from reconciler.rules.clusters.inventory import Inventory
from reconciler.rules.file_names import file_names
from reconciler.rules.placement.keep import Kept
from reconciler.rules.placement.model import Resource, owner_of, package_of
from reconciler.rules.placement.mutate import ask_for
from reconciler.rules.variant import AdoptionPolicy, Generated, Place, Variant, sources_of
from reconciler.snapshot.files import File, FileTree

ADOPT = "reconciler.dev/adopt"
Files = Mapping[ObjectKey, File]


def packages_of(
    namespace: str, resources: Sequence[Resource], kept: Kept, inventory: Inventory, engine: str
) -> list[Variant]:
    """Return the package of a namespace for every cluster; a package that stays as a whole is not touched."""
    wanted: dict[str, list[Resource]] = {cluster: [] for cluster in kept.files}
    # those that may stay where they do not say that they go
    undecided = [one for one in resources if one.clusters is None or one.unknown]
    for resource in resources:
        for cluster in resource.clusters or ():
            wanted.setdefault(cluster, []).append(resource)
    # most clusters have the same: it is put together once for all of them
    made: dict[tuple[object, ...], Variant] = {}
    packages = []
    for cluster in sorted(wanted.keys() - kept.blindly):
        here, stay = wanted[cluster], kept.files.get(cluster, {})
        place = Place(inventory.homes[cluster].namespace, cluster, package_of(namespace))
        content = (*map(id, here), *((key, file.id) for key, file in stay.items()))
        if content not in made:
            # where it goes is not known, and what it is made of is
            made_of = [*here, *(one for one in undecided if one.key in stay and one not in here)]
            made[content] = _package(namespace, place, made_of, stay, engine)
        packages.append(replace(made[content], place=place))
    return packages


def _package(namespace: str, place: Place, resources: Sequence[Resource], stay: Files, engine: str) -> Variant:
    files = {**{one.key: one.file for one in resources}, **stay}
    names = file_names(sorted(files))
    source = Generated(FileTree({names[key]: file for key, file in files.items()}))
    facts = {"resources": source.fact, "engine": engine}
    mutation, adoption = ask_for(resources), _adoption(resources)
    sources = sources_of(one.one for one in resources)
    return Variant(
        owner_of(namespace), place, source, mutation, facts, adoption=adoption, spreads=True, sources=sources
    )


def _adoption(resources: Sequence[Resource]) -> AdoptionPolicy:
    """Return whether what stands there unowned is taken over: only if every resource of the package says so."""
    says_so = [one.one.annotations.get(ADOPT) == "true" for one in resources]
    return "adoptExisting" if says_so and all(says_so) else "adoptNone"
