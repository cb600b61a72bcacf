"""Options of Git access, such as limits, identity and credentials, as plain values.

This module does not read the settings.
"""

from __future__ import annotations

from reconciler.git.remote_credentials import RemoteCredentials
from reconciler.git.url import GitUrl, get_location, matches_location
from reconciler.lazy_dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class GitRemoteLimits:
    """Limits for the remotes whose host and path match the pattern `url`.

    If a limit is None, the limit for all remotes in `GitOptions` applies.
    """

    url: str
    max_refs_per_push: int | None = None
    max_pushes_per_minute: int | None = None


@dataclass(frozen=True)
class GitOptions:
    """The values of the settings group `git` that this package uses. Files are given by path.

    Attributes:
        timeout_seconds: The maximum duration of one Git call, and the maximum wait for the lock of a mirror.
        author: Name and mail address for the daemon's commits and tags.
        allowed_urls: Patterns of allowed addresses. If there are none, https, ssh and local addresses are allowed.
        credentials: The credentials of all remotes.
        gnupg_home: The folder of gpg, for the verification of OpenPGP signatures. None means that git must not verify
            such signatures.
        max_refs_per_push: The maximum number of refs in one push. A single unit with more refs is pushed alone.
        max_pushes_per_minute: The maximum number of pushes to one remote per minute. 0 means no limit.
        remotes: Different values of `max_refs_per_push` and `max_pushes_per_minute` for some remotes. The first entry
            whose pattern matches is used.
        max_object_bytes: The maximum size of a file, tree or commit. Reading a larger object raises TooLargeError.
        max_folder_files: The maximum number of files in a package or in a top-level folder of the config.
        offline: Whether every contact with a remote is forbidden. Commands then use the refs and objects in the
            mirrors.
    """

    timeout_seconds: float = 120
    author: tuple[str, str] = ("reconciler", "reconciler@localhost")
    allowed_urls: tuple[str, ...] = ()
    credentials: RemoteCredentials = field(default_factory=RemoteCredentials)
    gnupg_home: str | None = None
    max_refs_per_push: int = 500
    max_pushes_per_minute: int = 0
    remotes: tuple[GitRemoteLimits, ...] = ()
    max_object_bytes: int = 64 * 2**20
    max_folder_files: int = 200_000
    offline: bool = False


def apply_remote_limits(options: GitOptions, url: GitUrl) -> GitOptions:
    """Return `options` with the limits for the remote `url`. Use the first entry of `options.remotes` that matches."""
    location = get_location(url)
    limits = next((entry for entry in options.remotes if matches_location(location, entry.url)), None)
    if limits is None:
        return options
    refs, pushes = limits.max_refs_per_push, limits.max_pushes_per_minute
    return replace(
        options,
        max_refs_per_push=options.max_refs_per_push if refs is None else refs,
        max_pushes_per_minute=options.max_pushes_per_minute if pushes is None else pushes,
    )
