"""The demo prints only its result: no warning is the first line that a new user reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def test_demo_writes_nothing_to_standard_error(tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(PROJECT), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin:/usr/local/bin"}
    command = [sys.executable, "-m", "reconciler", "demo", "demo"]
    result = subprocess.run(command, cwd=tmp_path, env=environment, text=True, capture_output=True, check=True)

    assert result.stdout.startswith("Created a demo platform")
    assert result.stderr == ""
