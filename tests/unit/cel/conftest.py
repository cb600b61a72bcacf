"""Fixtures of the CEL tests."""

from __future__ import annotations

import pytest

from reconciler.cel import environment, operations


@pytest.fixture(autouse=True)
def clear_program_cache() -> None:
    """Compile the programs of each test again, because mutmut changes the compiler between runs in one process."""
    environment._compile_program.cache_clear()
    operations._create_dispatch.cache_clear()
