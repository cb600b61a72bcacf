"""Construction of package renderers for worker processes."""

from __future__ import annotations

import time
from functools import partial

from reconciler.bootstrap.catalog_reader import CatalogReader
from reconciler.bootstrap.engine import (
    build_functions,
    build_render_engine,
)
from reconciler.bootstrap.options import INITIAL_BACKOFF_SECONDS
from reconciler.bootstrap.source_renderers import build_helm_engine
from reconciler.catalog.catalog import Catalog
from reconciler.executors.dask_cluster import DaskExecutor
from reconciler.executors.executor import Executor, RenderContext
from reconciler.executors.processes import ProcessExecutor
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.memory import cached, relax_gc
from reconciler.planning.render.renderer import PackageRenderer, RenderEngine
from reconciler.planning.render.templates import TemplateMerger
from reconciler.processes.cores import count_available_cores
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.settings import Settings
from reconciler.settings.sources import SourceSettings


@dataclass(frozen=True)
class SettingsRendererFactory:
    """Creates package renderers.

    `settings` is a JSON text with the settings. `search_path` contains additional folders for programs.

    In one process, factories with equal settings share one cache of parsed config files.
    """

    settings: str
    search_path: str

    def __call__(self, context: RenderContext) -> PackageRenderer:
        """Create a package renderer for a render context."""
        state = _get_worker_state(self.settings, self.search_path)
        templates = TemplateMerger(context.merge_rules, context.template_options)
        return PackageRenderer(state.read_catalog(context), context.cluster_overrides, state.engine, templates)


def build_executor(settings: Settings, search_path: str) -> Executor | None:
    """Build the executor that the settings configure. Return None if this process renders all packages.

    Args:
        search_path: Additional folders for programs, separated by ":".
    """
    options = settings.rendering
    factory = SettingsRendererFactory(_select_render_settings(settings).model_dump_json(), search_path)
    if options.dask:
        return DaskExecutor(options.dask, factory, options.timeout_seconds)
    workers = options.workers or count_available_cores()
    return ProcessExecutor(workers, factory, timeout_seconds=options.timeout_seconds) if workers > 1 else None


def _select_render_settings(settings: Settings) -> Settings:
    """Return only the settings that a render requires, because workers must not receive secrets and URLs."""
    sources = settings.sources
    return Settings(
        merge=settings.merge, rules=settings.rules, functions=settings.functions, limits=settings.limits,
        tenancy=settings.tenancy, cache=settings.cache,
        sources=SourceSettings(
            helm=sources.helm, sandbox=sources.sandbox, limits=sources.limits, cache_bytes=sources.cache_bytes
        ),
    )  # fmt: skip


class _WorkerState:
    """The render engine and the parsed config files of a worker process. All renders in the process share them."""

    def __init__(self, settings: Settings, search_path: str) -> None:
        relax_gc()
        backoff = Backoff(INITIAL_BACKOFF_SECONDS, settings.max_backoff_seconds, time.monotonic)
        functions = build_functions(settings, backoff, partial(build_helm_engine, settings, search_path))
        self.engine: RenderEngine = build_render_engine(settings, functions)
        self._reader = CatalogReader(settings)

    def read_catalog(self, context: RenderContext) -> Catalog:
        """Read the catalog of a render context. Files that are in the cache are not parsed again."""
        catalog = self._reader.read(context.files, context.unreadable_files)
        catalog = catalog.with_resolution(context.conflict_resolution)
        deletions = context.unproven_deletions
        return replace(catalog, unproven_deletions=deletions) if deletions else catalog


@cached(2)
def _get_worker_state(settings: str, search_path: str) -> _WorkerState:
    return _WorkerState(Settings.model_validate_json(settings), search_path)
