"""Export of traces with OpenTelemetry, to an OTLP/HTTP endpoint. This module needs the extra `otel`.

The trace of an idle pass is not exported by default. Therefore, the spans of a pass are kept until the pass ends.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span

from reconciler import __version__
from reconciler.telemetry.traces import ENDPOINT_VARIABLES, MAX_SPANS, Attributes

IDLE = "pass.idle"


class OpenTelemetryTracer:
    """Creates the spans of passes. One pass runs at a time, and several threads can open its spans."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("reconciler", __version__)
        self._lock = threading.Lock()
        self._context: Context | None = None
        self._thread = 0
        self._spans = self._dropped = 0

    @contextmanager
    def open_pass(self, attributes: Attributes) -> Iterator[Span]:
        """Open the root span of a pass in this thread."""
        self._spans, self._dropped, self._thread = 1, 0, threading.get_ident()
        with self._tracer.start_as_current_span("reconciler.pass", Context(), attributes=attributes) as span:
            self._context = trace.set_span_in_context(span, Context())
            try:
                yield span
            finally:
                self._context = None
                if self._dropped:
                    span.set_attribute("spans.dropped", self._dropped)

    @contextmanager
    def open_span(self, name: str, attributes: Attributes) -> Iterator[Span | None]:
        """Open a span of the running pass. Yield None if no pass is running, or if the pass has too many spans."""
        parent = self._find_parent()
        if parent is None or not self._count():
            yield None
            return
        is_in_pass_thread = threading.get_ident() == self._thread
        with self._tracer.start_as_current_span(name, parent, attributes=attributes) as span:
            if not is_in_pass_thread:
                yield span
                return
            # Spans of other threads have the current phase of the pass as their parent.
            previous, self._context = self._context, trace.set_span_in_context(span, Context())
            try:
                yield span
            finally:
                self._context = previous

    def _find_parent(self) -> Context | None:
        current = trace.get_current_span()
        if current.get_span_context().is_valid:
            return trace.set_span_in_context(current, Context())
        return self._context

    def _count(self) -> bool:
        with self._lock:
            if self._spans >= MAX_SPANS:
                self._dropped += 1
                return False
            self._spans += 1
            return True


class PassBuffer(SpanProcessor):
    """Keeps the spans of a pass until it ends, and forwards them unless the pass is idle."""

    def __init__(self, target: SpanProcessor, *, should_export_idle: bool) -> None:
        self._target = target
        self._should_export_idle = should_export_idle
        self._lock = threading.Lock()
        self._spans: dict[int, list[ReadableSpan]] = {}

    def on_end(self, span: ReadableSpan) -> None:
        """Keep a span. If it is the root span of a pass, forward all spans of the pass."""
        context = span.get_span_context()
        if context is None:
            return
        with self._lock:
            spans = self._spans.setdefault(context.trace_id, [])
            spans.append(span)
            if span.parent is not None:
                # A late fetch can end after its pass. The spans of a pass that has ended are not kept forever.
                while len(self._spans) > 2:
                    del self._spans[next(iter(self._spans))]
                return
            del self._spans[context.trace_id]
        if self._should_export_idle or not (span.attributes or {}).get(IDLE):
            for ended in spans:
                self._target.on_end(ended)

    def shutdown(self) -> None:
        """Export all forwarded spans, and stop the export."""
        self._target.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Export all forwarded spans."""
        return self._target.force_flush(timeout_millis)


@contextmanager
def export_traces(
    endpoint: str, shard: str, environment: Mapping[str, str], *, should_export_idle: bool
) -> Iterator[OpenTelemetryTracer]:
    """Export traces until the end of the `with` block.

    Args:
        endpoint: The URL of the collector. The standard variables `OTEL_EXPORTER_OTLP_*ENDPOINT` take precedence.
        environment: The variables at the start of the process. OpenTelemetry reads the variables `OTEL_*`.
    """
    with _otel_variables(environment):
        has_own_endpoint = any(environment.get(name) for name in ENDPOINT_VARIABLES)
        exporter = OTLPSpanExporter() if has_own_endpoint else OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")
        defaults = {"service.name": environment.get("OTEL_SERVICE_NAME", "reconciler")}
        attributes = {**defaults, "service.version": __version__, "reconciler.shard": shard}
        provider = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
        provider.add_span_processor(PassBuffer(BatchSpanProcessor(exporter), should_export_idle=should_export_idle))
    try:
        yield OpenTelemetryTracer(provider)
    finally:
        provider.shutdown()


@contextmanager
def _otel_variables(environment: Mapping[str, str]) -> Iterator[None]:
    """Set the variables `OTEL_*`, which this process has removed, because child processes must not inherit secrets."""
    names = [name for name in environment if name.startswith("OTEL_") and name not in os.environ]
    os.environ.update({name: environment[name] for name in names})
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]
