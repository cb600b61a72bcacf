"""The decision whether the absence of an object in the config is evidence that a person deleted the object."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.catalog.catalog import Catalog
from reconciler.catalog.tenants import NO_TENANTS, Tenants
from reconciler.lazy_dataclasses import dataclass
from reconciler.planning.model.state import PackageRecord


@dataclass(frozen=True)
class ConfigCompleteness:
    """The tenants whose objects are all known, because all of their config files can be read.

    An unreadable file of a tenant can contain only objects of this tenant. Therefore, it does not prevent the deletion
    of packages of other tenants. An unreadable file of the platform team, or of an unknown tenant, prevents all
    deletions.

    Attributes:
        uncertain_tenants: The tenants with unknown objects. The name "" means that objects of any tenant are unknown.
        directory: The folder in the config repository that contains the config.
    """

    uncertain_tenants: frozenset[str] = frozenset()
    tenants: Tenants = NO_TENANTS
    directory: str = ""

    @property
    def includes_all(self) -> bool:
        """Whether all objects are known."""
        return not self.uncertain_tenants

    @property
    def includes_platform(self) -> bool:
        """Whether all objects of the platform team are known."""
        return "" not in self.uncertain_tenants

    def includes(self, record: PackageRecord) -> bool:
        """Return whether the config is complete for a package: all objects that can request the package are known.

        If objects of some tenants are unknown, the tenants of the package must be known, and must have no unknown
        objects.
        """
        if self.includes_all:
            return True
        owners = self.find_tenants(record) if self.includes_platform else None
        return owners is not None and self.uncertain_tenants.isdisjoint(owners)

    def find_tenants(self, record: PackageRecord) -> frozenset[str] | None:
        """Return the tenants of a recorded package. The platform team has the name "".

        Return None if a tenant is unknown.
        """
        owners = frozenset(self._list_tenants(record)) if record.config_sources else {None}
        names = frozenset(name for name in owners if name is not None)
        return names if len(names) == len(owners) else None

    def _list_tenants(self, record: PackageRecord) -> Iterator[str | None]:
        """Yield the tenants that own the package or its config files. Yield None for an unknown tenant."""
        if name := record.tenant:
            yield name if name in self.tenants.by_name else None
        start = f"{self.directory}/" if self.directory else ""
        for path in record.config_sources:
            yield self.tenants.find_owner(path.removeprefix(start)) if path.startswith(start) else None


def build_config_completeness(catalog: Catalog, directory: str) -> ConfigCompleteness:
    """Return the completeness of the catalog. `directory` is the folder of the config in its repository."""
    return ConfigCompleteness(catalog.uncertain_tenants, catalog.tenants, directory)
