"""The program: `reconciler …`, or `python -m reconciler …`."""

from __future__ import annotations

import gc
import sys

from reconciler import VALUES_BETWEEN_COLLECTIONS


def main() -> None:
    """Run the command line and exit with its status."""
    gc.set_threshold(VALUES_BETWEEN_COLLECTIONS)
    from reconciler.cli.entry import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
