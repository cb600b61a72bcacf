"""Paths: names of objects as names of files, and paths as URIs."""

from __future__ import annotations

import re

from reconciler.krm.identity import ObjectKey

_ESCAPED_IN_URI = re.compile(r"[^A-Za-z0-9/._~-]")
_NO_NAMESPACE = "_cluster"
_ESCAPED_IN_SEGMENT = re.compile(r"[^A-Za-z0-9._-]|^\.")


def quoted(path: str) -> str:
    """Return a path as a relative URI reference (RFC 3986, section 2.1)."""
    return _ESCAPED_IN_URI.sub(_escape, path)


def object_path(key: ObjectKey) -> str:
    """Return where the status branch keeps an object: `objects/<namespace>/<Kind>/<name>.yaml` (design 10.27).

    Anybody may write any name into a config file, so each segment is %-escaped until it cannot leave its folder.
    """
    return f"objects/{_joined(key.namespace or _NO_NAMESPACE, key.kind, key.name)}.yaml"


def files_folder(folder: str, key: ObjectKey) -> str:
    """Return where the status branch keeps an object's own files: `<folder>/<namespace>/<name>/` (design 3)."""
    return f"{folder}/{_joined(key.namespace or _NO_NAMESPACE, key.name)}/"


def _joined(*segments: str) -> str:
    return "/".join(_ESCAPED_IN_SEGMENT.sub(_escape, segment) for segment in segments)


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass"))
