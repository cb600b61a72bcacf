"""Parts of a page that cannot be read. The page shows a message instead of the part, and all other parts."""

from __future__ import annotations

from reconciler.git.errors import GitError, InternalGitError
from reconciler.reconcile.failures import log_if_internal
from reconciler.telemetry.event_log import log


def report_failed_part(error: GitError) -> str:
    """Log why a part of a page cannot be read, and return the message for the page.

    The log event and the message on the page have the ID of the request.
    """
    if isinstance(error, InternalGitError):
        log_if_internal(error)
    else:
        log.warning("page_part_failed", message=error.full_message)
    return error.full_message
