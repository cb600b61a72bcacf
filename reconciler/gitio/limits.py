"""Limits that hold for some remotes only: which of them a remote has."""

from __future__ import annotations

import re
from dataclasses import replace
from fnmatch import fnmatchcase

from reconciler.gitio.options import GitOptions
from reconciler.gitio.url import GitUrl, place_of

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def with_limits(options: GitOptions, url: GitUrl) -> GitOptions:
    """Return the options with the limits of one remote: those of the first pattern that matches, where it has them."""
    host, path = place_of(url)
    limits = next((one for one in options.remotes if _matches(f"{host}/{path}", one.url)), None)
    if limits is None:
        return options
    refs, pushes = limits.max_refs_per_push, limits.max_pushes_per_minute
    return replace(
        options,
        max_refs_per_push=options.max_refs_per_push if refs is None else refs,
        max_pushes_per_minute=options.max_pushes_per_minute if pushes is None else pushes,
    )


def _matches(place: str, pattern: str) -> bool:
    """Return whether a pattern is the remote's host or address, a folder above it, or a glob over all of it."""
    host, slash, path = _SCHEME.sub("", pattern, count=1).partition("/")
    wanted = (host.lower() + slash + path).rstrip("/").removesuffix(".git")
    if any(character in wanted for character in "*?"):
        return fnmatchcase(place, wanted)
    return place == wanted or place.startswith(f"{wanted}/")
