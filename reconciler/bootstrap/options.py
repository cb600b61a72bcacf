"""Conversion of the settings to the options of the Git adapter and to the paths of cache files."""

from __future__ import annotations

from pathlib import Path

from reconciler.git.options import GitOptions, GitRemoteLimits
from reconciler.planning.model.shard import parse_shard
from reconciler.settings import Settings

INITIAL_BACKOFF_SECONDS = 5.0


def get_cache_file(settings: Settings, name: str) -> Path:
    """Return the path of a cache file. Each shard has its own file, because a write replaces the whole file."""
    shard = parse_shard(settings.shard)
    suffix = "" if shard.is_alone else f"-{shard.index}-of-{shard.count}"
    return Path(settings.cache).expanduser() / f"{name}{suffix}.json"


def build_git_options(settings: Settings) -> GitOptions:
    """Convert the settings group `git` to GitOptions."""
    git = settings.git
    name, _, mail = git.author.removesuffix(">").rpartition(" <")
    return GitOptions(
        timeout_seconds=git.timeout_seconds,
        author=(name, mail),
        allowed_urls=git.allowed_urls,
        credentials_file=git.credentials_file or None,
        ssh_key_file=git.ssh_key_file or None,
        known_hosts_file=git.known_hosts_file or None,
        max_refs_per_push=git.max_refs_per_push,
        max_pushes_per_minute=git.max_pushes_per_minute,
        max_folder_files=settings.limits.folder_files,
        remotes=tuple(
            GitRemoteLimits(remote.url, remote.max_refs_per_push, remote.max_pushes_per_minute)
            for remote in git.remotes
        ),
    )
