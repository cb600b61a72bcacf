"""Detection of the type of a repository from its URL."""

from __future__ import annotations

from typing import Literal

_TIMEOUT_SECONDS = 10
_MAX_BYTES = 64 * 1024


def detect_repository_type(url: str) -> Literal["git", "helm", "oci"]:
    """Return `oci` for an oci:// URL, `helm` for a URL with a readable `index.yaml`, and `git` for any other address.

    A URL that ends with `.git` is not requested. An unreachable server counts as a server without `index.yaml`.
    """
    if url.startswith("oci://"):
        return "oci"
    is_web_address = url.startswith(("https://", "http://"))
    return "helm" if is_web_address and not url.endswith(".git") and _has_chart_index(url) else "git"


def _has_chart_index(url: str) -> bool:
    # Import httpx here, because most configs need no request: they state the type of a repository, or its URL shows it.
    import httpx

    try:
        with httpx.stream("GET", f"{url.rstrip('/')}/index.yaml", timeout=_TIMEOUT_SECONDS) as response:
            if response.status_code != httpx.codes.OK:
                return False
            content = b""
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > _MAX_BYTES:
                    break
    except (httpx.HTTPError, httpx.InvalidURL):
        return False
    return any(line.startswith((b"entries:", b"apiVersion:")) for line in content.splitlines())
