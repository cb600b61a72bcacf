"""Traces of passes. Without a configured endpoint, `span` does nothing and no OpenTelemetry module is imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    # Other packages use this name in their annotations, because only this package imports OpenTelemetry.
    from opentelemetry.trace import Span as Span

Attributes = Mapping[str, str | int | float | bool | Sequence[str]]
ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""The variables of OpenTelemetry that set the URL of the collector."""
MAX_SPANS = 2_000
"""The maximal number of spans in the trace of one pass. Further spans are counted and dropped."""


class PassTracer(Protocol):
    """Creates spans. `trace_export` contains the implementation with OpenTelemetry."""

    def open_pass(self, attributes: Attributes) -> Any:
        """Return a context manager for the root span of a pass. It yields the span."""
        ...

    def open_span(self, name: str, attributes: Attributes) -> Any:
        """Return a context manager for a span of the running pass. It yields the span, or None."""
        ...


_tracer: PassTracer | None = None


@contextmanager
def use_tracer(tracer: PassTracer) -> Iterator[None]:
    """Create spans with this tracer until the end of the `with` block."""
    global _tracer  # noqa: PLW0603 - a process has one tracer
    _tracer = tracer
    try:
        yield
    finally:
        _tracer = None


@contextmanager
def pass_span(attributes: Attributes) -> Iterator[Span | None]:
    """Open the root span of a pass. All spans in the `with` block belong to its trace."""
    if _tracer is None:
        yield None
        return
    with _tracer.open_pass(attributes) as span:
        yield span


@contextmanager
def span(name: str, attributes: Attributes) -> Iterator[Span | None]:
    """Open a span of the running pass. Its parent is the current span of the thread, or the phase of the pass.

    Attributes must not contain secrets, commit messages, or content of objects.
    """
    if _tracer is None:
        yield None
        return
    with _tracer.open_span(name, attributes) as opened:
        yield opened


def get_trace_id(opened: Span | None) -> str:
    """Return the ID of the trace of a span, as in the log and in exemplars. Return "" without a span."""
    return format(opened.get_span_context().trace_id, "032x") if opened is not None else ""
