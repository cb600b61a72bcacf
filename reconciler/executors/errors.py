"""What keeps renders from running elsewhere."""

from __future__ import annotations

from reconciler.krm.isolation import ExpectedError


class ExecutorUnusableError(ExpectedError):
    """Renders cannot run where the settings want them; the text says why. They run in this process instead."""
