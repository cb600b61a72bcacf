"""Inputs of the component controller besides the catalog and the inventory, and its cache between passes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

from reconciler.catalog.catalog import ConfigObject
from reconciler.cel import ExpressionLimits
from reconciler.controllers.components.compilation import CompilationResult
from reconciler.controllers.components.component_renderer import RenderedComponent
from reconciler.controllers.components.definitions import DefinitionIndex
from reconciler.controllers.components.model import Component, ComponentType
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.keyed_cache import KeyedCache
from reconciler.controllers.results import PackageOwner, PackageTarget
from reconciler.krm.objects import ObjectKey


class ComponentRecords(Protocol):
    """Recorded state about the packages of components on clusters."""

    def get_owned_packages(self) -> Mapping[PackageLocation, PackageOwner]:
        """Return the owners of all drafted and published packages that are not about to be deleted."""
        ...

    def get_recorded_inputs(self) -> Mapping[PackageLocation, Collection[str]]:
        """Return the recorded inputs of the last render of each package."""
        ...


@dataclass(frozen=True)
class ComponentControllerInputs:
    """Services and settings for one pass of the component controller.

    Attributes:
        records: Recorded state of earlier passes.
        max_delete_percent: Largest share of a binding's packages that one pass may delete without confirmation.
        engine: Text that changes whenever a new version of the reconciler may render differently.
        held_deletions: By owner, packages whose deletion is held, and how many packages existed at that time.
        runtime_composition: Whether components without a component type are allowed.
        crd_group: API group of the generated CRDs.
        reserved_kinds: Kinds that controllers read. No component type may generate them.
        cel_limits: Limits for CEL expressions.
    """

    records: ComponentRecords
    max_delete_percent: int = 30
    engine: str = ""
    held_deletions: Mapping[ObjectKey, Mapping[PackageLocation, int]] = field(default_factory=dict)
    runtime_composition: bool = True
    crd_group: str = "platform"
    reserved_kinds: frozenset[str] = frozenset()
    cel_limits: ExpressionLimits = field(default_factory=ExpressionLimits)


_Read = TypeVar("_Read")
_Packages = TypeVar("_Packages")


class ComponentCache:
    """Results of the previous pass that the next pass can reuse.

    A pass with an empty cache has the same result. The key of an entry contains all inputs of its value: identical
    config objects, and values computed from them. The cache drops entries that the last pass did not use.
    """

    def __init__(self) -> None:
        self._settings: tuple[object, ...] = ()
        self._clear()

    def _clear(self) -> None:
        self._read: KeyedCache[Any] = KeyedCache()
        self._compiled: KeyedCache[CompilationResult] = KeyedCache()
        self._rendered: KeyedCache[RenderedComponent] = KeyedCache()
        self._packages_by_inputs: KeyedCache[Any] = KeyedCache()

    def begin_pass(self, inputs: ComponentControllerInputs) -> None:
        """Begin a pass. If the settings changed, drop all entries."""
        settings = (
            inputs.cel_limits,
            inputs.runtime_composition,
            inputs.crd_group,
            inputs.reserved_kinds,
            inputs.engine,
        )
        if settings != self._settings:
            self._settings = settings
            self._clear()

    def end_pass(self) -> None:
        """End a pass, and drop the entries that it did not use."""
        for cache in (self._read, self._compiled, self._rendered, self._packages_by_inputs):
            cache.end_pass()

    def read(self, reader: Callable[..., _Read], manifest: ConfigObject, **limits: ExpressionLimits) -> _Read:
        """Return the result of a reader, which must depend on this object only."""
        return cast("_Read", self._read.get_or_create((reader, manifest), lambda: reader(manifest, **limits)))

    def get_compiled_type(
        self, component_type: ComponentType, index: DefinitionIndex, compute: Callable[[], CompilationResult]
    ) -> CompilationResult:
        """Return a compiled component type, cached by the definition and the addons that it names."""
        names = [
            *(addon.instance.addon for addon in component_type.platform_addons),
            *(addon.name for addon in component_type.developer_addons),
        ]
        return self._compiled.get_or_create(
            (component_type, *_list_used_definitions(component_type.definition, names, index)), compute
        )

    def get_untyped_plan(
        self, component: Component, index: DefinitionIndex, compute: Callable[[], CompilationResult]
    ) -> CompilationResult:
        """Return the plan of a component without a type, cached by the definition and addons that it names."""
        names = [addon.instance.addon for addon in component.addons or ()]
        return self._compiled.get_or_create(
            (component, *_list_used_definitions(component.definition, names, index)), compute
        )

    def get_rendered_component(self, key: Hashable, compute: Callable[[], RenderedComponent]) -> RenderedComponent:
        """Return a component that is rendered for an environment. `key` contains all inputs."""
        return self._rendered.get_or_create(key, compute)

    def get_packages(
        self, rendered: RenderedComponent, targets: Sequence[PackageTarget], compute: Callable[[], _Packages]
    ) -> _Packages:
        """Return the packages of a rendered component. The rendered component represents all its inputs."""
        return cast("_Packages", self._packages_by_inputs.get_or_create((rendered, *targets), compute))


def _list_used_definitions(definition: str, addons: list[str], index: DefinitionIndex) -> Iterator[object]:
    """Yield the definition and the addons with these names.

    Yield the reason instead if a name is not usable. The reason lists the existing names, so it changes with them.
    """
    yield index.definitions.by_name.get(definition) or index.definitions.explain_absence(definition)
    for name in addons:
        yield index.addons.by_name.get(name) or index.addons.explain_absence(name)
