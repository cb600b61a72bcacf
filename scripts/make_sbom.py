"""Write a software bill of materials (CycloneDX, JSON) of the runtime that requirements.lock names.

    python scripts/make_sbom.py sbom.cdx.json

Installs the locked versions, whose hashes are checked, and the project itself into a new virtual environment, and
describes the result. Equal locks give equal bytes. Needs `uv` and `cyclonedx-bom` (the extra `lint`) and a package
index.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


def install_runtime(folder: Path) -> Path:
    """Install the locked runtime into a new virtual environment at `folder`, and return its Python interpreter."""
    uv = [sys.executable, "-m", "uv", "--quiet"]
    subprocess.run([*uv, "venv", str(folder)], check=True)
    install = [*uv, "pip", "install", "--python", str(folder)]
    subprocess.run([*install, "--require-hashes", "--requirement", str(PROJECT / "requirements.lock")], check=True)
    subprocess.run([*install, "--no-deps", str(PROJECT)], check=True)
    return folder / "bin" / "python"


def write_sbom(python: Path, target: Path) -> None:
    """Describe an environment as CycloneDX 1.6; the document is validated against its schema before it is written."""
    tool = [sys.executable, "-m", "cyclonedx_py", "environment", str(python)]
    options = ["--pyproject", str(PROJECT / "pyproject.toml"), "--spec-version", "1.6", "--output-reproducible"]
    subprocess.run([*tool, *options, "--output-format", "JSON", "--output-file", str(target)], check=True)


def main(arguments: Sequence[str]) -> int:
    """Write the document to the file that the only argument names."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory() as folder:
        write_sbom(install_runtime(Path(folder) / "runtime"), Path(arguments[0]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
