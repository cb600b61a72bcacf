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
from reconciler.sources.package_sources import HELM_TRACE_KEY, KUSTOMIZE_TRACE_KEY, PackageSources

if TYPE_CHECKING:
    from reconciler.krm.version_ranges import VersionRange
    from reconciler.processes.process import ProcessLimits
    from reconciler.settings.source_programs import ProgramSettings
    from reconciler.sources.engine_programs import EngineProblem, EngineProgram, EngineVersion, ProgramKind
    from reconciler.sources.helm import HelmEngine
    from reconciler.sources.kustomize import KustomizeEngine
    from reconciler.sources.render_cache import RenderCache

_RENDER_MEMORY_BYTES: Final = 64 * 1024 * 1024
"""The maximum size of the rendered sources that stay in memory."""


@dataclass(frozen=True)
class SourceRenderers:
    """The renderer of sources, and the programs that it uses.

    Attributes:
        programs: Maps the trace key of each program, such as Helm, to a function that returns the program's identity.
    """

    packages: PackageSources
    programs: Mapping[str, Callable[[], str]]


def build_source_renderers(settings: Settings, artifacts: ArtifactInputs, search_path: str) -> SourceRenderers:
    """Build the renderer of sources. A program is looked up when a source first needs it.

    Args:
        search_path: Additional folders for programs, separated by ":".
    """
    packages = PackageSources(
        partial(build_helm_engine, settings, search_path),
        lambda: build_kustomize_engine(settings, search_path, packages.find_helm),
        artifacts,
    )
    programs = {HELM_TRACE_KEY: packages.identify_helm, KUSTOMIZE_TRACE_KEY: packages.identify_kustomize}
    return SourceRenderers(packages, programs)


def build_helm_engine(settings: Settings, search_path: str) -> HelmEngine:
    """Build the engine that renders charts."""
    # The import takes long, and most fleets have no charts. Thus, import the engine only for the first chart.
    from reconciler.packages.charts.package_files import OutputRules
    from reconciler.sources.engine_programs import EngineProgram
    from reconciler.sources.helm import HelmEngine, HelmOptions
    from reconciler.sources.helm_program import HELM
    from reconciler.sources.limits import SourceLimits
    from reconciler.sources.programs import ProgramFinder, ProgramRunner

    sources, options = settings.sources, settings.sources.helm
    limits, runner, cache = _build_limits(options), ProgramRunner(sources.sandbox), _build_cache(settings)
    finder = ProgramFinder("helm", options.program_path, search_path)
    backoff = _build_backoff(settings, options)
    helm = EngineProgram(HELM, _parse_versions(options), finder, runner, cache, limits, backoff)
    rules = OutputRules(options.resources, options.strict)
    return HelmEngine(
        HelmOptions(limits, rules, SourceLimits(**sources.limits.model_dump())), helm, runner, cache, backoff
    )


def build_kustomize_engine(
    settings: Settings, search_path: str, find_helm: Callable[[], EngineVersion | EngineProblem]
) -> KustomizeEngine:
    """Build the engine that builds overlays.

    Args:
        find_helm: Returns the program helm. It is called only if an overlay contains charts.
    """
    # Import the engine here, because most fleets have no overlays.
    from reconciler.packages.charts.package_files import OutputRules
    from reconciler.sources.engine_programs import EngineProgram
    from reconciler.sources.kustomize import KustomizeBuildOptions, KustomizeEngine
    from reconciler.sources.kustomize_program import build_kustomize_program
    from reconciler.sources.limits import SourceLimits
    from reconciler.sources.programs import ProgramFinder, ProgramRunner

    options = settings.sources.kustomize
    limits, runner, cache = _build_limits(options), ProgramRunner(settings.sources.sandbox), _build_cache(settings)

    def build_program(name: str, kind: ProgramKind) -> EngineProgram:
        finder = ProgramFinder(name, options.program_path, search_path)
        return EngineProgram(kind, _parse_versions(options), finder, runner, cache, limits, backoff)

    backoff = _build_backoff(settings, options)
    program = build_kustomize_program(options.program_path, build_program)
    rules = OutputRules(options.resources, is_strict=False, engine="kustomize")
    build_options = KustomizeBuildOptions(limits, rules, SourceLimits(**settings.sources.limits.model_dump()))
    return KustomizeEngine(build_options, program, runner, cache, backoff, find_helm)


def _build_backoff(settings: Settings, options: ProgramSettings) -> Backoff:
    # Wait at least as long as a render takes, so that one pass does not repeat the render for each cluster.
    first_wait = max(INITIAL_BACKOFF_SECONDS, options.timeout_seconds)
    return Backoff(first_wait, max(first_wait, settings.max_backoff_seconds), time.monotonic)


def _build_limits(options: ProgramSettings) -> ProcessLimits:
    from reconciler.processes.process import ProcessLimits

    return ProcessLimits(options.timeout_seconds, options.memory_bytes, options.output_bytes)


def _build_cache(settings: Settings) -> RenderCache:
    from reconciler.sources.render_cache import RenderCache

    folder = Path(settings.cache).expanduser() / "renders"
    return RenderCache(folder, settings.sources.cache_bytes, _RENDER_MEMORY_BYTES)


def _parse_versions(options: ProgramSettings) -> VersionRange:
    from reconciler.krm.version_ranges import parse_range

    versions = parse_range(options.versions)
    assert versions, "the settings were validated"
    return versions
