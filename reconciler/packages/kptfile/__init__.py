"""Kptfiles: reading, validation, and edits that do not change other lines.

The model of a Kptfile is in `api/kpt.py`, and the merge of Kptfiles is in `packages.update`.
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

__all__ = [
    "BFS_RENDERING",
    "KPTFILE",
    "SAVE_ON_RENDER_FAILURE",
    "Kptfile",
    "create_kptfile",
    "find_credentials",
    "order_sections",
    "read_kptfile",
    "validate_kptfile",
]
