"""Declarations of kpt."""

from __future__ import annotations

from typing import Literal

UpdateStrategy = Literal["resource-merge", "copy-merge", "fast-forward", "force-delete-replace"]
"""How a package update merges upstream changes and local changes."""
