"""Patterns of the settings that list allowed URLs. Git and the readers of sources use the same rules."""

from __future__ import annotations

from fnmatch import fnmatchcase


def matches_url_pattern(url: str, pattern: str) -> bool:
    """Return whether a pattern matches a URL.

    A pattern with `*` or `?` must match the whole URL. Any other pattern matches the same URL and all URLs below it. If
    it ends with a colon, e.g. `git@example.org:`, it matches all URLs that start with it.
    """
    if any(character in pattern for character in "*?"):
        return fnmatchcase(url, pattern)
    prefix = pattern.rstrip("/")
    return url == prefix or url.startswith(prefix + "/") or (prefix.endswith(":") and url.startswith(prefix))
