"""Conversion of the settings to the options of the Git adapter and to the paths of cache files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.bootstrap.credentials import build_remote_credentials
from reconciler.bootstrap.forges import ForgeRegistry
from reconciler.git import signature_checks
from reconciler.git import signing as git_signing
from reconciler.git.options import GitOptions, GitRemoteLimits
from reconciler.planning.model.shard import parse_shard
from reconciler.reconcile import last_pass_file, verified_inputs
from reconciler.reconcile.input_verifier import InputVerifier, UncheckedInputs
from reconciler.settings import Settings

if TYPE_CHECKING:
    from reconciler.reconcile.last_pass_file import LastPassFile

# The first pause after a failure. The pause doubles with each further failure.
INITIAL_BACKOFF_SECONDS = 5.0


def get_cache_file(settings: Settings, name: str, suffix: str = ".json") -> Path:
    """Return the path of a cache file or folder. Each shard has its own path, because a write replaces the file."""
    shard = parse_shard(settings.shard)
    part = "" if shard.is_alone else f"-{shard.index}-of-{shard.count}"
    return Path(settings.cache).expanduser() / f"{name}{part}{suffix}"


def build_signer(settings: Settings, should_stop: Callable[[], bool] | None = None) -> git_signing.Signer | None:
    """Build the signer of new commits and tags. Return None if nothing is signed."""
    options = build_signing_options(settings)
    return git_signing.Signer(options, should_stop or git_signing.never_stop) if options else None


def build_signing_options(settings: Settings) -> git_signing.SigningOptions | None:
    """Convert the settings group `signing` to SigningOptions. Return None if nothing is signed."""
    signing = settings.signing
    if not signing.format:
        return None
    return git_signing.SigningOptions(
        signing.format,
        str(Path(signing.key_file).expanduser()),
        signing.key_id,
        find_gnupg_home(settings),
        frozenset(signing.sign),
        settings.git.timeout_seconds,
    )


def build_input_verifier(settings: Settings) -> InputVerifier:
    """Build the verifier of config commits and upstream commits."""
    signing = settings.signing
    if signing.verify_inputs == "off":
        return UncheckedInputs()
    cache_file = get_cache_file(settings, "signatures")
    return verified_inputs.VerifiedInputs(signing.verify_inputs, build_allowed_signers(settings), cache_file)


def build_allowed_signers(settings: Settings) -> signature_checks.AllowedSigners:
    """Return the keys whose signatures of inputs are valid."""
    signing = settings.signing
    file = str(Path(signing.allowed_signers_file).expanduser()) if signing.allowed_signers_file else ""
    # Do not use the default folder of gpg here, because all keys in it would be allowed.
    home = find_gnupg_home(settings) or "" if signing.gnupg_home else ""
    return signature_checks.AllowedSigners(file, home)


def find_gnupg_home(settings: Settings) -> str | None:
    """Return the folder of gpg. Return None if the settings do not require gpg.

    The caller must pass the folder to git, because git runs with a different home folder.
    """
    if settings.signing.format != "openpgp" and not settings.signing.gnupg_home:
        return None
    folder = settings.signing.gnupg_home or os.environ.get("GNUPGHOME") or "~/.gnupg"
    return str(Path(folder).expanduser())


def build_last_pass_file(settings: Settings) -> LastPassFile:
    """Return the cache file with the last pass of this shard on this machine."""
    return last_pass_file.LastPassFile(get_cache_file(settings, "last_pass"))


def build_git_options(settings: Settings, forges: ForgeRegistry | None = None) -> GitOptions:
    """Convert the settings group `git` to GitOptions. Git shares the tokens of GitHub Apps with `forges`."""
    git = settings.git
    name, _, mail = git.author.removesuffix(">").rpartition(" <")
    return GitOptions(
        timeout_seconds=git.timeout_seconds,
        author=(name, mail),
        allowed_urls=git.allowed_urls,
        credentials=build_remote_credentials(settings, forges or ForgeRegistry(settings, time.time)),
        gnupg_home=find_gnupg_home(settings),
        max_refs_per_push=git.max_refs_per_push,
        max_pushes_per_minute=git.max_pushes_per_minute,
        max_folder_files=settings.limits.folder_files,
        remotes=tuple(
            GitRemoteLimits(remote.url, remote.max_refs_per_push, remote.max_pushes_per_minute)
            for remote in git.remotes
        ),
    )
