"""Settings of the programs that render sources."""

from __future__ import annotations

import re

from pydantic import field_validator

from reconciler.settings.declaration import SettingsGroup, declare

_KUBERNETES_VERSION = re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+)?")


class HelmSettings(SettingsGroup):
    """Settings of the program helm, which renders charts."""

    program: str = declare(
        "",
        "The absolute path of the program. If this setting is empty, the folders /usr/local/bin, /usr/bin, "
        "/opt/homebrew/bin and the folder of the Python interpreter are searched. Commands other than `run` also "
        "search the PATH.",
    )
    versions: str = declare(">=3.14 <5", "The versions of helm that can be used, as a version range.")
    kube_version: str = declare(
        "1.34.0",
        "The Kubernetes version for charts, if neither the PackageVariant nor the annotation "
        "reconciler.dev/kubernetes-version of the cluster defines it.",
    )
    strict: bool = declare(False, "Whether a key that a rendered mapping contains twice is an error.")
    timeout_seconds: int = declare(60, "The time limit of one render, in seconds.", ge=1, le=3_600)
    memory_bytes: int = declare(1_073_741_824, "The memory limit of one render, in bytes.", ge=67_108_864)
    output_bytes: int = declare(67_108_864, "The size limit of the output of one render, in bytes.", ge=1_024)
    explain_renders: int = declare(
        40,
        "The largest number of renders with which `explain` finds the chart values that a field depends on. 0 disables "
        "this search.",
        ge=0,
        le=1_000,
    )
    resources: int = declare(5_000, "The largest number of resources that one chart can render.", ge=1)

    @field_validator("program")
    @classmethod
    def _check_program(cls, value: str) -> str:
        if value and not value.startswith("/"):
            raise ValueError(f"must be an absolute path, not {value!r}")
        return value

    @field_validator("versions")
    @classmethod
    def _check_versions(cls, value: str) -> str:
        # Import the module here, because most settings files do not contain this setting.
        from reconciler.krm.version_ranges import parse_range

        if parse_range(value) is None:
            raise ValueError(f"must be a version range such as >=3.14 <5, not {value!r}")
        return value

    @field_validator("kube_version")
    @classmethod
    def _check_kube_version(cls, value: str) -> str:
        if not _KUBERNETES_VERSION.fullmatch(value):
            raise ValueError(f"must be a Kubernetes version such as 1.34.0, not {value!r}")
        return value
