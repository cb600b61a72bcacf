"""Renders Helm charts with the program `helm`. Each distinct input is rendered once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reconciler.api.helm import ChartManifest
from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.json_text import compute_hash
from reconciler.lazy_dataclasses import asdict, dataclass
from reconciler.packages.charts.dependencies import add_local_charts, find_missing_dependencies
from reconciler.packages.charts.determinism import TrialRenders, render_deterministically
from reconciler.packages.charts.documents import split_output
from reconciler.packages.charts.helm_errors import convert_helm_error
from reconciler.packages.charts.metadata import check_chart_manifest, format_chart, read_chart_manifest
from reconciler.packages.charts.package_files import OutputRules, build_rendered_source, read_output
from reconciler.packages.charts.request import ChartRequest, RenderedSource, RenderFailedError
from reconciler.packages.source_codes import SourceCodes
from reconciler.processes.backoff import CallBackoff
from reconciler.processes.process import ProcessLimits
from reconciler.sources.engine_programs import EngineProblem, EngineProgram, EngineVersion
from reconciler.sources.engine_runs import EngineRuns, call_in_threads, decode_output
from reconciler.sources.errors import SourceError
from reconciler.sources.limits import SourceLimits
from reconciler.sources.programs import ProgramRunner
from reconciler.sources.render_cache import RenderCache
from reconciler.sources.shared_renders import SharedRenders
from reconciler.sources.subcharts import unpack_subcharts

RULES_VERSION: Final = 4
"""The version of the rules that convert the output of helm to files. After a change, all charts are rendered again."""

_CHART_FOLDER, _VALUES_FILE = "chart", "values.json"


@dataclass(frozen=True)
class HelmOptions:
    """The limits of one render and of the files of a chart, and the rules for the output."""

    limits: ProcessLimits
    rules: OutputRules
    source_limits: SourceLimits


class HelmEngine:
    """Renders charts. The object is thread-safe: threads that request the same render at the same time share it."""

    def __init__(
        self,
        options: HelmOptions,
        program: EngineProgram,
        runner: ProgramRunner,
        cache: RenderCache,
        backoff: CallBackoff,
    ) -> None:
        self._options = options
        self._program = program
        self._runs = EngineRuns(runner, options.limits)
        self._renders = SharedRenders(cache, backoff)

    def find_program(self) -> EngineVersion | EngineProblem:
        """Return the program helm. If it is not available, return the reason."""
        return self._program.find()

    def identity(self) -> str:
        """Return the name, version and digest of the program, e.g. "helm/3.22 sha256:…".

        Return "" if the program is not available now.
        """
        return self._program.find().identity

    def render_all(self, jobs: Sequence[tuple[FileTree, ChartRequest]]) -> tuple[RenderedSource, ...]:
        """Render several charts at the same time, one per core, and return the results in the order of the jobs."""
        return tuple(call_in_threads(lambda job: self.render(*job), jobs))

    def render(self, chart: FileTree, request: ChartRequest) -> RenderedSource:
        """Return the rendered files of a chart, or the errors.

        Args:
            chart: The files of the chart, with paths relative to the folder of `Chart.yaml`.
        """
        manifest = read_chart_manifest(chart)
        if isinstance(manifest, Finding):
            return RenderedSource(findings=(manifest,))
        found = self._program.find()
        if not isinstance(found, EngineVersion):
            return RenderedSource(findings=(found.create_finding(format_chart(manifest)),))
        key = _compute_key(chart, request, found.identity, self._options.rules)
        job = _Job(chart, manifest, format_chart(manifest), request, found)
        return self._renders.render(key, lambda: self._render(job))

    def _render(self, job: _Job) -> RenderedSource:
        """Render a chart, and check that its output depends only on its inputs. See `render_deterministically`.
        Raises:
            RenderFailedError: The chart cannot be rendered.
        """
        rules, request = self._options.rules, job.request
        renders = TrialRenders(
            _prepare_chart(job, self._options.source_limits),
            request,
            job.label,
            lambda inputs: self._run_all(job, inputs),
            lambda output: split_output(output, job.manifest.name),
        )
        output = render_deterministically(renders)
        if errors := select_errors(output.findings):
            return RenderedSource(findings=errors)
        package = read_output(output.texts, job.label, request, rules)
        package.findings += output.findings
        return build_rendered_source(package)

    def _run_all(self, job: _Job, inputs: Sequence[tuple[FileTree, str]]) -> list[str]:
        # Start no threads for a single render. Most charts need only one render.
        if len(inputs) == 1:
            return [self._run(job, *inputs[0])]
        return call_in_threads(lambda entry: self._run(job, *entry), inputs)

    def _run(self, job: _Job, chart: FileTree, values: str) -> str:
        """Return the output of helm. Raises RenderFailedError.

        Args:
            chart: The chart of the job, or a variant of this chart for the check of deterministic output.
        """
        inputs: dict[str, FileTree | bytes] = {
            _CHART_FOLDER: chart,
            _VALUES_FILE: values.encode("utf-8", "surrogatepass"),
        }
        result = self._runs.run(job.helm, _build_arguments(job), inputs, job.label)
        if result.exit_code:
            raise RenderFailedError(convert_helm_error(result.stderr, job.label, job.manifest.name))
        return decode_output(result, job.helm, job.label)


@dataclass(frozen=True)
class _Job:
    """One render. `label` is the name and version of the chart for messages."""

    chart: FileTree
    manifest: ChartManifest
    label: str
    request: ChartRequest
    helm: EngineVersion


def _prepare_chart(job: _Job, limits: SourceLimits) -> FileTree:
    """Return the chart with unpacked subcharts. If helm would refuse the chart, raise RenderFailedError."""
    if finding := check_chart_manifest(job.manifest, job.request.kube_version):
        raise RenderFailedError((finding,))
    try:
        chart = add_local_charts(unpack_subcharts(job.chart, limits), job.manifest)
    except SourceError as error:
        finding = SourceCodes.by_name[error.code].finding(f"{job.label}: {error.message}")
        raise RenderFailedError((finding,)) from error
    missing = find_missing_dependencies(chart, job.manifest)
    if isinstance(missing, Finding):
        raise RenderFailedError((missing,))
    if missing:
        raise RenderFailedError(tuple(chart.create_finding() for chart in missing))
    return chart


def _build_arguments(job: _Job) -> tuple[str, ...]:
    request = job.request
    api_versions = (part for version in sorted(request.api_versions) for part in ("--api-versions", version))
    return (
        job.helm.kind.command, "--namespace", request.namespace, "--values", _VALUES_FILE,
        "--kube-version", request.kube_version, *api_versions,
        *(("--include-crds",) if request.include_crds else ()),
        *(("--skip-schema-validation",) if request.skip_schema_validation else ()),
        "--", request.release_name, _CHART_FOLDER,
    )  # fmt: skip


def _compute_key(chart: FileTree, request: ChartRequest, engine: str, rules: OutputRules) -> str:
    return compute_hash([RULES_VERSION, chart.id, engine, asdict(rules), request.key])
