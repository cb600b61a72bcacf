"""Settings of functions: executables, containers and their limits."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Literal

from pydantic import field_validator

from reconciler.settings.declaration import SettingList, SettingsGroup, declare


class FunctionSettings(SettingsGroup):
    """Programs and container images that packages may run as functions, and the limits of one function call."""

    exec: SettingList[str] = declare(
        (),
        "The absolute paths of programs that packages can run with `exec`. The characters * and ? match characters "
        "of one file or folder name.",
    )
    containers: SettingList[str] = declare(
        (),
        "The complete references of images that packages can run as containers. The characters * and ? match any "
        "characters.",
    )
    engine: Literal["", "podman", "docker", "nerdctl"] = declare(
        "",
        "The container engine. Empty means the value of the variable KRM_FN_RUNTIME, or else the first of the "
        "engines podman, docker and nerdctl on the PATH.",
    )
    pull: Literal["Always", "IfNotPresent", "Never"] = declare(
        "IfNotPresent", "When the reconciler pulls images: `Always` (once per pass), `IfNotPresent` or `Never`."
    )
    image_prefix: str = declare(
        "ghcr.io/kptdev/krm-functions-catalog",
        "The prefix that is added to image names without a slash. If the settings file does not contain this "
        "setting, the variable KPT_IMAGE_PREFIX applies.",
    )
    timeout_seconds: int = declare(300, "The time limit of one call of a program or container, in seconds.", ge=1)
    memory_bytes: int = declare(536_870_912, "The memory limit of one call, in bytes.", ge=16_777_216)
    output_bytes: int = declare(67_108_864, "The size limit of the output of one call, in bytes.", ge=1_024)

    @field_validator("exec")
    @classmethod
    def _check_paths(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(path.startswith("/") and path == str(PurePosixPath(path)) and ".." not in path for path in value):
            raise ValueError("must be absolute paths without . and .., for example /usr/local/bin/*")
        return value

    @field_validator("containers")
    @classmethod
    def _check_references(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(reference and not re.search(r"\s", reference) for reference in value):
            raise ValueError("must be image references, for example example.com/functions/*")
        return value

    @field_validator("image_prefix")
    @classmethod
    def _check_image_prefix(cls, value: str) -> str:
        if not re.fullmatch(r"[^\s/]+(/[^\s/]+)*", value):
            raise ValueError("must be a registry and a path without a slash at the end")
        return value
