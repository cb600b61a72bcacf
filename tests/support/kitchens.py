"""Kitchens that go wrong, for workers in processes of their own."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from reconciler.executors.port import Orders
from reconciler.planning.outcome import Rendered
from reconciler.planning.render import Renderer
from reconciler.planning.source import Ingredients
from reconciler.rules.variant import Variant
from reconciler.wiring.kitchen import SettingsKitchen


@dataclass(frozen=True)
class Deadly:
    """Ends the process at a package: `once`, when nobody has done so before, or each time."""

    inner: SettingsKitchen
    package: str
    marks: str
    once: bool

    def __call__(self, orders: Orders) -> Renderer:
        renderer = self.inner(orders)

        class Ending(Renderer):
            def __call__(renderer, variant: Variant, made: Ingredients) -> Rendered:  # noqa: N805
                if str(variant.place) == self.package:
                    self.end()
                return super().__call__(variant, made)

        return Ending(**vars(renderer))

    def end(self) -> None:
        """End this process as one is ended that takes too much memory."""
        mark = Path(self.marks) / f"{os.getpid()}"
        if not (self.once and any(mark.parent.iterdir())):
            mark.touch()
            os._exit(137)


@dataclass(frozen=True)
class Endless(Deadly):
    """Never ends with a package, and leaves its process' number where marks are."""

    def end(self) -> None:
        """Go on for longer than anybody waits."""
        (Path(self.marks) / f"{os.getpid()}").touch()
        time.sleep(600)


@dataclass(frozen=True)
class Raising:
    """Raises an exception at one package."""

    inner: SettingsKitchen
    package: str
    error: type[Exception]

    def __call__(self, orders: Orders) -> Renderer:
        renderer = self.inner(orders)

        class Faulty(Renderer):
            def __call__(renderer, variant: Variant, made: Ingredients) -> Rendered:  # noqa: N805
                if str(variant.place) == self.package:
                    raise self.error("injected")
                return super().__call__(variant, made)

        return Faulty(**vars(renderer))


@dataclass(frozen=True)
class Unequipped:
    """Cannot even be made in another process."""

    inner: SettingsKitchen

    def __call__(self, orders: Orders) -> Renderer:
        return self.inner(orders)

    def __reduce__(self) -> tuple[object, ...]:
        return (os._exit, (1,))
