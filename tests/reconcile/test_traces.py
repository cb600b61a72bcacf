"""Traces of passes: their spans, spans of other threads, limits, and the export to a collector."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from structlog.testing import capture_logs

from reconciler.bootstrap import tracing
from reconciler.bootstrap.tracing import TraceExport, check_libraries, trace_passes
from reconciler.reconcile.pass_runner import PassRunner
from reconciler.service.pass_reporter import PassReporter
from reconciler.settings import Settings, SettingsError
from reconciler.settings.tracing import TracingSettings
from reconciler.telemetry.metrics import REGISTRY, render_metrics
from reconciler.telemetry.phases import PHASES
from reconciler.telemetry.render_metrics import FunctionCall, RenderTiming, trace_render
from reconciler.telemetry.traces import MAX_SPANS, get_trace_id, pass_span, request_span, span, use_tracer
from tests.support.traces import Traces
from tests.support.world import small_world, variant

pytestmark = pytest.mark.real_git
LABELS = "pipeline: {mutators: [{image: set-labels:v0.2, configMap: {tier: web}}]}"


@pytest.fixture
def traces() -> Iterator[Traces]:
    created = Traces()
    with use_tracer(created.tracer):
        yield created


def run_pass(passes: PassRunner, reporter: PassReporter) -> None:
    with capture_logs():
        reporter.run(passes, ["timer"])


def test_a_pass_has_spans_for_its_phases_git_and_controllers(tmp_path: Path, traces: Traces) -> None:
    passes, reporter = small_world(tmp_path).service(), PassReporter()
    with REGISTRY.export():
        run_pass(passes, reporter)
        body = render_metrics("application/openmetrics-text")[0].decode()
    parents = traces.list_parents()
    (root,) = (opened for opened in traces.spans if not opened.parent)

    assert parents >= {
        ("reconciler.pass", ""),
        ("reconciler.fetch", "reconciler.pass"),
        ("reconciler.plan", "reconciler.pass"),
        ("reconciler.push", "reconciler.pass"),
        ("reconciler.controller package_variants", "reconciler.plan"),
        ("git fetch", "reconciler.fetch"),
        ("git push", "reconciler.push"),
    }
    assert not any(name.startswith("reconciler.render ") for name, _ in parents), "one span per package is too many"
    assert root.attributes
    counts = {
        (opened.name, *count)
        for opened in traces.spans
        if opened.name in {f"reconciler.{name}" for name in PHASES}
        for count in (opened.attributes or {}).items()
    }

    assert counts == {
        ("reconciler.fetch", "remotes", 2), ("reconciler.snapshot", "targets", 3), ("reconciler.plan", "targets", 2),
        ("reconciler.commit", "targets", 2), ("reconciler.push", "targets", 2), ("reconciler.pull_requests", "targets", 2),
    }  # fmt: skip
    assert (root.attributes["pass.result"], root.attributes["pass.idle"]) == ("success", False)
    assert root.attributes["shard"] == "1/1"
    assert root.context
    assert f'# {{trace_id="{root.context.trace_id:032x}"}}' in body


@pytest.mark.parametrize(("should_export_idle", "names"), [(False, set()), (True, {"reconciler.pass", "git fetch"})])
def test_idle_passes_are_exported_only_on_request(tmp_path: Path, should_export_idle: bool, names: set[str]) -> None:
    passes, reporter = small_world(tmp_path).service(), PassReporter()
    run_pass(passes, reporter)
    traces = Traces(should_export_idle=should_export_idle)
    with use_tracer(traces.tracer):
        run_pass(passes, reporter)

    assert passes.summary.is_skipped
    assert {opened.name for opened in traces.spans} & {"reconciler.pass", "git fetch"} == names


@pytest.mark.parametrize("workers", [pytest.param(1, id="in-this-process"), pytest.param(2, id="in-worker-processes")])
def test_all_renders_have_spans_on_request(tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.executors.processes.ProcessExecutor.should_distribute", lambda *_: workers > 1)
    world = small_world(tmp_path, rendering={"workers": workers})
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", extra=LABELS)})
    traces, passes, start = Traces(has_all_renders=True), world.service(), time.time()
    with use_tracer(traces.tracer):
        run_pass(passes, PassReporter())
    render = traces.find("reconciler.render berlin/metrics")
    function = traces.find("reconciler.function set-labels:v0.2")

    assert traces.list_parents() >= {
        ("reconciler.render berlin/gateway", "reconciler.plan" if workers == 1 else "reconciler.render_batch"),
        ("reconciler.function set-labels:v0.2", "reconciler.render berlin/metrics"),
    }
    assert function.attributes == {"function.runtime": "builtin", "function.result": "success"}
    assert start < render.start_time / 1e9 <= function.start_time / 1e9 < function.end_time / 1e9
    assert function.end_time <= render.end_time


def test_only_slow_renders_have_spans(traces: Traces) -> None:
    call = FunctionCall("exec", "failed", 1.25, "validate.sh", 100.5)
    with pass_span({}):
        trace_render("berlin/fast", RenderTiming(100, 1.0, (call,)))
        trace_render("berlin/slow", RenderTiming(100, 2.0, (call,)))
    slow = traces.find("reconciler.render berlin/slow")

    assert traces.list_parents() == {
        ("reconciler.pass", ""),
        ("reconciler.render berlin/slow", "reconciler.pass"),
        ("reconciler.function validate.sh", "reconciler.render berlin/slow"),
    }
    assert (slow.start_time, slow.end_time) == (100 * 10**9, 102 * 10**9)


@pytest.mark.slow
def test_an_approval_by_annotation_is_linked_to_the_next_pass(tmp_path: Path) -> None:
    world = small_world(tmp_path, approvals={"by_annotation": True})
    approved = variant("metrics-berlin", "berlin", "metrics", extra="annotations: {approval.nephio.org/policy: always}")
    world.write({"metrics.yaml": approved})
    passes, reporter, traces = world.service(), PassReporter(), Traces()
    run_pass(passes, reporter)
    with use_tracer(traces.tracer):
        run_pass(passes, reporter)
        traces_of_approval = traces.list_parents()
        run_pass(passes, reporter)
    first, second = (opened for opened in traces.spans if opened.name == "reconciler.pass")

    assert ("reconciler.review approve", "reconciler.push") in traces_of_approval
    assert first.links == ()
    assert [link.context for link in second.links] == [traces.find("reconciler.review approve").context]


@pytest.mark.slow
def test_a_review_in_a_request_has_a_span(tmp_path: Path, traces: Traces) -> None:
    world = small_world(tmp_path)
    world.sync()
    with capture_logs():
        for verb in ("propose", "propose"):
            with request_span("POST /review", ""):
                world.run_review_action(verb)
            with pass_span({}):
                pass
    first, second = (opened for opened in traces.spans if opened.name == "reconciler.review propose")
    passes = [opened for opened in traces.spans if opened.name == "reconciler.pass"]

    assert ("reconciler.review propose", "POST /review") in traces.list_parents()
    assert first.attributes == {"review.targets": 2, "review.results": ("done",)}
    assert second.attributes == {"review.targets": 2, "review.results": ("unchanged",)}
    assert [[link.context for link in opened.links] for opened in passes] == [[first.context], []]


def test_spans_of_other_threads_belong_to_the_phase(traces: Traces) -> None:
    def work() -> None:
        with span("git fetch", {}), span("inner", {}):
            pass

    with pass_span({}), span("phase", {}), ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()

    assert traces.list_parents() == {
        ("reconciler.pass", ""), ("phase", "reconciler.pass"), ("git fetch", "phase"), ("inner", "git fetch")
    }  # fmt: skip


def test_a_span_outside_of_a_pass_is_not_recorded(traces: Traces) -> None:
    with span("git fetch", {}) as opened:
        pass

    assert (opened, traces.spans) == (None, ())


def test_the_number_of_spans_is_limited(traces: Traces) -> None:
    with pass_span({}) as root:
        for _ in range(MAX_SPANS + 10):
            with span("git fetch", {}):
                pass
    last = traces.spans[-1]

    assert len(traces.spans) == MAX_SPANS
    assert last.attributes
    assert last.attributes["spans.dropped"] == 11
    assert len(get_trace_id(root)) == 32


class Collector(HTTPServer):
    """An OTLP/HTTP collector that counts requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, bytes]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("source", ["setting", "variable"])
def test_traces_arrive_at_a_collector(collector: Collector, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = (
        {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "fleet"} if source == "variable" else {}
    )
    monkeypatch.setattr(tracing, "initial_environment", lambda: variables)
    # A variable takes precedence over the setting.
    endpoint = "http://127.0.0.1:9" if source == "variable" else collector.url
    with trace_passes(Settings(tracing=TracingSettings(endpoint=endpoint))), pass_span({"pass.id": "a1b2"}):
        pass

    assert [path for path, _ in collector.requests] == ["/v1/traces"]
    body = collector.requests[0][1]
    assert (b"reconciler.pass" in body, b"a1b2" in body) == (True, True)
    assert (b"fleet" in body) == (source == "variable")


def test_missing_libraries_are_an_error_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_LIBRARIES", ("opentelemetry_missing.sdk",))

    with pytest.raises(SettingsError, match=r"tracing.endpoint: traces need .* install reconciler\[otel\]"):
        check_libraries(Settings(tracing=TracingSettings(endpoint="http://localhost:4318")))


def test_a_reload_changes_the_collector(collector: Collector) -> None:
    with TraceExport() as export:
        for endpoint in ("", collector.url, collector.url, ""):
            export.apply(Settings(tracing=TracingSettings(endpoint=endpoint)))
            with pass_span({"pass.id": endpoint or "not-traced"}):
                pass

    # The end of an export sends all its spans in one request.
    ((path, body),) = collector.requests
    assert (path, body.count(b"reconciler.pass"), b"not-traced" in body) == ("/v1/traces", 2, False)


def test_without_an_endpoint_no_library_is_imported() -> None:
    program = """
import sys
from reconciler.bootstrap.tracing import trace_passes
from reconciler.settings import Settings
from reconciler.telemetry.render_metrics import FunctionCall, RenderTiming, trace_render
from reconciler.telemetry.traces import pass_span, span
with trace_passes(Settings()), pass_span({}) as root, span("git fetch", {}) as inner:
    sys.exit((root, inner) != (None, None) or any(name.startswith("opentelemetry") for name in sys.modules))
"""

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
