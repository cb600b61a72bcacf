"""Kptfiles: the typed model, reading, validation, and edits that do not change other lines.

The merge of Kptfiles is in `packages.update`.
"""

from reconciler.packages.kptfile.file import (
    BFS_RENDERING,
    KPTFILE,
    SAVE_ON_RENDER_FAILURE,
    Kptfile,
    create_kptfile,
    find_credentials,
    order_sections,
    read_kptfile,
    validate_kptfile,
)
from reconciler.packages.kptfile.model import (
    FunctionSpec,
    GitLock,
    GitUpstream,
    KptfileMetadata,
    KptfileModel,
    KptfilePipeline,
    KptfileUpstream,
    Profile,
    Selector,
    UpstreamLock,
)

__all__ = [
    "BFS_RENDERING",
    "KPTFILE",
    "SAVE_ON_RENDER_FAILURE",
    "FunctionSpec",
    "GitLock",
    "GitUpstream",
    "Kptfile",
    "KptfileMetadata",
    "KptfileModel",
    "KptfilePipeline",
    "KptfileUpstream",
    "Profile",
    "Selector",
    "UpstreamLock",
    "create_kptfile",
    "find_credentials",
    "order_sections",
    "read_kptfile",
    "validate_kptfile",
]
