"""All benchmarks by one command: `python -m benchmarks NAME …`; without a name, what there is."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
SHARED = ("__main__", "passes", "processes")


def names() -> dict[str, str]:
    """Return the benchmarks with the first line of what each says of itself."""
    files = [*FOLDER.glob("*.py"), *FOLDER.glob("*/__main__.py")]
    found = {
        (one.parent.name if one.name == "__main__.py" and one.parent != FOLDER else one.stem): one for one in files
    }
    shared = (
        *SHARED,
        *(name for name in found if name.endswith(("_world", "_packages")) and name != "overrides_packages"),
    )
    return {name: _title(one) for name, one in sorted(found.items()) if name not in shared}


def _title(file: Path) -> str:
    return file.read_text().partition('"""')[2].partition("\n")[0].strip().rstrip('"')


def main() -> None:
    """Run the one that is named."""
    known = names()
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
