"""The fleet after a pass, as an immutable value for other threads, such as those of the HTTP server.

The main thread creates one `FleetView` after each completed pass. Another thread reads the reference once per request
and needs no lock. To show more data about the fleet, add a field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from reconciler.lazy_dataclasses import dataclass, field
from reconciler.reconcile.remotes.availability import RemoteState

if TYPE_CHECKING:
    from reconciler.forge.rate_limits import ForgeLimit


@dataclass(frozen=True)
class Failure:
    """A failure, and the time at which it started.

    Attributes:
        since: The start of the failure, in seconds of the monotonic clock.
        name: The remote or the forge that failed. "" for other failures.
    """

    since: float
    message: str
    name: str = ""


@dataclass(frozen=True)
class PassRecord:
    """The times and the result of a pass.

    Attributes:
        started_at: The start, in seconds since 1970.
        triggers: The reasons of the pass.
        phases: The seconds of each phase.
        message: The error of a failed pass. "" for other passes.
    """

    started_at: float
    duration_seconds: float
    result: str
    triggers: tuple[str, ...] = ()
    phases: Mapping[str, float] = field(default_factory=dict)
    message: str = ""


@dataclass(frozen=True)
class FleetView:
    """The fleet after a completed pass. A pass is completed if it has read the config, even if remotes failed.

    Attributes:
        number: The number of the pass in this process. Two views have different numbers.
        completed_at: The end of the pass, in seconds of the monotonic clock.
        config: The ID of the config, such as a commit ID.
        targets: The number of targets of this shard.
        remote_failures: The target remotes that could not be fetched.
        forge_failures: The forges that failed for all their repositories.
        status_failure: The failed push of the status branch.
        executor_failure: The failed connection to the Dask scheduler.
        remotes: The states of all remotes.
        forge_limits: The rate limits of the forges in the settings.
    """

    number: int
    completed_at: float
    last_pass: PassRecord
    config: str
    targets: int = 0
    remote_failures: tuple[Failure, ...] = ()
    forge_failures: tuple[Failure, ...] = ()
    status_failure: Failure | None = None
    executor_failure: Failure | None = None
    remotes: tuple[RemoteState, ...] = ()
    forge_limits: tuple[ForgeLimit, ...] = ()
