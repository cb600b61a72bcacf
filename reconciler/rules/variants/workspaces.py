"""Workspaces: the name that a published revision had as a draft, as its tag or commit tells it (porch 1.1, 15)."""

from __future__ import annotations

import json

from reconciler.krm.trailers import read_trailers

_PORCH = "kpt:"


def workspace_of(message: str, package: str) -> str:
    """Return the workspace that a message says a revision of this package had; "" when it says nothing of it.

    Ours stands in a trailer (porch 15.3), Porch's in a line of JSON (15.1).
    """
    trailers = read_trailers(message)
    if trailers.get("Reconciler-Package") == package:
        return trailers.get("Reconciler-Workspace", "")
    lines = (line.removeprefix(_PORCH) for line in message.splitlines() if line.startswith(_PORCH))
    return next((name for line in lines if (name := _of_porch(line, package))), "")


def _of_porch(line: str, package: str) -> str:
    try:
        data = json.loads(line)
    except ValueError:
        return ""
    if not isinstance(data, dict) or not f"/{data.get('package')}".endswith(f"/{package}"):
        return ""
    name = data.get("workspaceName")
    return name if isinstance(name, str) else ""
