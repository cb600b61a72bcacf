"""Patterns of the settings that list allowed URLs. Git and the readers of sources use the same rules."""

from __future__ import annotations

from fnmatch import fnmatchcase


def matches_url_pattern(url: str, pattern: str) -> bool:
    """Return whether a pattern matches a URL.

    A pattern with `*` or `?` must match the whole URL. Any other pattern matches the same URL and all URLs below this
    URL. A pattern with a colon at the end, e.g. `git@example.org:`, matches all URLs with this beginning.
    """
    if any(character in pattern for character in "*?"):
        return fnmatchcase(url, pattern)
    prefix = pattern.rstrip("/")
    return url == prefix or url.startswith(prefix + "/") or (prefix.endswith(":") and url.startswith(prefix))
