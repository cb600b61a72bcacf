"""Options of Git access (limits, identity, credentials) as plain values, and limits for single remotes.

This module does not read the settings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from reconciler.git.url import GitUrl, split_host_and_path

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True)
class GitRemoteLimits:
    """Limits for remotes whose host and path match `url`; None means the general limit."""

    url: str
    max_refs_per_push: int | None = None
    max_pushes_per_minute: int | None = None


@dataclass(frozen=True)
class GitOptions:
    """The settings group `git` as far as this package needs it; files are given by path.

    Attributes:
        timeout_seconds: The maximum duration of one Git call, and the maximum wait for a mirror's lock.
        author: Name and mail address of the daemon's commits and tags.
        allowed_urls: Patterns that an address must match (see `url.py`); empty allows https, ssh and local addresses.
        credentials_file: A file in the format of git-credential-store (`https://user:token@host`, one per line). It is
            never written.
        ssh_key_file: A deploy key; without it, ssh uses its own default.
        known_hosts_file: The hosts that may receive the deploy key; without it, ssh uses its own default.
        max_refs_per_push: The maximum number of refs in one push, unless one unit alone has more.
        max_pushes_per_minute: The maximum for one remote; 0 means no limit.
        remotes: Other values of these two limits for some remotes; the first match applies.
        max_object_bytes: Larger files, trees and commits are not read (`TooLargeError`).
        max_folder_files: Larger packages, and larger top-level folders of a config, are not read (`TooLargeError`).
        offline: Never contact a remote; use the mirrors as they are.
    """

    timeout_seconds: float = 120
    author: tuple[str, str] = ("reconciler", "reconciler@localhost")
    allowed_urls: tuple[str, ...] = ()
    credentials_file: str | None = None
    ssh_key_file: str | None = None
    known_hosts_file: str | None = None
    max_refs_per_push: int = 500
    max_pushes_per_minute: int = 0
    remotes: tuple[GitRemoteLimits, ...] = ()
    max_object_bytes: int = 64 * 2**20
    max_folder_files: int = 200_000
    offline: bool = False


def apply_remote_limits(options: GitOptions, url: GitUrl) -> GitOptions:
    """Return the options with the limits of one remote, taken from the first pattern that matches."""
    host, path = split_host_and_path(url)
    limits = next((entry for entry in options.remotes if _matches(f"{host}/{path}", entry.url)), None)
    if limits is None:
        return options
    refs, pushes = limits.max_refs_per_push, limits.max_pushes_per_minute
    return replace(
        options,
        max_refs_per_push=options.max_refs_per_push if refs is None else refs,
        max_pushes_per_minute=options.max_pushes_per_minute if pushes is None else pushes,
    )


def _matches(location: str, pattern: str) -> bool:
    """Return whether a pattern is the remote's host or address, a folder above it, or a glob over the whole address."""
    host, slash, path = _SCHEME.sub("", pattern, count=1).partition("/")
    normal_pattern = (host.lower() + slash + path).rstrip("/").removesuffix(".git")
    if any(character in normal_pattern for character in "*?"):
        return fnmatchcase(location, normal_pattern)
    return location == normal_pattern or location.startswith(f"{normal_pattern}/")
