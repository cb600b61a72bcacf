"""Programs that check the files in deploy/. A test is skipped if its program is not installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
Tool = Callable[..., subprocess.CompletedProcess[str]]


def find_tool(name: str) -> str:
    """Return the path of a tool in the folder `.tools`, in the virtual environment or on the PATH, or skip the test."""
    folders = [str(PROJECT / ".tools/bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    tool = shutil.which(name, path=os.pathsep.join(folders))
    if tool is None:
        pytest.skip(f"{name} is not installed; .ci/run installs it if the machine allows it")
    return tool


def make_tool(name: str) -> Tool:
    """Return a function that runs a tool in the folder of the project, with `content` as its standard input."""
    path = find_tool(name)

    def run(*arguments: str | Path, content: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [path, *(str(argument) for argument in arguments)]
        return subprocess.run(
            command, cwd=PROJECT, input=content, text=True, capture_output=True, check=False, timeout=120
        )

    return run
