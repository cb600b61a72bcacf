"""Kitchens: renderers in any process, built of the settings that rendering goes by and of the orders of a pass."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from reconciler.caching import cached
from reconciler.daemon.backoff import Backoff
from reconciler.executors.cluster import Cluster
from reconciler.executors.port import Executor, Orders
from reconciler.executors.processes import Processes
from reconciler.garbage import look_seldom
from reconciler.planning.render import Engine, Renderer
from reconciler.planning.templates import Templating
from reconciler.settings import Settings
from reconciler.snapshot.catalog import Catalog, ParseMemory, read_catalog
from reconciler.wiring.options import FIRST_REST_SECONDS, available_cores, engine, functions, yaml_limits


@dataclass(frozen=True)
class SettingsKitchen:
    """Makes renderers by settings, as JSON; equal settings share what they have read in a process."""

    settings: str

    def __call__(self, orders: Orders) -> Renderer:
        """Return a renderer of orders."""
        equipment = _equipment(self.settings)
        templating = Templating(orders.rules, orders.options)
        return Renderer(equipment.read(orders), orders.last_mile, equipment.engine, templating)


def build_executor(settings: Settings) -> Executor | None:
    """Build the executor that the settings want; None where packages are rendered in this process."""
    one = settings.rendering
    kitchen = SettingsKitchen(_rendering(settings).model_dump_json())
    if one.dask:
        return Cluster(one.dask, kitchen, one.timeout_seconds)
    workers = one.workers or available_cores()
    return Processes(workers, kitchen, timeout_seconds=one.timeout_seconds) if workers > 1 else None


def _rendering(settings: Settings) -> Settings:
    """Return the settings that a render goes by; no others leave this process."""
    return Settings(merge=settings.merge, rules=settings.rules, functions=settings.functions, limits=settings.limits)


class _Equipment:
    """What one process keeps from orders to orders."""

    def __init__(self, settings: Settings) -> None:
        look_seldom()
        backoff = Backoff(FIRST_REST_SECONDS, settings.max_backoff_seconds, time.monotonic)
        self.engine: Engine = engine(settings, functions(settings, backoff))
        self._limits = yaml_limits(settings)
        self._memory: ParseMemory = {}
        self._catalog: Catalog | None = None

    def read(self, orders: Orders) -> Catalog:
        """Return the catalog of the config's files; those that were read before are not read again."""
        self._catalog = read_catalog(orders.files, self._memory, self._limits, orders.unreadable, self._catalog)
        for forgotten in self._memory.keys() - {file.id for file in orders.files.values()}:
            del self._memory[forgotten]
        catalog = self._catalog.settled(orders.settlement)
        return replace(catalog, doubts=orders.doubts) if orders.doubts else catalog


@cached(2)
def _equipment(settings: str) -> _Equipment:
    return _Equipment(Settings.model_validate_json(settings))
