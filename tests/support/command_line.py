"""The command line without a process of its own: what people type, how it ends and what it prints.

A process takes a second to start. Those that are about processes (signals, being killed, the wires) start real ones.
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
class Ended:
    """How a command ended, in the words of `subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


def run_in(folder: Path, environment: dict[str, str], *arguments: str) -> Ended:
    """Run a command in a folder as a process with this environment would."""
    out, err = StringIO(), StringIO()
    there = patch.dict(os.environ, environment, clear=True)
    with unchanged_logs(), chdir(folder), there, redirect_stdout(out), redirect_stderr(err):
        code = run(arguments)
    return Ended(code, out.getvalue(), err.getvalue())
