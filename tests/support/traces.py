"""Ended spans in memory, for tests of traces."""

from __future__ import annotations

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from reconciler.telemetry.trace_export import OpenTelemetryTracer, TraceBuffer


class Traces:
    """Finished spans, by name."""

    def __init__(self, *, should_export_idle: bool = False, has_all_renders: bool = False) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        buffer = TraceBuffer(SimpleSpanProcessor(self.exporter), should_export_idle=should_export_idle)
        provider.add_span_processor(buffer)
        self.tracer = OpenTelemetryTracer(provider, has_all_renders=has_all_renders)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def find(self, name: str) -> ReadableSpan:
        """Return the only span with this name."""
        (found,) = (opened for opened in self.spans if opened.name == name)
        return found

    def list_parents(self) -> set[tuple[str, str]]:
        """Return the names of all spans, each with the name of its parent."""
        names = {opened.context.span_id: opened.name for opened in self.spans if opened.context}
        return {(opened.name, names.get(opened.parent.span_id, "") if opened.parent else "") for opened in self.spans}
