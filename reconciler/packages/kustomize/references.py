"""References in a kustomization: paths relative to the upstream package, and URLs."""

from __future__ import annotations

import posixpath
import re

# Match each text that Kustomize reads as the URL of a file or Git repository, even if a local file has this name.
_REMOTE = re.compile(r"[a-z][a-z0-9+.-]*:(?:/|:)|gh:|[\w.~-]+@[^/]*[:/]|(?:www\.)?github\.com[:/]", re.IGNORECASE)


def is_remote(text: str) -> bool:
    """Return whether Kustomize reads a text as a URL."""
    return _REMOTE.match(text.strip()) is not None


def resolve_path(folder: str, path: str) -> str | None:
    """Convert a path relative to `folder` to a path relative to the upstream package.

    Return None if the path leads out of the package.
    """
    normalized = posixpath.normpath(posixpath.join(folder, path))
    if normalized.startswith("/") or normalized.split("/")[0] == "..":
        return None
    return "" if normalized == "." else normalized
