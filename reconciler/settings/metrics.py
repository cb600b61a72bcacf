"""Settings of metrics."""

from __future__ import annotations

from typing import Literal

from reconciler.settings.declaration import SettingsGroup, declare


class MetricsSettings(SettingsGroup):
    """Settings of the path `/metrics`, from which Prometheus reads metrics."""

    token_file: str = declare(
        "",
        "The file with the tokens that requests of `/metrics` must contain, one token per line. The service reads the "
        "file for each request. If this setting is empty, every client can read the metrics.",
    )
    remote_label: Literal["host", "repository"] = declare(
        "host",
        "The label `remote` of metrics. `host`: the host of the remote. `repository`: the host and the path. At most "
        "100 remotes have their own label; all others have the label `other`.",
    )
    per_target: bool = declare(
        False,
        "Whether the service also exports metrics for each target: `reconciler_target_info` and "
        "`reconciler_target_packages`.",
    )
    max_targets: int = declare(
        1000,
        "The maximum number of targets for `per_target`. If there are more targets, the service logs "
        "`metrics_limited` and exports no metrics for single targets.",
        ge=1,
        le=10_000,
    )
