"""Construction of the claims of each target: the requested packages, and the owners that can block a deletion.

Decisions about claims belong to `planning/decide`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from functools import cached_property, partial

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.catalog.manifests import DEFAULT_NAMESPACE
from reconciler.controllers.deletion_guards import read_acknowledged_hashes
from reconciler.controllers.results import ControllerResult, DeletionGuard
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.planning.decide.target_inputs import DesiredPackages, TargetClaims, UnreadyOwners
from reconciler.planning.model.config_completeness import build_config_completeness
from reconciler.planning.model.targets import Target

_KINDS = ("Repository", "PackageVariant", "PackageVariantSet")
_OWNERS = {(PORCH_GROUP, "PackageVariant"), (PORCH_GROUP, "PackageVariantSet")}


class ClaimBuilder:
    """Builds the claims of each target for one pass.

    Args:
        directory: The path of the config folder in the config repository.
        max_delete_percent: See `TargetClaims`.
    """

    def __init__(
        self,
        catalog: Catalog,
        result: ControllerResult,
        desired: DesiredPackages,
        directory: str,
        max_delete_percent: int,
    ) -> None:
        self._catalog = catalog
        self._all = _FleetClaims(catalog, result, desired)
        self._by_tenants: dict[frozenset[str], _FleetClaims] = {}
        self._selected: dict[tuple[ObjectKey, frozenset[str]], TargetClaims] = {}
        self._completeness = build_config_completeness(catalog, directory)
        self._max_delete_percent = max_delete_percent

    def build(self, target: Target) -> TargetClaims:
        """Return the claims of a target."""
        name = (target.key.namespace, target.name)
        definition, fleet = self._catalog.get(target.key), self._all
        return TargetClaims(
            fleet.desired.variants_by_target.get(name, ()), fleet.existing_owners, fleet.unresolved_owners,
            self._completeness, fleet.desired.stalled_packages.get(name, frozenset()), fleet.desired.targets_by_owner,
            fleet.desired.multi_target_owners, fleet.guards, fleet.desired.dependents_by_target.get(name, {}),
            fleet.similar_objects, fleet.has_no_owners, fleet.unready_owners,
            read_acknowledged_hashes(definition.annotations) if definition else frozenset(),
            self._max_delete_percent, partial(self._select, target) if self._catalog.tenants else None,
        )  # fmt: skip

    def _select(self, target: Target, tenants: frozenset[str]) -> TargetClaims:
        """Return the claims of a target. Only owners in `tenants` and in the platform team can block deletions."""
        key = (target.key, tenants)
        if key not in self._selected:
            self._selected[key] = self._build_selected(target, tenants)
        return self._selected[key]

    def _build_selected(self, target: Target, tenants: frozenset[str]) -> TargetClaims:
        if tenants not in self._by_tenants:
            self._by_tenants[tenants] = self._all.select(tenants)
        fleet, name = self._by_tenants[tenants], (target.key.namespace, target.name)
        return replace(
            self.build(target),
            existing_owners=fleet.existing_owners,
            unresolved_owners=fleet.unresolved_owners,
            stalled_packages=fleet.desired.stalled_packages.get(name, frozenset()),
            targets_by_owner=fleet.desired.targets_by_owner,
            multi_target_owners=fleet.desired.multi_target_owners,
            guards=fleet.guards,
            similar_objects=fleet.similar_objects,
            unready_owners=fleet.unready_owners,
            select_tenants=None,
        )


@dataclass(frozen=True)
class _FleetClaims:
    """All owners in the fleet that can block a deletion.

    Attributes:
        tenants: The tenants whose owners are included. None means all tenants. The platform team is always included.
    """

    catalog: Catalog
    result: ControllerResult
    desired: DesiredPackages
    tenants: frozenset[str] | None = None

    def select(self, tenants: frozenset[str]) -> _FleetClaims:
        """Return a copy with only the owners that belong to one of `tenants` or to the platform team."""
        selected = replace(self, tenants=tenants)
        result = replace(
            self.result,
            variants=tuple(variant for variant in self.result.variants if selected.includes(variant.tenant)),
            stalled=tuple(stalled for stalled in self.result.stalled if selected.includes(stalled.tenant)),
        )
        return replace(selected, result=result, desired=DesiredPackages(result))

    def includes(self, tenant: str) -> bool:
        """Return whether the owners of a tenant are included."""
        return self.tenants is None or not tenant or tenant in self.tenants

    def _list_definitions(self, key: ObjectKey) -> Iterator[ConfigObject]:
        definitions = self.catalog.copies.get(key) or (self.catalog.get(key),)
        return (value for value in definitions if value and self.includes(self.catalog.tenants.find_owner(value.file)))

    def _includes_key(self, key: ObjectKey) -> bool:
        # Always include an owner that is not in the catalog, because a controller generated it.
        return self.tenants is None or not self.catalog.contains(key) or any(True for _ in self._list_definitions(key))

    @cached_property
    def guards(self) -> Mapping[ObjectKey, DeletionGuard]:
        """The deletion guards of all owners."""
        if self.tenants is None:
            return self.result.guards
        return {key: guard for key, guard in self.result.guards.items() if self._includes_key(key)}

    @cached_property
    def unresolved_owners(self) -> frozenset[ObjectKey]:
        """All owners in the config whose packages cannot be computed. These can also be PackageVariantSets."""
        # Treat an object with several definitions as an existing owner, although its packages are unknown.
        named = filter(self._includes_key, self.result.kept_owners | self.catalog.duplicates)
        return self.desired.stalled_owners.union(named)

    @cached_property
    def existing_owners(self) -> Set[ObjectKey]:
        """All owners in the config."""
        resolved = self.desired.targets_by_owner.keys()
        return resolved | self.unresolved_owners if self.unresolved_owners else resolved

    @cached_property
    def unready_owners(self) -> UnreadyOwners:
        """All owners that are not ready."""
        stalled = self.result.stalled
        owners_by_target = {
            (variant.target.repository, variant.target.package): variant.owner.key
            for variant in stalled
            if variant.target
        }
        keys = [key for key in sorted(self.unresolved_owners) if (key.group, key.kind) in _OWNERS]
        objects = tuple(definition for key in keys for definition in self._list_definitions(key))
        other_owners = frozenset(key for key in self.unresolved_owners if (key.group, key.kind) not in _OWNERS)
        owners_by_package = {package: variant.owner.key for variant in stalled for package in variant.packages}
        return UnreadyOwners(owners_by_target, objects, other_owners, owners_by_package)

    @cached_property
    def similar_objects(self) -> Mapping[tuple[str, str], ObjectKey]:
        """Maps (namespace, name) to an object that may be a package owner with a misspelled API group or kind."""
        keys = (key for key in self.catalog.objects if _is_similar_to_owner(key) and self._includes_key(key))
        return {(key.namespace or DEFAULT_NAMESPACE, key.name): key for key in keys}

    @cached_property
    def has_no_owners(self) -> bool:
        """Whether the config contains no object that requests packages."""
        keys = {*self.catalog.objects, *self.catalog.duplicates}
        return not self.existing_owners and not any((key.group, key.kind) in _OWNERS for key in keys)


def _is_similar_to_owner(key: ObjectKey) -> bool:
    """Return whether an object has the API group or the kind of a package owner, but no controller processes it."""
    if key.group == PORCH_GROUP:
        return key.kind not in _KINDS
    return key.kind in _KINDS and key.kind != "Repository"
