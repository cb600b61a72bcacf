"""Kptfiles: read, typed, validated, and edited so that every line stays that need not change (kpt.md 2)."""

from reconciler.packages.kptfile.file import (
    BFS_RENDERING,
    KPTFILE,
    SAVE_ON_RENDER_FAILURE,
    Kptfile,
    in_order,
    new_kptfile,
    read_kptfile,
)
from reconciler.packages.kptfile.model import (
    FunctionSpec,
    GitLock,
    GitUpstream,
    KptfileModel,
    Metadata,
    Pipeline,
    Profile,
    Selector,
    Strategy,
    Upstream,
    UpstreamLock,
)
from reconciler.packages.kptfile.paths import field_path
from reconciler.packages.kptfile.validation import credential_findings, validate_kptfile

__all__ = [
    "BFS_RENDERING",
    "KPTFILE",
    "SAVE_ON_RENDER_FAILURE",
    "FunctionSpec",
    "GitLock",
    "GitUpstream",
    "Kptfile",
    "KptfileModel",
    "Metadata",
    "Pipeline",
    "Profile",
    "Selector",
    "Strategy",
    "Upstream",
    "UpstreamLock",
    "credential_findings",
    "field_path",
    "in_order",
    "new_kptfile",
    "read_kptfile",
    "validate_kptfile",
]
