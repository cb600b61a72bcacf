"""Renders Helm charts with the program `helm`. Each distinct input is rendered once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import BoundedSemaphore, Lock
from typing import Final, TypeVar

from reconciler.api.helm import ChartManifest
from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.json_text import compute_hash
from reconciler.lazy_dataclasses import asdict, dataclass
from reconciler.packages.charts.dependencies import create_repository_finding, find_missing_dependencies
from reconciler.packages.charts.determinism import TrialRenders, render_deterministically
from reconciler.packages.charts.documents import split_output
from reconciler.packages.charts.helm_errors import convert_helm_error, is_out_of_memory
from reconciler.packages.charts.metadata import check_chart_manifest, format_chart, read_chart_manifest
from reconciler.packages.charts.package_files import OutputRules, build_rendered_source, read_output
from reconciler.packages.charts.request import ChartRequest, RenderedSource, RenderFailedError
from reconciler.packages.source_codes import SourceCodes
from reconciler.processes.backoff import CallBackoff
from reconciler.processes.process import ProcessLimits, ProcessResult, ProcessTimeoutError
from reconciler.sources.errors import SourceError
from reconciler.sources.helm_program import HelmProgram, HelmVersion
from reconciler.sources.limits import SourceLimits
from reconciler.sources.programs import ProgramRunner, SandboxUnavailableError
from reconciler.sources.render_cache import RenderCache
from reconciler.sources.subcharts import unpack_subcharts

RULES_VERSION: Final = 2
"""The version of the rules that convert the output of helm to files. A new version renders all charts again."""

_T = TypeVar("_T")
_R = TypeVar("_R")
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
        program: HelmProgram,
        runner: ProgramRunner,
        cache: RenderCache,
        backoff: CallBackoff,
    ) -> None:
        self._options = options
        self._program = program
        self._runner = runner
        self._cache = cache
        self._interrupted = _InterruptedRenders(backoff)
        self._lock = Lock()
        self._running: dict[str, Future[RenderedSource]] = {}
        self._slots = BoundedSemaphore(_count_cores())

    def identity(self) -> str:
        """Return the name, version and digest of the program, e.g. "helm/3.22 sha256:…".

        Return "" if the program is not available now.
        """
        found = self._program.find()
        return found.identity if isinstance(found, HelmVersion) else ""

    def render_all(self, jobs: Sequence[tuple[FileTree, ChartRequest]]) -> tuple[RenderedSource, ...]:
        """Render several charts at the same time, one per core, and return the results in the order of the jobs."""
        return tuple(_call_in_threads(lambda job: self.render(*job), jobs))

    def render(self, chart: FileTree, request: ChartRequest) -> RenderedSource:
        """Return the rendered files of a chart, or the errors.

        Args:
            chart: The files of the chart, with paths relative to the folder of `Chart.yaml`.
        """
        manifest = read_chart_manifest(chart)
        if isinstance(manifest, Finding):
            return RenderedSource(findings=(manifest,))
        found = self._program.find()
        if not isinstance(found, HelmVersion):
            return RenderedSource(findings=(found.create_finding(format_chart(manifest)),))
        key = _compute_key(chart, request, found.identity, self._options.rules)
        job = _Job(chart, manifest, format_chart(manifest), request, found)
        return self._cache.read(key) or self._render_once(key, job)

    def _render_once(self, key: str, job: _Job) -> RenderedSource:
        with self._lock:
            running = self._running.get(key)
            future = running or self._running.setdefault(key, Future())
        if running:
            return running.result()
        try:
            # Read the cache again, because another thread can have ended the same render since the last read.
            result = self._cache.read(key) or self._render(key, job)
            future.set_result(result)
        except BaseException as error:
            future.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._running[key]
        return result

    def _render(self, key: str, job: _Job) -> RenderedSource:
        if interrupted := self._interrupted.find(key):
            return interrupted
        try:
            result = self._render_now(job)
        except RenderFailedError as error:
            result = RenderedSource(findings=error.findings)
            if error.is_temporary:
                self._interrupted.add(key, result)
                return result
        self._interrupted.remove(key)
        if select_errors(result.findings):
            # Do not store errors in files, because they can quote values.
            self._cache.keep_in_memory(key, result)
        else:
            self._cache.write(key, result)
        return result

    def _render_now(self, job: _Job) -> RenderedSource:
        """Render a chart, also with the variants that show whether the output is deterministic.

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
        # The first render of a chart is the only one for most charts, so that it needs no threads.
        if len(inputs) == 1:
            return [self._run(job, *inputs[0])]
        return _call_in_threads(lambda entry: self._run(job, *entry), inputs)

    def _run(self, job: _Job, chart: FileTree, values: str) -> str:
        """Return the output of helm for a chart or a variant of it. Raises RenderFailedError."""
        inputs: dict[str, FileTree | bytes] = {
            _CHART_FOLDER: chart,
            _VALUES_FILE: values.encode("utf-8", "surrogatepass"),
        }
        limits = self._options.limits
        try:
            with self._slots:
                result = self._runner.run(job.helm.program.path, _build_arguments(job.request), inputs, limits)
        except ProcessTimeoutError as error:
            message = (
                f"{job.label}: helm took longer than {limits.seconds:g} seconds and was killed. It is tried again"
                " later; the setting `sources.helm.timeout_seconds` is the limit"
            )
            raise RenderFailedError((SourceCodes.RENDER_TIMEOUT.finding(message),), is_temporary=True) from error
        except (OSError, SandboxUnavailableError) as error:
            reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
            message = f"{job.label}: {job.helm.program.path} cannot run: {reason}"
            raise RenderFailedError((SourceCodes.HELM_UNAVAILABLE.finding(message),), is_temporary=True) from error
        _check_result(job, result, limits)
        try:
            return result.output.decode()
        except UnicodeDecodeError as error:
            finding = SourceCodes.RENDERED_OUTPUT_INVALID.finding(f"{job.label}: the output of helm is not UTF-8 text")
            raise RenderFailedError((finding,)) from error


@dataclass(frozen=True)
class _Job:
    """One render. `label` is the name and version of the chart for messages."""

    chart: FileTree
    manifest: ChartManifest
    label: str
    request: ChartRequest
    helm: HelmVersion


class _InterruptedRenders:
    """Results of renders that exceeded a limit of the machine. Each render is repeated only after its back-off."""

    def __init__(self, backoff: CallBackoff) -> None:
        self._backoff = backoff
        self._lock = Lock()
        self._results: dict[str, RenderedSource] = {}

    def find(self, key: str) -> RenderedSource | None:
        with self._lock:
            return self._results[key] if key in self._results and self._backoff.is_waiting(key) else None

    def add(self, key: str, result: RenderedSource) -> None:
        with self._lock:
            self._backoff.record_failure(key)
            self._results[key] = result

    def remove(self, key: str) -> None:
        with self._lock:
            if self._results.pop(key, None):
                self._backoff.record_success(key)


def _prepare_chart(job: _Job, limits: SourceLimits) -> FileTree:
    """Return the chart with unpacked subcharts. If helm would refuse the chart, raise RenderFailedError."""
    if finding := check_chart_manifest(job.manifest, job.request.kube_version):
        raise RenderFailedError((finding,))
    try:
        chart = unpack_subcharts(job.chart, limits)
    except SourceError as error:
        finding = SourceCodes.by_name[error.code].finding(f"{job.label}: {error.message}")
        raise RenderFailedError((finding,)) from error
    missing = find_missing_dependencies(chart, job.manifest)
    if isinstance(missing, Finding):
        raise RenderFailedError((missing,))
    if missing:
        raise RenderFailedError(tuple(create_repository_finding(job.manifest, dependency) for dependency in missing))
    return chart


def _check_result(job: _Job, result: ProcessResult, limits: ProcessLimits) -> None:
    """Raise RenderFailedError if helm failed or wrote too much."""
    if result.is_too_large:
        message = (
            f"{job.label} renders more than {limits.output_bytes} bytes: the setting `sources.helm.output_bytes` is"
            " the limit"
        )
        raise RenderFailedError((SourceCodes.SOURCE_TOO_LARGE.finding(message),))
    if result.exit_code < 0 or is_out_of_memory(result.stderr):
        message = (
            f"{job.label}: helm used more than {limits.memory_bytes} bytes of memory, or another process killed it. It"
            " is tried again later. The setting `sources.helm.memory_bytes` is the limit"
        )
        raise RenderFailedError((SourceCodes.RENDER_OUT_OF_MEMORY.finding(message),), is_temporary=True)
    if result.exit_code:
        raise RenderFailedError(convert_helm_error(result.stderr, job.label, job.manifest.name))


def _build_arguments(request: ChartRequest) -> tuple[str, ...]:
    api_versions = (part for version in sorted(request.api_versions) for part in ("--api-versions", version))
    return (
        "template", "--namespace", request.namespace, "--values", _VALUES_FILE,
        "--kube-version", request.kube_version, *api_versions,
        *(("--include-crds",) if request.include_crds else ()),
        *(("--skip-schema-validation",) if request.skip_schema_validation else ()),
        "--", request.release_name, _CHART_FOLDER,
    )  # fmt: skip


def _compute_key(chart: FileTree, request: ChartRequest, engine: str, rules: OutputRules) -> str:
    return compute_hash([RULES_VERSION, chart.id, engine, asdict(rules), request.key])


def _call_in_threads(function: Callable[[_T], _R], arguments: Sequence[_T]) -> list[_R]:
    """Return the results of a function, which is called in one thread per core. After an error, skip the next calls."""
    pool = ThreadPoolExecutor(_count_cores(), thread_name_prefix="helm")
    try:
        return list(pool.map(function, arguments))
    finally:
        pool.shutdown(cancel_futures=True)


def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
