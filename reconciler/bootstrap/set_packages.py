"""The recorded packages of each PackageVariantSet, which are an input of the controller for PackageVariantSets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from reconciler.controllers.keyed_cache import IdentityCache
from reconciler.controllers.package_variants.set_targets import DownstreamKey
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.planning.model.state import TargetState
from reconciler.planning.model.targets import Target


@dataclass(frozen=True)
class _SetPackage:
    """A package of a PackageVariantSet.

    If the package is blocked, `existing_count` is the number of packages that the set had when this package was first
    blocked. For other packages, `existing_count` is 0.
    """

    set_key: ObjectKey
    key: DownstreamKey
    existing_count: int


@dataclass(frozen=True)
class RecordedSetPackages:
    """The recorded packages of all PackageVariantSets.

    Attributes:
        by_set: The packages of each set.
        blocked: Maps each set to its blocked packages, and each package to its `_SetPackage.existing_count`.
    """

    by_set: Mapping[ObjectKey, Sequence[DownstreamKey]] = field(default_factory=dict)
    blocked: Mapping[ObjectKey, Mapping[DownstreamKey, int]] = field(default_factory=dict)


class SetPackages:
    """Lists the packages of each PackageVariantSet from the recorded states. The results are cached."""

    def __init__(self) -> None:
        self._packages_by_state: IdentityCache[tuple[_SetPackage, ...]] = IdentityCache()
        self._packages_by_set: dict[ObjectKey, list[DownstreamKey]] = {}

    def list_packages(self, states: Mapping[Target, TargetState]) -> RecordedSetPackages:
        """Return the packages of each set.

        If the packages of a set did not change, the returned list is the same Python object as in the previous call.
        """
        children: dict[ObjectKey, list[DownstreamKey]] = {}
        blocked: dict[ObjectKey, dict[DownstreamKey, int]] = {}
        for target, state in states.items():
            for package in self._packages_by_state.get_or_create(
                (state,), partial(_list_set_packages, target.name, state)
            ):
                children.setdefault(package.set_key, []).append(package.key)
                if package.existing_count:
                    blocked.setdefault(package.set_key, {})[package.key] = package.existing_count
        self._packages_by_state.end_pass()
        previous = self._packages_by_set
        self._packages_by_set = {
            set_key: previous[set_key] if previous.get(set_key) == packages else packages
            for set_key, packages in children.items()
        }
        return RecordedSetPackages(self._packages_by_set, blocked)


def _list_set_packages(name: str, state: TargetState) -> tuple[_SetPackage, ...]:
    return tuple(
        _SetPackage(record.owner.parent, DownstreamKey(name, package), record.outcome.get("existing") or 0)
        for package, record in state.list_active_packages()
        if record.owner.parent
    )
