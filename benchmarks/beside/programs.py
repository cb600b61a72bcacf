"""Build and run the Go programs of this folder. Each program has its own Go module."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
BUILT = Path.home() / ".cache" / "reconciler-benchmarks"
_GO = ("go", "/usr/local/go/bin/go")
_MAX_REASON_LENGTH = 300


class SkippedError(Exception):
    """A comparison that cannot run on this machine. The message is the reason."""


def build_program(module: str, package: str = ".") -> Path:
    """Build a Go program of this folder, and return its file. The Go command reuses earlier results.

    Raises:
        SkippedError: Go is not installed, or the module proxy does not serve a module.
    """
    go = next(filter(None, map(shutil.which, _GO)), None)
    if go is None:
        raise SkippedError("Go is not installed")
    target = BUILT / f"{module}-{Path(package).name or 'main'}"
    command = [go, "build", "-o", str(target), package]
    environment = {**os.environ, "GOFLAGS": "-mod=readonly -buildvcs=false"}
    process = subprocess.run(command, cwd=FOLDER / module, env=environment, capture_output=True, text=True, check=False)
    if process.returncode:
        raise SkippedError(f"{module} cannot be built: {' '.join(process.stderr.split())[:_MAX_REASON_LENGTH]}")
    return target


def find_installed(name: str, how_to_install: str) -> str:
    """Return the path of an installed program.

    Raises:
        SkippedError: The program is not on the PATH.
    """
    path = shutil.which(name)
    if path is None:
        raise SkippedError(f"{name} is not on the PATH; install it with: {how_to_install}")
    return path


def run_program(program: Path, work: object, *arguments: str) -> Any:
    """Run a program with `work` as JSON on stdin, and return the JSON that it writes."""
    process = subprocess.run(
        [str(program), *arguments], input=json.dumps(work), stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(process.stdout)
