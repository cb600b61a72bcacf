"""Inputs: one digest for everything that a package was made from."""

from __future__ import annotations

from reconciler.krm.digest import digest
from reconciler.reporting.secrets import mask_trace
from reconciler.snapshot.trace import Trace


def inputs_digest(trace: Trace) -> str:
    """Return the digest of a trace, `sha256:<hex>`; what a Secret says is not in it (design 10.29)."""
    return digest(mask_trace(trace))
