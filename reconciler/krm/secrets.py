"""Secrets: how a value is shown that nobody may read (design 10.29)."""

from __future__ import annotations

MASK = "*****"
