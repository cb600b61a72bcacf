"""Fixtures of the CEL tests."""

from __future__ import annotations

import pytest

from reconciler.cel import environment


@pytest.fixture(autouse=True)
def clear_program_cache() -> None:
    """Compile the programs of each test again, because mutmut changes the compiler between runs in one process."""
    environment._compile_program.cache_clear()
