"""Settings of the programs that render sources."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import field_validator

from reconciler.krm import field_text
from reconciler.settings.declaration import SettingsGroup, declare

_SEARCH = (
    "If this setting is empty, the folders /usr/local/bin, /usr/bin, /opt/homebrew/bin and the folder of the Python "
    "interpreter are searched. Commands other than `run` also search the PATH."
)
_KUBERNETES_VERSION = re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+)?")


class ProgramSettings(SettingsGroup):
    """Settings that all programs have in common. Subclasses set the defaults and the descriptions of the programs."""

    program: str
    versions: str
    timeout_seconds: int = declare(60, "The time limit of one render, in seconds.", ge=1, le=3_600)
    memory_bytes: int = declare(1_073_741_824, "The memory limit of one render, in bytes.", ge=67_108_864)
    output_bytes: int = declare(67_108_864, "The size limit of the output of one render, in bytes.", ge=1_024)
    resources: int = declare(5_000, "The largest number of resources that one render can return.", ge=1)

    @property
    def program_path(self) -> Path | None:
        """The path of the program. None if the setting `program` is empty: the program is then searched in PATH."""
        return Path(self.program) if self.program else None

    @field_validator("program")
    @classmethod
    def _check_program(cls, value: str) -> str:
        if value and not value.startswith("/"):
            raise ValueError(f"must be an absolute path, but is {field_text.quote_value(value)}")
        return value

    @field_validator("versions")
    @classmethod
    def _check_versions(cls, value: str) -> str:
        # Import the module here, because most settings files do not contain this setting.
        from reconciler.krm.version_ranges import parse_range

        if parse_range(value) is None:
            raise ValueError(f'must be a version range such as ">=3.14 <5", but is {field_text.quote_value(value)}')
        return value


class HelmSettings(ProgramSettings):
    """Settings of the program helm, which renders charts."""

    program: str = declare("", f"The absolute path of the program. {_SEARCH}")
    versions: str = declare(">=3.14 <5", "The versions of helm that can be used, as a version range.")
    kube_version: str = declare(
        "1.34.0",
        "The Kubernetes version for charts, if neither the PackageVariant nor the annotation "
        "reconciler.dev/kubernetes-version of the cluster defines it.",
    )
    hooks: Literal["keep", "drop", "argocd"] = declare(
        "keep",
        "Which Helm hooks are written, if `spec.helm.hooks` is absent. keep: hooks for installation and upgrade. drop: "
        "none. argocd: all hooks that Argo CD runs.",
    )
    strict: bool = declare(False, "Whether a key that a rendered mapping contains twice is an error.")
    explain_renders: int = declare(
        40,
        "The largest number of renders with which `explain` finds the chart values that a field depends on. 0 disables "
        "this search.",
        ge=0,
        le=1_000,
    )

    @field_validator("kube_version")
    @classmethod
    def _check_kube_version(cls, value: str) -> str:
        if not _KUBERNETES_VERSION.fullmatch(value):
            raise ValueError(f'must be a Kubernetes version such as "1.34.0", but is {field_text.quote_value(value)}')
        return value


class KustomizeSettings(ProgramSettings):
    """Settings of the program that builds Kustomize overlays: kustomize or kubectl."""

    program: str = declare(
        "",
        f"The absolute path of the program kustomize, or of kubectl, which contains Kustomize. {_SEARCH} The program "
        "kustomize has priority over kubectl.",
    )
    versions: str = declare(">=5.0 <6", "The versions of Kustomize that can be used, as a version range.")
