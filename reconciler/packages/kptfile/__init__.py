"""Kptfiles: read, typed, validated, and edited so that every line stays that need not change (kpt.md 2)."""

from reconciler.packages.kptfile.file import (
    KPTFILE,
    SAVE_ON_RENDER_FAILURE,
    Kptfile,
    in_order,
    new_kptfile,
    read_kptfile,
)
from reconciler.packages.kptfile.model import FunctionSpec, GitUpstream, Metadata, Profile, Selector, Strategy
from reconciler.packages.kptfile.paths import field_path
from reconciler.packages.kptfile.validation import validate_kptfile

__all__ = [
    "KPTFILE",
    "SAVE_ON_RENDER_FAILURE",
    "FunctionSpec",
    "GitUpstream",
    "Kptfile",
    "Metadata",
    "Profile",
    "Selector",
    "Strategy",
    "field_path",
    "in_order",
    "new_kptfile",
    "read_kptfile",
    "validate_kptfile",
]
