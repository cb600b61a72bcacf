"""What keeps renders from running elsewhere."""

from __future__ import annotations


class ExecutorUnusableError(Exception):
    """Renders cannot run where the settings want them; the text says why. They run in this process instead."""
