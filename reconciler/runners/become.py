"""A program of its own: take limits on, then become the function.

Limits set between fork and exec would run our code in a copy of a process with threads, which may hang; so that a
fresh process sets its own. Started as `python -I -S become.py MEMORY_BYTES FILE_BYTES PROGRAM ARGUMENT...`; imports
nothing of ours.
"""

from __future__ import annotations

import os
import resource
import sys


def main() -> None:
    """Limit this process as its first arguments say and become the rest of them."""
    memory, file_bytes = int(sys.argv[1]), int(sys.argv[2])
    # data, not address space: Go and Node reserve far more addresses than they ever use
    limits = {resource.RLIMIT_DATA: memory, resource.RLIMIT_FSIZE: file_bytes, resource.RLIMIT_CORE: 0}
    for which, wanted in limits.items():
        hard = resource.getrlimit(which)[1]
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(which, (limit, limit))
    try:
        os.execv(sys.argv[3], sys.argv[3:])  # no shell on purpose  # noqa: S606  # nosec B606
    except OSError as error:
        sys.exit(f"{sys.argv[3]} cannot be started: {error.strerror}")


if __name__ == "__main__":
    main()
