"""Programs and Helm charts that tests need. A test is skipped if its program or chart is not installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
CACHE = Path.home() / ".cache/reconciler-tests"
INSTALLER = "scripts/install_test_programs.sh"
Program = Callable[..., subprocess.CompletedProcess[str]]


def find_program(name: str) -> str:
    """Return the path of a program, or skip the test.

    The folder of the installer comes before the virtual environment and the PATH, because its versions are fixed.
    """
    folders = [str(CACHE / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    program = shutil.which(name, path=os.pathsep.join(folders))
    if program is None:
        pytest.skip(f"{name} is not installed; {INSTALLER} installs it if the machine allows it")
    return program


def chart_folder(name: str) -> Path:
    """Return the folder of a published Helm chart, or skip the test. The test must not change the folder."""
    folder = CACHE / "charts" / name
    if not folder.is_dir():
        pytest.skip(f"the chart {name} is not downloaded; scripts/fetch_charts.sh downloads it")
    return folder


def make_program(name: str) -> Program:
    """Return a function that runs a program in the folder of the project, with `content` as its standard input."""
    path = find_program(name)

    def run(*arguments: str | Path, content: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [path, *(str(argument) for argument in arguments)]
        return subprocess.run(
            command, cwd=PROJECT, input=content, text=True, capture_output=True, check=False, timeout=120
        )

    return run
