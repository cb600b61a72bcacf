"""The generated pages of the reference match the code, and the pages that list names list all of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def test_generated_pages_match_the_code() -> None:
    process = subprocess.run(
        [sys.executable, "scripts/make_reference.py", "--check"],
        cwd=PROJECT, text=True, capture_output=True, check=False,
    )  # fmt: skip

    assert (process.returncode, process.stderr) == (0, "")
