"""The merge profile. The settings use it, so that this module is separate from the models of kpt, which load slowly."""

from __future__ import annotations

from typing import Literal

Profile = Literal["safe", "compat"]
"""Merge behavior. `safe` fixes known defects of kpt, and `compat` reproduces kpt exactly."""
