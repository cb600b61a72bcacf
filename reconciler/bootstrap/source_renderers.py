"""Construction of the services that render the sources of packages."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.bootstrap.options import INITIAL_BACKOFF_SECONDS
from reconciler.lazy_dataclasses import dataclass
from reconciler.reconcile.artifact_inputs import ArtifactInputs
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.settings import Settings
from reconciler.sources.package_sources import HELM_TRACE_KEY, PackageSources

if TYPE_CHECKING:
    from reconciler.sources.helm import HelmEngine

_RENDER_MEMORY_BYTES: Final = 64 * 1024 * 1024
"""The size of the rendered sources that stay in memory."""


@dataclass(frozen=True)
class SourceRenderers:
    """The renderer of sources, and the identities of its programs by their keys in traces."""

    packages: PackageSources
    programs: Mapping[str, Callable[[], str]]


def build_source_renderers(settings: Settings, artifacts: ArtifactInputs, search_path: str) -> SourceRenderers:
    """Build the renderer of sources. Programs are searched when a source needs them.

    Args:
        search_path: More folders for programs, separated by ":".
    """
    packages = PackageSources(partial(build_helm_engine, settings, search_path), artifacts)
    return SourceRenderers(packages, {HELM_TRACE_KEY: packages.identify_helm})


def build_helm_engine(settings: Settings, search_path: str) -> HelmEngine:
    """Build the engine that renders charts."""
    # Import the engine here, because most fleets have no charts.
    from reconciler.krm.version_ranges import parse_range
    from reconciler.packages.charts.package_files import OutputRules
    from reconciler.processes.process import ProcessLimits
    from reconciler.sources.helm import HelmEngine, HelmOptions
    from reconciler.sources.helm_program import HelmProgram
    from reconciler.sources.limits import SourceLimits
    from reconciler.sources.programs import ProgramFinder, ProgramRunner
    from reconciler.sources.render_cache import RenderCache

    sources, options = settings.sources, settings.sources.helm
    limits = ProcessLimits(options.timeout_seconds, options.memory_bytes, options.output_bytes)
    runner = ProgramRunner(sources.sandbox)
    folder = Path(settings.cache).expanduser() / "renders"
    cache = RenderCache(folder, sources.cache_bytes, _RENDER_MEMORY_BYTES)
    finder = ProgramFinder("helm", Path(options.program) if options.program else None, search_path)
    versions = parse_range(options.versions)
    assert versions, "the settings were validated"
    helm = HelmProgram(versions, finder, runner, cache, limits)
    rules = OutputRules(options.resources, options.strict)
    backoff = Backoff(INITIAL_BACKOFF_SECONDS, settings.max_backoff_seconds, time.monotonic)
    return HelmEngine(
        HelmOptions(limits, rules, SourceLimits(**sources.limits.model_dump())), helm, runner, cache, backoff
    )
