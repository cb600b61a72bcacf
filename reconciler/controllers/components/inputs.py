"""Inputs of the component controller, and the cache that the next pass reuses.

The catalog and the cluster inventory are separate arguments of the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, Protocol, TypeVar, cast

from reconciler.cel import ExpressionLimits
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.keyed_cache import ControllerCache, KeyedCache
from reconciler.controllers.results import PackageOwner
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field


class ComponentRecords(Protocol):
    """Recorded state of the component packages on all clusters."""

    def get_owned_packages(self) -> Mapping[PackageLocation, PackageOwner]:
        """Return the owner of each drafted or published package. Packages that are being deleted are not included."""
        ...

    def get_recorded_inputs(self) -> Mapping[PackageLocation, Collection[str]]:
        """Map each package to the names of the dependencies that its last render used."""
        ...


@dataclass(frozen=True)
class ComponentControllerInputs:
    """Services and settings for one pass of the component controller.

    Attributes:
        max_delete_percent: Percentage of an EnvBinding's packages that one pass may delete without a confirmation.
        engine: Version of the render logic. It changes if a new release of the reconciler can render different files.
        blocked_counts: For each owner, the packages whose deletion an earlier pass blocked. Each package is mapped to
            the number of packages that the owner had in that pass.
        runtime_composition: Whether components without a component type are allowed.
        reserved_kinds: Kinds that no component type may generate, because controllers read these kinds.
    """

    records: ComponentRecords
    max_delete_percent: int = 30
    engine: str = ""
    blocked_counts: Mapping[ObjectKey, Mapping[PackageLocation, int]] = field(default_factory=dict)
    runtime_composition: bool = True
    crd_group: str = "platform"
    reserved_kinds: frozenset[str] = frozenset()
    cel_limits: ExpressionLimits = field(default_factory=ExpressionLimits)


_Result = TypeVar("_Result")


class ComponentCache(ControllerCache):
    """Results of the component controller that the next pass can use again."""

    def __init__(self) -> None:
        super().__init__()
        self._results = self.create(KeyedCache[Any])

    def begin_pass(self, inputs: ComponentControllerInputs) -> None:
        """Begin a pass. Remove all entries if the settings have changed since the previous pass."""
        self.clear_if_changed(
            (inputs.cel_limits, inputs.runtime_composition, inputs.crd_group, inputs.reserved_kinds, inputs.engine)
        )

    def get_or_create(self, key: Hashable, create: Callable[[], _Result]) -> _Result:
        """Return the result for a key. The key must contain all inputs of the result except the settings."""
        return cast("_Result", self._results.get_or_create(key, create))
