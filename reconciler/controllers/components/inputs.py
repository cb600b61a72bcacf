"""Inputs of the component controller, and the cache that the next pass reuses.

The catalog and the cluster inventory are separate arguments of the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from reconciler.cel import ExpressionLimits
from reconciler.controllers.components.compilation import CompilationResult
from reconciler.controllers.components.component_renderer import RenderedComponent
from reconciler.controllers.components.definition_index import DefinitionIndex
from reconciler.controllers.components.model import Component, ComponentType
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.keyed_cache import ControllerCache, KeyedCache
from reconciler.controllers.results import PackageOwner, PackageTarget
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field


class ComponentRecords(Protocol):
    """Recorded state of the component packages on all clusters."""

    def get_owned_packages(self) -> Mapping[PackageLocation, PackageOwner]:
        """Return the owner of each drafted or published package. Packages that are being deleted are not included."""
        ...

    def get_recorded_inputs(self) -> Mapping[PackageLocation, Collection[str]]:
        """Return the names of the objects that each package was last rendered from."""
        ...


@dataclass(frozen=True)
class ComponentControllerInputs:
    """Services and settings for one pass of the component controller.

    Attributes:
        max_delete_percent: Percentage of an EnvBinding's packages that one pass may delete without a confirmation.
        engine: Version of the render logic. It changes if a new release of the reconciler can render different files.
        held_deletions: By owner, the packages whose deletion an earlier pass blocked, each with the number of packages
            that the owner had in that pass.
        runtime_composition: Whether components without a component type are allowed.
        reserved_kinds: Kinds that no component type may generate, because controllers read these kinds.
    """

    records: ComponentRecords
    max_delete_percent: int = 30
    engine: str = ""
    held_deletions: Mapping[ObjectKey, Mapping[PackageLocation, int]] = field(default_factory=dict)
    runtime_composition: bool = True
    crd_group: str = "platform"
    reserved_kinds: frozenset[str] = frozenset()
    cel_limits: ExpressionLimits = field(default_factory=ExpressionLimits)


_Packages = TypeVar("_Packages")


class ComponentCache(ControllerCache):
    """Results of the component controller that the next pass can use again."""

    def __init__(self) -> None:
        super().__init__()
        self._compiled = self.create(KeyedCache[CompilationResult])
        self._rendered = self.create(KeyedCache[RenderedComponent])
        self._packages_by_inputs = self.create(KeyedCache[Any])

    def begin_pass(self, inputs: ComponentControllerInputs) -> None:
        """Begin a pass. Remove all entries if the settings have changed since the previous pass."""
        self.clear_if_changed(
            (inputs.cel_limits, inputs.runtime_composition, inputs.crd_group, inputs.reserved_kinds, inputs.engine)
        )

    def get_compiled_type(
        self, component_type: ComponentType, index: DefinitionIndex, compute: Callable[[], CompilationResult]
    ) -> CompilationResult:
        """Return the compiled component type. Compile it again if its definition or one of its addons has changed."""
        names = [
            *(addon.instance.addon for addon in component_type.platform_addons),
            *(addon.name for _, addon in component_type.allowed_addons),
        ]
        return self._compiled.get_or_create(
            (component_type, *_list_used_definitions(component_type.definition, names, index)), compute
        )

    def get_untyped_plan(
        self, component: Component, index: DefinitionIndex, compute: Callable[[], CompilationResult]
    ) -> CompilationResult:
        """Return the compiled plan of a component without a type.

        Compile the component again if its definition or one of its addons has changed.
        """
        names = [addon.instance.addon for addon in component.addons or ()]
        return self._compiled.get_or_create(
            (component, *_list_used_definitions(component.definition, names, index)), compute
        )

    def get_rendered_component(self, key: Hashable, compute: Callable[[], RenderedComponent]) -> RenderedComponent:
        """Return a component that is rendered for an environment. `key` must contain all inputs of the render."""
        return self._rendered.get_or_create(key, compute)

    def get_packages(
        self, rendered: RenderedComponent, targets: Sequence[PackageTarget], compute: Callable[[], _Packages]
    ) -> _Packages:
        """Return the packages of a rendered component. Build them if the rendered component or a target is new."""
        return cast("_Packages", self._packages_by_inputs.get_or_create((rendered, *targets), compute))


def _list_used_definitions(definition: str, addons: list[str], index: DefinitionIndex) -> Iterator[object]:
    """Yield the definition and the addons with these names, as parts of a cache key.

    If a name has no usable object, yield the reason. The reason lists all existing names, so that the key changes when
    an object is added.
    """
    yield index.definitions.by_name.get(definition) or index.definitions.explain_absence(definition)
    for name in addons:
        yield index.addons.by_name.get(name) or index.addons.explain_absence(name)
