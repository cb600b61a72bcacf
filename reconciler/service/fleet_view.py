"""The values that the main thread publishes for other threads, such as those of the HTTP server.

A pass creates one immutable `FleetView`. Another thread reads the reference once per request and needs no lock.
"""

from __future__ import annotations

from reconciler.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class FleetView:
    """The fleet after a completed pass. A pass is completed if it has read the config, even if
    remotes failed.

    Attributes:
        config: The ID of the config, such as a commit ID.
    """

    config: str


class ServiceState:
    """The current state of the service. Only the main thread and signal handlers change it.

    Attributes:
        view: The fleet after the last completed pass. None if this process has not completed a pass.
        is_stopping: Whether the service has received a signal to stop.
    """

    def __init__(self) -> None:
        self.view: FleetView | None = None
        self.is_stopping = False
