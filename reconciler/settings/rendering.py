"""Settings of the processes that render packages."""

from __future__ import annotations

import re

from pydantic import field_validator

from reconciler.settings.declaration import SettingsGroup, UrlWithoutCredentials, declare

_AUTHENTICATED = re.compile(r"(?:tls|wss)://")
_LOOPBACK = re.compile(r"[a-z]+://(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]):\d+\Z")


class RenderingSettings(SettingsGroup):
    """Parallel rendering of many packages in worker processes or on a Dask cluster."""

    workers: int = declare(
        0,
        "The number of processes that render packages if a pass renders hundreds of packages. 0 means one process "
        "per core. 1 means that the main process renders all packages.",
        ge=0,
        le=256,
    )
    dask: UrlWithoutCredentials = declare(
        "",
        "The address of the scheduler of a Dask cluster that renders the packages instead of local processes, for "
        "example tls://scheduler:8786. The daemon and the workers need the Python extra reconciler[dask].",
    )
    timeout_seconds: int = declare(
        600,
        "The time limit for a batch of packages on a worker, in seconds. After this time, the main process renders "
        "the packages itself.",
        ge=1,
    )

    @field_validator("dask")
    @classmethod
    def _check_address(cls, value: str) -> str:
        if value and not re.fullmatch(r"(tcp|tls|ws|wss|ucx)://[^\s/]+", value):
            raise ValueError('must be the address of a scheduler, for example "tls://scheduler:8786"')
        # Require TLS, because Dask has no other authentication, and each process that reaches a scheduler can run code.
        if value and not (_AUTHENTICATED.match(value) or _LOOPBACK.match(value)):
            raise ValueError(
                'must start with tls:// or wss:// unless the scheduler is on this machine, for example "tls://scheduler:8786"'
            )
        return value
