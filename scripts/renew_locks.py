"""Write the lock files, or check that they still match pyproject.toml.

    python scripts/renew_locks.py            newest versions that pyproject.toml allows
    python scripts/renew_locks.py --check    exit 1 if a lock does not satisfy pyproject.toml

Each lock names exact versions with the hashes of every wheel and source archive, for all platforms and Python
versions that the project supports. `pip install --require-hashes -r FILE` refuses any other file. Needs `uv`
(the extra `lint`) and a package index.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
OLDEST_PYTHON = "3.11"


@dataclass(frozen=True)
class Lock:
    """One lock file: what it is for, and the options that select its requirements."""

    file: str
    purpose: str
    selection: Sequence[str]
    requirements: str = "pyproject.toml"


LOCKS = (
    Lock(
        "requirements.lock",
        "the runtime, as in the container image",
        ["--extra=forge-app", "--extra=oidc", "--extra=otel", "--extra=signing"],
    ),
    Lock("requirements-ci.lock", "tests and lint", ["--extra=test", "--extra=lint", "--extra=docs"]),
    Lock("requirements-build.lock", "the wheel's build backend", [], "-"),
)


def compile_lock(lock: Lock, target: Path, *, upgrade: bool) -> None:
    """Write one lock to `target`; without `upgrade`, the versions that it has already are kept where they still fit.

    Raises:
        subprocess.CalledProcessError: if uv finds no versions that fit together, or reaches no package index.
    """
    command = [
        sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-header",
        "--python-version", OLDEST_PYTHON, *lock.selection, *(["--upgrade"] if upgrade else []),
        "--output-file", str(target), lock.requirements,
    ]  # fmt: skip
    subprocess.run(command, cwd=PROJECT, input=_build_requirements(), text=True, check=True, stdout=subprocess.DEVNULL)
    header = f"# Locked versions for {lock.purpose}. Written by scripts/renew_locks.py; do not edit.\n"
    target.write_text(header + target.read_text())


def _build_requirements() -> str:
    build = tomllib.loads((PROJECT / "pyproject.toml").read_text())["build-system"]
    return "".join(f"{requirement}\n" for requirement in build["requires"])


def is_current(lock: Lock) -> bool:
    """Return whether resolving again, with the versions of the lock preferred, gives the same lock."""
    committed = PROJECT / lock.file
    if not committed.exists():
        return False
    with tempfile.TemporaryDirectory() as folder:
        renewed = Path(folder) / lock.file
        renewed.write_text(committed.read_text())
        compile_lock(lock, renewed, upgrade=False)
        return renewed.read_text() == committed.read_text()


def main(arguments: Sequence[str]) -> int:
    """Renew all locks, or check them."""
    if [*arguments] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 3
    if not arguments:
        for lock in LOCKS:
            compile_lock(lock, PROJECT / lock.file, upgrade=True)
        return 0
    stale = [lock.file for lock in LOCKS if not is_current(lock)]
    for file in stale:
        print(f"{file}: does not match pyproject.toml; run `python scripts/renew_locks.py` and review the diff")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
