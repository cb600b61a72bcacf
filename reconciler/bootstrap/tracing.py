"""Starts the export of traces, as the settings describe it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

from reconciler.process_protection import initial_environment
from reconciler.settings import Settings, SettingsError
from reconciler.telemetry import trace_export, traces

_LIBRARIES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


@contextmanager
def trace_passes(settings: Settings) -> Iterator[None]:
    """Export the traces of all passes in the `with` block, if the settings or the environment contain an endpoint.

    Raises:
        SettingsError: The libraries for traces are not installed.
    """
    environment, options = initial_environment(), settings.tracing
    if not (options.endpoint or any(environment.get(name) for name in traces.ENDPOINT_VARIABLES)):
        yield
        return
    if not all(map(_is_installed, _LIBRARIES)):
        raise SettingsError("tracing.endpoint: traces need the libraries of the extra otel: install reconciler[otel]")
    with (
        trace_export.export_traces(
            options.endpoint, settings.shard, environment, should_export_idle=options.idle_passes
        ) as tracer,
        traces.use_tracer(tracer),
    ):
        yield


def _is_installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except ModuleNotFoundError:
        return False
