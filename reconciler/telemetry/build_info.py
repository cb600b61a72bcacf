"""The versions of the program and of Python, for the log and for metrics."""

from __future__ import annotations

import json
import platform
from importlib import metadata

from reconciler import __version__
from reconciler.telemetry.metrics import BUILD_INFO

UNKNOWN = "unknown"


def find_revision() -> str:
    """Return the Git commit that the program was installed from, or "unknown".

    pip records the commit if it installs the program from a Git repository.
    """
    try:
        text = metadata.distribution("reconciler").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return UNKNOWN
    source = json.loads(text) if text else {}
    return str(source.get("vcs_info", {}).get("commit_id", UNKNOWN))


def record_build_info() -> None:
    """Export the versions as a metric."""
    BUILD_INFO.set(1, __version__, find_revision(), platform.python_version())
