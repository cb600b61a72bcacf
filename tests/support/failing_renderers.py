"""Renderers that fail, for jobs in worker processes."""

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
class KillingRenderer:
    """Kills its process at one package: only the first time with `once`, otherwise each time."""

    inner: SettingsRendererFactory
    package: str
    marks: str
    once: bool

    def __call__(self, orders: RenderContext) -> PackageRenderer:
        renderer = self.inner(orders)

        class KillingRendererFactory(PackageRenderer):
            def __call__(renderer, variant: Variant, render_inputs: RenderInputs) -> PackageRender:  # noqa: N805
                if str(variant.target) == self.package:
                    self.end()
                return super().__call__(variant, render_inputs)

        return KillingRendererFactory(**vars(renderer))

    def end(self) -> None:
        """Kill this process as the kernel does at a memory limit."""
        mark = Path(self.marks) / f"{os.getpid()}"
        if not (self.once and any(mark.parent.iterdir())):
            mark.touch()
            os._exit(137)


@dataclass(frozen=True)
class EndlessRenderer(KillingRenderer):
    """Never finishes a package, and writes its process id to a file in `marks`."""

    def end(self) -> None:
        """Sleep for longer than any timeout."""
        (Path(self.marks) / f"{os.getpid()}").touch()
        time.sleep(600)


@dataclass(frozen=True)
class RaisingRenderer:
    """Raises an exception at one package."""

    inner: SettingsRendererFactory
    package: str
    error: type[Exception]

    def __call__(self, orders: RenderContext) -> PackageRenderer:
        renderer = self.inner(orders)

        class RaisingRendererFactory(PackageRenderer):
            def __call__(renderer, variant: Variant, render_inputs: RenderInputs) -> PackageRender:  # noqa: N805
                if str(variant.target) == self.package:
                    raise self.error("injected")
                return super().__call__(variant, render_inputs)

        return RaisingRendererFactory(**vars(renderer))


@dataclass(frozen=True)
class UnpicklableFactory:
    """Cannot be created in another process."""

    inner: SettingsRendererFactory

    def __call__(self, orders: RenderContext) -> PackageRenderer:
        return self.inner(orders)

    def __reduce__(self) -> tuple[object, ...]:
        return (os._exit, (1,))
