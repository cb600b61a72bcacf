"""Runs the command line in the test process: arguments, exit status and output.

A new process takes a second to start. Tests of signals, kills and pipes start real processes.
"""

from __future__ import annotations

import os
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from reconciler.cli.entry import run
from tests.support.logs import unchanged_logs


@dataclass(frozen=True)
class CommandResult:
    """Result of a command, with the attributes of `subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


def run_in(folder: Path, environment: dict[str, str], *arguments: str) -> CommandResult:
    """Run a command in a folder with the environment of a new process."""
    out, err = StringIO(), StringIO()
    there = patch.dict(os.environ, environment, clear=True)
    with unchanged_logs(), chdir(folder), there, redirect_stdout(out), redirect_stderr(err):
        code = run(arguments)
    return CommandResult(code, out.getvalue(), err.getvalue())
