"""Kitchens that go wrong, for workers in processes of their own."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from reconciler.bootstrap.renderer_factory import SettingsRendererFactory
from reconciler.controllers.results import Variant
from reconciler.executors.executor import RenderContext
from reconciler.planning.model.outcomes import PackageRender
from reconciler.planning.model.sources import RenderInputs
from reconciler.planning.render.renderer import PackageRenderer


@dataclass(frozen=True)
class Deadly:
    """Ends the process at a package: `once`, when nobody has done so before, or each time."""

    inner: SettingsRendererFactory
    package: str
    marks: str
    once: bool

    def __call__(self, orders: RenderContext) -> PackageRenderer:
        renderer = self.inner(orders)

        class Ending(PackageRenderer):
            def __call__(renderer, variant: Variant, render_inputs: RenderInputs) -> PackageRender:  # noqa: N805
                if str(variant.target) == self.package:
                    self.end()
                return super().__call__(variant, render_inputs)

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

    inner: SettingsRendererFactory
    package: str
    error: type[Exception]

    def __call__(self, orders: RenderContext) -> PackageRenderer:
        renderer = self.inner(orders)

        class Faulty(PackageRenderer):
            def __call__(renderer, variant: Variant, render_inputs: RenderInputs) -> PackageRender:  # noqa: N805
                if str(variant.target) == self.package:
                    raise self.error("injected")
                return super().__call__(variant, render_inputs)

        return Faulty(**vars(renderer))


@dataclass(frozen=True)
class Unequipped:
    """Cannot even be made in another process."""

    inner: SettingsRendererFactory

    def __call__(self, orders: RenderContext) -> PackageRenderer:
        return self.inner(orders)

    def __reduce__(self) -> tuple[object, ...]:
        return (os._exit, (1,))
