"""Export of traces with OpenTelemetry, to an OTLP/HTTP endpoint. This module needs the Python extra `otel`.

By default, the traces of idle passes and of probes are not exported. Whether a pass is idle is known only when the
first span of its trace ends. Therefore, all spans of a trace are kept until then.
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
from opentelemetry.trace import Link, Span, SpanContext, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from reconciler import __version__
from reconciler.telemetry.traces import ENDPOINT_VARIABLES, MAX_SPANS, PROBE_ROUTES, Attributes, EndedSpan

IDLE = "pass.idle"
# A pass has at most this number of links. One pass can have many triggers.
_MAX_LINKS = 20
_NANOSECONDS = 1_000_000_000


class OpenTelemetryTracer:
    """Creates the spans of passes and requests. One pass runs at a time, and several threads can open its spans."""

    def __init__(self, provider: TracerProvider, shard: str = "1/1", *, has_all_renders: bool = False) -> None:
        self.has_all_renders = has_all_renders
        self._shard = shard
        self._links: list[SpanContext] = []
        self._tracer = provider.get_tracer("reconciler", __version__)
        self._lock = threading.Lock()
        self._context: Context | None = None
        self._thread = 0
        self._spans = self._dropped = 0

    @contextmanager
    def open_pass(self, attributes: Attributes) -> Iterator[Span]:
        """Open the root span of a pass in this thread."""
        self._spans, self._dropped, self._thread = 1, 0, threading.get_ident()
        with self._lock:
            links, self._links = [Link(context) for context in self._links], []
        with self._tracer.start_as_current_span(
            "reconciler.pass", Context(), attributes={**attributes, "shard": self._shard}, links=links
        ) as span:
            self._context = trace.set_span_in_context(span, Context())
            try:
                yield span
            finally:
                self._context = None
                if self._dropped:
                    span.set_attribute("spans.dropped", self._dropped)

    @contextmanager
    def open_span(self, name: str, attributes: Attributes) -> Iterator[Span | None]:
        """Open a span of the running pass or request.

        Yield None outside of a pass or request, or if there are too many spans.
        """
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

    @contextmanager
    def open_request(self, name: str, parent: str) -> Iterator[Span]:
        """Open the span of an HTTP request. The span starts a new trace if `parent` is empty or not valid."""
        context = TraceContextTextMapPropagator().extract({"traceparent": parent}, Context())
        with self._tracer.start_as_current_span(name, context, kind=SpanKind.SERVER, record_exception=False) as span:
            yield span

    def add_ended_span(self, ended: EndedSpan) -> None:
        """Add a span with its children to the current span, or to the current phase of the pass."""
        parent = self._find_parent()
        if parent is not None:
            self._add_ended_span(ended, parent)

    def _add_ended_span(self, ended: EndedSpan, parent: Context) -> None:
        if not self._count():
            return
        start = int(ended.started_at * _NANOSECONDS)
        span = self._tracer.start_span(ended.name, parent, attributes=ended.attributes, start_time=start)
        for child in ended.children:
            self._add_ended_span(child, trace.set_span_in_context(span, Context()))
        span.end(start + int(ended.seconds * _NANOSECONDS))

    def link_next_pass(self) -> None:
        """Link the next pass to the current span of this thread. Links above the limit are dropped."""
        context = trace.get_current_span().get_span_context()
        with self._lock:
            if context.is_valid and len(self._links) < _MAX_LINKS:
                self._links.append(context)

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


class TraceBuffer(SpanProcessor):
    """Keeps the spans of a trace until the first span of the trace ends, and then forwards all of them.

    If the first span is an idle pass or a probe, the spans are dropped, unless `should_export_idle` is True.
    """

    def __init__(self, target: SpanProcessor, *, should_export_idle: bool) -> None:
        self._target = target
        self._should_export_idle = should_export_idle
        self._lock = threading.Lock()
        # The ended spans of each open trace.
        self._spans: dict[int, list[ReadableSpan]] = {}

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Open the trace of a pass or request."""
        if isinstance(span, ReadableSpan) and _is_first(span):
            with self._lock:
                self._spans[span.get_span_context().trace_id] = []

    def on_end(self, span: ReadableSpan) -> None:
        """Keep a span of an open trace.

        If it is the first span of the trace, forward or drop all spans of the trace.
        """
        context = span.get_span_context()
        if context is None:
            return
        with self._lock:
            # Drop the spans of a late fetch that ends after its pass.
            if context.trace_id not in self._spans:
                return
            spans = self._spans[context.trace_id]
            spans.append(span)
            if not _is_first(span):
                return
            del self._spans[context.trace_id]
        if self._should_export_idle or not _is_idle(span):
            for ended in spans:
                self._target.on_end(ended)

    def shutdown(self) -> None:
        """Export all forwarded spans, and stop the export."""
        self._target.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Export all forwarded spans."""
        return self._target.force_flush(timeout_millis)


def _is_first(span: ReadableSpan) -> bool:
    """Return whether a span is the first span of a trace in this process."""
    return span.parent is None or span.parent.is_remote


def _is_idle(span: ReadableSpan) -> bool:
    attributes = span.attributes or {}
    return bool(attributes.get(IDLE)) or attributes.get("http.route") in PROBE_ROUTES


@contextmanager
def export_traces(
    endpoint: str, shard: str, environment: Mapping[str, str], *, should_export_idle: bool, has_all_renders: bool
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
        provider.add_span_processor(TraceBuffer(BatchSpanProcessor(exporter), should_export_idle=should_export_idle))
    try:
        yield OpenTelemetryTracer(provider, shard, has_all_renders=has_all_renders)
    finally:
        provider.shutdown()


@contextmanager
def _otel_variables(environment: Mapping[str, str]) -> Iterator[None]:
    """Set the environment variables `OTEL_*` during the `with` block.

    At its start, the process removed these variables, so that child processes do not inherit their secrets.
    """
    names = [name for name in environment if name.startswith("OTEL_") and name not in os.environ]
    os.environ.update({name: environment[name] for name in names})
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]
