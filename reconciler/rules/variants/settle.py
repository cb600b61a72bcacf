"""Settling: a move of a reference is acted on when it has stood for as long as people want (porch 14.1)."""

from __future__ import annotations

from reconciler.krm.dates import rfc3339
from reconciler.rules.variant import Settling
from reconciler.rules.variants.model import FloatingTag, Upstream
from reconciler.rules.variants.upstream import Resolved


def settling_of(upstream: Upstream, found: Resolved, now: int) -> Settling | None:
    """Return until when the move to what was found waits; None when it has stood long enough.

    How long it has stood is told by Git's dates: we keep no clock (design 10.13).
    """
    until = found.since + upstream.settle_seconds
    if not upstream.settle_seconds or until <= now:
        return None
    message = (
        f"{_named(upstream, found)} since {rfc3339(found.since)};"
        f" with settle {upstream.settle} it is followed from {rfc3339(until)}"
    )
    return Settling(until, message)


def _named(upstream: Upstream, found: Resolved) -> str:
    tag = upstream.reference.name if isinstance(upstream.reference, FloatingTag) else ""
    kind = f"tag {tag}" if tag else f"revision {found.suffix}"
    named = (
        f"commit {found.commit[:12]}" if tag in ("", found.suffix) else f"{found.suffix}, commit {found.commit[:12]},"
    )
    return f"{kind} of {found.repository}/{found.package} has named {named}"
