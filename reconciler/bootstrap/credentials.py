"""Construction of the credentials of all remotes from the settings, and tokens of GitHub Apps for Git."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from reconciler.bootstrap.forges import ForgeRegistry
from reconciler.git.errors import AccessDeniedError, GitError, RateLimitedError, UnreachableError
from reconciler.git.remote_credentials import (
    TOKEN_USERNAME,
    CredentialEntry,
    CredentialSource,
    CredentialUse,
    GitHubApp,
    RemoteCredentials,
)
from reconciler.git.url import GitUrl, split_host_and_path
from reconciler.redaction import Secret
from reconciler.settings import Settings
from reconciler.telemetry.event_log import CredentialLog

if TYPE_CHECKING:
    from reconciler.forge.errors import ForgeError
    from reconciler.forge.github_app import AppToken
    from reconciler.settings.credentials import CredentialSettings, ReadCredentials


def build_remote_credentials(settings: Settings, forges: ForgeRegistry) -> RemoteCredentials:
    """Build the credentials of all remotes. Remotes without an entry use the deprecated settings of the group `git`."""
    git = settings.git
    default = CredentialSource(
        "git.credentials_file", credentials_file=git.credentials_file, ssh_key_file=git.ssh_key_file,
        known_hosts_file=git.known_hosts_file, is_default=True,
    )  # fmt: skip
    # Omit entries that contain only credentials of an API, because they have no effect on Git.
    entries = [_build_entry(index, entry) for index, entry in enumerate(git.credentials) if entry.read or entry.write]
    return RemoteCredentials(
        entries, default, GitAppTokens(forges), CredentialLog(), requires_known_hosts=not sys.stderr.isatty()
    )


def _build_entry(index: int, entry: CredentialSettings) -> CredentialEntry:
    setting = f"git.credentials[{index}]"
    push_url = entry.write.url if entry.write else ""
    read = _build_source(f"{setting}.read", entry.read) if entry.read else None
    write = _build_source(f"{setting}.write", entry.write, push_url) if entry.write else None
    return CredentialEntry(setting, entry.url, read, write)


def _build_source(setting: str, source: ReadCredentials, push_url: str = "") -> CredentialSource:
    app = source.github_app
    return CredentialSource(
        setting, source.token_file, source.username or TOKEN_USERNAME, source.credentials_file, source.ssh_key_file,
        source.known_hosts_file, GitHubApp(app.app_id, app.key_file, app.installation) if app else None, push_url,
    )  # fmt: skip


class GitAppTokens:
    """Tokens of GitHub Apps for Git access. Implements the Protocol `AppTokens` of `reconciler.git`.

    A token has only the permission to read the contents of a repository, or to read and write them.
    """

    def __init__(self, forges: ForgeRegistry) -> None:
        self._forges = forges

    def get_token(self, app: GitHubApp, url: GitUrl, use: CredentialUse) -> Secret:
        """Return a token that is valid for at least five minutes.

        Raises:
            GitError: GitHub returns no token, or cannot be reached.
        """
        from reconciler.forge.errors import ForgeError

        try:
            return self._find_token(app, url, use).get_secret()
        except ForgeError as error:
            raise _convert_error(error, url) from error

    def expire_token(self, app: GitHubApp, url: GitUrl, use: CredentialUse) -> None:
        """Let the next call of `get_token` request a new token."""
        self._find_token(app, url, use).expire()

    def _find_token(self, app: GitHubApp, url: GitUrl, use: CredentialUse) -> AppToken:
        from reconciler.forge.github_app import TokenRequest

        _, repository = split_host_and_path(url)
        if repository.count("/") != 1:
            raise AccessDeniedError(
                f"{url.text} must be https://HOST/OWNER/NAME, because its entry in `git.credentials` has a GitHub App"
            )
        request = TokenRequest(
            self._forges.get_github_api(url), app.app_id, app.key_file, repository, app.installation,
            (("contents", use),),
        )  # fmt: skip
        return self._forges.app_tokens.get(request)


def _convert_error(error: ForgeError, url: GitUrl) -> GitError:
    error_class = {"retry": UnreachableError, "wait": RateLimitedError}.get(error.next_step, AccessDeniedError)
    return error_class(f"cannot get a token of the GitHub App for {url.text}: {error}")
