"""Claims: two objects that define one identity, one cluster or one place; the earlier definition continues to work.

A later definition is rejected, so that an added file cannot stop the packages of other authors. Where nothing shows
which definition is the earlier one, the objects stay in conflict and none of them has an effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.krm.findings import Finding
from reconciler.krm.yaml import DEFAULT_LIMITS, YamlLimits
from reconciler.snapshot.catalog import Catalog, ConfigObject, ParseMemory, Settlement, read_catalog
from reconciler.snapshot.codes import CLAIM_CONFLICT
from reconciler.snapshot.files import FileTree

_HAND_OVER = "to hand over, remove the first definition in the commit that adds the second"


def git_place(one: ConfigObject) -> object:
    """Return the place that a Repository claims, as it is written."""
    spec = one.data.get("spec")
    return (spec.get("git"), spec.get("deployment")) if isinstance(spec, dict) else None


def _any_place(one: ConfigObject) -> object:
    return None


@dataclass(frozen=True)
class Conflict:
    """Objects of which only one may have an effect, and why, as the end of a sentence about one of the others.

    `place_of` returns what an object claims besides its identity: an earlier version of it is the same claim only if it
    claimed the same.
    `package`: they claim this package on some targets; "" for claims that are not about one package.
    """

    claims: tuple[ConfigObject, ...]
    why: str
    package: str = ""
    place_of: Callable[[ConfigObject], object] = _any_place

    def find_first(self, earlier: Iterable[FileTree], limits: YamlLimits = DEFAULT_LIMITS) -> ConfigObject | None:
        """Return the claim that the config had before the others; None if several came together.

        Args:
            earlier: The versions of the config before the current one, newest first: at least the files of the claims.
                A version with a file that cannot be parsed does not count.
            limits: Those of the config's files.
        """
        remaining = self.claims
        memory: ParseMemory = {}
        for files in earlier:
            catalog = read_catalog(files, memory, limits)
            if catalog.unreadable:
                continue
            present = tuple(one for one in remaining if self._is_in(catalog, one))
            if not present:
                return None
            if len({(one.file, one.key) for one in present}) == 1:
                # two copies in one file came from one author, and neither is the first
                return present[0] if len(present) == 1 else None
            remaining = present
        return None

    def _is_in(self, catalog: Catalog, claim: ConfigObject) -> bool:
        found = catalog.find_in_file(claim.file, claim.key)
        return found is not None and self.place_of(found) == self.place_of(claim)

    def settle(self, holder: ConfigObject) -> Settlement:
        """Return how the conflict ends with one of the claims in effect."""
        others = [one for one in self.claims if one is not holder]
        is_same_object = {one.key for one in others} == {holder.key}
        return Settlement(
            {holder.key: (holder.file, holder.path)} if is_same_object else {},
            frozenset() if is_same_object else frozenset(one.key for one in others),
            tuple(self._finding(one, holder) for one in others),
        )

    def _finding(self, one: ConfigObject, holder: ConfigObject) -> Finding:
        message = (
            f"{one.key} is rejected: {holder.key} at {holder.file}:{holder.line} {self.why}, was first, and continues"
            f" to work; {_HAND_OVER}"
        )
        return CLAIM_CONFLICT.finding(message, one.where)


def find_duplicates(catalog: Catalog) -> Sequence[Conflict]:
    """Return a conflict for each identity that several objects of the config have."""
    return [Conflict(copies, "defines the same object") for copies in catalog.copies.values() if len(copies) > 1]


def group_by_name(objects: Iterable[ConfigObject]) -> Mapping[str, tuple[ConfigObject, ...]]:
    """Return the objects of each name that more than one has, in any namespaces."""
    found: dict[str, list[ConfigObject]] = {}
    for one in objects:
        found.setdefault(one.key.name, []).append(one)
    return {name: tuple(same) for name, same in found.items() if len(same) > 1}
