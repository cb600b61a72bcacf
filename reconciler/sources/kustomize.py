"""Builds Kustomize overlays with the program `kustomize` or `kubectl`. Each distinct input is built once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reconciler.catalog.files import FileTree
from reconciler.krm.findings import select_errors
from reconciler.krm.json_text import compute_hash
from reconciler.lazy_dataclasses import asdict
from reconciler.packages.charts.documents import split_output
from reconciler.packages.charts.package_files import OutputRules, build_rendered_source, read_output
from reconciler.packages.charts.request import RenderedSource, RenderFailedError
from reconciler.packages.kustomize.build_errors import convert_build_error
from reconciler.packages.kustomize.checks import check_overlay
from reconciler.packages.kustomize.request import SOURCE_FOLDER, KustomizeRequest, join_source
from reconciler.packages.kustomize.sops_documents import restore_sops_documents
from reconciler.processes.backoff import CallBackoff
from reconciler.processes.process import ProcessLimits
from reconciler.sources.engine_programs import EngineVersion
from reconciler.sources.engine_runs import EngineRuns, call_in_threads, decode_output
from reconciler.sources.kustomize_program import KustomizeProgram
from reconciler.sources.programs import ProgramRunner
from reconciler.sources.render_cache import RenderCache
from reconciler.sources.shared_renders import SharedRenders

RULES_VERSION: Final = 1
"""The version of the rules for builds and their output. A new version builds all overlays again."""

_GENERATED_FILE = "kustomization.yaml"
_OUTPUT = "built resources"


class KustomizeEngine:
    """Builds overlays. The object is thread-safe: threads that request the same build at the same time share it."""

    def __init__(
        self,
        limits: ProcessLimits,
        rules: OutputRules,
        program: KustomizeProgram,
        runner: ProgramRunner,
        cache: RenderCache,
        backoff: CallBackoff,
    ) -> None:
        self._rules = rules
        self._program = program
        self._runs = EngineRuns(runner, limits)
        self._renders = SharedRenders(cache, backoff)

    def identity(self) -> str:
        """Return the name, version and digest of the program, e.g. "kustomize/5.8 sha256:…".

        Return "" if the program is not available now.
        """
        return self._program.find().identity

    def render_all(self, jobs: Sequence[tuple[FileTree, KustomizeRequest]]) -> tuple[RenderedSource, ...]:
        """Build several overlays at the same time, one per core, and return the results in the order of the jobs."""
        return tuple(call_in_threads(lambda job: self.render(*job), jobs))

    def render(self, files: FileTree, request: KustomizeRequest) -> RenderedSource:
        """Return the resources of an overlay, or the errors.

        Args:
            files: The files of the upstream package, which contains the overlay and its bases.
        """
        found = self._program.find()
        if not isinstance(found, EngineVersion):
            return RenderedSource(findings=(found.create_finding(request.label),))
        key = compute_hash(["kustomize", RULES_VERSION, files.id, found.identity, asdict(self._rules), request.key])
        return self._renders.render(key, lambda: self._build(found, files, request))

    def _build(self, engine: EngineVersion, files: FileTree, request: KustomizeRequest) -> RenderedSource:
        """Build an overlay. Raises RenderFailedError."""
        if errors := check_overlay(files, request):
            raise RenderFailedError(errors)
        inputs: dict[str, FileTree | bytes] = {SOURCE_FOLDER: files}
        folder = join_source(request.path)
        if request.has_generated_file:
            inputs[_GENERATED_FILE] = request.build_file()
            folder = "."
        result = self._runs.run(engine, (engine.kind.command, folder), inputs, request.label)
        if result.exit_code:
            raise RenderFailedError((convert_build_error(result.stderr, request.label, files),))
        texts = split_output(decode_output(result, engine, request.label), "", _OUTPUT)
        package = read_output(texts, request.label, request, self._rules)
        if not select_errors(package.findings):
            restore_sops_documents(package, files)
        return build_rendered_source(package)
