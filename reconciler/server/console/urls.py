"""The URLs of pages. Names are percent-encoded, and the path of a package is the end of its URL."""

from __future__ import annotations

from urllib.parse import quote, urlencode


def build_target_url(target: str) -> str:
    """Return the URL of a target."""
    return f"/targets/{quote(target, safe='')}"


def build_package_url(target: str, package: str, **query: str) -> str:
    """Return the URL of a package."""
    text = urlencode({name: value for name, value in query.items() if value})
    return f"{build_target_url(target)}/packages/{quote(package, safe='/')}{f'?{text}' if text else ''}"
