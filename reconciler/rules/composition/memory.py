"""What the room worked out in its last pass, so that the next one costs what has changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar, cast

from reconciler.expressions import Limits
from reconciler.rules.composition.compile_type import Compiled
from reconciler.rules.composition.library import Library
from reconciler.rules.composition.model import Component, ComponentType
from reconciler.rules.composition.render import Composed
from reconciler.rules.composition.surroundings import Surroundings
from reconciler.rules.remembered import Remembered
from reconciler.rules.variant import Place
from reconciler.snapshot.catalog import ConfigObject

_Read = TypeVar("_Read")
_Made = TypeVar("_Made")


class Memory:
    """What can be taken over from one pass of the room to the next; a pass with an empty one comes to the same.

    Everything is kept by what it was made of, and by nothing else: objects of the config that are the very same, and
    what was made of them. It holds what the last pass asked for, and no more.
    """

    def __init__(self) -> None:
        self._rules: tuple[object, ...] = ()
        self._forget()

    def _forget(self) -> None:
        self._read: Remembered[Any] = Remembered()
        self._compiled: Remembered[Compiled] = Remembered()
        self._composed: Remembered[Composed] = Remembered()
        self._made: Remembered[Any] = Remembered()

    def begin(self, around: Surroundings) -> None:
        """Begin a pass; one by other settings takes over nothing."""
        rules = (around.limits, around.runtime, around.crd_group, around.reserved, around.engine)
        if rules != self._rules:
            self._rules = rules
            self._forget()

    def end(self) -> None:
        """End a pass: what it has not asked for is forgotten."""
        for one in (self._read, self._compiled, self._composed, self._made):
            one.turn()

    def read(self, reader: Callable[..., _Read], one: ConfigObject, **limits: Limits) -> _Read:
        """Return what a reader makes of an object, of which it looks at nothing else."""
        return cast("_Read", self._read.of((reader, one), lambda: reader(one, **limits)))

    def compiled(self, read: ComponentType, library: Library, make: Callable[[], Compiled]) -> Compiled:
        """Return a compiled type, by what it names."""
        names = [*(one.instance.addon for one in read.platform), *(one.name for one in read.allowed)]
        return self._compiled.of((read, *_named(read.definition, names, library)), make)

    def listed(self, component: Component, library: Library, make: Callable[[], Compiled]) -> Compiled:
        """Return the plan of a component without a type, by what it names."""
        names = [one.instance.addon for one in component.addons or ()]
        return self._compiled.of((component, *_named(component.definition, names, library)), make)

    def composed(self, key: Hashable, make: Callable[[], Composed]) -> Composed:
        """Return a component in an environment, by all that it is rendered of."""
        return self._composed.of(key, make)

    def made(self, composed: Composed, places: Sequence[Place], make: Callable[[], _Made]) -> _Made:
        """Return the packages of a component in an environment; what was rendered stands for all that it is made of."""
        return cast("_Made", self._made.of((composed, *places), make))


def _named(definition: str, addons: list[str], library: Library) -> Iterator[object]:
    """Yield what is there of what is named, and in words why the rest is not: what there is stands in these words."""
    yield library.definitions.found.get(definition) or library.definitions.why_not(definition)
    for name in addons:
        yield library.addons.found.get(name) or library.addons.why_not(name)
