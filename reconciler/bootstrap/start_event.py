"""The log event and the metrics that describe a daemon when it starts."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

from reconciler.git.command import read_git_version
from reconciler.krm.json_text import compute_digest
from reconciler.planning.model.shard import parse_shard
from reconciler.settings import DEFAULT_FILE, Settings
from reconciler.telemetry import build_info
from reconciler.telemetry.event_log import log
from reconciler.telemetry.metrics import SHARD_COUNT, SHARD_INDEX


def record_shard(settings: Settings) -> None:
    """Export the shard of this process as metrics."""
    shard = parse_shard(settings.shard)
    SHARD_INDEX.set(shard.index)
    SHARD_COUNT.set(shard.count)


def log_start(settings: Settings, settings_file: str | None) -> None:
    """Log the versions and the most important settings, and export them as metrics."""
    revision = build_info.find_revision()
    build_info.record_build_info(revision)
    log.info(
        "daemon_started",
        revision=revision,
        python=platform.python_version(),
        git_version=read_git_version(),
        settings_file=settings_file or (DEFAULT_FILE if Path(DEFAULT_FILE).is_file() else ""),
        settings_digest=compute_digest(settings.model_dump(mode="json")),
        config_url=settings.config.url,
        config_branch=settings.config.branch,
        fleet_url=settings.fleet.url,
        listen=settings.listen_address,
        features=[*_list_features(settings)],
    )


def _list_features(settings: Settings) -> Iterator[str]:
    """Yield the settings that turn on optional parts of the daemon."""
    features = {
        "approvals.by_annotation": settings.approvals.by_annotation,
        "git.credentials": settings.git.credentials,
        "metrics.per_target": settings.metrics.per_target,
        "notifications": settings.notifications.routes,
        "server.tls": settings.server.tls.cert_file,
        "signing": settings.signing.format,
        "signing.verify_inputs": settings.signing.verify_inputs != "off",
        "status.heartbeat_minutes": settings.status.heartbeat_minutes,
        "tracing": settings.tracing.endpoint,
        "forge": settings.forge.hosts,
        "functions.containers": settings.functions.containers,
        "functions.exec": settings.functions.exec,
        "rendering.dask": settings.rendering.dask,
        "webhooks": settings.webhooks.secret_file,
    }
    yield from sorted(name for name, value in features.items() if value)
