"""Runs a benchmark: `python -m benchmarks NAME ...`. Without a name, it lists all benchmarks."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
SHARED = ("__main__", "passes", "processes")


def list_benchmarks() -> dict[str, str]:
    """Return the first docstring line of each benchmark by name."""
    files = [*FOLDER.glob("*.py"), *FOLDER.glob("*/__main__.py")]
    mapping = {
        (path.parent.name if path.name == "__main__.py" and path.parent != FOLDER else path.stem): path
        for path in files
    }
    shared = (
        *SHARED,
        *(name for name in mapping if name.endswith(("_world", "_packages")) and name != "overrides_packages"),
    )
    return {name: _read_title(path) for name, path in sorted(mapping.items()) if name not in shared}


def _read_title(file: Path) -> str:
    return file.read_text().partition('"""')[2].partition("\n")[0].strip().rstrip('"')


def main() -> None:
    """Run the benchmark that the first argument names."""
    known = list_benchmarks()
    if len(sys.argv) < 2 or sys.argv[1] not in known:
        width = max(map(len, known))
        listed = "\n".join(f"  {name:{width}}  {title}" for name, title in known.items())
        raise SystemExit(f"python -m benchmarks NAME, of these:\n\n{listed}")
    name = sys.argv.pop(1)
    folder = FOLDER / name
    sys.argv[0] = str(folder / "__main__.py" if folder.is_dir() else FOLDER / f"{name}.py")
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
