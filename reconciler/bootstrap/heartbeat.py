"""The heartbeat of the service in Git, as the settings describe it."""

from __future__ import annotations

from functools import partial

from reconciler.bootstrap.inputs import SettingsInputs
from reconciler.bootstrap.publishers import get_status_url
from reconciler.planning.model.shard import parse_shard
from reconciler.service.git_heartbeat import GitHeartbeat, NoHeartbeat
from reconciler.settings import Settings

_FOLDER = "heartbeat"


def build_heartbeat(settings: Settings, inputs: SettingsInputs, *, is_read_only: bool) -> GitHeartbeat | NoHeartbeat:
    """Build the heartbeat. A read-only service pushes nothing."""
    if is_read_only or not settings.status.heartbeat_minutes:
        return NoHeartbeat()
    # Use a different folder than passes, because a mirror can have only one user at a time.
    open_mirror = partial(inputs.open_mirror, get_status_url(settings), _FOLDER)
    return GitHeartbeat(open_mirror, parse_shard(settings.shard), settings.status.heartbeat_minutes * 60)
