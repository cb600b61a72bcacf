"""Builds Kustomize overlays with the program `kustomize` or `kubectl`. Each distinct input is built once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from reconciler.catalog.files import FileTree
from reconciler.krm.findings import select_errors
from reconciler.krm.json_text import compute_hash
from reconciler.lazy_dataclasses import asdict, dataclass
from reconciler.packages.charts.determinism import TrialRenders, render_deterministically
from reconciler.packages.charts.documents import OutputText, split_output
from reconciler.packages.charts.package_files import OutputRules, RenderedPackage, build_rendered_source, read_output
from reconciler.packages.charts.request import ChartRequest, RenderedSource, RenderFailedError
from reconciler.packages.kustomize.build_errors import convert_build_error
from reconciler.packages.kustomize.checks import check_overlay
from reconciler.packages.kustomize.request import SOURCE_FOLDER, KustomizeRequest, join_source
from reconciler.packages.kustomize.sops_documents import restore_sops_documents
from reconciler.packages.source_codes import SourceCodes
from reconciler.processes.backoff import CallBackoff
from reconciler.processes.process import ProcessLimits
from reconciler.sources.engine_programs import EngineProblem, EngineVersion
from reconciler.sources.engine_runs import EngineRuns, call_in_threads, decode_output
from reconciler.sources.errors import SourceError
from reconciler.sources.kustomize_program import KustomizeProgram
from reconciler.sources.limits import SourceLimits
from reconciler.sources.programs import ProgramRunner
from reconciler.sources.render_cache import RenderCache
from reconciler.sources.shared_renders import SharedRenders
from reconciler.sources.subcharts import unpack_subcharts

RULES_VERSION: Final = 2
"""The version of the rules for builds and their output. After a change, all overlays are built again."""

_GENERATED_FILE = "kustomization.yaml"
_OUTPUT = "built resources"
# The first version of Kustomize with options for the capabilities of the cluster.
_CHARTS_SINCE = "5.4"


@dataclass(frozen=True)
class KustomizeBuildOptions:
    """The limits of one build and of the files of its charts, and the rules for the output."""

    limits: ProcessLimits
    rules: OutputRules
    source_limits: SourceLimits


class KustomizeEngine:
    """Builds overlays. The object is thread-safe. Equal builds that are requested at the same time run only once."""

    def __init__(
        self,
        options: KustomizeBuildOptions,
        program: KustomizeProgram,
        runner: ProgramRunner,
        cache: RenderCache,
        backoff: CallBackoff,
        find_helm: Callable[[], EngineVersion | EngineProblem],
    ) -> None:
        """Create the engine.

        Args:
            find_helm: Returns the program helm. It is called only if an overlay contains charts.
        """
        self._options = options
        self._program = program
        self._find_helm = find_helm
        self._runs = EngineRuns(runner, options.limits)
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
        found = self._find_programs(request)
        if isinstance(found, EngineProblem):
            return RenderedSource(findings=(found.create_finding(request.label),))
        identities = [found.kustomize.identity, *((found.helm.identity,) if found.helm else ())]
        rules = asdict(self._options.rules)
        key = compute_hash(["kustomize", RULES_VERSION, files.id, *identities, rules, request.key])
        return self._renders.render(key, lambda: self._build(found, files, request))

    def _find_programs(self, request: KustomizeRequest) -> _Programs | EngineProblem:
        kustomize = self._program.find()
        if isinstance(kustomize, EngineProblem):
            return kustomize
        if request.charts is None:
            return _Programs(kustomize)
        if kustomize.is_older(_CHARTS_SINCE):
            text = f"has charts, and charts need kustomize >={_CHARTS_SINCE}. {kustomize.kind.next_step}"
            return EngineProblem(SourceCodes.ENGINE_UNSUPPORTED, text)
        helm = self._find_helm()
        return helm if isinstance(helm, EngineProblem) else _Programs(kustomize, helm)

    def _build(self, programs: _Programs, files: FileTree, request: KustomizeRequest) -> RenderedSource:
        """Build an overlay. Raises RenderFailedError."""
        if errors := check_overlay(files, request):
            raise RenderFailedError(errors)
        if request.charts is None:
            (output,) = self._run_all(programs, request, [files])
            package = read_output(_split_output(output), request.label, request, self._options.rules)
        else:
            package = self._build_with_charts(programs, files, request, request.charts)
        if not select_errors(package.findings):
            restore_sops_documents(package, files)
        return build_rendered_source(package)

    def _build_with_charts(
        self, programs: _Programs, files: FileTree, request: KustomizeRequest, charts: ChartRequest
    ) -> RenderedPackage:
        """Build an overlay with charts, and check that its output depends only on its inputs.

        For this check, `render_deterministically` can build the overlay again with variants of its charts.
        """

        def run_all(inputs: Sequence[tuple[FileTree, str]]) -> list[str]:
            return self._run_all(programs, request, [variant for variant, _ in inputs])

        try:
            unpacked = unpack_subcharts(files, self._options.source_limits)
        except SourceError as error:
            finding = SourceCodes.by_name[error.code].finding(f"{request.label}: {error.message}")
            raise RenderFailedError((finding,)) from error
        renders = TrialRenders(unpacked, charts, request.label, run_all, _split_output, can_be_fixed=False)
        output = render_deterministically(renders)
        if errors := select_errors(output.findings):
            raise RenderFailedError(errors)
        package = read_output(output.texts, request.label, request, self._options.rules)
        package.findings += output.findings
        return package

    def _run_all(self, programs: _Programs, request: KustomizeRequest, sources: Sequence[FileTree]) -> list[str]:
        if len(sources) == 1:
            return [self._run(programs, request, sources[0])]
        return call_in_threads(lambda files: self._run(programs, request, files), sources)

    def _run(self, programs: _Programs, request: KustomizeRequest, files: FileTree) -> str:
        """Return the output of a build. Raises RenderFailedError."""
        engine, inputs = programs.kustomize, dict[str, FileTree | bytes]({SOURCE_FOLDER: files})
        folder = join_source(request.path)
        if request.has_generated_file:
            inputs[_GENERATED_FILE] = request.build_file()
            folder = "."
        options = programs.list_chart_options(request.charts) if request.charts else ()
        result = self._runs.run(engine, (engine.kind.command, *options, folder), inputs, request.label)
        if result.exit_code:
            raise RenderFailedError((convert_build_error(result.stderr, request.label, files),))
        return decode_output(result, engine, request.label)


@dataclass(frozen=True)
class _Programs:
    """The programs of a build. `helm` is None if the overlay has no charts."""

    kustomize: EngineVersion
    helm: EngineVersion | None = None

    def list_chart_options(self, charts: ChartRequest) -> tuple[str, ...]:
        """Return the options for an overlay with charts."""
        assert self.helm, "charts need the program helm"
        api_versions = (part for version in sorted(charts.api_versions) for part in ("--helm-api-versions", version))
        return (
            "--enable-helm", "--helm-command", str(self.helm.program.path),
            "--helm-kube-version", charts.kube_version, *api_versions,
        )  # fmt: skip


def _split_output(output: str) -> tuple[OutputText, ...]:
    return split_output(output, "", _OUTPUT)
