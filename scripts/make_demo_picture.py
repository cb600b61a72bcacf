"""Write docs/images/demo.svg: the output of `reconciler demo` as a terminal picture.

    python scripts/make_demo_picture.py

The picture has no links to fonts or other resources.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

PROJECT = Path(__file__).resolve().parents[1]
PICTURE = PROJECT / "docs" / "images" / "demo.svg"
COLUMNS = 118
# The part with the next commands is in the tutorial.
LAST_LINE = "Commands to try next"


def demo_output() -> str:
    """Return the output of the demo, with `./demo` in place of the temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.run(
            [sys.executable, "-m", "reconciler", "demo", "demo"],
            cwd=folder, env={"PYTHONPATH": str(PROJECT), "HOME": folder, "PATH": "/usr/bin:/bin:/usr/local/bin"},
            text=True, capture_output=True, check=True,
        )  # fmt: skip
        return process.stdout.replace(str(Path(folder).resolve()), ".").partition(LAST_LINE)[0].rstrip()


def main() -> None:
    """Write the picture."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ reconciler demo", style="bold"))
    console.print(Text(demo_output()), soft_wrap=False)
    picture = console.export_svg(title="reconciler demo", unique_id="demo")
    # The fonts would be loaded from another host.
    picture = re.sub(r"@font-face \{.*?\}\n", "", picture, flags=re.DOTALL)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(picture)


if __name__ == "__main__":
    main()
