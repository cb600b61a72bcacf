"""Maintenance of mirrors between passes: a failure is logged and holds up nothing."""

from __future__ import annotations

from reconciler.daemon.events import log
from reconciler.gitio.errors import GitError
from reconciler.gitio.mirror import Mirror


def maintain(mirror: Mirror) -> None:
    """Pack and prune the objects of a mirror that has grown; log a failure, because the next pass tries again."""
    if not mirror.has_grown:
        return
    try:
        mirror.maintain()
    except GitError as error:
        log.warning("maintenance_failed", remote=mirror.url, reason=error.message)
