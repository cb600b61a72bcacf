"""Traces of passes and of HTTP requests.

Without a configured endpoint, all functions do nothing, and no OpenTelemetry module is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from reconciler.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    # Export `Span` for the type annotations of other packages, because only this package may import OpenTelemetry.
    from opentelemetry.trace import Span as Span

Attributes = Mapping[str, str | int | float | bool | Sequence[str]]
ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""The variables of OpenTelemetry that set the URL of the collector."""
PROBE_ROUTES = frozenset({"/healthz", "/readyz", "/metrics"})
"""The routes that programs request all the time. Like idle passes, their requests are not exported by default."""
SLOW_RENDER_SECONDS = 1.0
"""The duration above which the render of a package has its own span."""
MAX_SPANS = 2_000
"""The maximal number of spans in the trace of one pass. Further spans are counted and dropped."""


@dataclass(frozen=True)
class EndedSpan:
    """A span that is created after its end, with its inner spans. `started_at` is in seconds since 1970."""

    name: str
    started_at: float
    seconds: float
    attributes: Attributes
    children: Sequence[EndedSpan] = ()


class Tracer(Protocol):
    """Creates spans. `trace_export` contains the implementation with OpenTelemetry.

    Attributes:
        has_all_renders: Whether the render of each package has a span, and not only slow renders.
    """

    has_all_renders: bool

    def open_pass(self, attributes: Attributes) -> Any:
        """Return a context manager for the root span of a pass. It yields the span."""
        ...

    def open_span(self, name: str, attributes: Attributes) -> Any:
        """Return a context manager for a span of the running pass or request. It yields the span, or None."""
        ...

    def open_request(self, name: str, parent: str) -> Any:
        """Return a context manager for the span of an HTTP request. `parent` is a W3C `traceparent`, or ""."""
        ...

    def add_ended_span(self, ended: EndedSpan) -> None:
        """Add a span to the running pass."""
        ...

    def link_next_pass(self) -> None:
        """Link the next pass to the current span of this thread."""
        ...


_tracer: Tracer | None = None


@contextmanager
def use_tracer(tracer: Tracer) -> Iterator[None]:
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
    """Open a span. Its parent is the current span of the thread, or the phase of the running pass.

    Attributes must not contain secrets, commit messages, or content of objects.
    """
    if _tracer is None:
        yield None
        return
    with _tracer.open_span(name, attributes) as opened:
        yield opened


@contextmanager
def request_span(name: str, parent: str) -> Iterator[Span | None]:
    """Open the span of an HTTP request.

    Args:
        parent: The header `traceparent` of a trusted proxy, or "".
    """
    if _tracer is None:
        yield None
        return
    with _tracer.open_request(name, parent) as opened:
        yield opened


def add_render_span(ended: EndedSpan) -> None:
    """Add the span of a rendered package to the running pass, if the render was slow or all renders are traced."""
    if _tracer is not None and (ended.seconds > SLOW_RENDER_SECONDS or _tracer.has_all_renders):
        _tracer.add_ended_span(ended)


def link_next_pass() -> None:
    """Link the next pass to the current span of this thread, because the action of this span triggers the pass."""
    if _tracer is not None:
        _tracer.link_next_pass()


def get_trace_id(opened: Span | None) -> str:
    """Return the ID of the trace of a span, as in the log and in exemplars. Return "" without a span."""
    return format(opened.get_span_context().trace_id, "032x") if opened is not None else ""
