"""A program that sets resource limits for its own process and then replaces itself with the program of a function.

The limits are not set between fork and exec, because Python code in a copy of a process with threads can hang. This
program imports no module of the project. The daemon starts it as `python -I -S exec_with_limits.py MEMORY_BYTES
FILE_BYTES PROGRAM ARGUMENT...`.
"""

from __future__ import annotations

import os
import resource
import sys


def main() -> None:
    """Set the limits from the first two arguments, and execute the program in the other arguments."""
    memory, file_bytes = int(sys.argv[1]), int(sys.argv[2])
    # Limit the data size and not the address space, because Go and Node reserve more addresses than they use.
    limits = {resource.RLIMIT_DATA: memory, resource.RLIMIT_FSIZE: file_bytes, resource.RLIMIT_CORE: 0}
    for resource_id, value in limits.items():
        hard = resource.getrlimit(resource_id)[1]
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(resource_id, (limit, limit))
    try:
        os.execv(sys.argv[3], sys.argv[3:])  # starts no shell, on purpose  # noqa: S606  # nosec B606
    except OSError as error:
        sys.exit(f"{sys.argv[3]} cannot be started: {error.strerror}")


if __name__ == "__main__":
    main()
