"""Settings of traces."""

from __future__ import annotations

from reconciler.settings.declaration import SettingsGroup, declare


class TracingSettings(SettingsGroup):
    """Settings of traces with OpenTelemetry. Traces require the Python extra `otel`."""

    endpoint: str = declare(
        "",
        "The URL of the collector that receives traces with OTLP/HTTP, for example http://localhost:4318. If this "
        "setting and the variable OTEL_EXPORTER_OTLP_ENDPOINT are empty, the service exports no traces. Variables "
        "OTEL_* take precedence over settings.",
    )
    idle_passes: bool = declare(
        False,
        "Whether the service also exports the traces of passes that change nothing, and of requests of /healthz, "
        "/readyz and /metrics.",
    )
    packages: bool = declare(
        False,
        "Whether traces contain the render of each package with its functions. If false, they contain only renders "
        "that take more than one second.",
    )
