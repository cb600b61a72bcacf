"""What the rooms say of config objects, as the status branch asks for it: by key, and by what they have made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from reconciler.krm.identity import ObjectKey
from reconciler.reporting.paths import files_folder
from reconciler.rules.remembered import same_objects
from reconciler.rules.variant import ConfigStatus, Variant


@dataclass(frozen=True, eq=False)
class Configs:
    """The statuses of rooms and policies; a key that two of them have is told of by the last."""

    statuses: Sequence[ConfigStatus]

    @cached_property
    def by_key(self) -> Mapping[ObjectKey, ConfigStatus]:
        """Each by its object."""
        return {one.key: one for one in self.statuses}

    @cached_property
    def makers(self) -> Sequence[ConfigStatus]:
        """Those that have made others."""
        return [one for one in self.statuses if one.children]

    def children_of_large(self, most: int) -> frozenset[ObjectKey]:
        """Return what objects have made that made more than so many."""
        return frozenset(chain.from_iterable(one.children for one in self.makers if len(one.children) > most))

    def makers_of(self, keys: Set[ObjectKey]) -> list[ObjectKey]:
        """Return who has made any of these objects."""
        return [one.key for one in self.makers if not keys.isdisjoint(one.children)]

    @cached_property
    def files(self) -> Mapping[str, bytes]:
        """The files that objects have beside their status: what became of component types (design 3)."""
        return {
            files_folder(one.folder, one.key) + name: content
            for one in self.statuses
            if one.files
            for name, content in one.files.items()
        }

    @cached_property
    def folders_left(self) -> tuple[str, ...]:
        """The folders of objects whose own files stay as they are."""
        return tuple(
            files_folder(one.folder, one.key) for one in self.statuses if one.folder and one.files is None
        )  # fmt: skip


class ConfigMemory:
    """What was worked out of the rooms' results in the last pass; of the very same it is not worked out again."""

    def __init__(self) -> None:
        self._configs = Configs(())
        self._large: tuple[Configs, int, frozenset[ObjectKey]] = (self._configs, 0, frozenset())
        self._variants: Sequence[Variant] = ()
        self._spreading: frozenset[ObjectKey] = frozenset()

    def configs(self, statuses: Sequence[ConfigStatus]) -> Configs:
        """Return these statuses as they are asked for."""
        if not same_objects(self._configs.statuses, statuses):
            self._configs = Configs(statuses)
        return self._configs

    def children_of_large(self, configs: Configs, most: int) -> frozenset[ObjectKey]:
        """Return `Configs.children_of_large`, of the same as the same object."""
        if self._large[:2] != (configs, most):
            self._large = (configs, most, configs.children_of_large(most))
        return self._large[2]

    def spreading(self, variants: Sequence[Variant]) -> frozenset[ObjectKey]:
        """Return the owners that may have a package on many destinations."""
        if not same_objects(self._variants, variants):
            self._variants = variants
            self._spreading = frozenset(one.owner.key for one in variants if one.spreads)
        return self._spreading
