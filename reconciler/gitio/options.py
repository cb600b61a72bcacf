"""How we talk to Git: limits, identity, credentials. Plain values, handed in by whoever reads the settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RemoteLimits:
    """Limits of the remotes whose host and path match `url`; None is as for all others."""

    url: str
    max_refs_per_push: int | None = None
    max_pushes_per_minute: int | None = None


@dataclass(frozen=True)
class GitOptions:
    """The settings group `git` as this floor needs it (design 10.31); files are given by path.

    `timeout_seconds`: the longest one call of git may take, and the longest wait for a mirror's lock.
    `author`: name and mail address of our commits and tags.
    `allowed_urls`: patterns that an address must match (see `url.py`); empty allows https, ssh and local ones.
    `credentials_file`: in the form of git-credential-store, `https://user:token@host` by line; only ever read.
    `ssh_key_file`, `known_hosts_file`: a deploy key and the hosts it may be shown to; ssh's own places if absent.
    `max_refs_per_push`: at most so many refs in one push, unless one unit alone has more.
    `max_pushes_per_minute`: to one remote; 0 is without limit.
    `remotes`: other limits than these two for some remotes; the first that matches counts (see `limits.py`).
    `max_object_bytes`: a larger file, tree or commit is not read (`TooLargeError`).
    `max_folder_files`: a larger package, or top-level folder of a config, is not read (`TooLargeError`).
    `offline`: no remote is asked for anything; mirrors are as they were left.
    """

    timeout_seconds: float = 120
    author: tuple[str, str] = ("reconciler", "reconciler@localhost")
    allowed_urls: tuple[str, ...] = ()
    credentials_file: str | None = None
    ssh_key_file: str | None = None
    known_hosts_file: str | None = None
    max_refs_per_push: int = 500
    max_pushes_per_minute: int = 0
    remotes: tuple[RemoteLimits, ...] = ()
    max_object_bytes: int = 64 * 2**20
    max_folder_files: int = 200_000
    offline: bool = False
