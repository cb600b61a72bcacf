"""The entry point of the commands `reconciler` and `python -m reconciler`."""

from __future__ import annotations

import sys

from reconciler.memory import relax_gc
from reconciler.process_protection import protect_process


def main() -> None:
    """Run the command line and exit with its exit status."""
    # This call comes first: no child process may read the environment of this process.
    protect_process()
    relax_gc()
    from reconciler.cli.entry import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
