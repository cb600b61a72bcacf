"""Conflicts between config objects that define the same object, cluster or target.

The object that was added first stays in effect, and objects that were added later are rejected. Therefore, an added
file cannot stop the packages of other authors.

If it is unknown which object was added first, the object of the platform team stays in effect. If the platform team
defines none of the objects, the object of the tenant that owns the namespace stays in effect. In all other cases, none
of the objects has an effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from reconciler.catalog.catalog import Catalog, ConfigObject, ConflictResolution, ParseCache, read_catalog
from reconciler.catalog.codes import CatalogCodes
from reconciler.catalog.files import FileTree
from reconciler.catalog.tenants import Tenants
from reconciler.krm.findings import Finding
from reconciler.krm.yaml import DEFAULT_YAML_LIMITS, YamlLimits
from reconciler.lazy_dataclasses import dataclass


def get_claimed_git_location(repository: ConfigObject) -> object:
    """Return the fields `spec.git` and `spec.deployment`, which determine the Git location of a Repository."""
    spec = repository.data.get("spec")
    return (spec.get("git"), spec.get("deployment")) if isinstance(spec, dict) else None


def _return_no_location(claim: ConfigObject) -> object:
    return None


@dataclass(frozen=True)
class DefinitionConflict:
    """Objects that define the same object, cluster or target. At most one of these objects can have an effect.

    Attributes:
        claims: The conflicting objects.
        reason: The end of the sentence "the first object …" in messages, e.g. "defines the same object".
        package: The package that all conflicting objects request, or "" if the conflict is not about a package.
        claimed_location: Function that returns the location that an object claims, e.g. a Git location. `find_first`
            ignores earlier versions of an object with a different claimed location.
    """

    claims: tuple[ConfigObject, ...]
    reason: str
    package: str = ""
    claimed_location: Callable[[ConfigObject], object] = _return_no_location

    def find_first(self, earlier: Iterable[FileTree], limits: YamlLimits = DEFAULT_YAML_LIMITS) -> ConfigObject | None:
        """Return the conflicting object that the config contained first.

        Return None if no object was the first, e.g. because one commit added several of them.

        Args:
            earlier: Earlier versions of the config, newest first. They must contain the files of the conflicting
                objects. Versions with files that cannot be parsed are skipped.
        """
        remaining = self.claims
        cache: ParseCache = {}
        for files in earlier:
            catalog = read_catalog(files, cache, limits)
            if catalog.unreadable:
                continue
            present = tuple(claim for claim in remaining if self._is_in(catalog, claim))
            if not present:
                return None
            if len({(claim.file, claim.key) for claim in present}) == 1:
                # Return None if one file contains several definitions of the same object, because it is not known
                # which definition was the first.
                return present[0] if len(present) == 1 else None
            remaining = present
        return None

    def resolve_by_tenant(self, tenants: Tenants) -> ConflictResolution:
        """Return the resolution of the conflict if it is unknown which object existed first.

        - If exactly one object belongs to the platform team, this object takes precedence.
        - If no object belongs to the platform team, an object that belongs to the owner of its namespace takes
          precedence. There must be exactly one such object.
        - In all other cases, the resolution is empty.
        """
        platform = [claim for claim in self.claims if not tenants.find_owner(claim.file)] if tenants else []
        owned = [claim for claim in self.claims if _is_in_own_namespace(claim, tenants)]
        match platform, owned:
            case [holder], _:
                return self.resolve(holder, "belongs to the platform team")
            case [], [holder]:
                return self.resolve(holder, f'belongs to the owner of the namespace "{holder.key.namespace}"')
        return ConflictResolution()

    def _is_in(self, catalog: Catalog, claim: ConfigObject) -> bool:
        earlier = catalog.find_in_file(claim.file, claim.key)
        return earlier is not None and self.claimed_location(earlier) == self.claimed_location(claim)

    def resolve(self, holder: ConfigObject, reason: str = "came first") -> ConflictResolution:
        """Return the resolution in which `holder` has an effect, and all other conflicting objects are rejected.

        Args:
            reason: The end of a sentence about the holder in messages, e.g. "came first".
        """
        rejected_claims = [claim for claim in self.claims if claim is not holder]
        is_same_object = {claim.key for claim in rejected_claims} == {holder.key}
        return ConflictResolution(
            {holder.key: (holder.file, holder.path)} if is_same_object else {},
            frozenset() if is_same_object else frozenset(claim.key for claim in rejected_claims),
            tuple(self._create_finding(claim, holder, reason) for claim in rejected_claims),
        )

    def _create_finding(self, claim: ConfigObject, holder: ConfigObject, reason: str) -> Finding:
        place = f"{holder.file}:{holder.line}"
        if claim.key == holder.key:
            message = (
                f"this definition of {claim.key} is rejected, because {place} {self.reason}. The definition at {place}"
                f" {reason} and stays in effect. Next step: delete one of the two definitions. To replace the"
                f" definition at {place}, delete it in the commit that adds the other definition"
            )
        else:
            message = (
                f"{claim.key} is rejected, because {holder.key} at {place} {self.reason}. {holder.key} {reason} and"
                f" stays in effect. Next step: change or delete one of the two objects. To replace {holder.key}, delete"
                f" it in the commit that adds {claim.key}"
            )
        return CatalogCodes.CLAIM_CONFLICT.finding(message, claim.location)


def _is_in_own_namespace(claim: ConfigObject, tenants: Tenants) -> bool:
    owner = tenants.find_owner(claim.file)
    return bool(owner and claim.key.namespace) and tenants.find_namespace_owner(claim.key.namespace) == owner


def find_duplicates(catalog: Catalog) -> Sequence[DefinitionConflict]:
    """Return one conflict for each object that is defined several times."""
    return [
        DefinitionConflict(copies, "defines the same object") for copies in catalog.copies.values() if len(copies) > 1
    ]


def group_duplicate_names(objects: Iterable[ConfigObject]) -> Mapping[str, tuple[ConfigObject, ...]]:
    """Return the objects by name, for each name that several objects have. Namespaces are not compared."""
    by_name: dict[str, list[ConfigObject]] = {}
    for config_object in objects:
        by_name.setdefault(config_object.key.name, []).append(config_object)
    return {name: tuple(same_name) for name, same_name in by_name.items() if len(same_name) > 1}
