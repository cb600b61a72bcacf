"""Protection of the environment and memory of this process against other processes of the same user.

A KRM function runs as a process of the same user. Without protection, the function can read /proc/<pid>/environ of this
process and of other child processes. Operators and CI systems put tokens into environment variables. This module
imports only the standard library.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

# Keep only the variables that Git, SSH, container engines, Python and terminals need, because any other variable may
# contain a secret.
_KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|PWD|HOSTNAME|LANG|LANGUAGE|LC_\w+|TZ|TZDIR|TMPDIR|TEMP|TMP|XDG_\w+|DBUS_SESSION_BUS_ADDRESS"
    r"|TERM|COLORTERM|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|EMAIL|VIRTUAL_ENV|LD_LIBRARY_PATH|PYTHON\w*|COVERAGE_\w+|MALLOC_\w+"
    r"|(?:https?|all|no|HTTPS?|ALL|NO)_(?:proxy|PROXY)|SSL_CERT_(?:FILE|DIR)|CURL_CA_BUNDLE|REQUESTS_CA_BUNDLE|SSH_AUTH_SOCK"
    r"|GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|GIT_CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM)|GIT_SSL_CA(?:INFO|PATH)"
    r"|GIT_EXEC_PATH|GIT_CEILING_DIRECTORIES|DOCKER_(?:HOST|CONTEXT|CONFIG|CERT_PATH|TLS_VERIFY)|CONTAINER_HOST"
    r"|CONTAINERS_\w+|CONTAINERD_\w+|REGISTRY_AUTH_FILE|STORAGE_DRIVER|NERDCTL_TOML|DASK_\w+|NOTIFY_SOCKET|WATCHDOG_\w+|LISTEN_\w+|INVOCATION_ID|JOURNAL_STREAM"
)
_PR_SET_DUMPABLE = 4
# Positions of env_start and env_end in /proc/<pid>/stat. The field after the program name has the position 0.
_ENV_START, _ENV_END = 47, 48
_MAX_ENVIRONMENT_BYTES = 64 << 20

_initial: dict[str, str] | None = None


def initial_environment() -> Mapping[str, str]:
    """Return the environment variables at the start of this process, even if they were removed later."""
    return os.environ if _initial is None else _initial


def protect_process() -> None:
    """Remove variables that child processes do not need, erase the initial environment, and protect the memory.

    Call this function before any thread starts. On systems other than Linux, only the variables are removed.
    """
    global _initial  # noqa: PLW0603 - a process has one environment
    _initial = dict(os.environ)
    for name in _initial:
        if _KEPT.fullmatch(name):
            # Assign the variable again, so that the C library uses a copy. The initial memory block of the environment
            # can then be erased.
            os.environ[name] = _initial[name]
        else:
            del os.environ[name]
    if sys.platform == "linux":
        _erase_initial_environment()
    forbid_memory_access()


def forbid_memory_access() -> None:
    """Prevent other processes of the same user from reading this process's memory, files and environment.

    Processes of root can still read this data. A child process is not protected, unless it calls this function too.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _erase_initial_environment() -> None:
    """Overwrite the memory that /proc/<pid>/environ shows, because processes of root can always read this file."""
    try:
        fields = Path("/proc/self/stat").read_text(errors="replace").rpartition(")")[2].split()
        shown = Path("/proc/self/environ").read_bytes()
    except OSError:
        return  # Nothing to erase: if /proc cannot be read here, other processes cannot read it either.
    start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
    # Check the addresses, because some kernels hide them and report zeros.
    if 0 < start < end <= start + _MAX_ENVIRONMENT_BYTES and ctypes.string_at(start, end - start) == shown:
        ctypes.memset(start, 0, end - start)
