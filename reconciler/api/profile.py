"""The merge profile. It has its own module, because the settings need it, and the models of kpt load slowly."""

from __future__ import annotations

from typing import Literal

Profile = Literal["safe", "compat"]
"""Merge behavior. `safe` fixes known defects of kpt, and `compat` reproduces kpt exactly."""
