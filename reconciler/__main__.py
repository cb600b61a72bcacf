"""The program: `reconciler …`, or `python -m reconciler …`."""

from __future__ import annotations

import sys

from reconciler.garbage import look_seldom
from reconciler.process_protection import protect_process


def main() -> None:
    """Run the command line and exit with its status."""
    # before everything else, because no child process may read the environment
    protect_process()
    look_seldom()
    from reconciler.cli.entry import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
