"""The controls of the service: the requests that other threads, such as those of the HTTP server, can make."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class ServiceControls:
    """The requests to the service. A request returns at once, and the main thread handles it later.

    Attributes:
        wake_pass: Requests a pass.
        reload: Requests that the service reads its settings again.
        retry_remote: Ends the back-off of the remote with a URL, and requests a pass.
    """

    wake_pass: Callable[[], None]
    reload: Callable[[], None]
    retry_remote: Callable[[str], None]
