"""The versions of the program and of Python, for the log and for metrics."""

from __future__ import annotations

import json
import platform
from importlib import metadata

from reconciler import __version__
from reconciler.telemetry.metrics import BUILD_INFO

_UNKNOWN = "unknown"


def find_revision() -> str:
    """Return the Git commit that the program was installed from, or "unknown".

    pip records the commit if it installs the program from a Git repository.
    """
    try:
        text = metadata.distribution("reconciler").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return _UNKNOWN
    source = json.loads(text) if text else {}
    return str(source.get("vcs_info", {}).get("commit_id", _UNKNOWN))


def record_build_info(revision: str) -> None:
    """Export the versions as a metric. `revision` is the result of `find_revision`."""
    BUILD_INFO.set(1, __version__, revision, platform.python_version())
