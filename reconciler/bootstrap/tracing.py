"""Starts and stops the export of traces, as the settings describe it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from reconciler.process_protection import initial_environment
from reconciler.settings import Settings, SettingsError
from reconciler.telemetry import trace_export, traces

_LIBRARIES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


class TraceExport:
    """The export of traces by the service. A `with` block ends the export at the end of the block."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._applied: tuple[object, ...] = ()

    def apply(self, settings: Settings) -> None:
        """Export the traces of all later passes as these settings describe it."""
        relevant = (settings.tracing, settings.shard)
        if relevant != self._applied:
            self._stack.close()
            self._stack.enter_context(trace_passes(settings))
            self._applied = relevant

    def __enter__(self) -> TraceExport:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def check_libraries(settings: Settings) -> None:
    """Raise SettingsError if the settings require the export of traces, and the libraries for it are not installed."""
    if _is_enabled(settings) and not all(map(_is_installed, _LIBRARIES)):
        raise SettingsError("tracing.endpoint: traces need the libraries of the extra otel: install reconciler[otel]")


@contextmanager
def trace_passes(settings: Settings) -> Iterator[None]:
    """Export the traces of all passes in the `with` block, if the settings or the environment contain an endpoint."""
    if not _is_enabled(settings):
        yield
        return
    options = settings.tracing
    with (
        trace_export.export_traces(
            options.endpoint,
            settings.shard,
            initial_environment(),
            should_export_idle=options.idle_passes,
            has_all_renders=options.packages,
        ) as tracer,
        traces.use_tracer(tracer),
    ):
        yield


def _is_enabled(settings: Settings) -> bool:
    environment = initial_environment()
    return bool(settings.tracing.endpoint or any(environment.get(name) for name in traces.ENDPOINT_VARIABLES))


def _is_installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except ModuleNotFoundError:
        return False
