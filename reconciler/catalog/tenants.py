"""Tenants: the teams that own folders of the config, and the objects that each team can see.

The package `reconciler.tenancy` reads the tenants and enforces their rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from reconciler.api.tenancy import TenantSpec
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.krm.findings import SourceLocation
from reconciler.krm.globs import can_match_with_prefix, matches_all_with_prefix, matches_any_glob
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import dataclass, field

# The trace of a tenant's package contains dependencies as "tenant <name> <dependency>", because their fingerprints
# depend on the objects that the tenant can read. The trace also contains the key "tenant" with the value
# "<name> <digest of the tenant>".
TENANT_DEPENDENCY = "tenant"
EXPORT_ANNOTATION = "reconciler.dev/export"
# The kinds whose objects request packages. No other object refers to an object of these kinds.
PACKAGE_OWNER_KINDS = frozenset(
    (
        (PORCH_GROUP, "PackageVariant"),
        (PORCH_GROUP, "PackageVariantSet"),
        ("greenhouse.sap", "Plugin"),
        ("greenhouse.sap", "PluginPreset"),
    )
)


@dataclass(frozen=True)
class Tenant:
    """A team and its rights.

    Attributes:
        location: The location of the Tenant object in the config.
    """

    name: str
    spec: TenantSpec
    location: SourceLocation

    @cached_property
    def digest(self) -> str:
        """A digest of all rights. If it changes, the packages of the tenant are rendered again."""
        return compute_digest(self.spec.model_dump(mode="json"))

    def owns(self, path: str) -> bool:
        """Return whether a config file is in a folder of the tenant."""
        return matches_any_glob(path, self.spec.directories)

    def owns_folder(self, folder: str) -> bool:
        """Return whether all files in a folder belong to the tenant. The path of the folder ends in "/"."""
        return any(matches_all_with_prefix(folder, pattern) for pattern in self.spec.directories)

    def may_own_in_folder(self, folder: str) -> bool:
        """Return whether a file in a folder may belong to the tenant. The path of the folder ends in "/"."""
        return any(can_match_with_prefix(folder, pattern) for pattern in self.spec.directories)

    def may_reference_tenant(self, tenant: str) -> bool:
        """Return whether this tenant may use at least some exported objects of the tenant `tenant`."""
        return any(can_match_with_prefix(f"{tenant}.", pattern) for pattern in self.spec.allow.reference)

    def may_reference(self, tenant: str, name: str) -> bool:
        """Return whether this tenant may use the exported object `name` of the tenant `tenant`."""
        return matches_any_glob(f"{tenant}.{name}", self.spec.allow.reference)


@dataclass(frozen=True)
class Tenants:
    """All tenants of a config, by name. The platform team, which owns all other files, has the name ""."""

    by_name: Mapping[str, Tenant] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.by_name)

    def find_owner(self, path: str) -> str:
        """Return the name of the tenant that owns a config file. Return "" for a file of the platform team."""
        if not self.by_name:
            return ""
        if path not in self._owners:
            self._owners[path] = next((tenant.name for tenant in self.list_matching(path)), "")
        return self._owners[path]

    @cached_property
    def _owners(self) -> dict[str, str]:
        return {}

    def find_owner_of_unknown_objects(self, path: str) -> str:
        """Return the only tenant that may own an object in an unreadable file or folder.

        Return "" if the platform team or several tenants may own such an object.

        Args:
            path: The path of a file, or the path of a folder with "/" at its end. The path of an unreadable
                `.krmignore` stands for all files of its folder.
        """
        folder = path.removesuffix(".krmignore")
        if folder and not folder.endswith("/"):
            matching = list(self.list_matching(path))
            return matching[0].name if len(matching) == 1 else ""
        folder = folder.removeprefix("./")
        candidates = [tenant for tenant in self.by_name.values() if tenant.may_own_in_folder(folder)]
        return candidates[0].name if len(candidates) == 1 and candidates[0].owns_folder(folder) else ""

    def find_owners(self, paths: Iterable[str]) -> frozenset[str]:
        """Return the names of the tenants that own the files."""
        return frozenset(name for path in paths if (name := self.find_owner(path)))

    def find_namespace_owner(self, namespace: str) -> str:
        """Return the only tenant that owns a namespace. Return "" if there is no such tenant.

        A tenant that lists the name of the namespace takes precedence over tenants with a matching pattern.
        """
        if namespace not in self._namespace_owners:
            tenants = self.by_name.values()
            named = [tenant.name for tenant in tenants if namespace in tenant.spec.allow.namespaces]
            matching = named or [
                tenant.name for tenant in tenants if matches_any_glob(namespace, tenant.spec.allow.namespaces)
            ]
            self._namespace_owners[namespace] = matching[0] if len(matching) == 1 else ""
        return self._namespace_owners[namespace]

    @cached_property
    def _namespace_owners(self) -> dict[str, str]:
        return {}

    def list_matching(self, path: str) -> Iterator[Tenant]:
        """Yield all tenants whose folders contain a file. More than one tenant is an error."""
        return (tenant for tenant in self.by_name.values() if tenant.owns(path))


NO_TENANTS = Tenants()
