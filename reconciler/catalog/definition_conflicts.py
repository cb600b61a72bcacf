"""Conflicts between definitions: several objects define the same identity, cluster or target.

The earlier definition stays in effect and later ones are rejected, so that an added file cannot stop the packages of
other authors. If the earlier definition is unknown, none of the objects has an effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.catalog.catalog import Catalog, ConfigObject, ConflictResolution, ParseCache, read_catalog
from reconciler.catalog.codes import CLAIM_CONFLICT
from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding
from reconciler.krm.yaml import DEFAULT_YAML_LIMITS, YamlLimits

_HAND_OVER_STEP = "to hand over, remove the first definition in the commit that adds the second"


def get_claimed_git_location(repository: ConfigObject) -> object:
    """Return the Git location that a Repository claims, as written."""
    spec = repository.data.get("spec")
    return (spec.get("git"), spec.get("deployment")) if isinstance(spec, dict) else None


def _return_no_location(claim: ConfigObject) -> object:
    return None


@dataclass(frozen=True)
class DefinitionConflict:
    """Objects of which only one can have an effect.

    Attributes:
        claims: The objects.
        reason: The end of a sentence about one of the other objects.
        package: The package that all of them claim on some targets; "" for other conflicts.
        claimed_location: Returns the location that an object claims, besides its identity. An earlier version of an
            object is the same claim only if this location is equal.
    """

    claims: tuple[ConfigObject, ...]
    reason: str
    package: str = ""
    claimed_location: Callable[[ConfigObject], object] = _return_no_location

    def find_first(self, earlier: Iterable[FileTree], limits: YamlLimits = DEFAULT_YAML_LIMITS) -> ConfigObject | None:
        """Return the object that the config contained first; None if several were added together.

        Args:
            earlier: Earlier versions of the config, newest first, with at least the files of the claims. Versions with
                unparsable files are skipped.
            limits: Limits for YAML files.
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
                # Two definitions in one file have the same author. None of them is the first.
                return present[0] if len(present) == 1 else None
            remaining = present
        return None

    def _is_in(self, catalog: Catalog, claim: ConfigObject) -> bool:
        earlier = catalog.find_in_file(claim.file, claim.key)
        return earlier is not None and self.claimed_location(earlier) == self.claimed_location(claim)

    def resolve(self, holder: ConfigObject) -> ConflictResolution:
        """Return the resolution in which `holder` stays in effect."""
        rejected_claims = [claim for claim in self.claims if claim is not holder]
        is_same_object = {claim.key for claim in rejected_claims} == {holder.key}
        return ConflictResolution(
            {holder.key: (holder.file, holder.path)} if is_same_object else {},
            frozenset() if is_same_object else frozenset(claim.key for claim in rejected_claims),
            tuple(self._create_finding(claim, holder) for claim in rejected_claims),
        )

    def _create_finding(self, claim: ConfigObject, holder: ConfigObject) -> Finding:
        message = (
            f"{claim.key} is rejected: {holder.key} at {holder.file}:{holder.line} {self.reason}, was defined first,"
            f" and stays in effect; {_HAND_OVER_STEP}"
        )
        return CLAIM_CONFLICT.finding(message, claim.location)


def find_duplicates(catalog: Catalog) -> Sequence[DefinitionConflict]:
    """Return a conflict for each identity with several definitions."""
    return [
        DefinitionConflict(copies, "defines the same object") for copies in catalog.copies.values() if len(copies) > 1
    ]


def group_duplicate_names(objects: Iterable[ConfigObject]) -> Mapping[str, tuple[ConfigObject, ...]]:
    """Return the objects of each name that occurs several times, in any namespace."""
    by_name: dict[str, list[ConfigObject]] = {}
    for config_object in objects:
        by_name.setdefault(config_object.key.name, []).append(config_object)
    return {name: tuple(same_name) for name, same_name in by_name.items() if len(same_name) > 1}
