"""Entry point of the commands `reconciler` and `python -m reconciler`."""

from __future__ import annotations

import sys

from reconciler.memory import relax_gc
from reconciler.process_protection import protect_process


def main() -> None:
    """Run the command line and exit with its exit status."""
    # Protect the process before any other code runs, so that no child process can read its environment.
    protect_process()
    relax_gc()
    from reconciler.cli.entry import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
